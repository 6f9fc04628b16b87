"""What is searched: settings and the values they may take."""

from collections.abc import Callable
from itertools import product
from typing import Any

from optuna import Trial
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from dgt.config import Config
from dgt.errors import InputError
from dgt.models import COMMON_GRID, MODELS

# A setting comes after those that ONLY_IF looks at. The default of each must be among its values.
# Not searched, but could be: "hidden_channels": CategoricalDistribution((64, 128)).
SPACE: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(0.002, 0.05, log=True),
    "weight_decay": FloatDistribution(1e-5, 1e-2, log=True),
    "dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "feature_scaling": CategoricalDistribution(("none", "sum", "l2")),
    "feature_layers": IntDistribution(1, 2),
    "feature_weight_decay": FloatDistribution(1e-5, 0.1, log=True),
    "input_dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "length": CategoricalDistribution((4, 8, 16, 32, 64)),
    "spacing": CategoricalDistribution(("rank", "score")),
    "blocks": IntDistribution(1, 2),
    "gamma": IntDistribution(1, 256, log=True),
    "epsilon": IntDistribution(1, 8),
    "key_weight_decay": FloatDistribution(1e-4, 1.0, log=True),
    "node_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "value_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "average": CategoricalDistribution((0.0, 0.9)),
    "encoding": CategoricalDistribution(("katz", "none")),
    "encoding_dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "encoding_weight_decay": FloatDistribution(1e-5, 0.1, log=True),
    "katz_order": IntDistribution(1, 4),
    "katz_beta": CategoricalDistribution((0.1, 0.5, 1.0)),
    "katz_scaling": CategoricalDistribution(("sum", "l2", "none")),
}
# Criteria are written in one string, with blanks between them: Optuna keeps no lists.
LIGHT_SPACE: dict[str, BaseDistribution] = {
    "criteria": CategoricalDistribution(("bfs", "ppr", "similarity")),
    **SPACE,
}
SPACES = {"dgt": SPACE, "dgt-light": LIGHT_SPACE}


def _with_katz(settings: dict[str, Any]) -> bool:
    return settings["encoding"] == "katz"


def _with_paths(settings: dict[str, Any]) -> bool:
    return _with_katz(settings) and settings["katz_order"] > 1


ONLY_IF: dict[str, Callable[[dict[str, Any]], bool]] = {
    "encoding_dropout": _with_katz,
    "encoding_weight_decay": _with_katz,
    "katz_order": _with_katz,
    "katz_beta": _with_paths,
    "katz_scaling": _with_katz,
}


def search_space(
    config: Config, grid: str | None = None, fixed: tuple[str, ...] = ()
) -> dict[str, BaseDistribution]:
    """What is searched for a model, without the settings that are fixed: the paper's grid if it is
    asked for, or if there is no space of our own."""
    model = config.model.model
    space = paper_grid(model) if grid is not None or model not in SPACES else SPACES[model]
    space = {name: values for name, values in space.items() if name not in fixed}
    if not space:
        raise InputError("nothing is left to search: every setting of the search is given")
    return space


def paper_grid(model: str) -> dict[str, BaseDistribution]:
    """What the paper's appendix searches for a model."""
    values = COMMON_GRID | MODELS[model].grid
    return {name: CategoricalDistribution(each) for name, each in values.items()}


def suggest(trial: Trial, space: dict[str, BaseDistribution], config: Config) -> dict[str, Any]:
    """The settings of a trial; ``config`` has those that are not searched."""
    fixed = flat(config)
    chosen: dict[str, Any] = {}
    for name, values in space.items():
        if name not in ONLY_IF or ONLY_IF[name](fixed | chosen):
            chosen[name] = _suggest(trial, name, values)
    return decode(chosen)


def decode(params: dict[str, Any]) -> dict[str, Any]:
    """Settings from Optuna's parameters; of fractions, the first two digits."""
    return {name: _decode(name, value) for name, value in params.items()}


def encode(config: Config, space: dict[str, BaseDistribution]) -> dict[str, Any]:
    """The reverse: the parameters with which a trial has the settings of ``config``."""
    settings = flat(config) | {"criteria": " ".join(config.criteria)}
    return {name: settings[name] for name in space}


def points(space: dict[str, BaseDistribution]) -> list[dict[str, Any]]:
    """Every point of a grid."""
    values = [d.choices for d in space.values() if isinstance(d, CategoricalDistribution)]
    return [dict(zip(space, point, strict=True)) for point in product(*values)]


def flat(config: Config) -> dict[str, Any]:
    """All settings by name."""
    return {name: value for part in vars(config).values() for name, value in vars(part).items()}


def _decode(name: str, value: Any) -> Any:
    if name == "criteria":
        return tuple(value.split())
    return float(f"{value:.2g}") if isinstance(value, float) else value


def _suggest(trial: Trial, name: str, values: BaseDistribution) -> Any:
    match values:
        case CategoricalDistribution():
            return trial.suggest_categorical(name, values.choices)
        case IntDistribution():
            return trial.suggest_int(
                name, values.low, values.high, step=values.step, log=values.log
            )
        case FloatDistribution():
            return trial.suggest_float(
                name, values.low, values.high, step=values.step, log=values.log
            )
    raise TypeError(f"{name}: cannot search {values}")
