import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader, RandomNodeLoader
from torch_geometric.loader.utils import filter_data
from torch_geometric.transforms import NormalizeFeatures, RemoveIsolatedNodes, ToUndirected

from dgt.errors import InputError, MemoryNeeded
from dgt.nn import DGT
from dgt.sequences import NodeSort, current_sequences, node_sequences
from tests.small import block_graph


def by_id(data: Data, length: int) -> np.ndarray:
    """A user's own criterion: the base node, then the others by id."""
    rows = [
        [base, *(node for node in range(data.num_nodes) if node != base)]
        for base in range(data.num_nodes)
    ]
    padded = np.full((data.num_nodes, length), -1)
    for row, nodes in enumerate(rows):
        padded[row, : min(length, len(nodes))] = nodes[:length]
    return padded


class Small(InMemoryDataset):
    """A PyG dataset with one graph."""

    @property
    def processed_file_names(self) -> str:
        return "data.pt"

    def process(self) -> None:
        data = block_graph()
        self.save(
            [self.pre_transform(data) if self.pre_transform else data], self.processed_paths[0]
        )

    def __init__(self, root: str, **transforms: Any) -> None:
        super().__init__(root, **transforms)
        self.load(self.processed_paths[0])


def test_transform_equals_function() -> None:
    data = block_graph()
    sort = NodeSort(["similarity", by_id, "bfs"], length=7)
    result = sort(copy.copy(data))
    assert torch.equal(result.sequences, node_sequences(data, ["similarity", by_id, "bfs"], 7))
    assert result.sequences.dtype == torch.int32
    assert "sequences" not in data


@pytest.mark.parametrize("kind", ["transform", "pre_transform"])
def test_as_transform_of_a_dataset(tmp_path: Path, kind: str) -> None:
    truth = node_sequences(block_graph(), length=7)
    for _ in range(2):  # the second time, the processed file is read
        data = Small(str(tmp_path), **{kind: NodeSort(length=7)})[0]
        assert torch.equal(data.sequences, truth)


def test_repr_and_pickle_are_stable() -> None:
    sort = NodeSort(["bfs", by_id], length=7)
    settings = "length=7, ppr_alpha=0.15, ppr_tolerance=None, spacing='rank'"
    assert repr(sort) == f"NodeSort([bfs, by_id], {settings})"
    assert repr(pickle.loads(pickle.dumps(sort))) == repr(sort)


def test_more_length_than_nodes_and_one_node() -> None:
    data = Data(x=torch.ones(1, 3), edge_index=torch.tensor([[0], [0]]))
    assert node_sequences(data, length=3).tolist() == [[[0, -1, -1]]] * 3
    data = Data(x=torch.ones(3, 3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert node_sequences(data, length=5).tolist() == [
        [[0, 1, -1, -1, -1], [1, 0, -1, -1, -1], [2, -1, -1, -1, -1]],
        [[0, 1, -1, -1, -1], [1, 0, -1, -1, -1], [2, -1, -1, -1, -1]],
        [[0, 1, 2, -1, -1], [1, 0, 2, -1, -1], [2, 0, 1, -1, -1]],
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s[:, :-1], r"returned shape \(90, 3\), expected \(90, 4\)"),
        (lambda s: s.astype(float), "returned float64, expected integers"),
        (lambda s: _set(s, 5, 2, 90), "row 5, column 2 is 90, expected -1 or a node below 90"),
        (lambda s: _set(s, 5, 2, -2), "row 5, column 2 is -2, expected -1 or a node below 90"),
        (lambda s: _set(s, 7, 0, 3), "row 7, column 0 is 3, expected the row's own node first"),
        (lambda s: _set(s, 7, 0, -1), "row 7, column 0 is -1, expected the row's own node first"),
        (lambda s: _set(s, 9, 1, -1), "row 9, column 2 is 1, expected -1, as before it"),
        (lambda s: _set(s, 9, 3, 0), "row 9, column 3 is 0, expected no node twice"),
    ],
)
def test_own_criterion_is_checked(change: Any, message: str) -> None:
    def criterion(data: Data, length: int) -> np.ndarray:
        return change(by_id(data, length))

    with pytest.raises(InputError, match=f"criterion .*criterion: {message}"):
        node_sequences(block_graph(), [criterion], 4)


def _set(sequences: np.ndarray, row: int, column: int, value: int) -> np.ndarray:
    sequences[row, column] = value
    return sequences


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"criteria": ["bfs", "pr"]}, "criteria: unknown criterion 'pr'; did you mean 'ppr' or"),
        ({"criteria": []}, "criteria: got (), expected at least one criterion"),
        ({"criteria": [3]}, "criteria: expected a name or a function, got 3"),
        ({"length": 0}, "length: got 0, expected at least 1"),
    ],
)
def test_wrong_settings(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        node_sequences(block_graph(), **arguments)
    assert message in str(caught.value)


def test_wrong_graphs() -> None:
    data = block_graph()
    data.x[3, 4] = float("nan")
    with pytest.raises(InputError, match="x: got nan in row 3, column 4, expected finite numbers"):
        node_sequences(data)
    edges = torch.tensor([[0, 1], [1, 90]])
    with pytest.raises(InputError, match="edge_index: got node 90, expected 0 to 89"):
        node_sequences(Data(edge_index=edges, num_nodes=90), ["bfs"])


def test_progress_goes_to_stderr_only_on_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    node_sequences(block_graph(), progress=True)
    assert capfd.readouterr() == ("", "")


def _sampled(data: Data) -> Data:
    """Selects all nodes in another order, as the loaders that sample neighbors do."""
    edges = torch.arange(data.num_edges)
    return filter_data(data, torch.arange(data.num_nodes).flip(0), *data.edge_index, edges)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.subgraph(torch.arange(20)),
        lambda data: data.subgraph(torch.arange(len(data.x)) >= 30),
        lambda data: RemoveIsolatedNodes()(data.edge_subgraph(torch.arange(5))),
        _sampled,
        lambda data: Batch.from_data_list([data, data]),
        lambda data: next(iter(DataLoader([data, data], batch_size=2))),
        lambda data: next(iter(RandomNodeLoader(data, num_parts=3))),
        lambda data: data.edge_subgraph(torch.arange(data.num_edges - 40)),
        lambda data: Data(x=data.x, edge_index=data.edge_index),
    ],
)
def test_stale_sequences_are_refused(change: Any) -> None:
    data = change(NodeSort(["bfs"], length=5)(block_graph()))
    with pytest.raises(ValueError, match="apply NodeSort"):
        current_sequences(data)
    repaired = NodeSort(["bfs"], length=5)(data)
    assert current_sequences(repaired) is repaired.sequences


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data,
        copy.deepcopy,
        ToUndirected(),
        NormalizeFeatures(),
        lambda data: next(iter(DataLoader([data]))),
        lambda data: Batch.from_data_list([data, data])[1],
        lambda data: data.to("cpu").contiguous(),
    ],
)
def test_sequences_stay_current(change: Any) -> None:
    data = change(NodeSort(["bfs"], length=5)(block_graph()))
    assert torch.equal(current_sequences(data), node_sequences(block_graph(), ["bfs"], 5))


def test_a_model_refuses_sequences_of_another_number_of_nodes() -> None:
    data = NodeSort(["bfs"], length=5)(block_graph())
    model = DGT(data.x.size(1), 16, 3, criteria=1).eval()
    for part in (data.subgraph(torch.arange(20)), Batch.from_data_list([data, data])):
        with pytest.raises(ValueError, match=r"got .*\(.*90, 5\)"):
            model(part.x, part.sequences)


def test_sequences_that_fit_neither_into_memory_nor_into_the_cache(monkeypatch) -> None:
    data = block_graph()
    ring = torch.arange(3_000_000)
    large = Data(edge_index=torch.stack([ring, ring.roll(1)]), num_nodes=len(ring))
    match = r"sorting 3,000,000 nodes into sequences of length 100,000 needs 1\.2 TB of memory"
    with pytest.raises(MemoryNeeded, match=match):
        node_sequences(large, ["bfs"], length=100_000)
    monkeypatch.setattr("dgt.sequences.make._free_space", lambda folder: 0)
    with pytest.raises(MemoryNeeded, match=match):
        node_sequences(large, ["bfs"], length=100_000, cache=True)
    assert node_sequences(data, ["bfs"], length=100, cache=True).shape == (1, 90, 100)
