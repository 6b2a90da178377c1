"""Plants one fault at a time in the clean modules, by text edits, and writes `mutations/*.py`.

    python testdata/mutate.py                          # writes the mutated sources
    python testdata/export.py --room mutations         # exports them

A mutant is the clean module with one edit; `§` in an edit stands for the expectation on that line.
What must be found is what is found in the clean module of the same name (`clean_*`, written here
too, in the mutants' smaller size), and that one thing more. Where a converter folds the fault away,
the expectation says so for that format.
"""
import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SMALL = ("C, HEADS, HIDDEN, S = 64, 2, 128, 32", "C, HEADS, HIDDEN, S = 32, 2, 64, 32")
X, ROPE, MASK, CACHE, IMAGE = "f[1,32,1,32]", "f[1,16,1,32]", "f[1,64,1,32]", "f[2,1,32,1,32]", "f[1,3,32,64]"
BASES = {
    "CleanBlock": [X, ROPE, ROPE],
    "CleanDecoder": [X, CACHE, CACHE, ROPE, ROPE, MASK],
    "CleanStateful": [X, ROPE, ROPE, MASK],
    "CleanEncoder": [IMAGE],
    "CleanVision": [IMAGE],
}
# The lines that several mutants edit or mark.
ATTEND = "        outs = [self.attend(q, k.transpose(1, 3), v, mask) for q, k, v in zip(qs, ks, vs)]\n        return self.o_proj"
PROBS = "        probs = (scores + mask).softmax(dim=1)\n"
SCORES = '        scores = torch.einsum("bchq,bkhc->bkhq", q * self.scale, k)\n' + PROBS
BUFFER = "        mask = torch.full((S, S), -40000.0).tril(-1)\n"
FIRST = "        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)\n"
LAST = "        return x + self.mlp(self.post_norm(x))\n"
NORM = "        return x * torch.rsqrt(mean_square + self.eps) * self.weight\n"
SILU = "        return self.down_proj(F.silu(self.gate_proj(x)) * up)\n"
SCALE = '        self.register_buffer("scale", torch.tensor(D**-0.5))\n\n    def attend'
TAIL = "        x = F.relu(self.point(x * gate)).mean(dim=(2, 3), keepdim=True)\n"


def at(text, mark="        outs = [self.attend"):
    """Adds § to the line of `text` that begins with `mark`."""
    return "\n".join(line + "§" if line.startswith(mark) else line for line in text.split("\n"))


MARKED = at(ATTEND)
# name: (module, expectation, edits, inputs when they differ, further keys of the case)
MUTANTS = {
    "mask_neginf": ("CleanBlock", "ANE004", [(BUFFER, '        mask = torch.full((S, S), float("-inf")).tril(-1)\n'), (ATTEND, MARKED)]),
    "mask_1e9": ("CleanBlock", "ANE004", [(BUFFER, "        mask = torch.full((S, S), -1e9).tril(-1)\n"), (ATTEND, MARKED)]),
    "mask_1e9_literal": ("CleanBlock", "ANE005; aimodel: ANE004", [
        (FIRST, "        future = torch.ones(S, S, dtype=torch.bool).tril(-1).view(1, S, 1, S)\n        x = x + self.attention(self.input_norm(x), cos, sin, future)\n"),
        (PROBS, "        probs = scores.masked_fill(mask, -1e9).softmax(dim=1)\n"), (ATTEND, MARKED)]),
    "mask_transposed": ("CleanBlock", "ANE014", [(BUFFER, "        mask = torch.full((S, S), -40000.0).triu(1)\n"), (ATTEND, MARKED)]),
    "mask_default_dtype": ("CleanBlock", "ANE001; aimodel: ANE001|ANE003", [
        (PROBS, "        probs = (scores + torch.full((S, S), -40000.0).tril(-1).view(1, S, 1, S)).softmax(dim=1).to(v.dtype)\n"), (ATTEND, MARKED)]),
    "mask_summed": ("CleanBlock", "ANE067; aimodel: ANE004", [(FIRST, "        x = x + self.attention(self.input_norm(x), cos, sin, self.mask + self.mask)§\n")]),
    "mask_bool_added": ("CleanBlock", "COM029", [
        (FIRST, "        keep = torch.ones(S, S, dtype=torch.bool).triu().view(1, S, 1, S)\n        x = x + self.attention(self.input_norm(x), cos, sin, keep)\n"), (ATTEND, MARKED)]),
    "softmax_axis": ("CleanBlock", "ANE015", [(PROBS, "        probs = (scores + mask).softmax(dim=-1)\n"), (ATTEND, MARKED)]),
    "softmax_fp32": ("CleanBlock", "ANE003", [(PROBS, "        probs = (scores + mask).softmax(dim=1, dtype=torch.float32).to(v.dtype)\n"), (ATTEND, MARKED)]),
    "scale_attribute": ("CleanBlock", "ANE001", [(SCALE, "        self.scale = torch.tensor(D**-0.5)\n\n    def attend"), (ATTEND, MARKED)]),
    "norm_ones": ("CleanBlock", "ANE001; aimodel: ANE001|ANE003", [(NORM, "        return (x * torch.rsqrt(mean_square + self.eps) * (torch.ones(1) + self.weight)).to(x.dtype)§\n")]),
    "residual_literal": ("CleanBlock", "ANE001", [(LAST, "        return x + self.mlp(self.post_norm(x)) * torch.tensor(0.5)§\n")]),
    "norm_fp32": ("CleanBlock", "ANE003", [("        mean_square = (x * x).mean(dim=1, keepdim=True)\n", "        mean_square = x.float().square().mean(dim=1, keepdim=True).to(x.dtype)§\n")]),
    "pooling_fp32": ("CleanBlock", "ANE003", [(LAST, "        x = x + self.mlp(self.post_norm(x))\n        return x * x.float().mean(dim=3, keepdim=True).to(x.dtype)§\n")]),
    "eps_zero": ("CleanBlock", "ANE039", [("eps=1e-4", "eps=1e-12"), (NORM, NORM.replace("\n", "§\n"))]),
    "linear_down": ("CleanBlock", "ANE006=error", [
        ("        self.down_proj = nn.Conv2d(HIDDEN, C, 1, bias=False)\n", "        self.down_proj = nn.Linear(HIDDEN, C, bias=False)\n"),
        (SILU, "        h = (F.silu(self.gate_proj(x)) * up).transpose(1, 3)\n        return self.down_proj(h).transpose(1, 3)§\n")]),
    "linear_query": ("CleanBlock", "ANE006=error", [
        ("        self.q_proj = nn.Conv2d(C, C, 1, bias=False)\n", "        self.q_proj = nn.Linear(C, C, bias=False)\n"),
        ("for q in self.q_proj(x).split(D, dim=1)]\n", "for q in self.q_proj(x.transpose(1, 3)).transpose(1, 3).split(D, dim=1)]§\n")]),
    "rope_split": ("CleanBlock", "ANE020", [
        ("        qs = [rotate(q, cos, sin) for q in self.q_proj(x).split(D, dim=1)]\n", "        qs = rotate(self.q_proj(x), cos.repeat(1, HEADS, 1, 1), sin.repeat(1, HEADS, 1, 1)).split(D, dim=1)§\n")]),
    "rope_gather": ("CleanBlock", "ANE018", [
        ("        self.register_buffer(\"mask\", mask.view(1, S, 1, S))\n",
         "        self.register_buffer(\"mask\", mask.view(1, S, 1, S))\n        self.register_buffer(\"table\", torch.rand(2 * S, D))\n"),
        ("    def forward(self, x, cos, sin):\n        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)\n",
         "    def forward(self, x, positions, sin):\n        cos = self.table[positions].transpose(1, 2).unsqueeze(2)§\n        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)\n")],
        [X, "i64[1,32]<64", ROPE]),
    "rank6": ("CleanBlock", "ANE007=error", [(LAST, "        x = x + self.mlp(self.post_norm(x))\n        return x.view(4, 4, 2, 2, 4, 4).permute(5, 4, 3, 2, 1, 0).reshape(1, C, 1, S)§\n")]),
    "topk": ("CleanBlock", "ANE025=error", [(FIRST, FIRST + "        x = x * torch.topk(x, 4, dim=1).values.mean(dim=1, keepdim=True)§\n")]),
    "argmax": ("CleanBlock", "ANE023=error", [(FIRST, FIRST + "        x = x * x.argmax(dim=1, keepdim=True).to(x.dtype)§\n")]),
    "cumsum": ("CleanBlock", "ANE023=error", [(FIRST, FIRST + "        x = x + torch.cumsum(x, dim=3)§\n")]),
    "cond": ("CleanBlock", "ANE026", [(FIRST, FIRST + "        x = torch.cond(x.abs().max() < 4.0, lambda h: torch.tanh(h), lambda h: torch.relu(h), (x,))§\n")]),
    "softplus": ("CleanBlock", "ANE041", [(SILU, "        gate = torch.log(1.0 + torch.exp(self.gate_proj(x)))§\n        return self.down_proj(gate * up)\n")]),
    "glu": ("CleanBlock", "ANE061; decomp: ANE003; aimodel: ANE003", [(SILU, "        return self.down_proj(F.glu(torch.cat([self.gate_proj(x), up], dim=1), dim=1))§\n")]),
    "overflow": ("CleanBlock", "ANE040", [(LAST, "        return x + torch.sigmoid(self.mlp(self.post_norm(x))) * 70000.0§\n")]),
    "fused": ("CleanBlock", "ANE017=warning", [
        (ATTEND, "        q, k = torch.stack(qs, 1).squeeze(3), torch.stack(ks, 1).squeeze(3)\n        v = torch.stack(vs, 1).squeeze(3)\n"
                 "        q, k, v = (t.transpose(2, 3) for t in (q, k, v))\n        out = F.scaled_dot_product_attention(q, k, v)§\n"
                 "        outs = list(out.transpose(2, 3).unsqueeze(3).unbind(1))\n        return self.o_proj")]),
    "last_dim": ("CleanBlock", "case: ANE008=warning", [("C, HEADS, HIDDEN, S = 32, 2, 64, 32", "C, HEADS, HIDDEN, S = 64, 2, 64, 33")], ["f[1,64,1,33]", "f[1,32,1,33]", "f[1,32,1,33]"]),
    "embedding_inside": ("CleanBlock", "ANE021", [
        ("        self.register_buffer(\"mask\", mask.view(1, S, 1, S))\n", "        self.register_buffer(\"mask\", mask.view(1, S, 1, S))\n        self.types = nn.Embedding(16, C)\n"),
        ("    def forward(self, x, cos, sin):\n        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)\n",
         "    def forward(self, x, cos, sin, kinds):\n        x = x + self.attention(self.input_norm(x), cos, sin, self.mask)\n        x = x + self.types(kinds).transpose(1, 2).unsqueeze(2)§\n")],
        [X, ROPE, ROPE, "i64[1,32]<16"]),
    "raw_key": ("CleanDecoder", "case: ANE011", [
        ("        keys = torch.cat([past_k, k], dim=3)\n", "        raw = self.k_proj(x)\n        keys = torch.cat([past_k, k], dim=3)\n"),
        ("        return self.o_proj(torch.cat(outs, dim=1)), k, v\n\n\nclass CleanDecoder", "        return self.o_proj(torch.cat(outs, dim=1)), raw, v\n\n\nclass CleanDecoder")]),
    "decoder_dynamic": ("CleanDecoder", "case: ANE009=warning; aimodel: ANE009=error", [], None,
        {"dynamic": {"x": None, "k_cache": {4: ("past", 2, 64)}, "v_cache": {4: ("past", 2, 64)}, "cos": None, "sin": None, "mask": {1: ("past+32", 0, 0)}}}),
    "write_position": ("CleanStateful", "ANE012", [
        ("    def forward(self, x, k_state, v_state, layer, cos, sin, mask):\n", "    def forward(self, x, k_state, v_state, layer, cos, sin, mask, position):\n"),
        ("        k_state[layer : layer + 1, :, :, :, S:] = k.unsqueeze(0)\n        v_state[layer : layer + 1, :, :, :, S:] = v.unsqueeze(0)\n",
         "        start = position.item()\n        torch._check(start >= 0)\n        torch._check(start + S <= 2 * S)\n"
         "        k_state[layer : layer + 1, :, :, :, start : start + S] = k.unsqueeze(0)§\n        v_state[layer : layer + 1, :, :, :, start : start + S] = v.unsqueeze(0)§\n"),
        ("    def forward(self, x, cos, sin, mask):\n        x = x + self.attention(self.input_norm(x), self.k_state, self.v_state, 0, cos, sin, mask)\n",
         "    def forward(self, x, cos, sin, mask, position):\n        x = x + self.attention(self.input_norm(x), self.k_state, self.v_state, 0, cos, sin, mask, position)\n")],
        [X, ROPE, ROPE, MASK, "i64[1]=3"]),
    "affine_order": ("CleanEncoder", "ANE052", [("        return centred * torch.rsqrt(variance + self.eps) * self.weight + self.bias\n", "        return (centred * torch.rsqrt(variance + self.eps) + self.bias) * self.weight§\n")]),
    "conv_stride": ("CleanVision", "ANE031", [("nn.Conv2d(3, 16, 3, stride=2, padding=1)", "nn.Conv2d(3, 16, 7, stride=5, padding=3)"), ("        x = F.relu(self.bn(self.stem(images)))\n", "        x = F.relu(self.bn(self.stem(images)))§\n")]),
    "conv_dilation": ("CleanVision", "ANE033", [("nn.Conv2d(16, 16, 3, padding=1, groups=16)", "nn.Conv2d(16, 16, 3, padding=5, dilation=5, groups=16)"), ("        x = F.silu(self.depthwise(x))\n", "        x = F.silu(self.depthwise(x))§\n")]),
    "conv_kernel": ("CleanVision", "ANE029=error", [("nn.Conv2d(16, 16, 3, padding=1, groups=16)", "nn.Conv2d(16, 16, 17, padding=8, groups=16)"), ("        x = F.silu(self.depthwise(x))\n", "        x = F.silu(self.depthwise(x))§\n")]),
    "pool_stride": ("CleanVision", "ANE034", [(TAIL, "        x = F.max_pool2d(x, 3, stride=3)§\n" + TAIL)]),
    "pool_kernel": ("CleanVision", "ANE035=error", [(TAIL, "        x = F.max_pool2d(x, 9, stride=1, padding=4)§\n" + TAIL)]),
    "head_linear": ("CleanVision", "ANE006=advice", [
        ("        self.head = nn.Conv2d(32, 32, 1)\n", "        self.head = nn.Linear(32, 32)\n"), ("        return self.head(x).flatten(1)\n", "        return self.head(x.flatten(1))§\n")]),
}
del MUTANTS["decoder_dynamic"]  # torch.export cannot tie the mask's extent to the caches' by a name alone


def needed(source, name):
    """The part of the clean file that one module is made of."""
    tree = ast.parse(source)
    defined = {n.name: n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    keep, queue = set(), [name]
    while queue:
        current = queue.pop()
        if current in keep or current not in defined:
            continue
        keep.add(current)
        queue += [n.id for n in ast.walk(defined[current]) if isinstance(n, ast.Name)]
    lines = source.splitlines(keepends=True)
    head = "".join(lines[: min(n.lineno for n in defined.values()) - 1])
    parts = ["".join(lines[n.lineno - 1 : n.end_lineno]) for n in tree.body if getattr(n, "name", None) in keep]
    return re.sub(r'^""".*?"""\n', '"""The clean module in the mutants\' size."""\n', head, flags=re.S) + "\n\n".join(p + "" for p in parts)


def write(name, module, source, inputs, more):
    case = ", ".join([f'"make": {module}', f'"inputs": {inputs!r}', '"mlpackage": False, "onnx": False', *(f"{k!r}: {v!r}" for k, v in more.items())])
    text = source.rstrip("\n") + f'\n\n\nCASES = {{"mutant_{name}": {{{case}}}}}\n'
    (HERE / "mutations" / f"{name}.py").write_text(text, encoding="utf-8")


def main():
    clean = (HERE / "cases" / "clean_block.py").read_text(encoding="utf-8")
    assert clean.count(SMALL[0]) == 1
    clean = clean.replace(*SMALL)
    (HERE / "mutations").mkdir(exist_ok=True)
    for old in (HERE / "mutations").glob("*.py"):
        old.unlink()
    for module, inputs in BASES.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", module).lower()
        write(name, module, needed(clean, module), inputs, {})
    for name, (module, expected, edits, *rest) in MUTANTS.items():
        source = needed(clean, module)
        for old, new in edits:
            assert source.count(old) == 1, (name, source.count(old), old)
            source = source.replace(old, new)
        about, _, _ = source.partition("\n")
        source = source.replace(about, f'"""{module} with one fault: {name}."""', 1)
        if expected.startswith("case: "):
            source = source.replace(f"class {module}(nn.Module):", f"class {module}(nn.Module):  # expect-case: {expected[6:]}", 1)
        else:
            assert "§" in source, name
            source = source.replace("§", f"  # expect: {expected}")
        inputs = rest[0] if rest and rest[0] else BASES[module]
        write(name, module, source, inputs, rest[1] if len(rest) > 1 else {})
    print(len(MUTANTS), "mutants of", len(BASES), "clean modules written")


if __name__ == "__main__":
    main()
