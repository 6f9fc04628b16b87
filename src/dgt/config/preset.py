"""Presets: tuned settings for the benchmarks, shipped with the package."""

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
        able = [name for name in MODELS.built_in if f"{graph}-{name}" in files]
        missing = f"preset: found none for {model} on {graph}"
        if not able:
            raise InputError(f"{missing}, expected one of {', '.join(files)}")
        raise InputError(
            f"{missing}; leave out --preset to use the defaults of {model}, or choose a model that "
            f"has a preset for {graph}, such as --model {able[-1]}: {', '.join(able)}"
        )
    return read_toml(files[f"{graph}-{model}"])
