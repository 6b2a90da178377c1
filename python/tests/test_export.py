"""The Python side, with torch: `ANELINT=target/debug/anelint pytest python/tests`."""
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import anelint  # noqa: E402
from torch import nn  # noqa: E402


def causal_mask(size, dtype):
    return torch.full((size, size), float("-inf"), dtype=dtype).triu(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32))
        self.register_buffer("scale", torch.full((1,), 0.125))
        self.register_buffer("table", torch.zeros(600, 1024), persistent=False)

    def forward(self, x):
        scores = (x @ self.weight) * self.scale + self.table[:32, :32]
        mask = causal_mask(32, x.dtype)
        return torch.softmax(scores + mask, -1)


def model():
    return Attention().half().eval(), (torch.zeros(1, 32, 32, dtype=torch.half),)


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def test_parameters_are_dropped_and_small_buffers_kept(tmp_path):
    module, args = model()
    path = tmp_path / "a.pt2"
    assert anelint.export(module, args, path) == str(path)
    inside = members(path)
    document = json.loads(inside["extra/anelint-source-map.json"])
    assert document["dropped"] == ["table", "weight"]
    weights = json.loads(inside["data/weights/model_weights_config.json"])["config"]
    assert inside[f"data/weights/{weights['weight']['path_name']}"] == b""
    assert inside[f"data/weights/{weights['scale']['path_name']}"] == b"\x00\x30"
    assert path.stat().st_size < 12_000


def test_the_source_map_names_the_helper_with_its_columns(tmp_path):
    module, args = model()
    anelint.export(module, args, tmp_path / "a.pt2", folder=Path(__file__).parent)
    document = json.loads(members(tmp_path / "a.pt2")["extra/anelint-source-map.json"])
    frame = document["frames"][document["stacks"][document["nodes"]["full"]][-1]]
    file, function, text, line, column, end_line, end_column = frame
    assert document["files"][file]["path"] == "test_export.py"
    assert document["functions"][function] == "causal_mask"
    text = document["texts"][text]
    assert text.strip().startswith("return torch.full(")
    assert line == end_line or sys.version_info < (3, 11)
    if sys.version_info >= (3, 11):
        assert text[column - 1 : end_column - 1] == 'torch.full((size, size), float("-inf"), dtype=dtype)'


def test_equal_exports_are_equal_files(tmp_path):
    for name in ("a.pt2", "b.pt2"):
        torch.manual_seed(0)
        module, args = model()
        anelint.export(module, args, tmp_path / name)
    assert (tmp_path / "a.pt2").read_bytes() == (tmp_path / "b.pt2").read_bytes()


def test_torch_opens_it(tmp_path):
    module, args = model()
    anelint.export(module, args, tmp_path / "a.pt2")
    program = torch.export.load(str(tmp_path / "a.pt2"))
    assert program.state_dict["weight"].shape == (32, 32)


def test_modules_without_weights(tmp_path):
    with anelint.without_weights():
        big = nn.Sequential(nn.Linear(65536, 65536), nn.Linear(65536, 8)).half().eval()
    assert {parameter.device.type for parameter in big.parameters()} == {"meta"}
    anelint.export(big, (torch.zeros(1, 65536, dtype=torch.half),), tmp_path / "a.pt2")
    assert {parameter.device.type for parameter in big.parameters()} == {"meta"}
    with torch.device("meta"):
        module, args = model()
    anelint.export(module, args, tmp_path / "b.pt2")
    assert (tmp_path / "b.pt2").stat().st_size < 12_000


def test_a_module_is_as_it_was_after_a_failed_export(tmp_path):
    class Broken(nn.Module):
        def forward(self, x):
            return x.nonsense()

    with torch.device("meta"):
        module = Broken()
        module.register_parameter("weight", nn.Parameter(torch.zeros(4)))
    with pytest.raises(Exception):
        anelint.export(module, (torch.zeros(4),), tmp_path / "a.pt2")
    assert module.weight.device.type == "meta"
    assert not (tmp_path / "a.pt2").exists() and list(tmp_path.iterdir()) == []
    from torch.fx.proxy import TracerBase

    assert TracerBase.create_node.__module__ == "torch.fx.proxy"


def test_check_returns_findings_in_the_helper():
    module, args = model()
    found = anelint.check(module, args)
    masks = found.of("ANE004")
    assert len(masks) == 1
    assert masks[0].file.endswith("test_export.py")
    line = Path(__file__).read_text().splitlines()[masks[0].line - 1]
    assert line[masks[0].column - 1 :].startswith('float("-inf")')
    assert found.functions[0].name == "main" and found.regions is not None
    assert "inf-mask" in found.text


def test_assert_resident_fails_with_the_report():
    module, args = model()
    with pytest.raises(AssertionError, match="ANE004"):
        anelint.assert_resident(module, args)
    assert anelint.assert_resident(module, args, fail_on="error", ignore=["ANE"], select=["COM"]) is not None


def test_the_command_line(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "def factory():\n"
        "    return torch.nn.ReLU().eval(), (torch.zeros(1, 4, 1, 4),)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(anelint.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-m", "anelint.export", "net:factory", "-o", "out/net.pt2"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "net.pt2").exists()
    done = subprocess.run([*command[:5], "net:none"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 2 and "net has no none" in done.stderr


def test_both_ways_to_the_function():
    import anelint.export as command

    assert callable(command) and callable(anelint.export)
