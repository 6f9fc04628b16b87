"""``dgt prepare`` writes the same files for any number of shards and threads, even if killed."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dgt.encodings
import dgt.sequences.make
import dgt.sequences.ppr
import dgt.sequences.similarity
import dgt.storage.segments
from dgt.cli import main
from dgt.config import Config
from dgt.data import load
from dgt.data.files import normalize
from dgt.prepare import precompute, prepare
from dgt.sequences import node_sequences
from dgt.sequences.similarity import UnitRows
from dgt.storage.segments import read_arrays
from tests.sequences.test_similarity import clustered, documents

GRAPH = "synthetic:nodes=600,edges=3000,features=12,classes=3"
CONFIG = Config.of("dgt").replace(length=12, katz_order=2, anchors=20)
FLAGS = ["--model=dgt", "--length=12", "--katz-order=2", "--anchors=20", "--quiet"]
SMALL = {
    "dgt.storage.segments.ROWS": 64,
    "dgt.sequences.make.MAPPED_BYTES": 0,
    "dgt.sequences.similarity.EXACT_NODES": 100,
    "dgt.sequences.ppr.EXACT_NODES": 100,
    "dgt.sequences.ppr.NEIGHBORS_PER_NODE": 2,
}


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Ten segments per kind of rows, memory-mapped sequences, and the methods of large graphs."""
    for name, value in SMALL.items():
        monkeypatch.setattr(name, value)
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that one process writes."""
    folder = tmp_path_factory.mktemp("truth")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(name, value)
        result = precompute(normalize(load(GRAPH)), CONFIG, folder)
    assert result == {"folder": str(folder), "segments": 40, "made": 40, "missing": 0}
    files = content(folder)
    # Four kinds of rows, the centroids of the index, and the file that training memory-maps.
    assert len(files) == 4 * 10 + 1 + 1
    return files


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_any_number_of_shards_and_threads(
    shards: int, threads: int, tmp_path: Path, truth: dict[str, bytes]
) -> None:
    torch.set_num_threads(threads)
    made = 0
    for shard in reversed(range(shards)):
        data = normalize(load(GRAPH))
        result = precompute(data, CONFIG, tmp_path / "out", (shard, shards))
        made += result["made"]
        assert result["missing"] == 40 - made
    assert made == 40
    assert content(tmp_path / "out") == truth


def test_the_shards_use_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    real = dgt.sequences.ppr.hub_scores

    def hub_scores(*arguments: Any) -> Any:
        hubs = real(*arguments)
        used.append(len(hubs.nodes))
        return hubs

    monkeypatch.setattr(dgt.sequences.ppr, "hub_scores", hub_scores)
    node_sequences(load(GRAPH), ["ppr"], CONFIG.sequences.length)
    assert len(used) == 1
    assert used[0] > 0


KILLED = """
import os, signal, sys
from pathlib import Path
import dgt.storage.segments, dgt.sequences.make, dgt.sequences.ppr, dgt.sequences.similarity
dgt.storage.segments.ROWS, dgt.sequences.make.MAPPED_BYTES = 64, 0
dgt.sequences.similarity.EXACT_NODES = dgt.sequences.ppr.EXACT_NODES = 100
dgt.sequences.ppr.NEIGHBORS_PER_NODE = 2
real, left = Path.write_bytes, int(sys.argv[1])

def write(path, data):
    global left
    left -= 1
    if left < 0:
        real(path, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, data)

Path.write_bytes = write
from dgt.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("after", [3, 27])
def test_killed_and_resumed(
    after: int, tmp_path: Path, truth: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["prepare", GRAPH, *FLAGS, f"--out={tmp_path / 'out'}"]
    run = subprocess.run([sys.executable, "-c", KILLED, str(after), *command], check=False)
    assert run.returncode == -signal.SIGKILL
    left = content(tmp_path / "out")
    whole = {name for name in left if truth.get(name) == left[name]}
    assert len(whole) == after
    assert len(left) == after + 1  # an incomplete file with a temporary name

    made: list[str] = []
    monkeypatch.setattr(
        dgt.storage.segments, "write_arrays", _noting(dgt.storage.segments.write_arrays, made)
    )
    assert main(command) == 0
    assert content(tmp_path / "out") == truth
    # Finished segments are not computed again. The centroids of the index are not a segment.
    again = {str(Path(path).relative_to(tmp_path / "out")) for path in made}
    assert again.isdisjoint(whole)
    assert len(again) == 41 - after


def _noting(write: Any, made: list[str]) -> Any:
    def noting(path: Path, arrays: list[np.ndarray]) -> None:
        made.append(str(path))
        write(path, arrays)

    return noting


def test_training_reads_what_was_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = normalize(load(GRAPH))
    settings = CONFIG.sequences
    plain = node_sequences(data, CONFIG.criteria, settings.length)
    katz = prepare(data, CONFIG)["encoding"]
    precompute(data, CONFIG)

    def refuse(*_: object) -> None:
        raise AssertionError("made again")

    for name in ("bfs", "ppr", "similarity"):
        monkeypatch.setattr(f"dgt.sequences.{name}.{name}_sequences", refuse)
    monkeypatch.setattr(sys.modules["dgt.encodings.katz"], "adjacency", lambda *_: None)
    monkeypatch.setattr(sys.modules["dgt.encodings.katz"], "choose_anchors", refuse)
    anchors = torch.from_numpy(
        np.argsort(-np.bincount(data.edge_index[0], minlength=600), kind="stable")[:20]
    )
    inputs = prepare(data, CONFIG, anchors)
    assert torch.equal(inputs["sequences"], plain)
    assert torch.equal(inputs["encoding"].to_dense(), katz.to_dense())


def test_sequences_are_mapped_and_private(tmp_path: Path) -> None:
    data = normalize(load(GRAPH))
    first = prepare(data, CONFIG)["sequences"]
    with open("/proc/self/maps") as file:
        (file_name,) = (path for path in tmp_path.rglob("*.npy") if path.parent.name == "sequences")
        assert str(file_name) in file.read()
    before = first.clone()
    first.zero_()
    assert torch.equal(prepare(data, CONFIG)["sequences"], before)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_made_anew(damage: str, tmp_path: Path, truth: dict[str, bytes]) -> None:
    precompute(normalize(load(GRAPH)), CONFIG, tmp_path / "out")
    for path in (tmp_path / "out").rglob("*.npy"):
        if path.stem in ("000003", "centroids") or path.parent.name == "sequences":
            whole = bytearray(path.read_bytes())
            whole[len(whole) // 2] ^= 1
            path.write_bytes({"flip": whole, "cut": whole[:-7], "empty": b""}[damage])
    # The index is only checked when it is used: segment 3 is computed with it again.
    precompute(normalize(load(GRAPH)), CONFIG, tmp_path / "out")
    assert content(tmp_path / "out") == truth


@pytest.mark.parametrize("make", [clustered, documents])
def test_an_index_from_its_file_is_the_same(
    make: Callable[[int], np.ndarray], tmp_path: Path
) -> None:
    x = make(2000)
    own = UnitRows(x, tmp_path / "centroids.npy")
    kept = UnitRows(x, tmp_path / "centroids.npy")
    plain = UnitRows(x)
    assert read_arrays(tmp_path / "centroids.npy") is not None
    for rows in (kept, plain):
        assert rows.near is not None
        assert own.near is not None
        assert rows.near.chosen(20) == own.near.chosen(20)
        effort = own.near.chosen(20).effort
        found = [each.near.index.nearest(np.arange(2000), 20, effort)[0] for each in (rows, own)]
        np.testing.assert_array_equal(*found)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = f"--out={tmp_path / 'out'}"
    assert main(["prepare", GRAPH, *FLAGS, out, "--shard=1/3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == {"folder": str(tmp_path / "out"), "segments": 40, "made": 12, "missing": 28}
    assert main(["prepare", GRAPH, *FLAGS, out]) == 0
    shown = capsys.readouterr().out
    assert "40 segments in " in shown
    assert ", 28 of them new" in shown
    assert main(["prepare", GRAPH, *FLAGS[1:], "--model=dgt-light", "--encoding=none"]) == 0
    shown = capsys.readouterr().out
    assert "10 segments in " in shown
    assert ", 10 of them new" in shown


@pytest.mark.parametrize("shard", ["3/3", "1", "a/3", "-1/3", "0/0", "1/3/4"])
def test_wrong_shards(shard: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", GRAPH, f"--shard={shard}"]) == 2
    message = capsys.readouterr().err
    assert f"--shard: got {shard!r}, expected I/N with I from 0 to N-1" in message


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["prepare", GRAPH, *FLAGS, f"--out={tmp_path / 'file'}"]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_a_model_without_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare", "cora", "--model", "gcn"]) == 2
    assert "'gcn' takes no sequences" in capsys.readouterr().err
