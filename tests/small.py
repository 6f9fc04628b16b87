"""A small graph that a model can learn, in memory and as a folder."""

import csv
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

LABELS = ("red", "green", "blue", "white", "black", "brown", "pink")
# Settings for fast training on it.
QUICK = {"hidden_channels": 16, "length": 8, "epochs": 30, "patience": 30}


def flags(**settings: object) -> list[str]:
    """Returns the quick settings, and others, as flags of the command line."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in (QUICK | settings).items()]


def block_graph(nodes: int = 90, classes: int = 3, features: int = 12, seed: int = 0) -> Data:
    """Samples a stochastic block model with features around one center per class."""
    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % classes
    x = rng.normal(size=(classes, features))[y] + rng.normal(size=(nodes, features))
    same = y[:, None] == y[None, :]
    joined = np.triu(rng.random((nodes, nodes)) < np.where(same, 12, 1.5) / nodes, k=1)
    edges = torch.from_numpy(np.stack(joined.nonzero()))
    return Data(x=torch.from_numpy(x).float(), edge_index=edges, y=torch.from_numpy(y))


def write_folder(folder: Path, data: Data, label: str = "label") -> Path:
    """Writes a graph with ids n0, n1, ..., features f0, f1, ..., and every tenth label missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "nodes.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", label, *(f"f{i}" for i in range(data.x.size(1)))])
        for node, (c, x) in enumerate(zip(data.y.tolist(), data.x.tolist(), strict=True)):
            rows.writerow([f"n{node}", "" if node % 10 == 9 else LABELS[c], *x])
    with open(folder / "edges.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "target"])
        rows.writerows([f"n{a}", f"n{b}"] for a, b in data.edge_index.t().tolist())
    return folder
