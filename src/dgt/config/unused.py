"""Settings that somebody has set and that the chosen model does not use."""

from collections.abc import Iterable

from dgt.config.choices import MODELS
from dgt.config.config import TABLES, Config

INPUTS = {"sequences": "sequences", "encoding": "encoding"}
"""The input of a model that the settings of a table are about."""
DECAYS = ("feature_weight_decay", "encoding_weight_decay", "key_weight_decay")


def unused(config: Config, names: Iterable[str]) -> list[str]:
    """Returns those of the named settings that have another value than the default of the model and
    no effect on it."""
    # The record imports torch, so it is only used if necessary.
    own, default = config.flat(), Config.of(config.model.model).flat()
    return [n for n in names if own[n] != default[n] and not _uses(config.model.model, n)]


def complaints(config: Config, names: Iterable[str], flags: bool = False) -> list[str]:
    """Returns a message for each of the named settings of the network that the model does not use.
    Those of sequences and encodings are left out: they are often the same for several models.

    Args:
        config: The settings.
        names: Names of the settings that were set explicitly.
        flags: Whether to call the settings by their flags.
    """
    found = []
    for name in unused(config, names):
        if TABLES[name] not in INPUTS:
            place = f"--{name.replace('_', '-')}" if flags else name
            able = ", ".join(model for model in MODELS if _uses(model, name))
            found.append(
                f"{place}: got {config.flat()[name]!r}, which model {config.model.model} does not "
                f"use, expected one of the models {able}"
            )
    return found


def _uses(model: str, name: str) -> bool:
    table = TABLES[name]
    if table not in ("model", *INPUTS) and name not in DECAYS:
        return True
    record = MODELS[model]
    return record.uses(name) or (table in INPUTS and INPUTS[table] in record.inputs)
