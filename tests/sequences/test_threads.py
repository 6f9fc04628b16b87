from collections.abc import Iterator

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import dgt.sequences.similarity
from dgt.sequences import node_sequences
from tests.sequences.graphs import from_networkx
from tests.sequences.test_similarity import clustered


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def assert_same_bits(data: Data, criteria: list[str]) -> None:
    results = []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        results.append(node_sequences(data, criteria, length=16))
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_bfs_and_ppr_for_every_number_of_threads() -> None:
    assert_same_bits(from_networkx(nx.barabasi_albert_graph(1300, 3, seed=0)), ["bfs", "ppr"])


@pytest.mark.parametrize("method", ["product", "sparse product", "index", "sparse index"])
def test_similarity_for_every_number_of_threads(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = clustered(2000)
    if "sparse" in method:
        x = np.hstack([np.where(x > 1.5, x, 0), np.zeros_like(x)])
    if "index" in method:
        monkeypatch.setattr(dgt.sequences.similarity, "EXACT_NODES", 1000)
    data = Data(x=torch.from_numpy(x), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert_same_bits(data, ["similarity"])
