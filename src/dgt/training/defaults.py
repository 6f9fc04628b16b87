"""Settings that nobody has set and that follow from the sizes of a graph."""

from typing import Any

from torch_geometric.data import Data

from dgt.config import CRITERIA, Config
from dgt.data.direction import is_directed
from dgt.data.edge_tables import table_names
from dgt.nn.record import Sizes
from dgt.prepare import with_default_criteria
from dgt.system.notes import note_once
from dgt.training import distributed
from dgt.training.labels import minority


def follow_graph(config: Config, data: Data) -> Config:
    """Returns the settings with those that follow from a graph with a split: by the model's rule,
    and criteria by its edges. Notes what the rule has chosen.

    Args:
        config: The settings.
        data: The graph, with ``x``, ``y``, ``train_mask`` and ``class_names``.
    """
    rule = config.record.rule
    if rule is None:
        return with_default_criteria(config, data)
    sizes = _sizes(config, data)
    chosen = rule(sizes)
    in_parts = chosen.get("norm") == "batch" and not _all_at_once(config)
    if in_parts:
        del chosen["norm"]
    criteria = chosen.pop("criteria", ())
    followed = with_default_criteria(config.by_rule(chosen), data, criteria)
    if followed.criteria != config.criteria:  # also because of directed edges or several tables
        chosen["criteria"] = followed.criteria
    before, after = config.flat(), followed.flat()
    changed = {name: after[name] for name in chosen if after[name] != before[name]}
    if changed and distributed.rank() == 0:
        flags = (f"--{name.replace('_', '-')} {_text(value)}" for name, value in changed.items())
        note = f"{config.model.model} chose for {_given(sizes, data)}: {' '.join(flags)}"
        if in_parts and "norm" not in config.explicit:
            note += (
                f"; it keeps --norm {config.model.norm}, since --norm batch, its choice otherwise, "
                "needs all nodes at once"
            )
        note_once(note)
    return followed


def _sizes(config: Config, data: Data) -> Sizes:
    return Sizes(
        nodes=data.num_nodes,
        training_nodes=int(data.train_mask.sum()),
        minority=minority(data, config.train.task),
        features=data.x.size(1),
        classes=max(len(data.class_names), 1),
        directed=is_directed(data),
    )


def _given(sizes: Sizes, data: Data) -> str:
    """Returns what the settings follow from, in words."""
    tables = table_names(data)
    features = "1 feature" if sizes.features == 1 else f"{sizes.features:,} features"
    parts = [f"{sizes.nodes:,} nodes", features]
    parts += ["directed edges"] if sizes.directed else []
    parts += [f"{len(tables)} edge tables"] if tables else []
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _text(value: Any) -> str:
    return " ".join(map(CRITERIA.name, value)) if isinstance(value, tuple) else str(value)


def _all_at_once(config: Config) -> bool:
    """Returns whether a step processes all nodes at once, as a batch norm needs it."""
    train = config.train
    return train.batch_size is None and train.chunk_size is None and distributed.size() == 1
