"""What the README shows, runs."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"

if not README.exists():
    pytest.skip("needs the source folder", allow_module_level=True)

BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.DOTALL | re.MULTILINE)
FLAGS = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README.read_text()))


def test_there_are_examples():
    assert BLOCKS


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"README.md, example {number + 1}", "exec"), {"__name__": "x"})


def test_the_flags_exist(capsys):
    from dgt.cli import main

    shown = ""
    for command in ("train", "prepare", "predict", "explain", "info", "reproduce", "tune"):
        assert main([command, "--help"]) == 0
        shown += capsys.readouterr().out
    of_torchrun = {"--nproc-per-node", "--max-restarts"}
    assert {flag for flag in FLAGS if flag not in shown} <= {"--version", "--help"} | of_torchrun
