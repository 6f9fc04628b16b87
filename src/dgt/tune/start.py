"""What a search tries before its sampler chooses."""

import random
from typing import Any

from optuna.distributions import BaseDistribution

from dgt.config import Config
from dgt.tune.known import KNOWN
from dgt.tune.space import decode, encode, inside, paper_grid, points

GRID_POINTS = 8  # points of the paper's grid
# Settings of a single run, which no trial changes.
OF_A_RUN = ("model", "metric", "seed", "split", "splits", "device")


def as_trial(
    config: Config, start: Config, space: dict[str, BaseDistribution]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns given settings as parameters of a trial in the search space, and those that are not
    in it.

    Args:
        config: The settings.
        start: The settings of the search, without the searched ones.
        space: The search space.
    """
    given, own = encode(config, space), encode(start, space)
    params = inside(own, space) | inside(given, space)
    known = start.flat() | decode(params)
    exact = {
        name: value
        for name, value in (config.flat() | decode(given)).items()
        if name not in OF_A_RUN and value != known[name]
    }
    return params, exact


def first_points(
    config: Config, space: dict[str, BaseDistribution], grid: str | None
) -> list[dict[str, Any]]:
    """Returns what is known to be strong, and points of the paper's grid in random order, so that a
    search that is stopped early covers the whole grid.

    Args:
        config: The settings of the search, with the seed of the order.
        space: The search space.
        grid: "paper": every point of the grid, and nothing else.
    """
    model = config.model.model
    names = paper_grid(model).items()
    found = points({name: values for name, values in names if name in space})
    random.Random(config.train.seed).shuffle(found)
    if grid:
        return found
    start = encode(config, space)
    known = KNOWN.get(model, ())
    strong = [{n: v for n, v in each.items() if n in space} for each in known]
    strong = [each for each in strong if each and inside(each, space) == each]
    return [inside(start | each, space) for each in strong + found[:GRID_POINTS]]
