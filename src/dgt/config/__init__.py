"""The settings: their definition, their validation, TOML files and presets.

:class:`Config` holds all settings, in parts that are also the tables of a TOML file and the groups
of flags of the command line. ``CRITERIA``, ``ENCODINGS``, ``MODELS`` and ``METRICS`` map the names
that settings can take to records, which live in the packages above. A record, and torch with it,
is imported when it is first used.
"""

from dgt.config.choices import CRITERIA, ENCODINGS, METRICS, MODELS, Choices
from dgt.config.config import (
    FIELDS,
    PARTS,
    TABLES,
    Config,
    check_tables,
    ignore_old_norm,
    own_defaults,
)
from dgt.config.data import DataConfig
from dgt.config.default_model import DEFAULT_MODEL, DEFAULT_SETTINGS
from dgt.config.encoding import EncodingChoice, EncodingConfig
from dgt.config.preset import presets, read_preset
from dgt.config.settings import (
    DEFAULT_CRITERIA,
    CriterionChoice,
    ModelConfig,
    SequenceConfig,
    TrainConfig,
)
from dgt.config.toml import read_toml, to_toml
from dgt.config.unused import complaints, missing, takes, unused

__all__ = [
    "CRITERIA",
    "DEFAULT_CRITERIA",
    "DEFAULT_MODEL",
    "DEFAULT_SETTINGS",
    "ENCODINGS",
    "FIELDS",
    "METRICS",
    "MODELS",
    "PARTS",
    "TABLES",
    "Choices",
    "Config",
    "CriterionChoice",
    "DataConfig",
    "EncodingChoice",
    "EncodingConfig",
    "ModelConfig",
    "SequenceConfig",
    "TrainConfig",
    "check_tables",
    "complaints",
    "ignore_old_norm",
    "missing",
    "own_defaults",
    "presets",
    "read_preset",
    "read_toml",
    "takes",
    "to_toml",
    "unused",
]
