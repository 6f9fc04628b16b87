import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset

from dgt.errors import InputError
from dgt.sequences import NodeSort, node_sequences
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
    """A dataset of one graph, as a user of PyG would have."""

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
    for _ in range(2):  # the second time from the processed file, with an equal transform
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
        (lambda s: s[:, :-1], r"returned shape \[90, 3\], expected \[90, 4\]"),
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
        ({"criteria": ["bfs", "pr"]}, "criteria: unknown criterion 'pr'; did you mean 'ppr'?"),
        ({"criteria": []}, "criteria: got none"),
        ({"criteria": [3]}, "criteria: expected names or functions, got 3"),
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
    with pytest.raises(InputError, match="x: expected finite numbers, got nan in row 3, column 4"):
        node_sequences(data)
    edges = torch.tensor([[0, 1], [1, 90]])
    with pytest.raises(InputError, match="edge_index: node 90 is not one of the 90 nodes"):
        node_sequences(Data(edge_index=edges, num_nodes=90), ["bfs"])


def test_progress_goes_to_stderr_only_on_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    node_sequences(block_graph(), progress=True)
    assert capfd.readouterr() == ("", "")
