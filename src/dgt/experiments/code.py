"""A digest of the code that decides the result of a run.

It covers the modules that read the benchmarks, compute the model's inputs, define the model and
train it, found by following the imports in their source code. Comments, docstrings and formatting
do not count, nor do modules that only handle settings, files or output, and neither do other
models, criteria and encodings.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import dgt
from dgt.config import CRITERIA, ENCODINGS, MODELS, Config

ROOT = Path(dgt.__file__).parent
SHARED = (
    *("dgt.data.benchmarks", "dgt.estimator.model", "dgt.evaluate.classification"),
    "dgt.nn.ensemble",
)
"""Modules that every run starts from."""
INPUTS = "dgt.prepare.inputs"
"""The module with the dict ``INPUTS``, of which a run uses the entries of its model."""
EVERY_RUN = {"data", "estimator", "evaluate", "models", "prepare", "training"}
"""Parts of the package that are followed from ``SHARED``."""
SOME_RUNS = {"baselines", "encodings", "nn", "ops", "sequences"}
"""Parts of the package that are followed from the records and inputs of a run only."""
# Readers of the user's own files.
ASIDE = ("dgt.data.files", "dgt.data.recipe")


def digest(config: Config) -> str | None:
    """Returns the digest of the code that decides a run with these settings, or None if a part of
    it was registered outside of the package."""
    used = places(config)
    known = frozenset(place for place in used if place is not None)
    return None if None in used else _digest(known, config.record.inputs)


def places(config: Config) -> list[str | None]:
    """Returns the places of the records of a run's model, criteria and encodings, such as
    ``dgt.baselines.gcn:MODEL``, or None in place of one from outside of the package."""
    record = config.record
    found = [MODELS.place(config.model.model)]
    if "sequences" in record.inputs:
        found += [CRITERIA.place(choice) for choice in config.criteria]
        if config.sequences.criteria is None:  # the graph decides which
            found += [CRITERIA.place(choice) for choice in record.directed_criteria]
    if "encoding" in record.inputs:
        found += [ENCODINGS.place(choice) for choice in config.encoding.encodings]
        if config.encoding.encoding == Config.of(config.model.model).encoding.encoding:
            found += [ENCODINGS.place(choice) for choice in record.rule_encodings]
    return found


@cache
def _digest(places: frozenset[str], inputs: tuple[str, ...]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for module in sorted(modules(places, inputs)):
        total.update(f"{module} {_hash(module)}\n".encode())
    return total.hexdigest()


def modules(places: Iterable[str], inputs: Iterable[str]) -> set[str]:
    """Returns the modules that decide a run.

    Args:
        places: The :func:`places` of the run's records.
        inputs: Names of the model's inputs.
    """
    own = {_home(*place.split(":")) for place in places}
    own |= {module for name in inputs for module in _input_modules(name)}
    return _closure(SHARED, EVERY_RUN) | _closure(own, EVERY_RUN | SOME_RUNS)


def _closure(roots: Iterable[str], parts: set[str]) -> set[str]:
    found: set[str] = set()
    left = list(roots)
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += [
                each
                for each in _imports(module).values()
                if each.split(".")[1] in parts and not each.startswith(ASIDE)
            ]
    return found


def _input_modules(name: str) -> set[str]:
    """Returns the modules that compute an input: those whose names its entry in ``INPUTS`` uses
    directly or in the functions of this module that it calls."""
    tree, imports = _tree(INPUTS), _imports(INPUTS)
    own = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    found: set[str] = set()
    seen: set[str] = set()
    left = [_entry(tree, name)]
    while left:
        nodes = list(ast.walk(left.pop()))
        seen |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = imports.get(node.value.id)
                if module is not None:
                    found.add(_home(module, node.attr))
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                if node.id in own:
                    left.append(own[node.id])
                elif node.id in imports and not _is_package(imports[node.id]):
                    found.add(imports[node.id])
    return {module for module in found if module.split(".")[1] in SOME_RUNS}


def _entry(tree: ast.Module, name: str) -> ast.AST:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "INPUTS":
            assert isinstance(node.value, ast.Dict)
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if key is not None and ast.literal_eval(key) == name:
                    return value
    raise KeyError(name)


@cache
def _imports(module: str) -> dict[str, str]:
    """Returns the module of the package behind each name that a module imports."""
    found = {}
    for node in _nodes(_tree(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dgt":
            for alias in node.names:
                found[alias.asname or alias.name] = _home(str(node.module), alias.name)
    return {name: home for name, home in found.items() if "." in home}


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a tree, except those for type checkers only."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _nodes(child)


def _home(module: str, name: str) -> str:
    """Returns the module that defines a name, which a package may import from another module."""
    if _path(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    return _imports(module).get(name, module) if _is_package(module) else module


def _is_package(module: str) -> bool:
    path = _path(module)
    return path is not None and path.name == "__init__.py"


def _path(module: str) -> Path | None:
    """Returns the file of a module of the package, or None if there is no such module."""
    base = ROOT.joinpath(*module.split(".")[1:])
    candidates = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    assert path is not None, module
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _hash(module: str) -> str:
    return hashlib.blake2b(repr(plain(_tree(module))).encode(), digest_size=16).hexdigest()


def plain(node: Any) -> Any:
    """Returns source code as nested tuples, without docstrings and places.

    Unlike ``ast.dump``, it does not depend on fields that newer versions of Python add.
    """
    if isinstance(node, list):
        return [plain(each) for each in node if not _is_text(each)]
    if not isinstance(node, ast.AST):
        return node
    fields = ((name, value) for name, value in ast.iter_fields(node) if name != "kind")
    return type(node).__name__, *(
        (name, plain(value)) for name, value in fields if value is not None and value != []
    )


def _is_text(node: Any) -> bool:
    """Returns whether a statement is a string, such as a docstring."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
