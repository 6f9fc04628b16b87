import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from dgt import datasets, io
from dgt.datasets import load
from dgt.errors import InputError
from dgt.splits import choose

# nodes, undirected edges, homophily, features, classes: the published figures
PUBLISHED = {
    "cora": (2708, 5278, 0.81, 1433, 7),
    "citeseer": (3327, 4552, 0.74, 3703, 6),
    "chameleon": (2277, 31371, 0.23, 2325, 5),
    "squirrel": (5201, 198353, 0.22, 2089, 5),
    "actor": (7600, 26659, 0.22, 932, 5),
    "chameleon-filtered": (890, 8854, 0.24, 2325, 5),
    "squirrel-filtered": (2223, 46998, 0.21, 2089, 5),
}


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data, an empty cache and no network."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network in tests")

    monkeypatch.delenv("DGT_DATA", raising=False)
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)
    return tmp_path / "cache"


def figures(data: object) -> tuple[object, ...]:
    info = io.info(data)  # type: ignore[arg-type]
    homophily = round(info["homophily"], 2)  # type: ignore[arg-type]
    return info["nodes"], info["edges"], homophily, info["features"], info["classes"]


def test_built_in_cora_needs_nothing(offline: Path) -> None:
    for splits in ("auto", "random", "given"):
        data = load("cora", splits)
        assert figures(data) == PUBLISHED["cora"]
        assert data.name == "cora"
        assert "train_mask" not in data
    assert "Neural_Networks" in data.class_names
    chosen, kind = choose(data, "auto", 0)
    assert kind == "random"
    assert 0.47 < chosen.train_mask.float().mean() < 0.49
    assert not offline.exists()


@pytest.mark.parametrize("name", PUBLISHED)
def test_benchmarks_have_the_published_figures(
    name: str,
    benchmark_data: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DGT_CACHE", str(cache))
    data = load(name, "published")
    assert figures(data) == PUBLISHED[name]
    masks = [data[f"{part}_mask"] for part in ("train", "val", "test")]
    assert all(m.shape == (data.num_nodes, 10) and m.dtype == torch.bool for m in masks)
    assert (sum(m.int() for m in masks) <= 1).all()
    for split in range(10):
        assert choose(data, "auto", split)[1] == "published"
    assert data.name == name

    # A second time from the cache, with no other source.
    monkeypatch.delenv("DGT_DATA")
    again = load(name, "published")
    for key in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(again[key], data[key])
    assert again.class_names == data.class_names
    assert capfd.readouterr() == ("", "")


def test_built_in_cora_is_planetoids_in_another_order(
    benchmark_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DGT_CACHE", str(cache))
    ours, theirs = load("cora"), load("cora", "published")

    def papers(data: object) -> list[bytes]:
        """For each paper, its words and how many papers of each class it is linked to, with the
        classes in an order that both graphs share: by size."""
        size = data.y.bincount()  # type: ignore[attr-defined]
        rank = size.argsort(descending=True).argsort()[data.y]  # type: ignore[attr-defined]
        links = torch.zeros(data.num_nodes, 7)  # type: ignore[attr-defined]
        source, target = data.edge_index  # type: ignore[attr-defined]
        links.index_put_((source, rank[target]), torch.ones(len(source)), accumulate=True)
        rows = torch.cat([data.x, rank[:, None].float(), links], dim=1)  # type: ignore[attr-defined]
        return sorted(row.tobytes() for row in rows.numpy())

    assert papers(ours) == papers(theirs)
    assert not torch.equal(ours.y, theirs.y)


def test_the_edges_are_those_of_the_raw_file(
    benchmark_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DGT_CACHE", str(cache))
    raw = np.loadtxt(benchmark_data / "actor/raw/out1_graph_edges.txt", skiprows=1, dtype=int)
    expected = {(u, v) for a, b in raw.tolist() for u, v in ((a, b), (b, a)) if u != v}
    got = load("actor").edge_index.t().tolist()
    assert {tuple(edge) for edge in got} == expected
    assert len(got) == len(expected)


def test_raw_files_in_the_cache_folder(benchmark_data: Path, offline: Path) -> None:
    (offline / "platonov").mkdir(parents=True)
    name = "chameleon_filtered.npz"
    (offline / "platonov" / name).write_bytes((benchmark_data / "platonov" / name).read_bytes())
    assert figures(load("chameleon-filtered")) == PUBLISHED["chameleon-filtered"]


def test_a_damaged_cache_is_built_again(
    benchmark_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    load("chameleon-filtered")
    file = tmp_path / "graphs" / "chameleon-filtered.npz"
    whole = file.read_bytes()
    for content in (whole[:1000], datasets._BUILT_IN.read_bytes()):
        caplog.clear()
        file.write_bytes(content)
        assert figures(load("chameleon-filtered")) == PUBLISHED["chameleon-filtered"]
        assert "building it again" in caplog.text
        assert io.info(io.read(file))["nodes"] == 890


def test_a_cache_that_cannot_be_written(
    benchmark_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "file"))
    assert figures(load("chameleon-filtered")) == PUBLISHED["chameleon-filtered"]
    assert "is not kept in the cache" in caplog.text


def _nodes(cache: str) -> int:
    os.environ["DGT_CACHE"] = cache
    return load("citeseer").num_nodes


def test_two_processes_at_once(benchmark_data: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        assert pool.map(_nodes, [str(tmp_path)] * 2, chunksize=1) == [3327, 3327]
    assert os.listdir(tmp_path / "graphs") == ["citeseer.npz"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_no_network(name: str, offline: Path) -> None:
    with pytest.raises(InputError) as error:
        load(name, "published")
    message = str(error.value)
    assert message.startswith(f"{name}: could not be downloaded (OSError: no network in tests)")
    assert "DGT_DATA" in message
    assert str(offline) in message
    assert not offline.exists()


def test_files_of_another_graph(
    benchmark_data: Path, offline: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "data" / "platonov"
    folder.mkdir(parents=True)
    other = benchmark_data / "platonov" / "squirrel_filtered.npz"
    (folder / "chameleon_filtered.npz").write_bytes(other.read_bytes())
    monkeypatch.setenv("DGT_DATA", str(tmp_path / "data"))
    with pytest.raises(InputError, match="not chameleon-filtered: got 2223 nodes, expected 890"):
        load("chameleon-filtered")


def test_names_that_are_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"camelon: .* did you mean 'chameleon'"):
        load("camelon")
    with pytest.raises(InputError, match="choose from actor, chameleon"):
        load("/no/such/place")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cora").mkdir()
    assert load("cora").num_nodes == 2708
    with pytest.raises(InputError, match=r"cora: no nodes.csv"):
        load("./cora")


def test_a_path(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", x=np.ones((2, 1)), edges=[[0, 1]])
    data = load(str(tmp_path / "own.npz"))
    assert data.num_nodes == 2
    assert data.name == str(tmp_path / "own.npz")
