"""Presets: tuned settings for the benchmarks, shipped with the package."""

from pathlib import Path
from typing import Any

from dgt.config.toml import read_toml
from dgt.errors import InputError


def presets() -> dict[str, Path]:
    """Returns the files of the presets by name, a benchmark and a model: ``chameleon-dgt``."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "presets").glob("*.toml"))}


def read_preset(graph: str, model: str) -> dict[str, Any]:
    """Returns the tables of the preset for a benchmark and a model."""
    files = presets()
    if f"{graph}-{model}" not in files:
        near = [name for name in files if name.startswith(f"{graph}-")] or files
        raise InputError(
            f"preset: found none for {model} on {graph}, expected one of {', '.join(near)}"
        )
    return read_toml(files[f"{graph}-{model}"])
