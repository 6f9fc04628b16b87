"""Spacing by score, compared with positions counted by hand."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity

from dgt.data.matrices import adjacency, features
from dgt.sequences import node_sequences
from dgt.sequences.bfs import bfs_sequences
from dgt.sequences.ppr import ppr_sequences
from dgt.sequences.similarity import UnitRows, similarity_sequences
from dgt.sequences.spacing import space_by_score
from dgt.sequences.tie_order import order_nodes
from tests.sequences.graphs import from_networkx
from tests.small import block_graph


def test_positions_are_shared_out_by_score() -> None:
    sequences = np.array([[5, 3, 7, -1], [4, -1, -1, -1], [1, 2, 3, 0]], dtype=np.int32)
    scores = np.array([[2, 1, 1, 0], [0.3, 0, 0, 0], [1, 1, 1, 1]], dtype=np.float32)
    expected = [[5, 5, 3, 7], [4, 4, 4, 4], [1, 2, 3, 0]]
    assert space_by_score(sequences, scores).tolist() == expected


def test_each_share_is_right_to_one_position() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((50, 40), dtype=np.float32) ** 4 + 1e-6
    sequences = np.tile(np.arange(40, dtype=np.int32), (50, 1))
    spaced = space_by_score(sequences, scores)
    assert (np.diff(spaced, axis=1) >= 0).all()
    for row, score in zip(spaced, scores, strict=True):
        counts = np.bincount(row, minlength=40)
        assert np.abs(counts - 40 * score / score.sum()).max() < 1 + 1e-5


def test_bfs_scores_halve_with_each_hop() -> None:
    data = block_graph()
    sequences, scores = bfs_sequences(
        order_nodes(adjacency(data.edge_index, data.num_nodes)), 24, lambda done: None
    )
    graph = nx.Graph(data.edge_index.T.tolist())
    for base in range(data.num_nodes):
        if base not in graph:
            continue
        hops = nx.single_source_shortest_path_length(graph, base)
        kept = [(hops[v], s) for v, s in zip(sequences[base], scores[base], strict=True) if v >= 0]
        for hop in {h for h, _ in kept}:
            shares = [s for h, s in kept if h == hop]
            np.testing.assert_allclose(shares, 0.5**hop / len(shares), rtol=1e-6)


def test_ppr_scores_are_those_of_a_dense_solve() -> None:
    data, alpha = block_graph(), 0.15
    A = adjacency(data.edge_index, data.num_nodes)
    sequences, scores = ppr_sequences(order_nodes(A), 12, alpha, 1e-13, lambda done: None)
    degrees = np.maximum(A.sum(axis=0), 1)
    walk = A.toarray() / degrees
    truth = alpha * np.linalg.inv(np.eye(data.num_nodes) - (1 - alpha) * walk).T  # (N, N), by base
    for base in range(data.num_nodes):
        kept = sequences[base] >= 0
        expected = truth[base, sequences[base][kept]]
        np.testing.assert_allclose(scores[base][kept], expected, rtol=1e-4)


def test_similarity_scores_are_cosines() -> None:
    data = block_graph()
    x = features(data)
    sequences, scores = similarity_sequences(UnitRows(x), 12, lambda done: None)
    truth = cosine_similarity(x)
    for base in range(data.num_nodes):
        kept = sequences[base] >= 0
        expected = truth[base, sequences[base][kept]]
        np.testing.assert_allclose(scores[base][kept][1:], expected[1:], atol=2e-6)


@pytest.mark.parametrize("criterion", ["bfs", "ppr", "similarity"])
def test_spaced_sequences_hold_the_same_nodes_first(criterion: str) -> None:
    data = block_graph()
    plain = node_sequences(data, [criterion], 16)[0]
    spaced = node_sequences(data, [criterion], 16, spacing="score")[0]
    assert torch.equal(spaced[:, 0], plain[:, 0])
    for ordered, row in zip(plain.tolist(), spaced.tolist(), strict=True):
        nodes = list(dict.fromkeys(row))
        assert nodes == [node for node in ordered if node in nodes]


def test_a_lone_node_fills_its_sequence() -> None:
    data = from_networkx(nx.disjoint_union(nx.path_graph(2), nx.empty_graph(1)))
    assert node_sequences(data, ["ppr"], 4, spacing="score")[0, 2].tolist() == [2] * 4
