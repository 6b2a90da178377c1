// Opens HTML reports in Chromium and holds them to what they promise. Run by hand:
//   npm install playwright-core && node scripts/try_html.mjs OUT REPORT.html…     (CHROMIUM=/usr/bin/chromium)
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(resolve(process.env.PLAYWRIGHT ?? ".", "package.json"));
const { chromium } = require("playwright-core");
const [out, ...reports] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let failed = false;
const check = (fine, text) => {
  console.log(`${fine ? "ok" : "FAILED"}: ${text}`);
  failed ||= !fine;
};
for (const report of reports) {
  const name = basename(report, ".html");
  for (const [label, options] of [
    ["light", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
    ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
    ["phone", { viewport: { width: 390, height: 844 }, colorScheme: "light", deviceScaleFactor: 2, hasTouch: true }],
  ]) {
    const page = await browser.newPage(options);
    const problems = [], requests = [];
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => { if (!request.url().startsWith("file:")) requests.push(request.url()); });
    const started = Date.now();
    await page.goto(pathToFileURL(resolve(report)).href);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "1");
    const ready = Date.now() - started;
    check(problems.length === 0, `${name} ${label}: no console errors ${problems.join("; ")}`);
    check(requests.length === 0, `${name} ${label}: asks for nothing from elsewhere ${requests.join(" ")}`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1);
    check(!wide, `${name} ${label}: no sideways scroll`);
    console.log(`   ${name} ${label}: ready after ${ready} ms`);
    await page.screenshot({ path: `${out}/${name}-${label}.png` });
    await page.screenshot({ path: `${out}/${name}-${label}-whole.png`, fullPage: true, clip: undefined }).catch(() => {});
    if (label === "light") {
      const band = page.locator("canvas.band").first();
      if (await band.count()) {
        const { promised, drawn } = await band.evaluate((own) => ({
          promised: own.closest(".function").querySelector(".card b").textContent, drawn: own.dataset.drawn }));
        check(promised === drawn, `${name}: the band shows ${drawn} of ${promised} regions`);
        await band.focus();
        const at = Date.now();
        for (const key of ["n", "+", "+", "ArrowRight", "p", "-", "End", "Home"]) await page.keyboard.press(key);
        const keys = Date.now() - at;
        console.log(`   ${name}: eight keys in ${keys} ms`);
        check(keys < 2000, `${name}: answers keys`);
        const tip = await page.locator(".tip").first().textContent();
        check(tip.length > 0, `${name}: tells of the op under the cursor: ${tip.slice(0, 80)}`);
        await page.keyboard.press("0");
        const span = await band.evaluate((own) => Number(own.dataset.end) - Number(own.dataset.start));
        check(span > 0, `${name}: 0 shows all ${span} ops`);
      }
      // Each model has its own filters.
      const section = page.locator(".findings").first();
      const articles = section.locator("article");
      const all = await articles.count();
      if (all) {
        const visible = () => section.locator("article:visible").count();
        const before = await visible();
        const severity = await articles.first().getAttribute("data-severity");
        await section.locator(`input[value=${severity}]`).uncheck();
        const without = await visible();
        check(without < before, `${name}: the severity filter hides ${before - without} of ${before}`);
        await section.locator(`input[value=${severity}]`).check();
        const rule = await articles.first().getAttribute("data-rule");
        await section.locator("select[name=rule]").selectOption(rule);
        const of = await section.locator("article:visible").evaluateAll((list) => list.map((own) => own.dataset.rule));
        check(of.length > 0 && of.every((own) => own === rule), `${name}: the rule filter leaves ${of.length} of ${rule}`);
        await section.locator("select[name=rule]").selectOption("");
        await section.locator("input[name=module]").fill("no such module");
        check((await visible()) === 0, `${name}: the module filter`);
        await section.locator("input[name=module]").fill("");
        check((await visible()) === before, `${name}: all findings are back`);
      }
      await page.pdf({ path: `${out}/${name}.pdf`, printBackground: true }).catch(() => {});
    }
    await page.close();
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
