"""Nodes that link alike, against brute force."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

import dgt.sequences.alike
from dgt.errors import InputError
from dgt.sequences import node_sequences
from dgt.sequences.alike import alike_rows, alike_sequences
from dgt.sequences.spacing import space_by_score
from tests.sequences.graphs import from_networkx, graphs, valid
from tests.sequences.test_links import directed, of_networkx
from tests.sequences.test_threads import assert_same_bits, threads  # noqa: F401


def links(data: Data, direction: str) -> np.ndarray:
    A = np.zeros((data.num_nodes, data.num_nodes))
    for a, b in data.edge_index.T.tolist():
        if a != b:
            A[(b, a) if direction == "in" else (a, b)] = 1
            A[b, a] = 1 if direction == "both" else A[b, a]
    return A


def brute_force(A: np.ndarray, length: int) -> tuple[list[list[int]], np.ndarray]:
    unit = A / np.maximum(np.linalg.norm(A, axis=1, keepdims=True), 1e-300)
    cosine = (unit @ unit.T).round(6)
    found = []
    for base in range(len(A)):
        others = [n for n in range(len(A)) if n != base and cosine[base, n] > 0]
        found.append([base, *sorted(others, key=lambda n: (-cosine[base, n], n))][:length])
    return found, cosine


@settings(deadline=None)
@given(
    data=graphs(),
    length=st.integers(1, 40),
    direction=st.sampled_from(["both", "out", "in"]),
)
def test_order_is_by_cosine_and_id(data: Data, length: int, direction: str) -> None:
    name = "alike" if direction == "both" else f"alike-{direction}"
    sequences = node_sequences(directed(data), [name], length)[0]
    assert [valid(row) for row in sequences] == brute_force(links(data, direction), length)[0]


def test_scores_are_the_cosines() -> None:
    data = of_networkx(nx.gnp_random_graph(40, 0.1, seed=0, directed=True))
    A = links(data, "out")
    sequences, scores = alike_sequences(alike_rows(scipy.sparse.csr_array(A)), 8, lambda done: None)
    _, cosine = brute_force(A, 8)
    for base in range(40):
        nodes = sequences[base][sequences[base] >= 0]
        np.testing.assert_allclose(scores[base, 1 : len(nodes)], cosine[base, nodes[1:]], atol=2e-6)
    assert (scores[:, 0] == 1).all()
    spaced = node_sequences(data, ["alike-out"], 8, spacing="score")[0]
    assert np.array_equal(spaced.numpy(), space_by_score(sequences, scores))


def test_weights_count() -> None:
    edges = torch.tensor([[0, 0, 1, 1, 2, 2], [3, 4, 3, 4, 3, 4]])
    data = Data(edge_index=edges, num_nodes=5, directed_edge_index=edges)
    data.directed_edge_weights = torch.tensor([[9.0], [1], [1], [9], [8], [2]])
    assert node_sequences(data, ["alike-out"], 3)[0, 0].tolist() == [0, 2, 1]


@pytest.mark.parametrize("kind", ["hubs", "directed hubs"])
def test_recall_of_the_approximate_form(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "directed hubs":
        data, name = of_networkx(nx.DiGraph(nx.scale_free_graph(3000, seed=1))), "alike-out"
    else:
        data, name = from_networkx(nx.barabasi_albert_graph(3000, 5, seed=1)), "alike"
    exact = node_sequences(data, [name], 16)[0]
    _, cosine = brute_force(links(data, "out" if name == "alike-out" else "both"), 1)
    monkeypatch.setattr(dgt.sequences.alike, "EXACT_NODES", 1000)
    monkeypatch.setattr(dgt.sequences.alike, "PAIRS_PER_NODE", 64)  # exact: 225, and 4000
    approximate = node_sequences(data, [name], 16)[0]
    assert not torch.equal(approximate, exact)
    found = wanted = 0
    for base, (row, truth) in enumerate(zip(approximate, exact, strict=True)):
        nodes, best = valid(row)[1:], valid(truth)[1:]
        least = min(cosine[base, best], default=0) - 2e-6
        assert set(nodes) <= set(np.flatnonzero(cosine[base] > 0).tolist())
        found += sum(cosine[base, node] >= least for node in nodes)
        wanted += len(best)
    assert found / wanted >= 0.8


def test_twins_among_hubs_are_found_by_the_approximate_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three nodes each link to the same 20 nodes, often hubs, except for four."""
    random = np.random.default_rng(0)
    popular = random.zipf(1.1, 200_000)
    popular = popular[popular < 3000]
    rows = []
    for twins in range(1000):
        shared = random.choice(popular, 20)
        for node in range(3 * twins, 3 * twins + 3):
            targets = np.concatenate([shared[random.permutation(20)[:16]], random.choice(3000, 4)])
            rows += [(node, target) for target in targets.tolist()]
    data = directed(Data(edge_index=torch.tensor(rows).T, num_nodes=3000))

    def share_of_twins() -> float:
        found = node_sequences(data, ["alike-out"], 3)[0].numpy()
        twins = found // 3 == np.arange(3000)[:, None] // 3
        return float(twins[:, 1:].mean())

    exact = share_of_twins()
    monkeypatch.setattr(dgt.sequences.alike, "EXACT_NODES", 1000)
    monkeypatch.setattr(dgt.sequences.alike, "PAIRS_PER_NODE", 512)  # exact: 29,000
    assert exact > 0.5
    assert share_of_twins() >= 0.9 * exact


@pytest.mark.parametrize("form", ["exact", "approximate"])
def test_every_number_of_threads(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "approximate":
        monkeypatch.setattr(dgt.sequences.alike, "EXACT_NODES", 100)
        monkeypatch.setattr(dgt.sequences.alike, "PAIRS_PER_NODE", 64)
    graph = nx.DiGraph(nx.scale_free_graph(1300, seed=0))
    assert_same_bits(of_networkx(graph), ["alike", "alike-out", "alike-in"])


def test_a_graph_without_direction_is_refused() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(InputError, match="criterion alike-out needs directed edges"):
        node_sequences(data, ["alike-out"])
