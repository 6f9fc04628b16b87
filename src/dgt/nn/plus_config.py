"""Builds dgt-plus from the settings; its record and the rule for its defaults."""

from typing import Any

from dgt.config import DEFAULT_SETTINGS, Config
from dgt.data.labels import label_width
from dgt.errors import InputError
from dgt.nn.from_config import USED, shared_arguments
from dgt.nn.plus import DGTPlus
from dgt.nn.record import Model, Sizes

# Below this number of features, none can be spared, and the graph has to tell the rest.
FEW_FEATURES = 64
# From this number of training nodes outside of the most frequent class on, a tenth of the training
# nodes is enough for a step, and there is enough to learn from for several blocks.
MANY_NODES = 500
# Above this number of nodes, shorter sequences and one block save time and memory.
LARGE = 50_000
NEAR = ("neighbors", "ppr")


def build(config: Config, in_channels: int, out_channels: int, encoding_channels: int) -> DGTPlus:
    """Builds dgt-plus from the settings.

    Args:
        config: All settings.
        in_channels: Number of features.
        out_channels: Number of classes.
        encoding_channels: Number of columns of the positional encoding; 0 for none.
    """
    model = config.model
    if model.labels == "read" and config.sequences.length < 2:
        raise InputError("length: got 1, expected at least 2 with labels read, or --labels none")
    classes = 0 if config.train.task == "regression" else out_channels
    return DGTPlus(
        in_channels,
        model.hidden_channels,
        out_channels,
        label_channels=label_width(classes),
        labels=model.labels,
        encoding_channels=encoding_channels,
        **shared_arguments(config),
    )


def rule(sizes: Sizes) -> dict[str, Any]:
    """Returns the settings that follow from the sizes of a graph.

    Many features, such as words, need strong dropout. If edges have no direction, two blocks read
    long sequences, with keys that stay near their start and less sharp closeness; otherwise one
    block is enough, and the numbers of links and features tell more than the degrees alone. With
    little to learn from, labels and averaged weights do not pay off, and the best epoch is found by
    the loss, which varies less than the metric.

    Few features leave nothing to drop: what a node is like depends on its surroundings, on all of
    them alike, so that the kernel is wide. If there is enough to learn from, several blocks read
    them, with labels.
    """
    large = sizes.nodes > LARGE
    length = {"length": 16} if large else {}
    many = sizes.minority >= MANY_NODES
    if sizes.features >= FEW_FEATURES:
        counts = {"encoding": "counts"} if sizes.directed else {}
        if not many:
            return length | counts | {"labels": "none", "average": 0.0, "select_by": "loss"}
        if sizes.directed or large:
            return length | counts
        return {"blocks": 2, "length": 64, "sharpness": 8.0, "key_weight_decay": 1.0}
    return length | {
        "criteria": ("alike-out", *NEAR) if sizes.directed else NEAR,
        "labels": "hide" if many else "read",
        "blocks": 3 if many else 1,
        "gamma": 64.0,
        "epsilon": 16.0,
        "norm": "batch",
        "dropout": 0.2,
        "input_dropout": 0.0,
        "value_dropout": 0.0,
        "key_weight_decay": 1.0,
    }


DGT_PLUS_MODEL = Model(
    build=build,
    inputs=("x", "sequences", "closeness", "labels", "encoding"),
    criteria=("alike", "neighbors", "ppr", "similarity"),
    directed_criteria=("alike", "alike-out", "neighbors"),
    defaults=DEFAULT_SETTINGS,
    rule=rule,
    rule_encodings=("counts",),
    settings=(*USED, "labels"),
    batching=True,
)
