"""Labels in the form of each task."""

import math

import pytest
import torch
from torch_geometric.data import Data

from dgt import InputError
from dgt.data.labels import is_labeled
from dgt.data.splits import choose, split_in_one
from dgt.data.targets import normalize_for


def graph(y: object, **other: object) -> Data:
    return Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=y, **other)


def test_numbers():
    y = torch.tensor([1.5, math.nan, -3.0, 0.0])
    data = normalize_for(graph(y), "regression")
    assert torch.equal(data.y.nan_to_num(99), y.double().nan_to_num(99))
    assert is_labeled(data.y).tolist() == [True, False, True, True]
    assert data.class_names == []
    whole = normalize_for(graph(torch.tensor([-1, 2, 3, 4])), "regression")
    assert whole.y.tolist() == [-1, 2, 3, 4]


def test_numbers_of_a_table():
    read = graph(torch.tensor([1, 0, -1, 1]), class_names=["2.5", "-1e3"])
    data = normalize_for(read, "regression")
    assert data.y[[0, 1, 3]].tolist() == [-1000, 2.5, -1000]
    assert data.y[2].isnan()
    assert read.class_names == ["2.5", "-1e3"]  # not modified
    with pytest.raises(InputError, match="label: got 'red', expected a number for regression"):
        normalize_for(graph(torch.tensor([0, 0, 0, 0]), class_names=["red"]), "regression")


def test_several_labels():
    y = torch.tensor([[0, 1, 1], [0, 0, 0], [-1, -1, -1], [1, 0, 0]])
    data = normalize_for(graph(y), "multilabel")
    assert torch.equal(data.y, y)
    assert data.class_names == ["0", "1", "2"]
    assert is_labeled(data.y).tolist() == [True, True, False, True]


def test_several_labels_of_a_table():
    read = graph(torch.tensor([0, 1, -1, 2]), class_names=["b; a", "a", ";"])
    data = normalize_for(read, "multilabel")
    assert data.class_names == ["a", "b"]
    assert data.y.tolist() == [[1, 1], [1, 0], [-1, -1], [0, 0]]


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (torch.tensor([math.inf, 0, 0, 0]), "regression", "node 0: got inf, expected a finite"),
        (torch.ones(4, 2), "regression", r"\(4, 2\), expected one number per node"),
        (torch.ones(3), "regression", r"y: got shape \(3,\), expected \(4, ...\)"),
        (torch.full((4, 2), 2), "multilabel", "node 0, label 0: got 2, expected 0 or 1"),
        (torch.tensor([[0, -1]] * 4), "multilabel", "node 0: has -1 in some columns"),
        (torch.zeros(4, dtype=torch.long), "multilabel", r"expected \(N, labels\) with 0 and 1"),
    ],
)
def test_wrong_labels(y: torch.Tensor, task: str, message: str):
    with pytest.raises(InputError, match=message):
        normalize_for(graph(y), task)


def test_a_graph_without_labels_can_be_predicted():
    assert normalize_for(graph(None), "regression").y.isnan().all()
    assert not is_labeled(normalize_for(graph(None), "multilabel").y).any()


def test_a_random_split_of_numbers():
    labeled = torch.arange(100) % 2 == 0
    masks = split_in_one(labeled, 3)
    assert [int(mask.sum()) for mask in masks] == [24, 16, 10]
    assert torch.equal(torch.stack(masks).sum(0), labeled.long())
    assert all(map(torch.equal, masks, split_in_one(labeled, 3)))
    assert not torch.equal(masks[0], split_in_one(labeled, 4)[0])
    data = normalize_for(graph(torch.tensor([1.5, math.nan, -3.0, 0.0])), "regression")
    data, kind = choose(data, "auto", 0)
    assert kind == "random"
    assert not bool(data.train_mask[1] | data.val_mask[1] | data.test_mask[1])
    with pytest.raises(InputError, match="found 0 labeled nodes, expected at least 3"):
        choose(normalize_for(graph(None), "regression"), "auto", 0)
