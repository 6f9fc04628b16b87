"""Selections of nodes are kept only as long as they are right."""

import torch

from dgt.ops import taken
from dgt.ops.taken import take


def test_the_same_nodes_are_selected_once() -> None:
    x, nodes = torch.rand(2, 5, 3), torch.tensor([4, 0])
    first = take(x, nodes)
    assert torch.equal(first, x[:, nodes])
    assert take(x, nodes) is first
    assert take(x, nodes.clone()) is not first


def test_it_sees_changes_of_the_data_and_of_the_nodes() -> None:
    x, nodes = torch.rand(2, 5, 3), torch.tensor([4, 0])
    take(x, nodes)
    x[:, 4] = 7
    assert torch.equal(take(x, nodes), x[:, nodes])
    nodes[1] = 2
    assert torch.equal(take(x, nodes), x[:, nodes])
    x.data = torch.rand(2, 5, 3)
    assert torch.equal(take(x, nodes), x[:, nodes])


def test_another_tensor_at_the_same_place_is_not_confused() -> None:
    nodes = torch.tensor([1, 2])
    for value in range(20):  # freed memory and ids are used again
        x = torch.full((2, 5, 3), value)
        assert torch.equal(take(x, nodes), x[:, nodes])
        del x


def test_nothing_is_kept_for_nodes_that_are_gone() -> None:
    x, nodes = torch.rand(2, 5, 3), torch.tensor([1])
    before = len(taken._kept)
    take(x, nodes)
    assert len(taken._kept) == before + 1
    del nodes
    assert len(taken._kept) == before


def test_large_selections_and_gradients_are_not_kept(monkeypatch) -> None:
    nodes = torch.tensor([1])
    x = torch.rand(2, 5, 3, requires_grad=True)
    assert take(x, nodes).requires_grad
    y = x.detach()
    monkeypatch.setattr(taken, "LIMIT", 5)
    assert take(y, nodes) is not take(y, nodes)
    with torch.inference_mode():
        z = torch.rand(2, 5, 3)
        assert torch.equal(take(z, nodes), z[:, nodes])
