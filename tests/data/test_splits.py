import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.data.splits import choose, random_split
from dgt.errors import InputError


@given(
    counts=st.lists(st.integers(3, 60), min_size=2, max_size=5),
    unlabeled=st.integers(0, 10),
    seed=st.integers(0, 2**32),
)
def test_random_split(counts: list[int], unlabeled: int, seed: int) -> None:
    y = torch.cat([torch.full((n,), c) for c, n in enumerate(counts)] + [-torch.ones(unlabeled)])
    y = y.long()[torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))]
    masks = torch.stack(random_split(y, seed))
    # Each labeled node is in exactly one part; unlabeled nodes are in none.
    assert torch.equal(masks.sum(dim=0), (y >= 0).long())
    for c, n in enumerate(counts):
        train, val, test = masks[:, y == c].sum(dim=1).tolist()
        assert min(train, val, test) >= 1
        assert abs(train - 0.48 * n) <= 1
        assert abs(val - 0.32 * n) <= 1
        assert abs(test - 0.20 * n) <= 1


def test_seeds_repeat_and_differ() -> None:
    y = torch.arange(100) % 3
    assert torch.equal(random_split(y, 5)[0], random_split(y, 5)[0])
    assert not torch.equal(random_split(y, 5)[0], random_split(y, 6)[0])
    # The result of PCG64 for seed 0 is the same on every machine.
    assert random_split(y, 0)[2].nonzero().flatten().tolist()[:6] == [3, 8, 14, 19, 27, 38]


def test_too_few_nodes_or_classes() -> None:
    y = torch.tensor([0, 0, 0, 1, 1, -1])
    with pytest.raises(InputError, match="class 'cat' has 2 labeled nodes, expected at least 3"):
        random_split(y, 0, ["dog", "cat"])
    with pytest.raises(InputError, match="found 1 classes, expected at least 2"):
        random_split(torch.tensor([0, 0, 0, -1]), 0)
    with pytest.raises(InputError, match="found 0 classes"):
        random_split(torch.tensor([-1, -1]), 0)


def graph(splits: int | None = None) -> Data:
    data = Data(y=torch.arange(30) % 2, name="g")
    part = torch.arange(30) // 10
    for number, key in enumerate(("train_mask", "val_mask", "test_mask")):
        if splits == 0:
            data[key] = part == number
        elif splits:
            data[key] = torch.stack([part.roll(s) == number for s in range(splits)], dim=1)
    return data


def test_auto_takes_what_the_graph_has() -> None:
    data = graph(splits=4)
    chosen, kind = choose(data, "auto", 6)
    assert kind == "published"
    assert torch.equal(chosen.train_mask, data.train_mask[:, 2])
    assert data.train_mask.shape == (30, 4)  # the graph is not modified

    data = graph(splits=0)
    chosen, kind = choose(data, "auto", 6)
    assert kind == "given"
    assert torch.equal(chosen.test_mask, data.test_mask)

    chosen, kind = choose(graph(), "auto", 6)
    assert kind == "random"
    assert torch.equal(chosen.val_mask, random_split(graph().y, 6)[1])


def test_random_on_request() -> None:
    for splits in (0, 4):
        chosen, kind = choose(graph(splits), "random", 1)
        assert kind == "random"
        assert torch.equal(chosen.train_mask, random_split(graph().y, 1)[0])


def test_a_kind_that_the_graph_does_not_have() -> None:
    for kind, splits in (("published", None), ("published", 0), ("given", None), ("given", 4)):
        with pytest.raises(InputError, match=f"g: splits: got '{kind}', expected auto or "):
            choose(graph(splits), kind, 0)
    with pytest.raises(InputError, match="'own', expected one of auto, given"):
        choose(graph(), "own", 0)


def test_given_splits_that_cannot_be_trained_on() -> None:
    data = graph(0)
    data.val_mask = torch.zeros(30, dtype=torch.bool)
    with pytest.raises(InputError, match="g: split: no node in 'val'"):
        choose(data, "given", 0)

    data = graph(0)
    data.y[[12, 15]] = -1
    data.node_ids = [f"n{i}" for i in range(30)]
    with pytest.raises(InputError, match=r"2 nodes in 'val' have no label .* id 'n12'"):
        choose(data, "auto", 0)

    data = graph(0)
    data.test_mask[3] = True
    with pytest.raises(InputError, match="node 3 is in more than one of train, val, test"):
        choose(data, "auto", 0)

    data = graph(0)
    data.y[:10] = 0
    with pytest.raises(InputError, match="only one class in 'train'"):
        choose(data, "auto", 0)

    data = graph(0)
    del data.test_mask
    with pytest.raises(InputError, match="got only train, val, expected train, val, test"):
        choose(data, "auto", 0)


def test_names_of_classes_in_messages() -> None:
    data = Data(y=torch.tensor([0, 0, 0, 1]), class_names=["a", "b"], name="own.npz")
    with pytest.raises(InputError, match=r"own.npz: labels: class 'b' has 1 labeled nodes"):
        choose(data, "auto", 0)
