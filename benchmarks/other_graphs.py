"""Tries the rule for the defaults of dgt-plus on graphs that it was not made on.

    pip download --no-deps graphdatascience==2.2
    unzip graphdatascience-*.whl 'graphdatascience/resources/*'
    python benchmarks/other_graphs.py --resources graphdatascience/resources --out rule.jsonl

The graphs come from two packages. Nothing was chosen on them:

- imdb: movies, actors and directors; 1,256 keywords per node; predict the genre of 2,939 movies.
- lastfm: artists and their listeners; three columns per node; predict the most frequent tag of an
  artist, one of ten.
- digits: scikit-learn's images of digits, each with edges to the ten most similar ones.

dgt-plus is trained with each column of its rule, one of which is what it chooses by itself, and
compared with other models with their defaults, on random splits with 48% training and 32%
validation nodes. Every finished run is a line of the file, so that the same command continues where
it was stopped. The table shows the accuracy on test nodes in percent, with 95% confidence
intervals over splits.
"""

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

from dgt import NodeClassifier
from dgt.config import Config
from dgt.data.files import normalize
from dgt.models import MODELS
from dgt.nn.record import Sizes
from dgt.system.workers import share
from dgt.training.results import without_class_warnings
from plus_parts import interval

PEERS = ("dgt", "gcn", "graphsage", "mlp")
COLUMNS: dict[str, dict[str, Any]] = {
    "many features": {"features": 1000, "minority": 1000},
    "many features, directed": {"features": 1000, "minority": 1000, "directed": True},
    "many features, few nodes": {"features": 1000, "minority": 100},
    "few features": {"features": 10, "minority": 1000},
    "few features, few nodes": {"features": 10, "minority": 100},
}
"""Columns of the rule, with sizes for which it chooses them."""
CHOSEN = {"imdb": "many features", "lastfm": "few features", "digits": "many features"}
TAGS = 10
NEIGHBORS = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resources", type=Path, required=True, help="of graphdatascience")
    parser.add_argument("--out", type=Path, default=Path("rule.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=tuple(GRAPHS), default=tuple(GRAPHS))
    every = (*COLUMNS, *PEERS)
    parser.add_argument("--variants", nargs="+", choices=every, default=every)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--workers", type=int, help="default: one per core")
    parser.add_argument("--show", action="store_true", help="train nothing, show what there is")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    done = {(row["graph"], row["variant"], row["split"]) for row in rows}
    tasks = [
        (graph, variant, split, given.resources)
        for split in range(given.splits)
        for graph in given.graphs
        for variant in given.variants
        if (graph, variant, split) not in done
    ]
    for task, value in share(one, [] if given.show else tasks, given.workers):
        rows.append(dict(zip(("graph", "variant", "split"), task, strict=False)) | value)
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        Console(stderr=True).print(rows[-1])
    show(rows)


def one(task: tuple[str, str, int, Path]) -> dict[str, float]:
    """Trains one model or one column of the rule on one split."""
    graph, variant, split, resources = task
    config = column(variant) if variant in COLUMNS else Config.of(variant)
    config = config.replace(splits="random", split=split, seed=split)
    with without_class_warnings():
        metrics = NodeClassifier(config).fit(made(graph, resources)).metrics_
    names = ("val_accuracy", "test_accuracy", "best_epoch", "seconds")
    return {name: metrics[name] for name in names}


def column(name: str) -> Config:
    """Returns the settings of a column of the rule, all of them set explicitly."""
    record = MODELS["dgt-plus"]
    assert record.rule is not None
    every = [
        record.rule(
            Sizes(**{"nodes": 1000, "training_nodes": 1, "classes": 2, "directed": False, **s})
        )
        for s in COLUMNS.values()
    ]
    chosen = every[list(COLUMNS).index(name)]
    default = Config.of("dgt-plus").flat() | {"criteria": record.criteria}
    settings = {each: default[each] for given in every for each in given} | chosen
    return Config.of("dgt-plus").replace(**{"criteria": record.criteria} | settings)


@functools.cache
def made(graph: str, resources: Path) -> Data:
    return normalize(GRAPHS[graph](resources))


def imdb(resources: Path) -> Data:
    """Movies, actors and directors, with an edge where somebody acted in or directed a movie."""
    kinds = ("movies_with_genre", "movies_without_genre", "actors", "directors")
    tables = [pq.read_table(resources / f"imdb/imdb_{kind}.parquet.gzip") for kind in kinds]
    ids = np.concatenate([table["nodeId"].to_numpy() for table in tables])
    x = np.concatenate([np.array(table["plot_keywords"].to_pylist()) for table in tables])
    y = np.full(len(ids), -1)
    y[: tables[0].num_rows] = tables[0]["genre"].to_numpy()
    links = [
        pq.read_table(resources / f"imdb/imdb_{kind}.parquet.gzip")
        for kind in ("acted_in", "directed_in")
    ]
    return graph_of(ids, x, y, links, [str(c) for c in range(y.max() + 1)])


def lastfm(resources: Path) -> Data:
    """Artists and users, with an edge where a user listens to an artist."""
    users, artists, listens, tags = (
        pq.read_table(resources / f"lastfm/{name}.parquet.gzip")
        for name in (
            "user_nodes",
            "artist_nodes",
            "user_listen_artist_rels",
            "user_tag_artist_rels",
        )
    )
    ids = np.concatenate([users["nodeId"].to_numpy(), artists["nodeId"].to_numpy()])
    order = np.argsort(ids)
    user, artist = (
        order[np.searchsorted(ids, listens[name].to_numpy(), sorter=order)]
        for name in ("sourceNodeId", "targetNodeId")
    )
    both, plays = np.concatenate([user, artist]), np.tile(listens["weight"].to_numpy(), 2)
    x = np.log1p(
        np.stack(
            [
                np.arange(len(ids)) < users.num_rows,
                np.bincount(both, minlength=len(ids)),
                np.bincount(both, plays, minlength=len(ids)),
            ],
            axis=1,
        )
    )
    tagged = order[np.searchsorted(ids, tags["targetNodeId"].to_numpy(), sorter=order)]
    tag = tags["tagID"].to_numpy()
    numbers, counts = np.unique(tag, return_counts=True)
    frequent = numbers[np.argsort(-counts, kind="stable")[:TAGS]]
    votes = np.zeros((len(ids), TAGS), dtype=int)
    for place, number in enumerate(frequent):
        votes[:, place] = np.bincount(tagged[tag == number], minlength=len(ids))
    # Fewer than three votes say little, and so does a tie.
    top = np.sort(votes, axis=1)
    y = np.where((top[:, -1] >= 3) & (top[:, -1] > top[:, -2]), votes.argmax(1), -1)
    return graph_of(ids, x, y, [listens], [str(number) for number in frequent])


def digits(resources: Path) -> Data:
    x, y = load_digits(return_X_y=True)
    edges = kneighbors_graph(x, NEIGHBORS)
    edges = (edges + edges.T).tocoo()
    return Data(
        x=torch.tensor(x, dtype=torch.float32),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(np.stack([edges.row, edges.col]).astype(np.int64)),
        class_names=[str(c) for c in range(10)],
        name="digits",
    )


GRAPHS = {"imdb": imdb, "lastfm": lastfm, "digits": digits}


def graph_of(
    ids: np.ndarray, x: np.ndarray, y: np.ndarray, links: list[Any], classes: list[str]
) -> Data:
    """Returns a graph from tables of edges whose ends are ids."""
    ends = np.concatenate(
        [[table["sourceNodeId"].to_numpy(), table["targetNodeId"].to_numpy()] for table in links],
        axis=1,
    )
    order = np.argsort(ids)
    edges = order[np.searchsorted(ids, ends, sorter=order)]
    assert (ids[edges] == ends).all()
    return Data(
        x=torch.tensor(x, dtype=torch.float32),
        y=torch.from_numpy(y),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
        class_names=classes,
    )


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the accuracies, and that of the column that the rule chooses with a star."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["variant"], row["graph"]), []).append(100 * row["test_accuracy"])
    table = Table("model", *GRAPHS)
    for variant in (*COLUMNS, *PEERS):
        cells = []
        for graph in GRAPHS:
            values = found.get((variant, graph), [])
            star = " *" if CHOSEN[graph] == variant and values else ""
            cells.append((interval(values) if values else "") + star)
        table.add_row(variant, *cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
