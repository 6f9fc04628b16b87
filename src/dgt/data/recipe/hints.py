"""Points out the likely label of a table, and columns that give the label away."""

import logging
import re
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.labels import are_classes, is_labeled
from dgt.data.recipe.recipe import Recipe, rows_of
from dgt.data.recipe.table import cells, has_table
from dgt.errors import InputError

log = logging.getLogger("dgt.classes")

LABEL_LIKE = re.compile(
    r"(?i)^(is|has|was)_|label|class|target|outcome|fraud|churn|default|category|type|group|^y$"
)
# A column with more distinct values is no candidate for a label.
MOST_CLASSES = 50
# A column that predicts this share of every class is pointed out.
GIVEN_AWAY = 0.98
# Fewer training nodes say too little, and more take too long.
FEWEST, MOST = 20, 20_000


# Settings that only take effect when a graph is read.
READ = ("id", "label", "split_column", "source", "target", "weight", "unknown_nodes")


def require_read_with(data: Data, settings: DataConfig) -> None:
    """Raises an error if a setting for tables has no effect, because the graph was read without it
    or has no table."""
    before = data.get("read_with")
    place = data.get("name") or "graph"
    for name in READ:
        value = getattr(settings, name)
        if value == getattr(DataConfig(), name) or value == getattr(before, name, None):
            continue
        if before is None:
            raise InputError(
                f"{place}: {name}={value!r} has no effect: it is not a graph of tables that were "
                "read from files"
            )
        raise InputError(
            f"{place}: {name}={value!r} has no effect: the graph was read without it; pass it to "
            f"load, as in load(path, settings=DataConfig({name}={value!r}))"
        )
    chosen = settings.kinds()
    if chosen and not has_table(data):
        raise InputError(
            f"{place}: columns: got a kind for {next(iter(chosen))!r}, but the graph has no table "
            "of columns"
        )


def require_label(data: Data) -> None:
    """Raises an error that names the likely candidates if a table has no column of labels."""
    if bool(is_labeled(data.y).any()):
        return
    if not has_table(data) and Path(data.name).is_dir() and not data.class_names:
        raise InputError(
            f"{data.name}: found 0 classes: add a table of nodes with the columns id and label"
        )
    if not has_table(data) or "label" in data.table.roles.values():
        return
    found = label_candidates(data)
    hint = f"; did you mean {' or '.join(repr(f) for f in found[:3])}?" if found else "."
    flag = f", for instance --label {found[0]}" if found else ": --label NAME"
    raise InputError(
        f"{data.table.name}: found 0 classes: there is no column 'label'{hint} Name the column "
        f"with the classes{flag}"
    )


def label_candidates(data: Data) -> list[str]:
    """Returns the columns that may hold the label, the likeliest ones first."""
    found = []
    for name in data.table.features():
        distinct = len(data.table.columns[name].values)
        if 2 <= distinct <= MOST_CLASSES:
            found.append((LABEL_LIKE.search(name) is None, distinct, name))
    return [name for _, _, name in sorted(found)]


def warn_given_away(data: Data, recipe: Recipe) -> None:
    """Logs a warning for every column that alone predicts the label of the training nodes.

    A small decision tree learns from half of the training nodes and predicts the other half.

    Args:
        data: The graph with its table, labels and split.
        recipe: The fitted recipe of the table.
    """
    from sklearn.metrics import balanced_accuracy_score
    from sklearn.tree import DecisionTreeClassifier

    if not are_classes(data.y):
        return
    nodes = data.train_mask.nonzero().squeeze(1).numpy()[:MOST]
    y = data.y.numpy()[nodes]
    classes, counts = np.unique(y, return_counts=True)
    if len(nodes) < FEWEST or counts.min() < 4:
        return
    order = np.argsort(y, kind="stable")  # so that both halves have all classes
    first, second = order[::2], order[1::2]
    mask = torch.zeros_like(data.train_mask)
    mask[torch.from_numpy(nodes)] = True
    for column in recipe.used():
        x = rows_of(cells(data, column["column"]).of(mask), column)
        tree = DecisionTreeClassifier(max_leaf_nodes=2 * len(classes), random_state=0)
        guessed = tree.fit(x[first], y[first]).predict(x[second])
        share = balanced_accuracy_score(y[second], guessed)
        if share >= GIVEN_AWAY:
            log.warning(
                "%s: column %r alone predicts the label of %.1f%% of the training nodes; if it is "
                "the label in another form, leave it out: --ignore %s",
                data.table.name,
                column["column"],
                100 * float(np.mean(y[second] == guessed)),
                column["column"],
            )
