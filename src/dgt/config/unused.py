"""Settings that somebody has set and that the chosen model does not use."""

from collections.abc import Iterable

from dgt.config.choices import CRITERIA, MODELS
from dgt.config.config import TABLES, Config

INPUTS = {"sequences": "sequences", "encoding": "encoding"}
"""The input of a model that the settings of a table are about."""
OF_ENCODINGS = {
    "katz": ("katz_order", "katz_beta", "katz_scaling", "anchors", "anchor_rule"),
    "laplacian": ("laplacian_columns",),
    "node2vec": ("node2vec_channels", "node2vec_p", "node2vec_q"),
}
"""The settings of encodings, by the start of their names."""
OF_CRITERIA = {
    "ppr_alpha": ("ppr",),
    "ppr_tolerance": ("ppr",),
    "sharpness": ("alike", "similarity"),
}
"""The settings of criteria, with a part of the names of those criteria."""
OF_RBF = ("gamma", "epsilon")
"""The settings of the kernel that bilinear interpolation has no use for."""
DECAYS = ("feature_weight_decay", "encoding_weight_decay", "key_weight_decay")


def unused(config: Config, names: Iterable[str]) -> list[str]:
    """Returns those of the named settings that have another value than the default of the model and
    no effect on it."""
    # The record imports torch, so it is only used if necessary.
    own, default = config.flat(), Config.of(config.model.model).flat()
    names = (name for name in names if own[name] != default[name])
    return [name for name in names if not takes(config, name) or missing(config, name)]


def missing(config: Config, name: str) -> str | None:
    """Returns the flag, with its value, without which a setting has no effect, if it is missing."""
    kind = next((kind for kind, names in OF_ENCODINGS.items() if name in names), None)
    if kind is not None:
        used = config.encoding.encodings
        # Nobody knows what a registered function reads.
        there = any(not isinstance(e, str) or e.startswith(kind) for e in used)
        return None if there else f"--encoding {kind}"
    kinds = OF_CRITERIA.get(name)
    criteria = config.sequences.criteria
    if kinds is not None and criteria is not None:
        own = any(CRITERIA.place(c) is None for c in criteria)
        there = own or any(kind in str(c) for c in criteria for kind in kinds)
        return None if there else f"--criteria {' or '.join(kinds)}"
    bilinear = config.model.interpolation == "bilinear"
    return "--interpolation rbf" if name in OF_RBF and bilinear else None


def takes(config: Config, name: str) -> bool:
    """Returns whether a setting has an effect on the model, if nothing is :func:`missing`."""
    if name == "sharpness":
        return "closeness" in config.record.inputs
    return _uses(config.model.model, name)


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
        if TABLES[name] not in INPUTS and not takes(config, name):
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
