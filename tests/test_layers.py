"""Imports point downward only."""

import ast
from pathlib import Path

import pytest

import dgt

ROOT = Path(dgt.__file__).parent
# Top to bottom. A module may import those of the lines below its own.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["tune"],
    ["experiments"],
    ["runs", "workers"],
    ["estimator"],
    ["modelfile", "train"],
    ["budget", "distributed"],
    ["steps"],
    ["checkpoint", "folder"],
    ["plots"],
    ["evaluate", "explain", "flops", "report"],
    ["prepare"],
    ["models"],
    ["baselines"],
    ["nn"],
    ["sequences", "encodings", "structures"],
    ["index"],
    ["graph", "threads", "blocks", "machine"],
    ["datasets", "progress"],
    ["io"],
    ["splits"],
    ["files"],
    ["config"],
    ["errors"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part(path: Path) -> str:
    """The module or package right under ``dgt`` that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The modules and packages right under ``dgt`` that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    pieces = [name.split(".") for name in names]
    return {piece[1] for piece in pieces if piece[0] == "dgt" and len(piece) > 1} & set(LEVEL)


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downward(path: Path):
    own = part(path)
    assert own in LEVEL, f"{own} has no place in the layers"
    upward = {name for name in imported(path) - {own} if LEVEL[name] <= LEVEL[own]}
    assert upward == set()


def test_every_layer_exists():
    assert {part(path) for path in FILES} == set(LEVEL)
