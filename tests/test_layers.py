"""Imports point downward only."""

import ast
from pathlib import Path

import pytest

import dgt

ROOT = Path(dgt.__file__).parent
# Top to bottom. A module may import modules of the lines below its own.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["tune"],
    ["experiments"],
    ["explore"],
    ["report"],
    ["runs.many"],
    ["estimator"],
    ["inspection"],
    ["training"],
    ["runs"],
    ["evaluate", "explain"],
    ["prepare"],
    ["models"],
    ["baselines"],
    ["nn"],
    ["ops"],
    ["sequences", "encodings"],
    ["data"],
    ["storage"],
    ["system"],
    ["config"],
    ["errors"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part(dotted: str) -> str:
    """Returns the entry of LAYERS that a module belongs to; its name is given without ``dgt``."""
    pieces = dotted.split(".")
    for count in (2, 1):
        if ".".join(pieces[:count]) in LEVEL:
            return ".".join(pieces[:count])
    return pieces[0]


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imported(path: Path) -> set[str]:
    """Returns the entries of LAYERS that a file imports, except for type checking only."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    inside = {name.removeprefix("dgt.") for name in names if name.startswith("dgt.")}
    return {part(name) for name in inside} & set(LEVEL)


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path: Path):
    own = part(module(path))
    assert own in LEVEL, f"{own} has no place in the layers"
    upward = {name for name in imported(path) - {own} if LEVEL[name] <= LEVEL[own]}
    assert upward == set()


def test_every_layer_exists():
    assert {part(module(path)) for path in FILES} == set(LEVEL)
