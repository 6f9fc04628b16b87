"""Node2Vec: walks compared with exact probabilities, vectors with mutual information."""

import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from dgt.config import Config
from dgt.encodings import node2vec
from dgt.encodings.node2vec import LENGTH, NEGATIVES, WALKS, WINDOW, random_walks
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.prepare import prepare
from tests.sequences.graphs import from_networkx
from tests.small import QUICK, block_graph


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (5.0, 0.2)])
def test_steps_have_the_probabilities_of_the_paper(p: float, q: float) -> None:
    graph = nx.lollipop_graph(4, 3)  # triangles and a tail
    graph.add_edge(0, 6)
    data = from_networkx(graph)
    walks = np.concatenate(
        [random_walks(data.edge_index, 7, p=p, q=q, seed=seed) for seed in range(60)]
    )
    assert walks.shape == (60 * 7 * WALKS, LENGTH)
    steps = Counter(
        zip(walks[:, :-2].ravel(), walks[:, 1:-1].ravel(), walks[:, 2:].ravel(), strict=True)
    )
    for last, node in [*graph.edges, *((b, a) for a, b in graph.edges)]:
        weights = {
            n: 1 / p if n == last else 1.0 if graph.has_edge(n, last) else 1 / q
            for n in graph[node]
        }
        taken = {n: steps[last, node, n] for n in range(7) if steps[last, node, n]}
        assert set(taken) <= set(weights)
        count, total = sum(taken.values()), sum(weights.values())
        for n, weight in weights.items():
            share = weight / total
            spread = np.sqrt(share * (1 - share) / count)
            assert taken.get(n, 0) / count == pytest.approx(share, abs=5 * spread + 1e-9)


def test_products_are_shifted_mutual_information() -> None:
    """Skip-gram factorizes log(P(i, c) / (P(i) Pn(c))) - log(negatives). Compares the order."""
    graph = nx.connected_caveman_graph(6, 6)
    data = from_networkx(graph)
    found = node2vec(data.edge_index, 36, channels=16)
    walks = random_walks(data.edge_index, 36, p=1.0, q=1.0, seed=0)
    together = np.zeros((36, 36))
    for gap in range(1, WINDOW + 1):  # windows of 1 to WINDOW are equally likely
        share = (WINDOW + 1 - gap) / WINDOW
        np.add.at(together, (walks[:, gap:].ravel(), walks[:, :-gap].ravel()), share)
    together += together.T
    drawn = np.bincount(walks.ravel()) ** 0.75
    chance = together.sum(1, keepdims=True) * (drawn / drawn.sum())
    information = np.log(np.maximum(together, 1) / chance) - np.log(NEGATIVES)
    unit = torch.nn.functional.normalize(found, dim=1)
    of_pairs = ~np.eye(36, dtype=bool)
    both = np.corrcoef((unit @ unit.T).numpy()[of_pairs], information[of_pairs])[0, 1]
    assert both > 0.8


def test_same_bits_for_every_number_of_threads_and_other_bits_for_another_seed() -> None:
    data = from_networkx(nx.barabasi_albert_graph(150, 2, seed=0))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(node2vec(data.edge_index, 150, channels=8, p=2.0))
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], node2vec(data.edge_index, 150, channels=8, p=2.0, seed=1))


def test_nodes_without_edges_have_no_vector() -> None:
    edges = torch.tensor([[0, 1, 4], [1, 2, 4]])
    found = node2vec(edges, 5, channels=4)
    assert found.dtype == torch.float32
    assert (found[3:] == 0).all()
    assert (found[:3] != 0).all()
    assert (node2vec(edges[:, :0], 3, channels=4) == 0).all()


def test_as_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    data = block_graph()
    config = Config.of("dgt").replace(
        encoding="node2vec", node2vec_channels=8, node2vec_q=0.5, **QUICK
    )
    found = prepare(data, config)["encoding"]
    assert torch.equal(found, node2vec(data.edge_index, 90, channels=8, q=0.5))
    assert len(list((tmp_path / "encodings").iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["dgt.encodings.node2vec"], "node2vec", None)  # now from the cache
        assert torch.equal(prepare(data, config)["encoding"], found)
    classifier = NodeClassifier(config).fit(data)
    assert classifier.score(mask="all") > 0.6
    classifier.save(tmp_path / "model")
    loaded = NodeClassifier.load(tmp_path / "model")
    assert torch.equal(loaded.predict_proba(data), classifier.predict_proba())
    data.edge_index = data.edge_index[:, 1:]
    with pytest.raises(InputError, match="not the graph that the model was trained on"):
        loaded.predict(data)


def test_vectors_do_not_depend_on_the_steps_of_the_progress_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
    whole = node2vec(edges, 5, channels=8)
    monkeypatch.setattr(sys.modules["dgt.encodings.node2vec"], "CHUNK", 7)
    assert torch.equal(node2vec(edges, 5, channels=8), whole)
