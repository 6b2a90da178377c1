"use strict";
(() => {
  const models = JSON.parse(document.getElementById("maps").textContent);
  const byQuery = (root, query) => Array.from(root.querySelectorAll(query));
  const make = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    return { on: get("--on"), on2: get("--on2"), off: get("--off"), unknown: get("--unknown"), ink: get("--ink"), line: get("--line") };
  };
  const big = (n, unit, step) => {
    const marks = ["", "k", "M", "G", "T", "P"];
    let at = 0;
    while (n >= step && at < marks.length - 1) { n /= step; at += 1; }
    return (n >= 100 || at === 0 ? Math.round(n) : n.toFixed(1)) + " " + marks[at] + unit;
  };
  const plural = (n, word) => n.toLocaleString("en") + " " + word + (n === 1 ? "" : "s");
  const redraws = [];

  // Sets the pixels of a canvas to those of the screen; gives its size in CSS pixels.
  const fit = (canvas) => {
    const box = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(box.width)), height = Math.max(1, Math.round(box.height));
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    return { context, width, height };
  };

  // Equal neighbours as one stretch: [first, end, state, region].
  const stretches = (map) => {
    const made = [];
    for (let at = 0; at < map.state.length; at += 1) {
      const last = made[made.length - 1];
      if (last && last[2] === map.state[at] && last[3] === map.region[at]) last[1] = at + 1;
      else made.push([at, at + 1, map.state[at], map.region[at]]);
    }
    return made;
  };
  const fill = (palette, state, region) =>
    state === 1 ? (region % 2 ? palette.on2 : palette.on) : state === 0 ? palette.off : palette.unknown;

  // Draws ops from `start` to `end` across a width. Where many fall on one pixel, an op off the unit wins:
  // a cut must not vanish.
  const paint = (context, map, runs, palette, start, end, width, top, height) => {
    const scale = width / (end - start);
    let low = 0, high = runs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (runs[middle][1] <= start) low = middle + 1; else high = middle;
    }
    const first = low;
    for (const wanted of [1, 2, 0]) {
      for (let at = first; at < runs.length && runs[at][0] < end; at += 1) {
        const [from, to, state, region] = runs[at];
        if (state !== wanted) continue;
        const x = (from - start) * scale;
        context.fillStyle = fill(palette, state, region);
        context.fillRect(x, top, Math.max((to - from) * scale, state === 0 ? 1 : 0.5), height);
      }
    }
    return first;
  };

  const band = (host, map) => {
    const total = map.nodes.length;
    if (!total) return;
    const runs = stretches(map);
    const regions = new Set(runs.map((own) => own[3]).filter((own) => own >= 0)).size;
    const canvas = make("canvas", { className: "band", tabIndex: 0 });
    const overview = make("canvas", { className: "overview" });
    const tip = make("p", { className: "tip" });
    tip.setAttribute("aria-live", "polite");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label",
      `${plural(total, "op")} in the order in which they run, ${plural(map.regions, "region")}. Arrow keys move, plus and minus zoom, N and P go to the next and the previous cut.`);
    let start = 0, end = total, cursor = -1;
    const button = (text, label, act) => {
      const made = make("button", { type: "button", textContent: text, onclick: act });
      made.setAttribute("aria-label", label);
      return made;
    };
    const view = (from, to) => {
      const span = Math.min(total, Math.max(8, to - from));
      start = Math.min(Math.max(0, from), total - Math.min(span, total));
      end = Math.min(total, start + span);
      draw();
    };
    const zoom = (factor, middle) => {
      const span = (end - start) * factor;
      view(middle - ((middle - start) / (end - start)) * span, middle + ((end - middle) / (end - start)) * span);
    };
    const centre = () => (cursor >= start && cursor < end ? cursor : (start + end) / 2);
    const legend = make("span", { className: "legend" });
    for (const [name, text] of [["on", "on the unit"], ["off", "off it"], ["unknown", "unknown"]]) {
      const chip = make("i", {});
      chip.style.background = `var(--${name})`;
      legend.append(make("span", {}, chip, text));
    }
    const tools = make("span", { className: "zoom" },
      button("−", "Zoom out", () => zoom(2, centre())), button("+", "Zoom in", () => zoom(0.5, centre())),
      button("All", "Show all ops", () => view(0, total)));
    host.classList.add("panel");
    host.append(make("h3", {}, make("span", {}, "Map"), legend, tools), canvas, overview, tip);

    const draw = () => {
      const palette = colours();
      const { context, width, height } = fit(canvas);
      const first = paint(context, map, runs, palette, start, end, width, 18, height - 18);
      const scale = width / (end - start);
      // Names of regions, where there is room; lines between ops, where they are wide.
      context.fillStyle = palette.ink;
      context.font = "11px system-ui, sans-serif";
      const seen = new Set();
      for (let at = first; at < runs.length && runs[at][0] < end; at += 1) {
        const [from, to, state, region] = runs[at];
        if (state !== 1 || region < 0) continue;
        seen.add(region);
        const x = Math.max(0, (from - start) * scale), space = (Math.min(to, end) - Math.max(from, start)) * scale;
        const text = `region ${region + 1}`;
        if (space > 62) context.fillText(text, x + 3, 12);
        else if (space > 18) context.fillText(String(region + 1), x + 2, 12);
      }
      if (scale > 7) {
        context.fillStyle = palette.line;
        for (let at = Math.ceil(start); at <= end; at += 1) context.fillRect((at - start) * scale - 0.5, 18, 1, height - 18);
      }
      if (scale > 46) {
        context.fillStyle = "#fff";
        context.font = "10px ui-monospace, monospace";
        for (let at = Math.floor(start); at < end && at < total; at += 1) {
          const name = map.kinds[map.kind[at]];
          context.fillText(name.slice(0, Math.floor((scale - 6) / 6)), (at - start) * scale + 4, height - 8);
        }
      }
      if (cursor >= start && cursor < end) {
        context.strokeStyle = palette.ink;
        context.lineWidth = 2;
        context.strokeRect((cursor - start) * scale, 17, Math.max(2, scale), height - 18);
      }
      canvas.dataset.regions = String(regions);
      canvas.dataset.drawn = String(seen.size);
      canvas.dataset.start = String(start);
      canvas.dataset.end = String(end);
      const whole = fit(overview);
      paint(whole.context, map, runs, palette, 0, total, whole.width, 0, whole.height);
      whole.context.fillStyle = palette.ink;
      whole.context.globalAlpha = 0.18;
      const left = (start / total) * whole.width, right = (end / total) * whole.width;
      whole.context.fillRect(0, 0, left, whole.height);
      whole.context.fillRect(right, 0, whole.width - right, whole.height);
      whole.context.globalAlpha = 1;
    };
    const tell = (at) => {
      cursor = Math.min(total - 1, Math.max(0, at));
      const state = ["off the unit", "on the unit", "unknown"][map.state[cursor]];
      const parts = [make("b", { textContent: map.nodes[cursor] }), ` ${map.kinds[map.kind[cursor]]} · `,
        map.region[cursor] >= 0 ? `region ${map.region[cursor] + 1}` : state];
      const module = map.modules[map.module[cursor]];
      if (module) parts.push(` · ${module}`);
      if (map.place[cursor] >= 0) parts.push(` · ${map.places[map.place[cursor]]}`);
      if (map.flops[cursor]) parts.push(` · ${big(map.flops[cursor], "FLOP", 1000)}`);
      if (map.bytes[cursor]) parts.push(` · ${big(map.bytes[cursor], "B", 1024)}`);
      if (map.reason[cursor] >= 0) parts.push(make("br", {}), map.reasons[map.reason[cursor]]);
      tip.replaceChildren(...parts);
      draw();
    };
    const opAt = (event) => {
      const box = canvas.getBoundingClientRect();
      return start + ((event.clientX - box.left) / box.width) * (end - start);
    };
    let dragged = null;
    canvas.addEventListener("pointermove", (event) => {
      if (!dragged) { tell(Math.floor(opAt(event))); return; }
      const box = canvas.getBoundingClientRect();
      const by = ((dragged.x - event.clientX) / box.width) * (dragged.end - dragged.start);
      view(dragged.start + by, dragged.end + by);
    });
    canvas.addEventListener("pointerdown", (event) => {
      dragged = { x: event.clientX, start, end };
      canvas.setPointerCapture(event.pointerId);
      tell(Math.floor(opAt(event)));
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { dragged = null; });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && document.activeElement !== canvas) return;
      event.preventDefault();
      const box = canvas.getBoundingClientRect();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const by = (event.deltaX / box.width) * (end - start);
        view(start + by, end + by);
      } else zoom(Math.exp(event.deltaY * 0.0015), opAt(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => zoom(0.25, opAt(event)));
    overview.addEventListener("pointerdown", (event) => {
      const box = overview.getBoundingClientRect();
      const middle = ((event.clientX - box.left) / box.width) * total, half = (end - start) / 2;
      view(middle - half, middle + half);
    });
    const seek = (step) => {
      let at = cursor < 0 ? (step > 0 ? -1 : total) : cursor;
      const inside = at >= 0 && at < total && map.state[at] === 0;
      if (inside) while (at >= 0 && at < total && map.state[at] === 0) at += step;
      else at += step;
      while (at >= 0 && at < total && map.state[at] !== 0) at += step;
      if (at < 0 || at >= total) return;
      if (at < start || at >= end) view(at - (end - start) / 2, at + (end - start) / 2);
      tell(at);
    };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act = {
        ArrowLeft: () => tell((cursor < 0 ? Math.ceil(start) : cursor) - 1), ArrowRight: () => tell(cursor < 0 ? Math.ceil(start) : cursor + 1),
        Home: () => { view(0, end - start); tell(0); }, End: () => { view(total - (end - start), total); tell(total - 1); },
        "+": () => zoom(0.5, centre()), "=": () => zoom(0.5, centre()), "-": () => zoom(2, centre()), 0: () => view(0, total),
        n: () => seek(1), p: () => seek(-1),
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
      if (cursor >= 0 && (cursor < start || cursor >= end)) view(cursor - (end - start) / 2, cursor + (end - start) / 2);
    });
    redraws.push(draw);
    draw();
  };

  // A strip for each layer, one below the other: what repeats, and what does not, shows at once.
  const layers = (host, map) => {
    const rows = new Map();
    const key = (path) => {
      const parts = path.split(".");
      const at = parts.findIndex((part) => /^\d+$/.test(part));
      return at < 0 ? parts[0] || "(no module)" : parts.slice(0, at + 1).join(".");
    };
    const keys = map.modules.map(key);
    for (let at = 0; at < map.nodes.length; at += 1) {
      const name = keys[map.module[at]];
      if (!rows.has(name)) rows.set(name, []);
      rows.get(name).push(at);
    }
    if (rows.size < 2) return;
    const most = Math.max(...Array.from(rows.values(), (list) => list.length));
    const grid = make("div", { className: "rows" });
    const strips = [];
    for (const [name, list] of Array.from(rows).slice(0, 200)) {
      const canvas = make("canvas", {});
      const off = list.filter((at) => map.state[at] === 0).length;
      const regions = new Set(list.map((at) => map.region[at]).filter((own) => own >= 0)).size;
      canvas.title = `${name}: ${plural(list.length, "op")}, ${off} off the unit, in ${plural(regions, "region")}`;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", canvas.title);
      grid.append(make("span", { textContent: name, title: name }), canvas);
      strips.push([canvas, list]);
    }
    host.classList.add("panel");
    host.append(make("h3", {}, make("span", {}, "Regions over the layers")), grid);
    if (rows.size > 200) host.append(make("p", { className: "hint", textContent: `and ${rows.size - 200} more` }));
    const draw = () => {
      const palette = colours();
      for (const [canvas, list] of strips) {
        const { context, width, height } = fit(canvas);
        const scale = width / most;
        for (const wanted of [1, 2, 0]) {
          list.forEach((at, index) => {
            if (map.state[at] !== wanted) return;
            context.fillStyle = fill(palette, map.state[at], map.region[at]);
            context.fillRect(index * scale, 0, Math.max(scale, wanted === 0 ? 1 : 0.5), height);
          });
        }
      }
    };
    redraws.push(draw);
    draw();
  };

  const modules = (host, map) => {
    const rows = map.modules.map((path) => ({ path: path || "(no module)", ops: 0, off: 0, bytes: 0, flops: 0 }));
    for (let at = 0; at < map.nodes.length; at += 1) {
      const row = rows[map.module[at]];
      row.ops += 1;
      row.off += map.state[at] === 0 ? 1 : 0;
      row.bytes += map.bytes[at];
      row.flops += map.flops[at];
    }
    if (!rows.length) return;
    const columns = [["path", "module"], ["ops", "ops"], ["off", "off the unit"], ["bytes", "bytes"], ["flops", "FLOPs"]];
    const body = make("tbody", {});
    let sorted = "flops", down = true, all = false;
    const heads = columns.map(([name, label]) => {
      const head = make("th", { scope: "col" }, make("button", { type: "button", textContent: label, onclick: () => {
        down = sorted === name ? !down : name !== "path";
        sorted = name;
        show();
      } }));
      head.dataset.name = name;
      return head;
    });
    const show = () => {
      rows.sort((a, b) => {
        const order = sorted === "path" ? a.path.localeCompare(b.path, "en", { numeric: true }) : a[sorted] - b[sorted];
        return (down ? -order : order) || a.path.localeCompare(b.path, "en", { numeric: true });
      });
      for (const head of heads) {
        if (head.dataset.name === sorted) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
      const shown = all ? rows : rows.slice(0, 12);
      body.replaceChildren(...shown.map((row) => make("tr", {},
        make("td", { textContent: row.path }), make("td", { textContent: row.ops.toLocaleString("en") }),
        make("td", { textContent: row.off ? row.off.toLocaleString("en") : "" }),
        make("td", { textContent: big(row.bytes, "B", 1024) }), make("td", { textContent: big(row.flops, "", 1000) }))));
      if (shown.length < rows.length) {
        const more = make("td", { colSpan: 5 }, make("button", { type: "button", textContent: `all ${rows.length} modules`, onclick: () => { all = true; show(); } }));
        body.append(make("tr", { className: "more" }, more));
      }
    };
    host.classList.add("panel");
    host.append(make("h3", {}, make("span", {}, "Modules")), make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
    show();
  };

  const filters = (section) => {
    const form = section.querySelector("form"), shown = section.querySelector(".shown");
    const articles = byQuery(section, "article");
    const apply = () => {
      const data = new FormData(form);
      const rule = data.get("rule"), severities = new Set(data.getAll("severity")), silent = data.has("silent");
      const words = String(data.get("module")).toLowerCase().trim();
      // `*` stands for anything, as in the module paths themselves.
      const pattern = words && new RegExp(words.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*"));
      let count = 0;
      for (const own of articles) {
        const fits = (!rule || own.dataset.rule === rule) && severities.has(own.dataset.severity) &&
          (silent || !own.dataset.silent) && (!pattern || pattern.test(own.dataset.words) || own.dataset.words.includes(words));
        own.hidden = !fits;
        count += fits ? 1 : 0;
      }
      shown.textContent = count === articles.length ? plural(count, "finding") : `${count} of ${articles.length}`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  };

  // A rule named in the ranking leads to its first finding.
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a.rule[href^="#rule-"]');
    if (!link) return;
    event.preventDefault();
    const found = link.closest(".model").querySelector(`article[data-rule="${CSS.escape(link.textContent.trim())}"]:not([hidden])`);
    if (!found) return;
    found.tabIndex = -1;
    found.scrollIntoView({ block: "center" });
    found.focus({ preventScroll: true });
  });

  const start = () => {
    for (const section of byQuery(document, ".model")) {
      const maps = models[Number(section.dataset.model)] || [];
      for (const [name, draw] of [["map", band], ["layers", layers], ["modules", modules]]) {
        for (const host of byQuery(section, `.${name}[data-function]`)) {
          const map = maps[Number(host.dataset.function)];
          if (map) draw(host, map);
        }
      }
    }
    byQuery(document, ".findings").forEach(filters);
    document.documentElement.dataset.ready = "1";
  };
  let waiting = 0;
  const again = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => redraws.forEach((draw) => draw()));
  };
  window.addEventListener("resize", again);
  window.addEventListener("beforeprint", () => redraws.forEach((draw) => draw()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  start();
})();
