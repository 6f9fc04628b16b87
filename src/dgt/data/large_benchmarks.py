"""The three large benchmarks, read from their raw files or downloaded."""

import csv
import gzip
import pickle
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv
import torch
from torch_geometric import datasets
from torch_geometric.data import Data

from dgt.data.raw_files import download, extract, require_sum
from dgt.errors import InputError

ARXIV = "ogb/ogbn_arxiv"
REDDIT = "reddit2/raw"
TWITCH = "twitch-gamers"
_SNAP = "https://snap.stanford.edu/data/twitch_gamers.zip"
_LINKX = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data/splits"
_GOOGLE = "https://drive.usercontent.google.com/download?id={}&confirm=t"
TWITCH_SPLITS = "twitch-gamer-splits.npy"
_OGB = "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
ARXIV_TABLES = ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz")
ARXIV_SPLITS = {
    "train": "split/time/train.csv.gz",
    "val": "split/time/valid.csv.gz",
    "test": "split/time/test.csv.gz",
}
ARXIV_NAMES = "mapping/labelidx2arxivcategeory.csv.gz"
EDGES, FEATURES = "large_twitch_edges.csv", "large_twitch_features.csv"


def read_arxiv(root: Path) -> Data:
    """Reads ogbn-arxiv with its split by year, from the CSV files of OGB.

    OGB's own reader downloads without encryption, and loads pickles that it finds.
    """
    folder = root / ARXIV
    needed = [*ARXIV_TABLES, *ARXIV_SPLITS.values()]
    if not all((folder / name).is_file() for name in needed):
        archive = download(_OGB, folder / "arxiv.zip")
        extract(archive, {name: folder / name for name in (*needed, ARXIV_NAMES)})
    edges, x, y = (_numbers(folder / name) for name in ARXIV_TABLES)
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(edges.T.astype(np.int64)),
        y=torch.from_numpy(y[:, 0].astype(np.int64)),
    )
    for part, name in ARXIV_SPLITS.items():
        data[f"{part}_mask"] = _mask(_numbers(folder / name)[:, 0], len(y))
    if (folder / ARXIV_NAMES).is_file():
        with gzip.open(folder / ARXIV_NAMES, "rt", newline="") as file:
            data.class_names = [category for _, category in list(csv.reader(file))[1:]]
    return data


def _numbers(path: Path) -> np.ndarray:
    """Reads a CSV file without a header. Shape: ``(rows, columns)``."""
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    table = pyarrow.csv.read_csv(path, read_options=options)
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def read_reddit(root: Path) -> Data:
    """Reads Reddit in the sparser version of GraphSAINT, which the paper uses.

    PyG reads its arrays without pickle, and the folder ``processed`` of ``root`` is new.
    """
    for name, number in (
        ("adj_full.npz", datasets.Reddit2.adj_full_id),
        ("feats.npy", datasets.Reddit2.feats_id),
        ("class_map.json", datasets.Reddit2.class_map_id),
        ("role.json", datasets.Reddit2.role_id),
    ):
        download(_GOOGLE.format(number), root / REDDIT / name)
    return datasets.Reddit2(str((root / REDDIT).parent))[0]


def read_twitch(root: Path) -> Data:
    """Reads twitch-gamers with the label ``mature`` and the five splits of LINKX.

    The standardized features are those of LINKX: views, lifetime, the dates of creation and of the
    last update as numbers such as 20181231, dead account, affiliate, and language. The language is
    one-hot encoded here; LINKX numbers the languages in one column.
    """
    folder = root / TWITCH
    if not (folder / EDGES).is_file() or not (folder / FEATURES).is_file():
        archive = download(_SNAP, folder / "twitch_gamers.zip")
        extract(archive, {name: folder / name for name in (EDGES, FEATURES)})
    splits = download(f"{_LINKX}/{TWITCH_SPLITS}", folder / TWITCH_SPLITS)
    require_sum(splits, f"{TWITCH}/{TWITCH_SPLITS}", TWITCH_SPLITS)

    text = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(["created_at", "updated_at"], "str")
    )
    nodes = pyarrow.csv.read_csv(folder / FEATURES, convert_options=text)
    ids = nodes["numeric_id"].to_numpy()
    if not np.array_equal(ids, np.arange(len(ids))):
        raise InputError(f"{FEATURES}: numeric_id: expected consecutive ids 0, 1, 2, ...")
    columns = {
        **{name: nodes[name].to_numpy() for name in ("views", "life_time")},
        **{
            name: pc.replace_substring(nodes[name], "-", "").cast("int64").to_numpy()
            for name in ("created_at", "updated_at")
        },
        **{name: nodes[name].to_numpy() for name in ("dead_account", "affiliate")},
    }
    language = np.array(nodes["language"].to_pylist())
    columns |= {f"language_{name}": language == name for name in np.unique(language).tolist()}
    x = np.stack([column.astype(np.float64) for column in columns.values()], axis=1)
    scale = x.std(axis=0, ddof=1)
    x = (x - x.mean(axis=0)) / np.where(scale > 0, scale, 1)

    edges = pyarrow.csv.read_csv(folder / EDGES)
    data = Data(
        x=torch.from_numpy(x.astype(np.float32)),
        edge_index=torch.from_numpy(np.stack([c.to_numpy() for c in edges.columns])),
        y=torch.tensor(nodes["mature"].to_numpy()),
        feature_names=list(columns),
    )
    parts = _read_splits(splits)
    for part, nodes_of in (("train", "train"), ("val", "valid"), ("test", "test")):
        masks = [_mask(np.array(split[nodes_of]), len(ids)) for split in parts]
        data[f"{part}_mask"] = torch.stack(masks, dim=1)
    return data


def _mask(nodes: np.ndarray, num_nodes: int) -> torch.Tensor:
    mask = torch.zeros(num_nodes, dtype=torch.bool)
    mask[torch.tensor(nodes)] = True
    return mask


class _ArraysOnly(pickle.Unpickler):
    """Unpickles an array of plain Python values; refuses everything else."""

    KNOWN = (("multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"))

    def find_class(self, module: str, name: str) -> Any:
        # numpy.core in old files, numpy._core in new ones.
        place = module.split(".")
        if place[0] != "numpy" or (place[-1], name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"names {module}.{name}, expected plain lists of numbers")
        if name == "_reconstruct":
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        return getattr(np, name)


def _read_splits(path: Path) -> list[dict[str, list[int]]]:
    """Reads the splits of LINKX, an object array, which NumPy can only store as pickle.

    Besides the check of its sum, only plain values are unpickled.
    """
    with open(path, "rb") as file:
        _skip_header(file)
        return list(_ArraysOnly(file).load())


def _skip_header(file: IO[bytes]) -> None:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    read[version](file)
