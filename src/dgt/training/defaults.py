"""Settings that nobody has set and that follow from the sizes of a graph."""

from torch_geometric.data import Data

from dgt.config import Config
from dgt.nn.record import Sizes
from dgt.system.notes import note_once
from dgt.training import distributed


def follow_rule(config: Config, data: Data) -> Config:
    """Returns the settings with those that the model's rule chooses for a graph with a split, and
    notes which of them differ from the model's defaults.

    Args:
        config: The settings.
        data: The graph, with ``x``, ``train_mask`` and ``class_names``.
    """
    rule = config.record.rule
    if rule is None:
        return config
    features, classes = data.x.size(1), max(len(data.class_names), 1)
    chosen = rule(Sizes(data.num_nodes, int(data.train_mask.sum()), features, classes))
    if chosen.get("norm") == "batch" and not _all_at_once(config):
        chosen = {name: value for name, value in chosen.items() if name != "norm"}
    followed = config.by_rule(chosen)
    before, after = config.flat(), followed.flat()
    changed = [
        f"--{name.replace('_', '-')} {after[name]}"
        for name in chosen
        if after[name] != before[name]
    ]
    if changed and distributed.rank() == 0:
        sizes = f"{data.num_nodes:,} nodes and {features:,} features"
        note_once(f"{config.model.model} chose for {sizes}: {' '.join(changed)}")
    return followed


def _all_at_once(config: Config) -> bool:
    """Returns whether a step processes all nodes at once, as a batch norm needs it."""
    train = config.train
    return train.batch_size is None and train.chunk_size is None and distributed.size() == 1
