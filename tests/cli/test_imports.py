"""Commands load only what they need: importing takes most of the time of a short command."""

import subprocess
import sys
from pathlib import Path

import pytest

from dgt.cli import main
from tests.small import block_graph, flags, write_folder

HEAVY = (
    "bokeh",
    "faiss",
    "matplotlib",
    "optuna",
    "scipy.spatial",
    "sklearn",
    "starlette",
    "sympy",
    "torch._dynamo",
    "torch_geometric.datasets",
    "torch_geometric.nn",
    "triton",
)
RUN = """
import sys
from types import ModuleType
from dgt.cli import main

assert main(sys.argv[2:]) == 0
loaded = (sys.modules.get(name) for name in sys.argv[1].split())
print("LOADED", *(module.__name__ for module in loaded if type(module) is ModuleType))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    graph = write_folder(folder / "graph", block_graph())
    tokens = ["train", str(graph), "--out", str(folder / "run"), "--quiet"]
    assert main([*tokens, *flags(epochs=3)]) == 0
    return folder / "run"


def loaded(*tokens: str | Path) -> list[str]:
    """Returns those of ``HEAVY`` that a command executes."""
    command = [sys.executable, "-c", RUN, " ".join(HEAVY), *map(str, tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


def test_predict(run: Path, tmp_path: Path):
    assert loaded("predict", run, "--out", tmp_path / "predictions.csv") == []


def test_explain(run: Path):
    assert loaded("explain", run, "n0") == []


def test_a_baseline_of_pyg_loads_its_layers(run: Path, tmp_path: Path):
    graph, out = run.parent / "graph", tmp_path / "gcn"
    assert main(["train", str(graph), "--model", "gcn", "--out", str(out), "--quiet"]) == 0
    assert loaded("predict", out, "--out", tmp_path / "predictions.csv") == ["torch_geometric.nn"]
