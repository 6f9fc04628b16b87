"""The model of a run for which none is chosen.

The dataclasses of the settings hold the defaults of the paper's DGT. Those of the default model
that differ are here and not in its record, so that ``dgt --help`` can show them without torch.
"""

from typing import Any

DEFAULT_MODEL = "dgt-plus"
DEFAULT_SETTINGS: dict[str, Any] = {
    "encoding": "degree",
    "length": 32,
    "value_dropout": 0.5,
    "encoding_dropout": 0.0,
    "node_dropout": 0.0,
    "labels": "read",
    "key_weight_decay": 0.1,
    "encoding_weight_decay": 5e-4,
    "average": 0.9,
}
"""Settings whose defaults for :data:`DEFAULT_MODEL` differ from those of the dataclasses."""
