"""The large benchmarks, tested with small files in the published formats."""

import csv
import dataclasses
import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from dgt.config import Config, read_preset
from dgt.data import load
from dgt.data.benchmarks import BENCHMARKS
from dgt.data.large_benchmarks import ARXIV, REDDIT, TWITCH, _read_splits
from dgt.data.raw_files import checksums, require_sum
from dgt.data.splits import choose
from dgt.errors import InputError
from dgt.experiments import Table, reproduce, runner
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import table1
from dgt.experiments.table import Run, Setup
from tests.small import QUICK

NODES = 60
EDGES = [(a, (a * 7 + 3) % NODES) for a in range(NODES)] + [(0, 3), (3, 0), (5, 5), (0, 3)]
UNDIRECTED = {(min(e), max(e)) for e in EDGES if e[0] != e[1]}


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DGT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("torch_geometric.io.fs.cp", _refuse)
    monkeypatch.setattr("dgt.data.raw_files.open_url", _refuse)
    return tmp_path / "data"


def _refuse(*_: object, **__: object) -> None:
    raise OSError("no network in tests")


def expect(monkeypatch: pytest.MonkeyPatch, name: str, *figures: int | None) -> None:
    """Makes a small graph pass the size check of a benchmark."""
    benchmark = dataclasses.replace(BENCHMARKS[name], figures=figures)
    monkeypatch.setitem(BENCHMARKS, name, benchmark)


def undirected(data: Any) -> set[tuple[int, int]]:
    return {(a, b) for a, b in data.edge_index.t().tolist() if a < b}


def write_gz(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def write_arxiv(folder: Path, x: np.ndarray, y: list[int], parts: list[list[int]]) -> None:
    write_gz(folder / "raw/edge.csv.gz", [list(edge) for edge in EDGES])
    write_gz(folder / "raw/node-feat.csv.gz", x.tolist())
    write_gz(folder / "raw/node-label.csv.gz", [[c] for c in y])
    write_gz(folder / "raw/node_year.csv.gz", [[2015]] * len(y))
    write_gz(folder / "raw/num-node-list.csv.gz", [[len(y)]])
    write_gz(folder / "raw/num-edge-list.csv.gz", [[len(EDGES)]])
    for name, nodes in zip(("train", "valid", "test"), parts, strict=True):
        write_gz(folder / f"split/time/{name}.csv.gz", [[node] for node in nodes])


def test_arxiv(data_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    x = np.random.default_rng(0).normal(size=(NODES, 4)).round(6)
    y = [node % 3 for node in range(NODES)]
    parts = [list(range(40)), list(range(40, 50)), list(range(50, 60))]
    write_arxiv(data_folder / ARXIV, x, y, parts)
    write_gz(
        data_folder / ARXIV / "mapping/labelidx2arxivcategeory.csv.gz",
        [["label idx", "arxiv category"], [0, "arxiv cs na"], [1, "arxiv cs mm"], [2, "b"]],
    )
    # OGB's reader leaves such a file, which torch's safe loading refuses.
    (data_folder / ARXIV / "processed").mkdir()
    (data_folder / ARXIV / "processed/data_processed").write_bytes(pickle.dumps(_refuse))
    expect(monkeypatch, "ogbn-arxiv", NODES, len(UNDIRECTED), 4, 3)
    for _ in range(2):  # the second time, the cache is read
        data = load("ogbn-arxiv")
        np.testing.assert_array_equal(data.x, x.astype(np.float32))
        assert undirected(data) == UNDIRECTED
        assert data.y.tolist() == y
        assert data.class_names == ["arxiv cs na", "arxiv cs mm", "b"]
        for name, nodes in zip(("train", "val", "test"), parts, strict=True):
            assert data[f"{name}_mask"].nonzero().flatten().tolist() == nodes
        shutil.rmtree(data_folder, ignore_errors=True)
    assert choose(data, "auto", 0)[1] == "given"
    assert capfd.readouterr() == ("", "")


def test_arxivs_real_labels_and_split(
    benchmark_data: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = benchmark_data / "large" / "ogbn_arxiv_labels_and_splits"
    folder = data_folder / ARXIV
    shutil.copytree(real, folder, copy_function=shutil.copyfile)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    write_gz(folder / "raw/edge.csv.gz", [list(edge) for edge in EDGES])
    write_gz(folder / "raw/num-edge-list.csv.gz", [[len(EDGES)]])
    write_gz(folder / "raw/node-feat.csv.gz", [[node % 7, 0.5] for node in range(169_343)])
    expect(monkeypatch, "ogbn-arxiv", 169_343, len(UNDIRECTED), 2, 40)
    data = load("ogbn-arxiv")
    with gzip.open(real / "raw/node-label.csv.gz", "rt") as file:
        assert data.y.tolist() == [int(line) for line in file]
    with gzip.open(real / "raw/node_year.csv.gz", "rt") as file:
        year = torch.tensor([int(line) for line in file])
    # OGB's split: papers up to 2017, from 2018, and from 2019 on.
    assert torch.equal(data.train_mask, year <= 2017)
    assert torch.equal(data.val_mask, year == 2018)
    assert torch.equal(data.test_mask, year >= 2019)
    assert len(data.class_names) == 40
    assert data.class_names[:2] == ["arxiv cs na", "arxiv cs mm"]


def test_arxiv_from_its_archive(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(NODES, 4)).round(6)
    parts = [list(range(40)), list(range(40, 50)), list(range(50, 60))]
    source = data_folder.parent / "arxiv"
    write_arxiv(source, x, [node % 3 for node in range(NODES)], parts)
    (source / "processed").mkdir()
    (source / "processed/geometric_data_processed.pt").write_bytes(pickle.dumps(_refuse))
    archive = shutil.make_archive(str(source), "zip", source.parent, "arxiv")

    def answer(url: str) -> io.BufferedReader:
        assert url == "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
        return open(archive, "rb")

    monkeypatch.setattr("dgt.data.raw_files.open_url", answer)
    expect(monkeypatch, "ogbn-arxiv", NODES, len(UNDIRECTED), 4, 3)
    data = load("ogbn-arxiv")
    np.testing.assert_array_equal(data.x, x.astype(np.float32))
    assert undirected(data) == UNDIRECTED


class Evil:
    """Creates a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_processed_files_of_other_programs_are_not_loaded(
    name: str, data_folder: Path, tmp_path: Path
) -> None:
    """PyG and OGB would load these pickles, if they were next to the raw files."""
    executed = tmp_path / "executed"
    folder = data_folder / BENCHMARKS[name].folder
    for parent in (folder, folder.parent):
        for file in ("data.pt", "pre_filter.pt", "pre_transform.pt", "data_processed",
                     "geometric_data_processed.pt"):  # fmt: skip
            path = parent / "processed" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(Evil(executed), path)
    with pytest.raises(InputError):
        load(name, "published")
    assert not executed.exists()


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy"])
def test_pickles_of_reddit_are_not_loaded(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    x, parts = np.ones((NODES, 5)), [list(range(40)), list(range(40, 50)), list(range(50, 60))]
    write_reddit(data_folder / REDDIT, x, {node: node % 4 for node in range(NODES)}, parts)
    evil = np.array([Evil(tmp_path / "executed")], dtype=object)
    path = data_folder / REDDIT / file
    if file == "feats.npy":
        np.save(path, evil, allow_pickle=True)
    else:
        np.savez(path, data=evil, indices=evil, indptr=evil, shape=evil)
    with pytest.raises(InputError, match="reddit: could not be read"):
        load("reddit")
    assert not (tmp_path / "executed").exists()


def write_reddit(folder: Path, x: np.ndarray, y: dict[int, int], parts: list[list[int]]) -> None:
    folder.mkdir(parents=True)
    nodes = len(x)
    both = [*EDGES, *((b, a) for a, b in EDGES)]
    matrix = scipy.sparse.csr_matrix(
        (np.ones(len(both), bool), tuple(np.array(both).T)), (nodes, nodes)
    )
    np.savez(
        folder / "adj_full.npz",
        data=matrix.data,
        indices=matrix.indices,
        indptr=matrix.indptr,
        shape=matrix.shape,
    )
    np.save(folder / "feats.npy", x)
    (folder / "class_map.json").write_text(json.dumps({str(k): v for k, v in y.items()}))
    (folder / "role.json").write_text(json.dumps(dict(zip(("tr", "va", "te"), parts, strict=True))))


def test_reddit(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(NODES, 5))
    y = {node: node % 4 for node in range(NODES)}
    parts = [list(range(40)), list(range(40, 50)), list(range(50, 60))]
    write_reddit(data_folder / REDDIT, x, y, parts)
    expect(monkeypatch, "reddit", NODES, len(UNDIRECTED), 5, 4)
    data = load("reddit")
    np.testing.assert_array_equal(data.x, x.astype(np.float32))
    assert undirected(data) == UNDIRECTED
    assert data.y.tolist() == list(y.values())
    for name, nodes in zip(("train", "val", "test"), parts, strict=True):
        assert data[f"{name}_mask"].nonzero().flatten().tolist() == nodes


def test_reddits_real_labels_and_split(
    benchmark_data: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with np.load(benchmark_data / "large" / "reddit_index_label.npz") as file:
        real = {name: file[name] for name in file.files}
    parts = [real[f"{part}_index"].tolist() for part in ("train", "val", "test")]
    y: dict[int, int] = {}
    for part in ("train", "val", "test"):
        y |= zip(real[f"{part}_index"].tolist(), real[f"y_{part}"].tolist(), strict=True)
    write_reddit(data_folder / REDDIT, np.ones((232_965, 1)), y, parts)
    expect(monkeypatch, "reddit", 232_965, len(UNDIRECTED), 1, 41)
    data = load("reddit")
    for part, nodes in zip(("train", "val", "test"), parts, strict=True):
        assert torch.equal(data[f"{part}_mask"].nonzero().flatten(), torch.tensor(nodes).sort()[0])
        assert data.y[nodes].tolist() == real[f"y_{part}"].tolist()
    assert choose(data, "auto", 0)[1] == "given"


def write_twitch(folder: Path, nodes: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = [
        {
            "views": int(rng.integers(0, 10**6)),
            "mature": int(rng.integers(0, 2)),
            "life_time": int(rng.integers(0, 4000)),
            "created_at": f"20{rng.integers(10, 19)}-0{rng.integers(1, 9)}-{rng.integers(10, 28)}",
            "updated_at": f"2018-1{rng.integers(0, 2)}-0{rng.integers(1, 9)}",
            "numeric_id": node,
            "dead_account": int(rng.integers(0, 2)),
            "language": ("EN", "DE", "OTHER")[rng.integers(0, 3)],
            "affiliate": int(rng.integers(0, 2)),
        }
        for node in range(nodes)
    ]
    folder.mkdir(parents=True)
    with open(folder / "large_twitch_features.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with open(folder / "large_twitch_edges.csv", "w", newline="") as file:
        writer_ = csv.writer(file, lineterminator="\n")
        writer_.writerow(["numeric_id_1", "numeric_id_2"])
        writer_.writerows(EDGES)
    return rows


def write_splits(folder: Path, nodes: int, patch: pytest.MonkeyPatch, count: int = 5) -> np.ndarray:
    splits = np.empty(count, dtype=object)
    for split in range(count):
        order = np.random.default_rng(split).permutation(nodes).tolist()
        half, rest = nodes // 2, nodes * 3 // 4
        splits[split] = {"train": order[:half], "valid": order[half:rest], "test": order[rest:]}
    path = folder / "twitch-gamer-splits.npy"
    np.save(path, splits, allow_pickle=True)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    patch.setitem(checksums(), "twitch-gamers/twitch-gamer-splits.npy", digest)
    return splits


def test_twitch(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = write_twitch(data_folder / TWITCH, NODES)
    splits = write_splits(data_folder / TWITCH, NODES, monkeypatch)
    expect(monkeypatch, "twitch-gamers", NODES, len(UNDIRECTED), None, 2)
    data = load("twitch-gamers")
    assert data.y.tolist() == [row["mature"] for row in rows]
    assert undirected(data) == UNDIRECTED
    raw = {name: [row[name] for row in rows] for name in ("views", "life_time")}
    for name in ("created_at", "updated_at"):
        raw[name] = [int(row[name].replace("-", "")) for row in rows]
    for name in ("dead_account", "affiliate"):
        raw[name] = [row[name] for row in rows]
    for name in ("DE", "EN", "OTHER"):
        raw[f"language_{name}"] = [int(row["language"] == name) for row in rows]
    assert data.feature_names == list(raw)
    x = torch.tensor(list(raw.values()), dtype=torch.float64).t()
    torch.testing.assert_close(data.x, ((x - x.mean(0)) / x.std(0)).float())
    assert data.train_mask.shape == (NODES, 5)
    for split, parts in enumerate(splits):
        chosen, kind = choose(data, "auto", split)
        assert kind == "published"
        for name, own in (("train", "train"), ("val", "valid"), ("test", "test")):
            assert chosen[f"{name}_mask"].nonzero().flatten().tolist() == sorted(parts[own])


def test_twitchs_real_splits(
    benchmark_data: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = benchmark_data / "large" / "twitch-gamer-splits.npy"
    require_sum(file, "twitch-gamers/twitch-gamer-splits.npy", "splits")
    truth = np.load(file, allow_pickle=True)
    splits = _read_splits(file)
    assert len(splits) == 5
    for own, other in zip(splits, truth, strict=True):
        assert own == other
        assert sorted([*own["train"], *own["valid"], *own["test"]]) == list(range(168_114))


def test_twitchs_splits_run_no_code(data_folder: Path, tmp_path: Path) -> None:
    write_twitch(data_folder / TWITCH, NODES)
    path = data_folder / TWITCH / "twitch-gamer-splits.npy"
    np.save(path, np.array([Evil(tmp_path / "executed")], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not the published file: its SHA-256 sum"):
        load("twitch-gamers")
    with pytest.raises(pickle.UnpicklingError, match="expected plain lists of numbers"):
        _read_splits(path)
    assert not (tmp_path / "executed").exists()


def test_twitch_with_rows_in_another_order(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_twitch(data_folder / TWITCH, NODES)
    write_splits(data_folder / TWITCH, NODES, monkeypatch)
    file = data_folder / TWITCH / "large_twitch_features.csv"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    with pytest.raises(InputError, match="numeric_id: expected consecutive ids"):
        load("twitch-gamers")


@pytest.mark.parametrize("name", ["ogbn-arxiv", "reddit", "twitch-gamers"])
def test_no_network_and_other_graphs(name: str, data_folder: Path) -> None:
    with pytest.raises(InputError, match=f"{name}: could not be downloaded .* DGT_DATA"):
        load(name)


def test_files_of_another_graph(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_twitch(data_folder / TWITCH, NODES)
    write_splits(data_folder / TWITCH, NODES, monkeypatch)
    with pytest.raises(InputError, match="not twitch-gamers: got 60 nodes, expected 168114"):
        load("twitch-gamers")


@pytest.mark.parametrize("name", ["ogbn-arxiv", "reddit", "twitch-gamers"])
@pytest.mark.parametrize("model", ["dgt", "dgt-light"])
def test_presets_are_points_of_the_papers_grid(name: str, model: str) -> None:
    config = Config.from_dict(read_preset(name, model))
    assert config.model.model == model
    # The presets of ogbn-arxiv have fewer channels, to match the paper's FLOPs.
    assert config.model.hidden_channels == 64 or name == "ogbn-arxiv"
    assert config.model.blocks in (1, 2)
    assert config.model.gamma in [2**k for k in range(9)]
    assert config.train.lr in (0.05, 0.01, 0.005)
    assert config.train.weight_decay in (1e-3, 5e-4, 5e-5)
    assert (config.train.epochs, config.train.patience) == (1000, 100)


def test_tables_have_the_large_graphs_that_are_here(
    data_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_twitch(data_folder / TWITCH, NODES)
    write_splits(data_folder / TWITCH, NODES, monkeypatch)
    expect(monkeypatch, "twitch-gamers", NODES, len(UNDIRECTED), None, 2)
    x = np.random.default_rng(0).normal(size=(NODES, 4))
    parts = [list(range(40)), list(range(40, 50)), list(range(50, 60))]
    write_arxiv(data_folder / ARXIV, x, [node % 3 for node in range(NODES)], parts)
    expect(monkeypatch, "ogbn-arxiv", NODES, len(UNDIRECTED), 4, 3)

    done: list[Run] = []

    def share(work: Any, tasks: list[Run], workers: int | None) -> Any:
        done.extend(tasks)
        return ((run, work(run)) for run in tasks)

    monkeypatch.setattr("dgt.experiments.runner.share", share)
    monkeypatch.setattr("dgt.models.available", lambda: 50_000)
    runner._load.cache_clear()
    setups = [
        Setup(dataset, model, Config.of(model).replace(**QUICK | {"epochs": 2}))
        for dataset in ("twitch-gamers", "ogbn-arxiv", "reddit")
        for model in ("h2gcn", "dgt-light")
    ]

    def lay_out(lines: list[Any]) -> Any:
        return accuracies(lines, "Title", table1)

    large = Table("large", lambda: setups, lay_out)
    sheet = reproduce(large, runs=6, results=tmp_path / "results", progress=True)
    found = [(run.dataset, run.config.train) for run in done if run.config.model.model != "h2gcn"]
    assert [(t.splits, t.split, t.seed) for d, t in found if d == "twitch-gamers"] == [
        *(("published", split, 0) for split in range(5)),
        ("published", 0, 1),
    ]
    assert [(t.splits, t.split, t.seed) for d, t in found if d == "ogbn-arxiv"] == [
        ("given", 0, seed) for seed in range(6)
    ]
    assert {run.dataset for run in done} == {"twitch-gamers", "ogbn-arxiv"}
    shown = capsys.readouterr().err
    assert "24 runs, 0 of them recorded\nskipping reddit: not on this machine; " in shown
    assert "ogbn-arxiv, h2gcn, split 0, seed 3: needs more memory than is available; " in shown
    assert [(*row[:2], row[4], row[5]) for row in sheet.rows] == [
        ("twitch-gamers", "h2gcn", "0/6", "OOM"),
        ("twitch-gamers", "dgt-light", "6", "65.59±0.25"),
        ("ogbn-arxiv", "h2gcn", "0/6", "OOM"),
        ("ogbn-arxiv", "dgt-light", "6", "71.18±0.13"),
    ]
    assert [row[2] for row in sheet.rows if row[1] == "h2gcn"] == ["OOM", "OOM"]
    # Recorded runs stay in the table, even if the files are gone.
    shutil.rmtree(data_folder)
    shutil.rmtree(tmp_path / "cache")
    done.clear()
    again = reproduce(large, runs=7, results=tmp_path / "results")
    assert done == []
    assert [row[:2] for row in again.rows] == [row[:2] for row in sheet.rows if row[1] != "h2gcn"]
    with pytest.raises(InputError, match="reddit: could not be downloaded"):
        reproduce(large, datasets=["reddit"], runs=1, results=tmp_path / "results")
