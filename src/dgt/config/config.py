"""All settings of a run in one object."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgt.config.checks import typed
from dgt.config.choices import MODELS, Choices
from dgt.config.data import DataConfig
from dgt.config.default_model import DEFAULT_MODEL, DEFAULT_SETTINGS
from dgt.config.encoding import EncodingConfig
from dgt.config.settings import (
    CriterionChoice,
    ModelConfig,
    SequenceConfig,
    TrainConfig,
)
from dgt.config.toml import to_toml
from dgt.errors import InputError, nearest

if TYPE_CHECKING:
    from dgt.nn.record import Model

_BY_MODEL: Any = None


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run. Together with the graph, they determine the result.

    ``Config()`` has the defaults of the default model, dgt-plus, and :meth:`of` those of another
    one. A part that is given counts as it is: the defaults of :class:`ModelConfig`,
    :class:`SequenceConfig`, :class:`EncodingConfig` and :class:`TrainConfig` are those of the
    paper's DGT. Parts that are not given have the defaults of the model. To change single settings,
    use :meth:`replace`.
    """

    data: DataConfig = field(default_factory=DataConfig)
    sequences: SequenceConfig = _BY_MODEL
    encoding: EncodingConfig = _BY_MODEL
    model: ModelConfig = _BY_MODEL
    train: TrainConfig = _BY_MODEL
    explicit: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """Names of the settings that were set explicitly, even if to the default. Others may follow
    from the graph, see :attr:`dgt.nn.Model.rule`."""

    def __post_init__(self) -> None:
        self._fill_in_parts()
        given = self.sequences.criteria
        # The record imports torch, so it is only used if necessary.
        if given is not None and len(given) > 1 and self.record.single_criterion:
            names = ", ".join(FIELDS["criteria"].metadata["choices"].name(each) for each in given)
            raise InputError(f"criteria: {self.model.model} takes one criterion, got {names}")
        train = self.train
        if train.compile and (train.batch_size is not None or train.chunk_size is not None):
            raise InputError("compile: not supported with batch_size or chunk_size")
        for name in ("batch_size", "chunk_size", "compile"):
            if getattr(train, name) in (None, False):
                continue
            if not self.record.batching:
                able = batching_models()
                raise InputError(f"{name}: only {able} support it, got model {self.model.model}")
            if self.model.norm == "batch" and name != "compile":
                raise InputError(
                    f"{name}: a batch norm needs all nodes at once; choose another norm"
                )
        labels, name = self.model.labels, self.model.model
        if labels not in ("none", own_defaults(name).get("labels")) and not self.reads("labels"):
            able = _models(lambda record: "labels" in record.inputs)
            raise InputError(f"labels: got {labels!r}, which only {able} can use, got model {name}")

    def _fill_in_parts(self) -> None:
        """Gives the parts that are missing the defaults of the model."""
        model = DEFAULT_MODEL if self.model is _BY_MODEL else self.model.model
        missing = [table for table in PARTS if getattr(self, table) is _BY_MODEL]
        defaults = {"model": model} | own_defaults(model) if missing else {}
        for table in missing:
            values = {name: value for name, value in defaults.items() if TABLES[name] == table}
            object.__setattr__(self, table, PARTS[table](**values))

    def reads(self, name: str) -> bool:
        """Returns whether the model has an input."""
        return name in self.record.inputs

    @property
    def record(self) -> "Model":
        """The record of the model."""
        return MODELS[self.model.model]

    @property
    def criteria(self) -> tuple[CriterionChoice, ...]:
        """The criteria in use: those that are set, or the model's default."""
        given = self.sequences.criteria
        return self.record.criteria if given is None else given

    def flat(self) -> dict[str, Any]:
        """Returns all settings by name, with names in place of functions."""
        return {
            name: _written(FIELDS[name], value)
            for part in PARTS
            for name, value in vars(getattr(self, part)).items()
        }

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Returns one table per part, without unset settings and with names in place of
        functions."""
        flat = self.flat()
        tables: dict[str, dict[str, Any]] = {table: {} for table in PARTS}
        for name, value in flat.items():
            if value is not None:
                tables[TABLES[name]][name] = value
        return tables

    def to_toml(self) -> str:
        """Returns the settings as the text of a TOML file."""
        return to_toml(self.to_dict())

    @classmethod
    def from_dict(cls, tables: dict[str, Any], place: str = "settings") -> "Config":
        """The inverse of :meth:`to_dict`. Missing settings get the default of the model.

        Args:
            tables: The settings, one table per part.
            place: Name of their source in error messages.
        """
        checked = check_tables(tables, place)
        explicit = frozenset(name for values in checked.values() for name in values)
        model = checked.setdefault("model", {}).setdefault("model", DEFAULT_MODEL)
        for name, value in own_defaults(model).items():
            checked.setdefault(TABLES[name], {}).setdefault(name, value)
        made = {}
        for table, values in checked.items():
            try:
                made[table] = PARTS[table](**values)
            except InputError as error:
                raise InputError(f"{place}: [{table}] {error}") from None
        return cls(**made, explicit=explicit)

    @classmethod
    def given(cls, config: "Config | None", **settings: Any) -> "Config":
        """Checks a user's settings: an object, or None for the defaults, and settings by name."""
        if config is not None and not isinstance(config, Config):
            kind = config.__name__ if isinstance(config, type) else type(config).__name__
            raise InputError(
                f"config: got {kind}, expected a Config; pass single settings by name, "
                "such as lr=0.005"
            )
        return (config or cls()).replace(**settings)

    @classmethod
    def of(cls, model: str) -> "Config":
        """Returns the defaults of a model."""
        return cls.from_dict({"model": {"model": model}})

    def replace(self, **settings: Any) -> "Config":
        """Returns a copy with other values for some settings of any part.

        If the model changes, settings that equal the default of the old model get the default of
        the new one. Other settings are kept.
        """
        for name, value in settings.items():
            if name not in TABLES:
                raise InputError(f"unknown setting {name!r}; {nearest(name, TABLES)}")
            settings[name] = typed(FIELDS[name], value, name)
        explicit = self.explicit | frozenset(settings)
        settings = self._changed_defaults(settings.get("model", self.model.model)) | settings
        tables: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            tables.setdefault(TABLES[name], {})[name] = value
        parts = {t: dataclasses.replace(getattr(self, t), **v) for t, v in tables.items()}
        return dataclasses.replace(self, **parts, explicit=explicit)

    def by_rule(self, rule: dict[str, Any]) -> "Config":
        """Returns a copy in which the settings of a rule that nobody has set get its values."""
        default = Config.of(self.model.model).flat()
        own = self.flat()
        unset = {n for n in rule if n not in self.explicit and own[n] == default[n]}
        made = self.replace(**{name: value for name, value in rule.items() if name in unset})
        return dataclasses.replace(made, explicit=self.explicit)

    def _changed_defaults(self, model: str) -> dict[str, Any]:
        """Returns the defaults of another model for the settings that equal the old default."""
        if model == self.model.model:
            return {}
        own = self.flat()
        before, after = Config.of(self.model.model).flat(), Config.of(model).flat()
        return {
            name: after[name]
            for name in own
            if name != "model" and own[name] == before[name] != after[name]
        }


PARTS: dict[str, Any] = {
    "data": DataConfig,
    "sequences": SequenceConfig,
    "encoding": EncodingConfig,
    "model": ModelConfig,
    "train": TrainConfig,
}
FIELDS = {f.name: f for part in PARTS.values() for f in dataclasses.fields(part)}
TABLES = {f.name: table for table, part in PARTS.items() for f in dataclasses.fields(part)}


def batching_models() -> str:
    """Returns the names of the models that can process a part of the nodes at a time."""
    return _models(lambda record: record.batching)


def _models(able: "Callable[[Model], bool]") -> str:
    *names, last = sorted(name for name in MODELS if able(MODELS[name]))
    return f"{', '.join(names)} and {last}" if names else last


def own_defaults(model: str | None) -> dict[str, Any]:
    """Returns the defaults of a model that differ from those of the dataclasses."""
    if model == DEFAULT_MODEL:  # without importing the record
        return DEFAULT_SETTINGS
    if model is None or model == ModelConfig.model or model not in MODELS:
        return {}
    return MODELS[model].defaults


def check_tables(tables: dict[str, Any], place: str) -> dict[str, dict[str, Any]]:
    """Checks the names and types of the settings of a TOML file.

    Args:
        tables: The settings, one table per part.
        place: Name of their source in error messages.

    Returns:
        The settings, converted to the types of their fields.
    """
    checked: dict[str, dict[str, Any]] = {}
    for table, values in tables.items():
        if table not in PARTS:
            raise InputError(f"{place}: unknown table [{table}]; {nearest(table, PARTS)}")
        if not isinstance(values, dict):
            raise InputError(f"{place}: [{table}] must be a table, got {values!r}")
        checked[table] = {}
        for name, value in values.items():
            if TABLES.get(name) != table:
                raise InputError(
                    f"{place}: [{table}] unknown setting {name!r}; {_like(name, table)}"
                )
            checked[table][name] = typed(FIELDS[name], value, f"{place}: [{table}] {name}")
    ignore_old_norm(checked.get("model", {}))
    _ignore_old_labels(checked.get("model", {}))
    return checked


def ignore_old_norm(settings: dict[str, Any]) -> None:
    """Drops the norm from complete settings of a graph neural network that are older than ``skip``:
    until then, these networks had no norm, whatever was written."""
    model = settings.get("model")
    if _complete(settings) and "skip" not in settings and own_defaults(model).get("norm") == "none":
        settings["norm"] = "none"


def _ignore_old_labels(settings: dict[str, Any]) -> None:
    """Drops ``labels`` from complete settings of a model that does not use them: such runs were
    once accepted."""
    model = settings.get("model", DEFAULT_MODEL)
    used = settings.get("labels", "none") in ("none", own_defaults(model).get("labels"))
    if used or not _complete(settings) or model not in MODELS:
        return
    if "labels" not in MODELS[model].inputs:
        settings["labels"] = "none"


def _complete(settings: dict[str, Any]) -> bool:
    """Returns whether the settings of a model are those of a run. Settings that somebody wrote do
    not have all of these."""
    return {"model", "norm", "keys", "interpolation", "normalize"} <= settings.keys()


def _like(name: str, table: str) -> str:
    """Suggests the right table for a known setting, or a similar setting of this table."""
    if name in TABLES:
        return f"it belongs to [{TABLES[name]}]"
    return nearest(name, (name for name, home in TABLES.items() if home == table))


def _written(setting: dataclasses.Field[Any], value: Any) -> Any:
    """Returns a setting as it is written to files, with names in place of functions."""
    choices: Choices[Any] | None = setting.metadata.get("choices")
    if choices is None or value is None:
        return value
    if isinstance(value, tuple):
        return tuple(choices.name(each) for each in value)
    return choices.name(value)
