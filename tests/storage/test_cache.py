import importlib
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from dgt.sequences import node_sequences
from dgt.storage.fingerprint import fingerprint
from dgt.storage.segments import CachedRows, through
from tests.small import block_graph


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the criteria whose sequences are computed, not read from the cache."""
    names: list[str] = []
    for name in ("bfs", "ppr", "similarity"):
        place = f"dgt.sequences.{name}"
        real = getattr(importlib.import_module(place), f"{name}_sequences")

        def make(
            *given: object, name: str = name, real: object = real, **named: object
        ) -> np.ndarray:
            names.append(name)
            return real(*given, **named)  # type: ignore[operator]

        monkeypatch.setattr(f"{place}.{name}_sequences", make)
    return names


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_each_criterion_is_made_once(folder: Path, made: list[str]) -> None:
    data = block_graph()
    plain = node_sequences(data, ["ppr", "bfs"], 8)
    assert files(folder) == []
    made.clear()
    first = node_sequences(data, ["ppr", "bfs"], 8, cache=True)
    again = node_sequences(data, ["bfs", "similarity", "ppr"], 8, cache=True)
    assert made == ["ppr", "bfs", "similarity"]
    assert torch.equal(first, plain)
    assert torch.equal(again[[2, 0]], plain)
    assert len(files(folder)) == 3


def test_what_decides_the_sequences_decides_the_name(folder: Path, made: list[str]) -> None:
    data = block_graph()
    other_edges = Data(x=data.x, edge_index=data.edge_index[:, 1:], num_nodes=data.num_nodes)
    other_x = Data(x=data.x + 1, edge_index=data.edge_index, num_nodes=data.num_nodes)

    def misses(data: Data, **settings: float) -> list[str]:
        made.clear()
        node_sequences(data, cache=True, **settings)
        return list(made)

    assert misses(data) == ["bfs", "ppr", "similarity"]
    assert misses(data) == []
    assert misses(other_edges) == ["bfs", "ppr"]
    assert misses(other_x) == ["similarity"]
    assert misses(data, ppr_alpha=0.2) == ["ppr"]
    assert misses(data, ppr_tolerance=1e-4) == ["ppr"]
    assert misses(data, length=9) == ["bfs", "ppr", "similarity"]
    one_more = Data(edge_index=data.edge_index, num_nodes=data.num_nodes + 1)
    assert misses(one_more) == ["bfs", "ppr", "similarity"]


@pytest.mark.parametrize("damage", ["cut", "flip", "flip header", "empty", "foreign", "longer"])
def test_a_damaged_file_is_made_anew(folder: Path, made: list[str], damage: str) -> None:
    data = block_graph()
    right = node_sequences(data, ["bfs"], 8, cache=True)
    (path,) = files(folder)
    whole = path.read_bytes()
    broken = bytearray(whole)
    if damage in ("flip", "flip header"):
        broken[len(whole) // 2 if damage == "flip" else 3] ^= 1
    path.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "flip": bytes(broken),
            "flip header": bytes(broken),
            "empty": b"",
            "foreign": b"not ours" * 100,
            "longer": whole + b"\0",
        }[damage]
    )
    made.clear()
    assert torch.equal(node_sequences(data, ["bfs"], 8, cache=True), right)
    assert made == ["bfs"]
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "file"))
    data = block_graph()
    assert torch.equal(
        node_sequences(data, ["bfs"], 8, cache=True), node_sequences(data, ["bfs"], 8)
    )


def test_a_users_own_criterion_is_not_kept(folder: Path) -> None:
    def alone(data: Data, length: int) -> torch.Tensor:
        sequences = torch.full((data.num_nodes, length), -1)
        sequences[:, 0] = torch.arange(data.num_nodes)
        return sequences

    node_sequences(block_graph(), [alone], 4, cache=True)
    assert files(folder) == []


def test_many_writers_leave_one_whole_file(folder: Path) -> None:
    sequences = np.arange(200_000, dtype=np.int32).reshape(1000, 200)
    rows = CachedRows(fingerprint([sequences]), "", 1000, lambda *_: [sequences.copy()])
    results: list[np.ndarray] = []

    def use() -> None:
        for _ in range(5):
            ((found,),) = through(rows, folder)
            results.append(found)
            for path in files(folder):
                path.unlink(missing_ok=True)

    writers = [threading.Thread(target=use) for _ in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(results) == 40
    assert all((result == sequences).all() for result in results)


def test_leftovers_beside_a_complete_file_are_removed(folder: Path) -> None:
    """A process was killed while it wrote, and the next one right after it had written."""
    rows = CachedRows("rows", "Rows", 3, lambda start, stop, advance: [np.arange(start, stop)])
    assert len(list(through(rows, folder))) == 1
    left = folder / "rows" / ".000000.0123456789ab.part.npy"
    other = folder / "rows" / ".000001.0123456789ab.part.npy"  # may still be written
    left.write_bytes(b"half")
    other.write_bytes(b"half")
    ((found,),) = through(rows, folder)
    np.testing.assert_array_equal(found, [0, 1, 2])
    assert not left.exists()
    assert other.exists()
