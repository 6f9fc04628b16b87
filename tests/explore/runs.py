"""Small trained runs for the tests of the explorer."""

from pathlib import Path

from dgt import NodeClassifier
from dgt.data import load
from dgt.explore.session import Session
from tests.small import QUICK, block_graph, write_folder


def train(folder: Path, name: str = "run", graph: Path | None = None, **settings: object) -> Path:
    """Trains on a small graph in a folder, and returns the folder of the run."""
    graph = graph or write_folder(folder / "graph", block_graph())
    out = folder / name
    quick = QUICK | {"epochs": 12} | settings
    NodeClassifier(**quick).fit(load(str(graph)), out=out, graph=str(graph))
    return out


def session(folder: Path, **settings: object) -> Session:
    return Session(train(folder, **settings))
