"""What attention rests on, against sums over single entries; keys against the model's parts."""

import networkx as nx
import numpy as np
import pytest
import torch

from dgt.cli import main
from dgt.data.matrices import adjacency
from dgt.estimator import NodeClassifier
from dgt.inspection import Inspection
from dgt.nn.level import Level
from dgt.report.attending import AGREEMENT, HOPS, attending, sample
from dgt.report.keys import find_keys, leave_out
from tests.sequences.graphs import to_networkx
from tests.small import QUICK, block_graph, flags, write_folder

DATA = block_graph()
DATA.y[::6] = -1
A = adjacency(DATA.edge_index, 90)
QUERIES = torch.tensor([1, 5, 40, 41, 89])


def inspected(model: str, **settings: object) -> Inspection:
    return NodeClassifier(model=model, **QUICK | {"epochs": 15} | settings).fit(DATA).inspect()


@pytest.fixture(scope="module")
def dgt() -> Inspection:
    return inspected("dgt", heads=2, blocks=2)


def entries(inside: Inspection):
    """Yields criterion, head, node, key and weight."""
    found = inside.model.attention(**inside.inputs, nodes=QUERIES)
    if isinstance(found, torch.Tensor):
        for m, head in enumerate(found):
            for q, node in enumerate(QUERIES.tolist()):
                yield from ((0, m, node, key, float(w)) for key, w in enumerate(head[q]))
        return
    for t, criterion in enumerate(found):
        for m, head in enumerate(criterion):
            rows = zip(*(part.tolist() for part in head), strict=True)
            yield from ((t, m, *row) for row in rows if row[0] in QUERIES)


@pytest.mark.parametrize("model", ["dgt", "transformer", "gt-sparse", "graphormer"])
def test_attention_by_label_and_distance(model: str, dgt: Inspection):
    inside = dgt if model == "dgt" else inspected(model, epochs=3)
    found = attending(inside, A, QUERIES)
    graph, y = to_networkx(DATA), DATA.y.tolist()
    hops, kinds = np.zeros_like(found.hops), np.zeros_like(found.agreement)
    for t, m, node, key, weight in entries(inside):
        far = nx.shortest_path_length(graph, node, key) if nx.has_path(graph, node, key) else None
        hops[t, m, 5 if far is None else min(far, 4)] += weight
        kind = "itself" if node == key else "no label" if y[key] < 0 else "other label"
        kind = "same label" if kind == "other label" and y[node] == y[key] else kind
        kinds[t, m, AGREEMENT.index(kind)] += weight
    mass = hops.sum(axis=2)
    np.testing.assert_allclose(found.hops, hops / mass[..., None], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.agreement, kinds / mass[..., None], rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.mass, mass / mass.sum(), rtol=1e-5)
    names = {"dgt": ["bfs", "ppr", "similarity"], "gt-sparse": ["neighbors"]}
    assert found.criteria == names.get(model, ["all nodes"])
    assert len(HOPS) == found.hops.shape[2]


def test_distances_in_parts_are_the_same(dgt: Inspection, monkeypatch: pytest.MonkeyPatch):
    whole = attending(dgt, A, QUERIES)
    monkeypatch.setattr("dgt.report.attending.DISTANCES", 180)  # two queries at a time
    np.testing.assert_allclose(attending(dgt, A, QUERIES).hops, whole.hops)


def test_the_sample_is_fixed_and_bounded(dgt: Inspection, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dgt.report.attending.QUERIES", 7)
    found = sample(dgt, np.arange(90))
    assert len(found) == 7
    assert found.tolist() == sorted(set(found.tolist())) == sample(dgt, np.arange(90)).tolist()


def test_keys_are_where_the_model_looks(dgt: Inspection):
    found = find_keys(dgt, QUERIES)
    last = dgt.model.blocks[-1]
    with torch.no_grad():
        z = dgt.model.embed(dgt.inputs["x"], dgt.inputs["encoding"])
        z = last.norm(dgt.model.blocks[0](z, Level(dgt.inputs["sequences"])))
        query = last.attention.queries(z)[QUERIES]
        own = dgt.inputs["sequences"][:, QUERIES]
        read = last.attention.read(last.attention.project(z), Level(own), z[QUERIES])
    np.testing.assert_allclose(found.now, query[:, 0].sigmoid(), rtol=1e-5)
    np.testing.assert_allclose(found.attention.sum(axis=-1), 1, rtol=1e-5)
    n = (own >= 0).sum(dim=-1).numpy()
    for q, t, m, k in np.ndindex(found.moved.shape):
        start = found.start[t, m, k]
        expected = abs(found.now[q, t, m, k] - start) * (n[t, q] - 1)
        assert found.moved[q, t, m, k] == pytest.approx(expected)
    # evenly spread over the sequence before training
    np.testing.assert_allclose(np.sort(found.start[0].ravel()), (np.arange(8) + 0.5) / 8, rtol=1e-5)
    assert found.carried.sum() == pytest.approx(1)
    assert found.carried.shape == (3, 2)
    assert read.norm() > 0


def test_leaving_out_a_part_reads_nothing_from_it(dgt: Inspection):
    nodes = np.arange(90)[DATA.y.numpy() >= 0]
    found = {(each.criterion, each.head): each.accuracy for each in leave_out(dgt, nodes)}
    assert len(found) == 1 + 3 + 3 * 2
    attentions = [block.attention for block in dgt.model.blocks]
    for (criterion, head), accuracy in found.items():
        # values that are zero are as good as no key
        hooks = []
        for attention in attentions:
            before = attention.project

            def without(z, criteria=slice(None), labels=None, before=before,
                        criterion=criterion, head=head):  # fmt: skip
                values = before(z, criteria, labels).clone()
                t = slice(None) if criterion is None else criterion
                values[:, t, slice(None) if head is None else head] = 0
                return values

            attention.project = without
            hooks.append(attention)
        try:
            predicted = dgt.logits_of(dgt.model).argmax(dim=1)[nodes]
        finally:
            for attention in hooks:
                del attention.project
        assert accuracy == pytest.approx(float((predicted == dgt.y[nodes]).double().mean()))
    assert torch.equal(dgt.logits_of(dgt.model), dgt.logits)  # nothing has changed


def test_a_model_that_reads_labels_has_its_criteria_and_leaves_itself_out():
    found = attending(inspected("dgt-plus", blocks=1), A, QUERIES)
    assert found.criteria == ["neighbors", "ppr"]
    np.testing.assert_allclose(found.agreement.sum(axis=2), 1)
    assert (found.agreement[:, :, 0] == 0).all()


@pytest.mark.parametrize("labels", ["none", "read", "hide"])
def test_keys_and_parts_of_dgt_plus(labels: str):
    inside = inspected("dgt-plus", blocks=2, labels=labels, norm="layer")
    found, last = find_keys(inside, QUERIES), inside.model.blocks[-1]
    own = inside.inputs["sequences"][:, QUERIES]
    skipped = int(labels == "read")
    np.testing.assert_array_equal(found.lengths, (own >= 0).sum(dim=-1).numpy() - skipped)
    # What the heads add is what the model's last block reads.
    given, seen = inside.steps.inputs_of(QUERIES), []
    mix = last.attention.mix
    last.attention.mix = lambda read, *rest: seen.append(read) or mix(read, *rest)
    with torch.no_grad():
        inside.model(**given, nodes=QUERIES)
    del last.attention.mix
    weight = last.attention.out.weight.detach().unflatten(1, seen[0].shape[1:])
    carried = torch.einsum("qtmd,ctmd->qtmc", seen[0], weight).norm(dim=-1).mean(0)
    np.testing.assert_allclose(found.carried, carried / carried.sum(), rtol=1e-4)
    nodes = np.arange(90)
    parts = leave_out(inside, nodes)
    assert len(parts) == 1 + 2 + 2 * last.attention.heads


@pytest.mark.parametrize("labels", ["read", "hide"])
def test_the_attention_of_dgt_plus_does_not_depend_on_the_reader_s_label(labels: str):
    inside = inspected("dgt-plus", blocks=2, labels=labels, norm="layer")
    query = QUERIES[:1]
    before = attending(inside, A, query)
    known = inside.inputs["labels"]
    known[query] = torch.tensor([0.0, 5.0, 0.0, 1.0])
    after = attending(inside, A, query)
    np.testing.assert_array_equal(after.mass, before.mass)
    np.testing.assert_array_equal(after.hops, before.hops)


def test_a_report_of_dgt_plus_shows_its_keys(tmp_path):
    graph = write_folder(tmp_path / "colors", block_graph())
    run = str(tmp_path / "run")
    assert main(["train", str(graph), "--out", run, "--quiet", *flags(model="dgt-plus")]) == 0
    assert main(["report", run, "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = (tmp_path / "page.html").read_text()
    for word in ("neighbors", "ppr"):
        assert word in page
    assert main(["explain", run, "n5"]) == 0
