"""Small trained runs for the tests of the explorer."""

from pathlib import Path

import torch

from dgt import NodeClassifier
from dgt.data import load
from dgt.explore.session import Session
from tests.small import LABELS, QUICK, block_graph


def write_graph(path: Path) -> Path:
    """Writes a graph with ids n0, n1, ... in this order, and every tenth label missing."""
    data = block_graph()
    data.node_ids = [f"n{node}" for node in range(data.num_nodes)]
    data.feature_names = [f"f{column}" for column in range(data.x.size(1))]
    data.class_names = list(LABELS[:3])
    data.y[9::10] = -1
    torch.save(data, path)
    return path


def train(folder: Path, name: str = "run", graph: Path | None = None, **settings: object) -> Path:
    """Trains on a small graph in a folder, and returns the folder of the run."""
    graph = graph or write_graph(folder / "graph.pt")
    out = folder / name
    quick = QUICK | {"model": "dgt", "epochs": 12} | settings
    NodeClassifier(**quick).fit(load(str(graph)), out=out, graph=str(graph))
    return out


def session(folder: Path, **settings: object) -> Session:
    return Session(train(folder, **settings))
