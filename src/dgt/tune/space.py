"""The search space: settings and the values they may take."""

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

from dgt.config import CRITERIA, ENCODINGS, MODELS, Choices, Config
from dgt.errors import InputError

# The paper searches these for every model.
COMMON_GRID: dict[str, tuple[Any, ...]] = {
    "lr": (0.05, 0.01, 0.005),
    "weight_decay": (1e-3, 5e-4, 5e-5),
}
# What is searched for models that take sequences, unless they have an own space below.
# A setting comes after those that its condition in ONLY_IF depends on. The space must contain the
# default of each setting.
SPACE: dict[str, BaseDistribution | Choices[Any]] = {
    "lr": FloatDistribution(0.002, 0.05, log=True),
    "weight_decay": FloatDistribution(1e-5, 1e-2, log=True),
    "dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "feature_scaling": CategoricalDistribution(("none", "sum", "l2")),
    "feature_layers": IntDistribution(1, 2),
    "feature_weight_decay": FloatDistribution(1e-5, 0.1, log=True),
    "input_dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "length": CategoricalDistribution((4, 8, 16, 32, 64)),
    "spacing": CategoricalDistribution(("rank", "score")),
    "blocks": IntDistribution(1, 3),
    "gamma": IntDistribution(1, 256, log=True),
    "epsilon": IntDistribution(1, 8),
    "key_weight_decay": FloatDistribution(1e-4, 1.0, log=True),
    "node_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "value_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "average": CategoricalDistribution((0.0, 0.9)),
    "encoding": ENCODINGS,  # only those with ``tuned``
    "encoding_dropout": FloatDistribution(0.0, 0.9, step=0.1),
    "encoding_weight_decay": FloatDistribution(1e-5, 0.1, log=True),
    "katz_order": IntDistribution(1, 4),
    "katz_beta": CategoricalDistribution((0.1, 0.5, 1.0)),
    "katz_scaling": CategoricalDistribution(("sum", "l2", "none")),
}

# Sets of criteria and encodings, and further ones for directed edges. Several names are joined by
# spaces, since Optuna does not support lists.
PLUS_CRITERIA = (
    "alike neighbors ppr similarity",
    "alike neighbors",
    "neighbors ppr",
    "neighbors",
    "alike",
    "neighbors similarity",
    "bfs ppr similarity",
)
PLUS_DIRECTED_CRITERIA = (
    "alike alike-out neighbors",
    "alike-out",
    "alike-out neighbors",
    "alike-out neighbors ppr",
    "alike-out alike-in neighbors",
)
PLUS_ENCODINGS = ("degree", "counts", "none", "walks", "katz", "degree katz")
PLUS_DIRECTED_ENCODINGS = ("katz-out", "degree katz-out", "katz-out katz-in")
PLUS: dict[str, BaseDistribution | Choices[Any]] = {
    "lr": FloatDistribution(0.002, 0.02, log=True),
    "weight_decay": FloatDistribution(1e-5, 1e-2, log=True),
    "key_weight_decay": FloatDistribution(5e-4, 1.0, log=True),
    "labels": CategoricalDistribution(("none", "read", "hide")),
    "encoding": CategoricalDistribution(PLUS_ENCODINGS),
    "encoding_dropout": CategoricalDistribution((0.0, 0.5)),
    "blocks": IntDistribution(1, 3),
    "length": CategoricalDistribution((8, 16, 32, 64)),
    "gamma": IntDistribution(1, 256, log=True),
    "epsilon": IntDistribution(1, 16),
    "average": CategoricalDistribution((0.0, 0.9)),
    "hidden_channels": CategoricalDistribution((64, 128)),
    "norm": CategoricalDistribution(("batch", "layer")),
    "dropout": FloatDistribution(0.2, 0.8, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "node_dropout": CategoricalDistribution((0.0, 0.5)),
    "value_dropout": CategoricalDistribution((0.0, 0.5)),
}
# After "Classic GNNs are strong baselines", whose gains come from these settings.
GNN: dict[str, BaseDistribution | Choices[Any]] = {
    "lr": FloatDistribution(0.001, 0.05, log=True),
    "weight_decay": CategoricalDistribution((0.0, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3)),
    "layers": IntDistribution(1, 10),
    "hidden_channels": CategoricalDistribution((64, 128, 256)),
    "norm": CategoricalDistribution(("none", "batch", "layer")),
    "skip": CategoricalDistribution((False, True)),
    "dropout": FloatDistribution(0.0, 0.7, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.7, step=0.1),
}
H2GCN: dict[str, BaseDistribution | Choices[Any]] = {
    "lr": FloatDistribution(0.001, 0.05, log=True),
    "weight_decay": GNN["weight_decay"],
    "layers": IntDistribution(1, 2),
    "hidden_channels": CategoricalDistribution((32, 64, 128)),
    "dropout": FloatDistribution(0.0, 0.8, step=0.1),
    "input_dropout": FloatDistribution(0.0, 0.8, step=0.1),
}
OWN_SPACE: dict[str, dict[str, BaseDistribution | Choices[Any]]] = {
    "dgt-plus": PLUS,
    "h2gcn": H2GCN,
    **dict.fromkeys(("gcn", "gat", "gatv2", "graphsage", "mixhop", "jknet"), GNN),
}


def _with_encoding(settings: dict[str, Any]) -> bool:
    return settings["encoding"] != "none"


def _with_katz(settings: dict[str, Any]) -> bool:
    return settings["encoding"] == "katz"


def _with_paths(settings: dict[str, Any]) -> bool:
    return _with_katz(settings) and settings["katz_order"] > 1


ONLY_IF: dict[str, Callable[[dict[str, Any]], bool]] = {
    "encoding_dropout": _with_encoding,
    "encoding_weight_decay": _with_encoding,
    "katz_order": _with_katz,
    "katz_beta": _with_paths,
    "katz_scaling": _with_katz,
}


def search_space(
    config: Config, grid: str | None = None, fixed: tuple[str, ...] = (), directed: bool = False
) -> dict[str, BaseDistribution]:
    """Returns the search space of a model.

    Args:
        config: The settings. Their criteria are part of the space, if criteria are searched.
        grid: "paper": the paper's grid.
        fixed: Names of settings that are not searched.
        directed: Whether the graph has directed edges.
    """
    model = config.model.model
    space = full_space(model, directed) if grid is None else paper_grid(model)
    space = {name: values for name, values in space.items() if name not in fixed}
    if not space:
        raise InputError("nothing to search: all settings of the search space are fixed")
    for name in ("criteria", "encoding"):
        # What follows from a graph may be none of the sets above, such as one for each edge table.
        if isinstance(values := space.get(name), CategoricalDistribution):
            own = encode(config, space)[name]
            space[name] = CategoricalDistribution(tuple(dict.fromkeys([*values.choices, own])))
    return space


def full_space(model: str, directed: bool = False) -> dict[str, BaseDistribution]:
    """Returns the search space of a model: its own one, and what else the paper's grid has."""
    record = MODELS[model]
    own = OWN_SPACE.get(model, SPACE if "sequences" in record.inputs else {})
    space = {name: _tuned(v) if isinstance(v, Choices) else v for name, v in own.items()}
    space |= {name: v for name, v in paper_grid(model).items() if name not in own}
    if record.single_criterion:
        return {"criteria": _tuned(CRITERIA), **space}
    if own is PLUS:
        further = (PLUS_DIRECTED_CRITERIA, PLUS_DIRECTED_ENCODINGS) if directed else ((), ())
        sets = CategoricalDistribution((*PLUS_CRITERIA, *further[0]))
        encodings = CategoricalDistribution((*PLUS_ENCODINGS, *further[1]))
        return {"criteria": sets, **space, "encoding": encodings}
    return space


def _tuned(choices: Choices[Any]) -> BaseDistribution:
    return CategoricalDistribution([name for name in choices if choices[name].tuned])


def paper_grid(model: str) -> dict[str, BaseDistribution]:
    """Returns the grid in the appendix of the paper."""
    values = COMMON_GRID | MODELS[model].grid
    return {name: CategoricalDistribution(each) for name, each in values.items()}


def suggest(trial: Trial, space: dict[str, BaseDistribution], config: Config) -> dict[str, Any]:
    """Returns the searched settings of a trial. ``config`` has all others."""
    fixed = config.flat()
    chosen: dict[str, Any] = {}
    for name, values in space.items():
        if name not in ONLY_IF or ONLY_IF[name](fixed | chosen):
            chosen[name] = _suggest(trial, name, values)
    return decode(chosen)


def decode(params: dict[str, Any]) -> dict[str, Any]:
    """Converts parameters of Optuna to settings. Floats are rounded to two digits."""
    return {name: _decode(name, value) for name, value in params.items()}


def encode(config: Config, space: dict[str, BaseDistribution]) -> dict[str, Any]:
    """Converts settings to parameters of Optuna."""
    settings = config.flat()
    settings["criteria"] = " ".join(CRITERIA.name(each) for each in config.criteria)
    settings["encoding"] = " ".join(ENCODINGS.name(each) for each in config.encoding.encodings)
    return {name: settings[name] for name in space}


def inside(params: dict[str, Any], space: dict[str, BaseDistribution]) -> dict[str, Any]:
    """Returns the parameters whose values are in the search space. Optuna chooses the others."""
    return {name: value for name, value in params.items() if _contains(space[name], value)}


def _contains(values: BaseDistribution, value: Any) -> bool:
    try:
        return values._contains(values.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def points(space: dict[str, BaseDistribution]) -> list[dict[str, Any]]:
    """Returns every point of a grid."""
    values = [d.choices for d in space.values() if isinstance(d, CategoricalDistribution)]
    return [dict(zip(space, point, strict=True)) for point in product(*values)]


def _decode(name: str, value: Any) -> Any:
    if name == "criteria":
        return tuple(value.split())
    if name == "encoding" and " " in value:
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
