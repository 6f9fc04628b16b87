import io
import multiprocessing
import os
import pickle
import shutil
import ssl
from email.message import Message
from pathlib import Path
from urllib.request import Request
from urllib.response import addinfourl

import numpy as np
import pytest
import torch

from dgt import data
from dgt.data import files, load, raw_files
from dgt.data.benchmarks import BENCHMARKS
from dgt.data.splits import choose
from dgt.errors import InputError

# Published numbers of nodes, undirected edges, homophily, features and classes.
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
    monkeypatch.setattr("dgt.data.raw_files.open_url", refuse)
    monkeypatch.setattr("torch_geometric.io.fs.cp", refuse)
    return tmp_path / "cache"


def figures(data: object) -> tuple[object, ...]:
    info = files.info(data)  # type: ignore[arg-type]
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

    # The second time, only the cache is available.
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
        """Returns, for each paper, its words and its number of links to each class. Both graphs
        order the classes by size."""
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
    for content in (whole[:1000], data._BUILT_IN.read_bytes()):
        caplog.clear()
        file.write_bytes(content)
        assert figures(load("chameleon-filtered")) == PUBLISHED["chameleon-filtered"]
        assert "rebuilding it" in caplog.text
        assert files.info(files.read(file))["nodes"] == 890


def test_a_cache_that_cannot_be_written(
    benchmark_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "file"))
    assert figures(load("chameleon-filtered")) == PUBLISHED["chameleon-filtered"]
    assert "is not cached" in caplog.text


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
    with pytest.raises(InputError, match=r"chameleon_filtered\.npz: not the published file"):
        load("chameleon-filtered")


def test_an_unknown_pickle_is_not_loaded(
    benchmark_data: Path, offline: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    folder = "planetoid/CiteSeer/geom-gcn/raw"
    shutil.copytree(benchmark_data / folder, tmp_path / "data" / folder)
    monkeypatch.setenv("DGT_DATA", str(tmp_path / "data"))
    file = tmp_path / "data" / folder / "ind.citeseer.x"
    file.chmod(0o644)
    whole = file.read_bytes()
    file.write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(InputError, match=r"ind\.citeseer\.x: not the published file: its SHA-256"):
        load("citeseer")
    assert not (tmp_path / "executed").exists()
    # Other files in the folder are not read.
    file.write_bytes(whole)
    (file.parent / "ind.citeseer.z").write_bytes(pickle.dumps(Hostile()))
    assert load("citeseer").num_nodes == 3327
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_file_is_downloaded_over_verified_tls_and_checked(
    name: str, benchmark_data: Path, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    benchmark = BENCHMARKS[name]
    asked: list[str] = []

    def answer(url: str) -> io.BytesIO:
        assert url.startswith("https://")
        asked.append(url.rpartition("/")[2])
        return io.BytesIO((benchmark_data / benchmark.folder / asked[-1]).read_bytes())

    monkeypatch.setattr("dgt.data.raw_files.open_url", answer)
    assert figures(load(name, "published")) == PUBLISHED[name]
    wanted = [*benchmark.checked_files(), *([benchmark.direction] if benchmark.direction else [])]
    assert sorted(asked) == sorted(wanted)
    assert len(benchmark.checked_files()) == {"planetoid": 18, "platonov": 1}.get(
        benchmark.folder.split("/")[0], 12
    )

    (offline / "graphs" / f"{name}.npz").unlink()
    monkeypatch.setattr("dgt.data.raw_files.open_url", lambda url: io.BytesIO(b"another file"))
    with pytest.raises(InputError, match=r"^https://.*: not the published file"):
        load(name, "published")


@pytest.mark.parametrize("name", ["citeseer", "chameleon", "squirrel", "actor"])
def test_the_files_and_addresses_are_those_that_pyg_downloads(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: set[str] = set()

    def note(url: str, *_: object, **__: object) -> None:
        asked.add(url)

    for place in (
        "torch_geometric.io.fs.cp",
        "torch_geometric.datasets.actor.download_url",
        "torch_geometric.datasets.wikipedia_network.download_url",
    ):
        monkeypatch.setattr(place, note)
    with pytest.raises(FileNotFoundError):  # nothing was downloaded
        BENCHMARKS[name].read(tmp_path)
    url = BENCHMARKS[name].url
    assert url is not None
    assert asked == set(map(url, BENCHMARKS[name].checked_files()))


def test_verified_contexts_are_the_default() -> None:
    assert ssl._create_default_https_context is ssl.create_default_context
    assert ssl.create_default_context().verify_mode == ssl.CERT_REQUIRED


def test_redirects_do_not_leave_https(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers all requests with redirects, without a network."""
    targets = iter(["https://one.example/file", "http://two.example/file"])

    def redirect(_: object, request: Request) -> addinfourl:
        headers = Message()
        headers["Location"] = next(targets)
        response = addinfourl(io.BytesIO(), headers, request.full_url, 302)
        response.msg = "Found"
        return response

    monkeypatch.setattr("urllib.request.HTTPSHandler.https_open", redirect)
    with pytest.raises(InputError, match=r"^http://two\.example/file: not an HTTPS address"):
        raw_files.open_url("https://zero.example/file")
    with pytest.raises(InputError, match="not an HTTPS address"):
        raw_files.open_url("http://zero.example/file")


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
