"""Settings that are strong on many graphs, which a search tries before it samples."""

from typing import Any

# A linear skip and a batch norm are what most graph neural networks gain from; wide layers or many
# of them help on some graphs.
_GNN: tuple[dict[str, Any], ...] = (
    {"norm": "batch", "skip": True, "dropout": 0.7, "input_dropout": 0.0, "lr": 0.01},
    {"hidden_channels": 256, "dropout": 0.7, "input_dropout": 0.5, "weight_decay": 1e-3},
    {"norm": "layer", "skip": True, "layers": 4, "dropout": 0.5, "lr": 0.005},
    {"norm": "batch", "skip": True, "layers": 8, "dropout": 0.2, "input_dropout": 0.0, "lr": 0.005},
)
# The defaults suit many features. Few features need them all, and several blocks.
_DGT: tuple[dict[str, Any], ...] = (
    {"encoding": "none"},
    {"encoding": "none", "input_dropout": 0.0, "dropout": 0.2, "blocks": 3},
    {"katz_scaling": "sum", "length": 32, "key_weight_decay": 1.0},
)
_PLUS: tuple[dict[str, Any], ...] = (
    {"criteria": "alike neighbors"},
    {"criteria": "alike-out"},
    {"key_weight_decay": 1.0},
    {"criteria": "neighbors", "labels": "none", "blocks": 2, "length": 64},
    {"labels": "hide", "blocks": 2, "norm": "batch"},
)
_H2GCN: tuple[dict[str, Any], ...] = (
    {"layers": 1, "dropout": 0.5, "input_dropout": 0.5},
    {"weight_decay": 5e-5},
)

KNOWN: dict[str, tuple[dict[str, Any], ...]] = {
    **dict.fromkeys(("gcn", "gat", "gatv2", "graphsage", "mixhop", "jknet"), _GNN),
    **dict.fromkeys(("dgt", "dgt-light"), _DGT),
    "dgt-plus": _PLUS,
    "h2gcn": _H2GCN,
}
"""For each model, what to change in its defaults, in the form of the search space."""
