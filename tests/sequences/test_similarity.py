from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from torch_geometric.data import Data

import dgt.sequences.similarity
import dgt.sequences.sparse_index
from dgt.sequences import node_sequences
from dgt.sequences.candidates import dense_candidates
from dgt.sequences.similarity import UnitRows, similarity_sequences
from dgt.sequences.unit import GRID, unit_rows
from dgt.system.notes import NOTE
from tests.sequences.graphs import graphs, valid

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def exact(x: np.ndarray, length: int) -> list[list[int]]:
    """Nodes with a positive similarity by descending similarity and id, the base node first.
    Squared cosines of integers are fractions, so they are compared exactly."""
    rows = [[int(value) for value in row] for row in x]

    def dot(a: int, b: int) -> int:
        return sum(p * q for p, q in zip(rows[a], rows[b], strict=True))

    def squared(base: int, node: int) -> Fraction:
        return Fraction(dot(base, node) ** 2, dot(base, base) * dot(node, node))

    found = []
    for base in range(len(rows)):
        near = (node for node in range(len(rows)) if node != base and dot(base, node) > 0)
        order = sorted((-squared(base, node), node) for node in near)
        found.append([base, *(node for _, node in order)][:length])
    return found


@settings(deadline=None)
@given(data=graphs(), length=st.integers(1, 40))
def test_dense_and_sparse_order_is_by_cosine_and_id(data: Data, length: int) -> None:
    x = data.x.numpy()
    truth = exact(x, length)
    for form in (x, scipy.sparse.csr_array(x)):
        sequences, _ = similarity_sequences(UnitRows(form), length, lambda done: None)
        assert sequences.shape == (len(x), length)
        assert [valid(torch.from_numpy(row)) for row in sequences] == truth


def test_real_valued_features() -> None:
    x = np.random.default_rng(0).normal(size=(700, 20)).astype(np.float32)
    sequences, _ = similarity_sequences(UnitRows(x), 32, lambda done: None)
    cosine = cosine_similarity(x.astype(np.float64))
    for base, row in enumerate(sequences):
        assert row[0] == base
        cosine[base, base] = 2
        best = np.sort(cosine[base])[::-1][:32]
        np.testing.assert_allclose(cosine[base, row], best, atol=2e-6)


def rows_with_ties() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "normal": rng.normal(size=(900, 24)),
        "few values": rng.integers(-1, 2, (700, 4)).astype(np.float32),
        "words": (rng.random((700, 300)) < 0.02).astype(np.float32),
        "nearly equal": rng.normal(size=(30, 16))[rng.integers(0, 30, 800)]
        + 3e-6 * rng.normal(size=(800, 16)),
    }


@pytest.mark.parametrize("name", rows_with_ties())
@pytest.mark.parametrize("length", [1, 16, 60])
def test_products_in_single_precision_change_nothing(
    name: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = UnitRows(rows_with_ties()[name])
    monkeypatch.setattr(dgt.sequences.similarity, "MOST_PART", 10**9)
    double = similarity_sequences(rows, length, lambda done: None)
    calls = []
    monkeypatch.setattr(dgt.sequences.similarity, "_sort_by_product", calls.append)
    monkeypatch.setattr(dgt.sequences.similarity, "MOST_PART", 1)
    single = similarity_sequences(rows, length, lambda done: None)
    assert not calls
    for a, b in zip(single, double, strict=True):
        np.testing.assert_array_equal(a, b)


def test_equal_rows_and_multiples_tie_by_id() -> None:
    row = np.array([0.1, 0.7, 0.3, 1.3])
    x = np.stack([row, 3 * row, row, 1e30 * row, 1e-30 * row, row / 7])
    for form in (x, scipy.sparse.csr_array(x)):
        sequences, _ = similarity_sequences(UnitRows(form), 6, lambda done: None)
        for base in range(6):
            rest = [node for node in range(6) if node != base]
            assert sequences[base].tolist() == [base, *rest]


def test_a_node_without_features_is_alone() -> None:
    x = torch.zeros(5, 100)
    x[1:3, 4] = 1
    data = Data(x=x, edge_index=NO_EDGES)
    sequences = node_sequences(data, ["similarity"], 3)[0]
    assert sequences.tolist() == [[0, -1, -1], [1, 2, -1], [2, 1, -1], [3, -1, -1], [4, -1, -1]]
    for x in (None, torch.zeros(5, 0)):
        data = Data(x=x, edge_index=NO_EDGES, num_nodes=5)
        assert node_sequences(data, ["similarity"], 1)[0, :, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_are_taken(layout: torch.layout) -> None:
    x = (torch.rand(50, 40, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    dense = node_sequences(Data(x=x, edge_index=NO_EDGES), ["similarity"], 8)
    sparse = x.to_sparse(layout=layout)
    assert torch.equal(
        node_sequences(Data(x=sparse, edge_index=NO_EDGES), ["similarity"], 8), dense
    )


def clustered(nodes: int = 4000, features: int = 32) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(40, features))
    return centers[rng.integers(0, 40, nodes)] + 0.3 * rng.normal(size=(nodes, features))


def test_index_finds_nearly_what_the_product_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    x = clustered()
    exact, _ = similarity_sequences(UnitRows(x), 32, lambda done: None)
    monkeypatch.setattr(dgt.sequences.similarity, "EXACT_NODES", 1000)
    near, _ = similarity_sequences(UnitRows(x), 32, lambda done: None)
    assert (near[:, 0] == np.arange(len(x))).all()
    found = [len(np.intersect1d(a, b)) for a, b in zip(exact, near, strict=True)]
    assert np.mean(found) / 32 >= 0.99
    # Similarities decrease along each row.
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity = np.einsum("nlf,nf->nl", unit[near], unit)
    assert (np.diff(similarity[:, 1:], axis=1) < 2e-6).all()


def documents(nodes: int = 4000, words: int = 600) -> scipy.sparse.csr_array:
    """Counts of words: about ten of one of 40 topics, and ten that are common."""
    rng = np.random.default_rng(0)
    topics = rng.integers(0, words, size=(40, 30))
    own = topics[rng.integers(0, 40, nodes)[:, None], rng.integers(0, 30, (nodes, 10))]
    common = (words * rng.random((nodes, 10)) ** 3).astype(int)
    column = np.hstack([own, common]).ravel()
    ones = np.ones(len(column), dtype=np.float32)
    return scipy.sparse.csr_array((ones, (np.repeat(np.arange(nodes), 20), column)), (nodes, words))


def test_sparse_index_finds_nearly_what_the_product_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    x = documents()
    x.data[:40] = 0  # two documents without words
    monkeypatch.setattr(dgt.sequences.similarity, "EXACT_NODES", 1000)
    monkeypatch.setattr(dgt.sequences.sparse_index, "COMPARED", (500, 1000, 2000))
    rows = UnitRows(x)
    near, scores = similarity_sequences(rows, 16, lambda done: None)
    assert rows.near is not None
    assert rows.near.chosen(16).recall >= 0.95
    assert near[:2, 1:].max() == -1
    cosine = cosine_similarity(x.astype(np.float64))
    np.fill_diagonal(cosine, 2)
    best = np.sort(cosine, axis=1)[:, ::-1][:, :16]
    own = np.take_along_axis(cosine, near.astype(int), axis=1)[2:]
    assert (near[2:] >= 0).all()
    assert (own >= best[2:, -1:] - 2e-6).mean() >= 0.95
    # Found nodes have their exact similarities, in descending order.
    np.testing.assert_allclose(scores[2:, 1:], own[:, 1:], atol=2e-6)
    assert (np.diff(scores[2:], axis=1) <= 0).all()


def test_a_thorough_search_of_sparse_rows_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    x = documents(1500)
    x.data *= np.random.default_rng(1).normal(size=x.nnz).astype(np.float32)  # also negative
    exact = similarity_sequences(UnitRows(x), 12, lambda done: None)
    monkeypatch.setattr(dgt.sequences.similarity, "EXACT_NODES", 1000)
    near = UnitRows(x).near
    assert near is not None
    found, scores = np.full((1500, 12), -1, dtype=np.int32), np.zeros((1500, 12))
    near.sort(np.arange(1500), found, scores, near.index.everything)
    np.testing.assert_array_equal(found, exact[0])
    np.testing.assert_allclose(scores[:, 1:] / GRID, exact[1][:, 1:], atol=1e-6)


def test_a_search_goes_on_until_it_finds_enough() -> None:
    """Rows without clusters need more lists than clustered ones."""
    rng = np.random.default_rng(0)
    for x, thorough in ((clustered(20_000), False), (rng.normal(size=(20_000, 32)), True)):
        near = dense_candidates(unit_rows(x).astype(np.int32))
        efforts, chosen = near.index.efforts(), near.chosen(16)
        assert len(efforts) > 1
        assert (chosen.effort > efforts[0]) == thorough


@pytest.mark.parametrize("length", [1, 5, 40])
def test_the_form_for_gpus_gives_the_same_order_and_ties(length: int) -> None:
    """Run on the CPU. Few distinct rows make many ties; zero rows and negative values, too."""
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 3, size=(30, 3)).astype(np.float32)
    x[4] = 0
    rows = UnitRows(x)
    expected = similarity_sequences(rows, length, lambda count: None)
    rows.on_gpu = torch.from_numpy(rows.dense)
    found = similarity_sequences(rows, length, lambda count: None)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_recall_of_an_index_is_noted(
    form: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dgt.sequences.similarity, "EXACT_NODES", 1000)
    x = clustered(1500) if form == "dense" else documents(1500).toarray()
    data = Data(x=torch.from_numpy(x).float(), edge_index=NO_EDGES)
    if form == "sparse":
        data.x = data.x.to_sparse_csr()
    with caplog.at_level(NOTE, "dgt"):
        node_sequences(data, ["similarity"], 8)
    assert any("of the 8 most similar nodes" in message for message in caplog.messages)
