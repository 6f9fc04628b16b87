"""Presets: tuned settings for the benchmarks, shipped with the package."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dgt.config.choices import MODELS
from dgt.config.toml import read_toml
from dgt.errors import InputError


def presets() -> dict[str, Path]:
    """Returns the files of the presets by name, a benchmark and a model: ``chameleon-dgt``."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "presets").glob("*.toml"))}


def read_preset(graph: str, model: str) -> dict[str, Any]:
    """Returns the tables of the preset for a benchmark and a model."""
    files = presets()
    if f"{graph}-{model}" not in files:
        missing = f"preset: found none for {model} on {graph}; leave out --preset to use the "
        raise InputError(f"{missing}defaults of {model}, or {_advice(graph, model, files)}")
    return read_toml(files[f"{graph}-{model}"])


def _advice(graph: str, model: str, files: Iterable[str]) -> str:
    """Returns which presets come closest: of other models for the graph, or of other graphs."""
    found = [_parts(name) for name in files]
    if able := [name for name in MODELS.built_in if (graph, name) in found]:
        return (
            f"choose a model that has a preset for {graph}, such as --model {able[-1]}: "
            f"{', '.join(able)}"
        )
    own = sorted(name for name, its in found if its == model)
    graphs = own or sorted({name for name, _ in found})
    has = f"{model} has presets" if own else "there are presets"
    close = difflib.get_close_matches(graph, graphs, n=2)
    return f"choose a benchmark; {has} for {', '.join(close or graphs)}"


def _parts(name: str) -> tuple[str, str]:
    """Returns the benchmark and the model of a preset's name. Both may contain hyphens."""
    model = max((each for each in MODELS.built_in if name.endswith(f"-{each}")), key=len)
    return name.removesuffix(f"-{model}"), model
