"""How settings reach a command: flags, settings files, presets and the defaults of a model.

Flags take precedence over ``--config``, which takes precedence over ``--preset``, which takes
precedence over the defaults of the model. A resumed run starts from its own ``config.toml``.
"""

import os
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import App, Group, Parameter, Token
from cyclopts.argument import Argument, ArgumentCollection

from dgt.cli.defaults import show_defaults
from dgt.config import (
    DEFAULT_MODEL,
    TABLES,
    Config,
    DataConfig,
    EncodingConfig,
    ModelConfig,
    SequenceConfig,
    TrainConfig,
    check_tables,
    complaints,
    missing,
    own_defaults,
    read_preset,
    read_toml,
    takes,
    unused,
)
from dgt.errors import InputError
from dgt.system import machine, plugins
from dgt.system.notes import note_once

DEFAULTS = Config()
# The defaults of the dataclasses; those of another model differ in some settings.
PAPER = {name: value for name, value in Config.of("dgt").flat().items() if value is not None}
NAME_BYTES = 255  # the limit of common file systems
RUN_KEYS = ("graph", "runs")  # keys of a run's config.toml that are not settings

_explicit: ContextVar[tuple[str, ...]] = ContextVar("explicit", default=())
_flags: ContextVar[tuple[str, ...]] = ContextVar("flags", default=())


def _group(title: str, order: int) -> Parameter:
    return Parameter(name="*", group=Group(title, sort_key=order, help_formatter=show_defaults))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SettingsFlags:
    """One flag per setting, grouped as in the settings files."""

    data: Annotated[DataConfig, _group("Own tables", 6)] = DEFAULTS.data
    sequences: Annotated[SequenceConfig, _group("Sequences", 2)] = DEFAULTS.sequences
    encoding: Annotated[EncodingConfig, _group("Positional encoding", 3)] = DEFAULTS.encoding
    model: Annotated[ModelConfig, _group("Model", 4)] = DEFAULTS.model
    train: Annotated[TrainConfig, _group("Training", 5)] = DEFAULTS.train

    def config(self) -> Config:
        """Returns the settings as one checked :class:`dgt.Config`."""
        return Config(**vars(self), explicit=frozenset(explicit_settings()))


NO_FLAGS = SettingsFlags()


def explicit_settings() -> tuple[str, ...]:
    """Returns the names of the settings that were set explicitly, even if to their default.

    Flags, ``--config`` and ``--preset`` set settings explicitly; the defaults of a model do not.
    """
    return _explicit.get()


def given_as_flags() -> tuple[str, ...]:
    """Returns the names of the settings that have a flag, and not only a file that sets them."""
    return _flags.get()


def require_used_flags(*configs: Config) -> None:
    """Raises an error if a flag sets what no model uses. A file may: those of runs have all
    settings."""
    names = given_as_flags()
    unused_by_all = [set(unused(config, names)) for config in configs]
    names = tuple(n for n in names if all(n in each for each in unused_by_all))
    for complaint in complaints(configs[0], names, flags=True):
        raise InputError(complaint)
    models = " or ".join(config.model.model for config in configs)
    for name in names:
        needs = [missing(c, name) for c in configs if takes(c, name)]
        without = "".join(f" without {need}" for need in dict.fromkeys(needs) if need is not None)
        note_once(f"--{name.replace('_', '-')}: has no effect on {models}{without}")


def fill_in(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fills in the settings that have no flag; called by cyclopts before it converts any value.

    Modules of ``--import`` are imported first: what they register is then known when the settings
    are checked.
    """
    machine.require_address_space()
    given = {argument.name: argument.tokens for argument in arguments}
    for token in given.get("--import", []):
        plugins.load(token.value)
    for argument in arguments:
        _require_integers(argument)
        if argument.name == "GRAPH" or Path in (argument.hint, *get_args(argument.hint)):
            _require_path(argument)
    _flags.set(_settings_in(arguments))
    for token in given.get("--config", []):
        tables = read_toml(Path(token.value))
        _require_same_model(arguments, tables, token.value)
        _fill_in_file(arguments, tables, token.value)
    preset = any(token.implicit_value is True for token in given.get("--preset", []))
    if preset and given.get("GRAPH"):
        graph, model = given["GRAPH"][0].value, _model(arguments)
        _fill_in_file(arguments, read_preset(graph, model), f"preset {graph}-{model}")
    elif given.get("--resume") and given.get("--out") and not given.get("--config"):
        path = Path(given["--out"][0].value) / "config.toml"
        if path.is_file():
            _fill_in_file(arguments, read_toml(path), str(path))
    _explicit.set(_settings_in(arguments))
    if "--model" in given:
        model = _model(arguments)
        defaults = PAPER | {"model": model} | own_defaults(model)
        _fill_in_values(arguments, defaults, f"default of {model}")


def _settings_in(arguments: ArgumentCollection) -> tuple[str, ...]:
    """Returns the names of the settings that have a value so far."""
    names = (a.name.removeprefix("--").replace("-", "_") for a in arguments if a.tokens)
    return tuple(name for name in names if name in TABLES)


def _require_same_model(arguments: ArgumentCollection, tables: dict[str, Any], place: str) -> None:
    """Raises an error if a file has the settings of another model than a flag names: values that
    suit one model would silently become those of another."""
    flag = arguments.get("--model", default=None)
    table = tables.get("model")
    named = table.get("model") if isinstance(table, dict) else None
    if flag is None or not flag.tokens or named is None:
        return
    wanted = _model(arguments)
    if named != wanted:
        raise InputError(
            f"{place}: has the settings of model {named!r}, got --model {wanted}; leave out "
            "--model, or remove model and what belongs to it from the file"
        )


def _require_integers(argument: Argument) -> None:
    """Raises an error if an option for an integer is given another number.

    cyclopts would round 1.5 to 2.
    """
    if int not in (argument.hint, *get_args(argument.hint)):
        return
    for token in argument.tokens:
        if "." in token.value:
            raise InputError(f"{argument.name}: expected an integer, got {token.value!r}")


def _require_path(argument: Argument) -> None:
    """Raises an error if a value cannot be a path."""
    for token in argument.tokens:
        parts = token.value.split("/")
        if token.value == "" or any(len(os.fsencode(part)) > NAME_BYTES for part in parts):
            wanted = f"a path, with names of at most {NAME_BYTES} bytes"
            raise InputError(f"{argument.name}: got {token.value!r}, expected {wanted}")
        if "\0" in token.value:
            raise InputError(f"{argument.name}: got {token.value!r}, expected no zero byte")


def with_file(config: Config, path: Path, fixed: tuple[str, ...]) -> Config:
    """Returns ``config`` with the settings of a file, except the model and the fixed ones."""
    tables = _checked(read_toml(path), str(path))
    settings = {name: value for values in tables.values() for name, value in values.items()}
    return config.replace(**{n: v for n, v in settings.items() if n not in (*fixed, "model")})


def _checked(tables: dict[str, Any], place: str) -> dict[str, dict[str, Any]]:
    return check_tables({n: values for n, values in tables.items() if n not in RUN_KEYS}, place)


def _fill_in_file(arguments: ArgumentCollection, tables: dict[str, Any], place: str) -> None:
    for values in _checked(tables, place).values():
        _fill_in_values(arguments, values, place)


def _fill_in_values(arguments: ArgumentCollection, values: dict[str, Any], place: str) -> None:
    for name, value in values.items():
        argument = arguments.get(f"--{name.replace('_', '-')}")
        if argument.tokens:
            continue
        # A setting that may also be a single name takes a tuple as one value.
        one_by_one = isinstance(value, tuple) and str not in get_args(argument.hint)
        for index, single in enumerate(value if one_by_one else [value]):
            argument.append(
                Token(keyword=argument.name, implicit_value=single, source=place, index=index)
            )


def _model(arguments: ArgumentCollection) -> str:
    """Returns the model that a flag or file names, else the default."""
    for token in arguments.get("--model").tokens:
        return token.value or str(token.implicit_value)
    return DEFAULT_MODEL
