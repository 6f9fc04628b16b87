"""The numbers of the explorer are those of NodeClassifier."""

import networkx
import numpy as np
import pytest
import torch

from dgt import InputError, NodeRegressor
from dgt.data.splits import PARTS
from dgt.explore.around import MOST_NODES, around, neighborhood
from dgt.explore.attention import follow, view
from dgt.explore.edits import Edits
from dgt.explore.facts import brief, columns, describe, node_facts, short
from dgt.explore.hops import hops_to
from dgt.explore.layout import spring_layout
from dgt.explore.map import Map, principal_components
from dgt.explore.search import Filter, search
from dgt.explore.session import Session
from dgt.explore.whatif import what_if
from tests.explore.runs import session, train
from tests.small import QUICK, block_graph, write_folder

PLUS = {"model": "dgt-plus", "labels": "read", "blocks": 2}


@pytest.fixture(scope="module", params=[{"blocks": 1}, {"blocks": 3, "heads": 2, "keys": 3}, PLUS])
def run(request, tmp_path_factory) -> Session:
    return session(tmp_path_factory.mktemp("explore"), **request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Session:
    return session(tmp_path_factory.mktemp("explore"), model="gcn")


def test_a_single_node_gets_the_logits_of_the_whole_graph(run: Session):
    for node in (0, 7, 45, 89):
        found = follow(run, node)
        torch.testing.assert_close(found.logits, run.inside.logits[node], atol=1e-5, rtol=1e-4)


def test_every_block_has_the_attention_of_the_model(run: Session):
    """Against ``DGT.attention``, which computes all nodes."""
    node = 11
    found = follow(run, node)
    for block, look in enumerate(found.blocks):
        entries = run.inside.model.attention(
            **run.inside.inputs, nodes=torch.tensor([node]), block=block
        )
        for t, heads in enumerate(entries):
            for m, head in enumerate(heads):
                dense = torch.zeros(run.num_nodes).index_add_(0, head.key, head.weight)
                mine = torch.zeros(run.num_nodes)
                inside = look.sequences[t] >= 0
                mine.index_add_(0, look.sequences[t][inside].long(), look.weights[t, m][inside])
                torch.testing.assert_close(mine, dense, atol=1e-5, rtol=1e-4)


def test_the_view_agrees_with_explain(run: Session):
    for node in (3, 42):
        shown = view(run, node, run.blocks - 1)
        expected = run.inside.explain(run.inside.ids[node], top=50)
        assert [run.inside.ids[a["node"]] for a in shown["attended"][:5]] == [
            key.id for key in expected.keys[:5]
        ]
        for mine, key in zip(shown["attended"], expected.keys, strict=True):
            facts = shown["nodes"][mine["node"]]
            assert mine["weight"] == pytest.approx(key.weight, abs=1e-5)
            assert facts["hops"] == key.hops
            names = run.inside.facts.class_names
            assert key.label == (None if facts["label"] < 0 else names[facts["label"]])
        if expected.same_label is not None:
            assert shown["same_label"] == pytest.approx(expected.same_label, abs=1e-5)
        assert shown["predicted"]["probabilities"] == pytest.approx(
            run.probabilities[node].tolist(), abs=1e-5
        )
        assert shown["predicted"]["prediction"] == run.predictions[node]


def test_ribbons_hold_the_sequences_and_sum_to_one(run: Session):
    shown = view(run, 5, 0)
    assert len(shown["ribbons"]) == len(run.config.criteria)
    sequences = run.inside.inputs["sequences"]
    for t, row in enumerate(shown["ribbons"]):
        assert row["nodes"] == [n for n in sequences[t, 5].tolist() if n >= 0]
        assert row["length"] == len(row["nodes"])
        for weights, keys in zip(row["weights"], row["keys"], strict=True):
            assert sum(weights) == pytest.approx(1, abs=1e-5)
            assert sum(key["attention"] for key in keys) == pytest.approx(1, abs=1e-5)
            assert all(0 <= key["position"] <= row["length"] - 1 for key in keys)
        assert row["beyond"] == 0
    mentioned = {n for row in shown["ribbons"] for n in row["nodes"]}
    assert mentioned <= shown["nodes"].keys()


def test_facts_are_those_of_the_classifier(run: Session):
    classifier = run.classifier
    probabilities = run.inside.probabilities
    for node in (0, 9, 33):
        facts = node_facts(run, node)
        assert facts["probabilities"] == probabilities[node].tolist()
        assert facts["prediction"] == int(probabilities[node].argmax())
        assert facts["probability"] == pytest.approx(float(probabilities[node].max()))
        assert facts["label"] == int(run.inside.y[node])
        edges = run.inside.data.edge_index
        near = edges[1, edges[0] == node]
        assert facts["degree"] == len(near)
        labels = run.inside.y[near]
        if facts["label"] >= 0 and bool((labels >= 0).any()):
            share = (labels[labels >= 0] == facts["label"]).double().mean()
            assert facts["homophily"] == pytest.approx(float(share))
    about = describe(run)
    assert about["scores"]["test"] == classifier.metrics_["test_accuracy"]
    assert about["edges"] == run.inside.data.edge_index.size(1) // 2


def test_parts_are_those_that_the_run_was_trained_on(run: Session):
    counts = [int((run.parts == i).sum()) for i in range(len(PARTS))]
    assert sum(counts) == int((run.inside.y >= 0).sum())
    correct = run.predictions == run.labels
    for i, part in enumerate(PARTS):
        score = run.classifier.metrics_[f"{part}_accuracy"]
        assert correct[run.parts == i].mean() == pytest.approx(score)


def test_columns_are_sorted_by_size_and_found_by_name(run: Session):
    x = run.inside.data.x[4].numpy()
    shown = columns(run, 4, limit=3)
    assert shown["total"] == np.count_nonzero(x)
    sizes = [abs(each["value"]) for each in shown["shown"]]
    assert sizes == sorted(np.abs(x).tolist(), reverse=True)[:3]
    only = columns(run, 4, "F11")["shown"]
    assert [each["name"] for each in only] == ["f11"]
    assert only[0]["value"] == float(x[11])


def test_distances_are_those_of_networkx(run: Session):
    edges = run.inside.data.edge_index.t().tolist()
    graph = networkx.Graph(edges)
    graph.add_nodes_from(range(run.num_nodes))
    expected = networkx.single_source_shortest_path_length(graph, 3)
    found = hops_to(run.adjacency, 3, range(run.num_nodes))
    assert found == {n: expected.get(n) for n in range(run.num_nodes)}


def test_the_neighborhood_is_that_of_networkx(run: Session):
    graph = networkx.Graph(run.inside.data.edge_index.t().tolist())
    for hops in (1, 2):
        shown = around(run, 8, hops, 0)
        expected = set(networkx.ego_graph(graph, 8, radius=hops))
        near = {each["node"] for each in shown["nodes"] if each["near"]}
        assert near == expected
        assert shown["total"] == len(expected)
        nodes = [each["node"] for each in shown["nodes"]]
        assert nodes[0] == 8
        inside = {frozenset(e) for e in graph.subgraph(nodes).edges}
        assert {frozenset(e) for e in shown["edges"]} == inside
        assert all(abs(each["x"]) <= 1 and abs(each["y"]) <= 1 for each in shown["nodes"])
    linked = {link["node"]: link["weight"] for link in shown["links"]}
    attended = {a["node"]: a["weight"] for a in view(run, 8, 0)["attended"]}
    assert linked.items() <= attended.items()
    assert set(linked) <= set(nodes)


def test_a_large_neighborhood_is_cut():
    star = networkx.star_graph(1000)
    A = networkx.to_scipy_sparse_array(star, format="csr")
    near, total, more = neighborhood(A, 0, 2, {999: 0.5})
    assert len(near) == MOST_NODES
    assert near[:2] == [0, 999]  # attended nodes come first
    assert (total, more) == (1001, True)
    assert neighborhood(A, 5, 1, {}) == ([5, 0], 2, False)


def test_the_layout_is_the_same_in_every_call():
    edges = [(0, 1), (1, 2), (0, 3)]
    first, second = (spring_layout(5, 9, edges) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.isfinite(first).all()
    apart = np.sqrt(((first[:, None] - first[None]) ** 2).sum(-1)) + np.eye(9)
    assert apart.min() > 0.05
    for count in range(4):
        assert spring_layout(1, count + 1, []).shape == (count + 1, 2)


def test_the_map_shows_principal_components():
    rng = np.random.default_rng(0)
    z = torch.from_numpy(rng.normal(size=(200, 5)) * [5, 3, 1, 1, 1]).float()
    places, shares = principal_components(z)
    centered = (z - z.mean(0)).numpy()
    _, sizes, axes = np.linalg.svd(centered, full_matrices=False)
    expected = centered @ axes[:2].T
    for i in range(2):
        assert abs(np.corrcoef(places[:, i], expected[:, i])[0, 1]) == pytest.approx(1, abs=1e-4)
    assert shares == pytest.approx((sizes**2 / (sizes**2).sum())[:2].tolist(), rel=1e-4)
    assert 0.99 < (np.abs(places).max(axis=1) <= 1.0001).mean() < 1
    single, _ = principal_components(torch.arange(4.0)[:, None])
    assert single.shape == (4, 2)
    flat, _ = principal_components(torch.ones(4, 3))
    assert np.isfinite(flat).all()


def test_a_large_map_is_a_sample(run: Session, monkeypatch):
    monkeypatch.setattr("dgt.explore.map.MOST_POINTS", 40)
    shown = Map(run)
    points = shown.points()
    assert points["total"] == 90
    assert len(points["nodes"]) == len(set(points["nodes"])) == 40
    assert points["nodes"] == Map(run).points()["nodes"]
    outside = next(n for n in range(90) if n not in points["nodes"])
    assert len(shown.place(outside)) == 2
    assert points["prediction"] == run.predictions[points["nodes"]].tolist()


def test_search_by_everything(run: Session):
    y, predictions, x = run.labels, run.predictions, run.inside.data.x.numpy()

    def found(**asked: object) -> set[int]:
        result = search(run, Filter(**asked))
        assert result["total"] <= 50
        return {each["node"] for each in result["found"]}

    everything = set(range(90))
    assert found(label=1) == {n for n in everything if y[n] == 1}
    assert found(label=-1) == {n for n in everything if y[n] < 0}
    assert found(prediction=2) == {n for n in everything if predictions[n] == 2}
    wrong = {n for n in everything if y[n] >= 0 and y[n] != predictions[n]}
    assert found(mistakes=True) == wrong
    assert found(part="val") == {n for n in everything if run.parts[n] == 1}
    assert found(column=2, comparison=">=", value=1.0) == {n for n in everything if x[n, 2] >= 1}
    assert found(column=-1, comparison="<", value=3) == {
        n for n in everything if run.degrees[n] < 3
    }
    assert found(text="N12") == {12}
    assert found(text="n1", label=0) == {n for n in everything if "n1" in f"n{n}" and y[n] == 0}
    sure = [e["probability"] for e in search(run, Filter(order="least sure"))["found"]]
    assert sure == sorted(run.confidence.tolist())[:50]
    second = search(run, Filter(order="least sure"), start=50)
    assert len(second["found"]) == 40
    assert search(run, Filter(text="n7"))["found"][0]["id"] == "n7"  # before n70


def test_ids_are_found(run: Session):
    assert run.find("n17") == 17
    assert run.find("17") is None
    assert run.find("") is None


def test_long_names_are_cut_in_the_middle():
    assert short("a" * 300) == "a" * 300
    cut = short("a" * 5000 + "z")
    assert len(cut) < 310
    assert cut.startswith("aaa")
    assert cut.endswith("z")


def test_a_model_without_attention_shows_the_rest(plain: Session):
    assert plain.attention == "none"
    shown = view(plain, 4, 0)
    assert shown["ribbons"] == shown["attended"] == []
    assert shown["same_label"] is None
    assert node_facts(plain, 4)["probabilities"] == plain.inside.probabilities[4].tolist()
    assert {each["node"] for each in around(plain, 4, 1, 0)["nodes"]} >= {4}
    assert len(Map(plain).points()["nodes"]) == 90
    assert brief(plain, [4])[4]["id"] == "n4"


def test_full_attention_has_links_but_no_sequences(tmp_path):
    full = session(tmp_path, model="transformer")
    assert full.attention == "full"
    shown = view(full, 4, 0)
    expected = full.inside.explain("n4", top=50)
    assert shown["ribbons"] == []
    assert [a["weight"] for a in shown["attended"]] == pytest.approx(
        [key.weight for key in expected.keys]
    )


def test_bfloat16_agrees_with_the_whole_model(tmp_path):
    half = session(tmp_path, model="dgt", precision="bfloat16", blocks=2)
    for node in (5, 60):
        found = follow(half, node)
        torch.testing.assert_close(found.logits, half.inside.logits[node], atol=0.03, rtol=0.03)
    assert len(view(half, 5, 1)["ribbons"]) == 3
    edits = Edits(nodes={7}, features={(5, 1): 2.0})
    assert sum(what_if(half, 5, edits, 1)["after"]["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert len(Map(half).points()["nodes"]) == 90


def test_tables_with_ids_in_any_order(tmp_path):
    """Nodes of tables are sorted by id, so that indices and ids differ."""
    graph = write_folder(tmp_path / "graph", block_graph())
    run = Session(train(tmp_path, graph=graph))
    node = run.find("n12")
    assert node is not None
    assert node != 12
    assert run.inside.ids[node] == "n12"
    shown = view(run, node, 0)
    expected = {key.id: key.weight for key in run.inside.explain("n12", top=50).keys}
    found = {shown["nodes"][a["node"]]["id"]: a["weight"] for a in shown["attended"]}
    assert found == pytest.approx(expected, abs=1e-5)


def test_only_classes_are_explored(tmp_path):
    data = block_graph()
    data.y = data.y.float() + 0.5
    torch.save(data, tmp_path / "numbers.pt")
    settings = QUICK | {"epochs": 2}
    NodeRegressor(**settings).fit(data, out=tmp_path / "run", graph=str(tmp_path / "numbers.pt"))
    with pytest.raises(InputError, match="regression"):
        Session(tmp_path / "run")


def test_a_threshold_decides_the_prediction(tmp_path):
    data = block_graph(classes=2)
    torch.save(data, tmp_path / "two.pt")
    run = Session(train(tmp_path, graph=tmp_path / "two.pt"))
    run.inside.task.threshold = 0.99
    for node in range(0, 90, 9):
        found = view(run, node, 0)["predicted"]
        expected = int(run.inside.task.predict(run.inside.logits[[node]])[0])
        assert found["prediction"] == expected
