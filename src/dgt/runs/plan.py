"""Chooses the split and seed of each of several runs."""

from torch_geometric.data import Data

from dgt.config import Config
from dgt.data.splits import choose


def plan(config: Config, runs: int, published: int = 0) -> list[Config]:
    """Returns the settings of each run.

    With published splits, the runs use all splits with the first seed, then all with the next one.
    With random splits, each run has a new split and a new seed. With a given split, or if ``split``
    is set, each run has a new seed.

    Args:
        config: The settings, with seed and split of the first run.
        runs: Number of runs.
        published: Number of published splits of the graph.
    """
    seed, split = config.train.seed, config.train.split
    if published and split is None and config.train.splits in ("auto", "published"):
        return [
            config.replace(seed=seed + r // published, split=r % published) for r in range(runs)
        ]
    return [
        config.replace(seed=seed + r, split=seed + r if split is None else split)
        for r in range(runs)
    ]


def plan_on(data: Data, config: Config, runs: int) -> list[Config]:
    """Like :func:`plan`, for a graph. Raises an error if the graph lacks one of the splits."""
    masks = data.get("train_mask")
    published = 0 if masks is None or masks.dim() == 1 else masks.size(1)
    configs = plan(config, runs, published)
    for each in configs:
        choose(data, each.train.splits, each.train.split_index)
    return configs
