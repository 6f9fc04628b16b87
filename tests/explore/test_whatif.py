"""A change gives the prediction that the model makes on the changed graph."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt import InputError
from dgt.config import EncodingConfig
from dgt.data.matrices import adjacency
from dgt.encodings.katz import katz, katz_of
from dgt.explore.attention import follow, node_weights
from dgt.explore.changed import ChangedInputs
from dgt.explore.checks import Asked
from dgt.explore.edits import Edits, without
from dgt.explore.session import Session
from dgt.explore.trace import Key, trace
from dgt.explore.whatif import what_if
from dgt.ops.deformable_attention.reference import deformable_attention
from dgt.ops.scored_attention.reference import scored_attention
from dgt.prepare import prepare
from dgt.runs.identity import node_ids
from tests.explore.runs import session

NODE = 5
SETTINGS = {
    "default": {},
    "deep": {"blocks": 3, "heads": 2, "norm": "batch", "feature_scaling": "l2"},
    "katz of order 3": {"katz_order": 3, "katz_scaling": "sum", "anchors": 20},
    "no encoding": {"encoding": "none", "spacing": "score"},
    "light": {"model": "dgt-light"},
    "double": {"precision": "double", "blocks": 2},
    "bilinear": {"interpolation": "bilinear"},
    "plus none": {"model": "dgt-plus", "labels": "none", "blocks": 2},
    "plus read": {"model": "dgt-plus", "labels": "read", "blocks": 2},
    "plus hide": {"model": "dgt-plus", "labels": "hide", "blocks": 2, "norm": "layer"},
}


@pytest.fixture(scope="module", params=SETTINGS.values(), ids=SETTINGS.keys())
def run(request, tmp_path_factory) -> Session:
    return session(tmp_path_factory.mktemp("explore"), **request.param)


@pytest.fixture(scope="module")
def default(tmp_path_factory) -> Session:
    return session(tmp_path_factory.mktemp("explore"))


def predicted(run: Session, data: Data, anchors: Tensor | None) -> Tensor:
    """The class probabilities of all nodes of a changed graph, with all inputs computed anew."""
    known = run.inputs_of(NODE).get("labels")
    if known is not None and len(known) > data.num_nodes:
        kept = [list(run.inside.ids).index(name) for name in node_ids(data)]
        known = known[kept]
    inputs = prepare(data, run.config, anchors, known=known)
    with torch.no_grad():
        return run.inside.task.scores(run.inside.model(**inputs))


def anchors_of(run: Session) -> Tensor | None:
    return run.inside.facts.find_anchors(run.inside.data)


def neighbor(run: Session, node: int = NODE) -> int:
    return int(run.adjacency.indices[run.adjacency.indptr[node]])


def close(mine: dict, expected: Tensor) -> None:
    assert mine["probabilities"] == pytest.approx(expected.tolist(), abs=2e-5)


def differs(result: dict) -> bool:
    before, after = (result[which]["probabilities"] for which in ("before", "after"))
    return after != pytest.approx(before, abs=1e-6)


def changed(run: Session, edits: Edits) -> dict:
    result = what_if(run, NODE, edits, run.blocks - 1)
    close(result["before"], probabilities(run))
    return result


def probabilities(run: Session) -> Tensor:
    """Those of the node, if its own label is hidden and no other."""
    inputs = run.inputs_of(NODE)
    with torch.no_grad():
        return run.inside.task.scores(run.inside.model(**inputs))[NODE]


@pytest.mark.parametrize("which", ["own", "other"])
def test_hiding_an_edge(run: Session, which: str):
    a = NODE if which == "own" else neighbor(run)
    b = neighbor(run, a)
    b = int(run.adjacency.indices[run.adjacency.indptr[a] + 1]) if b == NODE else b
    data = run.inside.data.clone()
    gone = ((data.edge_index == a).any(0)) & ((data.edge_index == b).any(0))
    assert int(gone.sum()) == 2
    data.edge_index = data.edge_index[:, ~gone]
    result = changed(run, Edits(edges=[(a, b)]))
    close(result["after"], predicted(run, data, anchors_of(run))[NODE])
    if which == "own":
        assert differs(result)
    assert result["held"] == []


def test_hiding_a_node_equals_deleting_it(run: Session):
    hidden = neighbor(run)
    kept = torch.tensor([n for n in range(run.num_nodes) if n != hidden])
    data = run.inside.data.subgraph(kept)
    data.name = "smaller"
    anchors = anchors_of(run)
    if anchors is not None:
        number = torch.full((run.num_nodes + 1,), -1)
        number[kept] = torch.arange(len(kept))
        anchors = number[anchors]
    place = int((kept == NODE).nonzero())
    result = changed(run, Edits(nodes={hidden}))
    close(result["after"], predicted(run, data, anchors)[place])
    assert differs(result)
    shown = {n for row in result["view"]["ribbons"] for n in row["nodes"]}
    assert hidden not in shown
    assert result["held"] == []


def test_changing_a_feature(run: Session):
    data = run.inside.data.clone()
    data.x[NODE, 3], data.x[NODE, 0] = 4.0, 0.0
    edits = Edits(features={(NODE, 3): 4.0, (NODE, 0): 0.0})
    result = changed(run, edits)
    close(result["after"], predicted(run, data, anchors_of(run))[NODE])
    assert differs(result)


def test_changing_a_feature_of_another_node(run: Session):
    data = run.inside.data.clone()
    other = neighbor(run)
    data.x[other] = 0
    data.x[other, 1] = -9.0
    edits = Edits(features={(other, f): -9.0 if f == 1 else 0.0 for f in range(12)})
    close(changed(run, edits)["after"], predicted(run, data, anchors_of(run))[NODE])


def test_hiding_a_criterion_equals_empty_sequences(run: Session):
    inputs = run.inputs_of(NODE)
    inputs["sequences"] = inputs["sequences"].clone()
    inputs["sequences"][0] = -1
    with torch.no_grad():
        expected = run.inside.task.scores(run.inside.model(**inputs))[NODE]
    result = changed(run, Edits(criteria={0}))
    close(result["after"], expected)
    assert result["view"]["ribbons"][0]["nodes"] == []


def test_moving_a_key(run: Session, monkeypatch):
    """Against the whole model, with the operator's input changed for this node alone."""
    block, last = run.blocks - 1, run.blocks - 1
    key, position = Key(block, 0, 1, 2), 1.75
    calls = 0
    length = int((run.inside.inputs["sequences"][0, NODE] >= 0).sum())
    plus = run.config.model.model == "dgt-plus"
    skip = int(plus and run.config.model.labels == "read")

    def moved(*inputs: Any) -> Tensor:
        nonlocal calls
        if calls == last:
            share = torch.tensor((position - skip) / (length - skip - 1), dtype=torch.float64)
            query = inputs[3 if plus else 2]
            query[NODE, 0, key.criterion, key.head, key.key] = torch.logit(share).to(query)
        calls += 1
        *given, exchange = inputs
        assert exchange is None
        return (scored_attention if plus else deformable_attention)(*given)

    place = "dgt.nn.scored.scored_attention" if plus else "dgt.nn.attention.deformable_attention"
    monkeypatch.setattr(place, moved)
    with torch.no_grad():
        expected = run.inside.task.scores(run.inside.model(**run.inputs_of(NODE)))[NODE]
    monkeypatch.undo()
    assert calls == run.blocks
    result = changed(run, Edits(keys={key: position}))
    close(result["after"], expected)
    found = result["view"]["ribbons"][0]["keys"][1][2]["position"]
    assert found == pytest.approx(position, abs=1e-5)


def test_the_weights_are_those_of_the_model(run: Session):
    """Of the last block, summed over criteria and heads."""
    found = node_weights(follow(run, NODE).blocks[-1])
    expected = run.inside.weights(torch.tensor([NODE]))[0]
    assert sorted(found) == expected.nonzero().squeeze(1).tolist()
    assert [found[n] for n in sorted(found)] == pytest.approx(
        expected[expected > 0].tolist(), abs=1e-5
    )
    if run.config.model.labels == "read" and run.config.model.model == "dgt-plus":
        assert NODE not in found


def test_keys_reach_both_ends(default: Session):
    for position in (0.0, 7.0):
        edits = Edits(keys={Key(0, 2, 0, 0): position})
        result = changed(default, edits)
        row = result["view"]["ribbons"][2]
        assert row["keys"][0][0]["position"] == pytest.approx(position, abs=1e-4)
        assert np.isfinite(result["after"]["probabilities"]).all()


def test_several_changes_at_once(run: Session):
    a, b = NODE, neighbor(run)
    data = run.inside.data.clone()
    gone = ((data.edge_index == a).any(0)) & ((data.edge_index == b).any(0))
    data.edge_index = data.edge_index[:, ~gone]
    data.x[NODE, 2] = 3.0
    edits = Edits(edges=[(a, b)], features={(NODE, 2): 3.0})
    close(changed(run, edits)["after"], predicted(run, data, anchors_of(run))[NODE])


@pytest.mark.parametrize("model", ["gcn", "mlp", "transformer", "gt-sparse"])
def test_other_models_are_computed_as_a_whole(tmp_path, model: str):
    run = session(tmp_path, model=model)
    a, b = NODE, neighbor(run)
    data = run.inside.data.clone()
    gone = ((data.edge_index == a).any(0)) & ((data.edge_index == b).any(0))
    data.edge_index = data.edge_index[:, ~gone]
    inputs = prepare(data, run.config, anchors_of(run))
    held = []
    if "laplacian" in inputs:  # has arbitrary signs
        inputs["laplacian"] = run.inside.inputs["laplacian"]
        held = ["The input 'laplacian' is that of the unchanged graph."]
    with torch.no_grad():
        expected = run.inside.task.scores(run.inside.model(**inputs))[NODE]
    result = what_if(run, NODE, Edits(edges=[(a, b)]), 0)
    close(result["after"], expected)
    assert result["held"] == held


def test_a_large_graph_says_what_it_holds_fixed(default: Session, monkeypatch):
    monkeypatch.setattr("dgt.explore.changed.FEW_NODES", 10)
    hidden = neighbor(default)
    inputs = ChangedInputs(default, Edits(nodes={hidden}), NODE)
    assert [line for line in inputs.held if "similarity" in line]
    sequences = inputs.sequences(torch.arange(default.num_nodes))
    before = default.inside.inputs["sequences"]
    for node in range(default.num_nodes):  # the others move up
        row = [n for n in before[2, node].tolist() if n not in (-1, hidden)]
        assert sequences[2, node].tolist() == row + [-1] * (8 - len(row))
    assert not ChangedInputs(default, Edits(edges=[(NODE, hidden)]), NODE).held
    found = trace(default.inside.model, inputs, NODE)
    assert bool(found.logits.isfinite().all())


def test_an_encoding_of_one_graph_is_held_fixed(tmp_path):
    run = session(tmp_path, encoding="laplacian")
    result = what_if(run, NODE, Edits(edges=[(NODE, neighbor(run))]), 0)
    assert result["held"] == ["The laplacian encoding is that of the unchanged graph."]


@pytest.mark.parametrize("scaling", ["none", "sum", "l2"])
def test_katz_rows_of_a_few_nodes(default: Session, scaling: str):
    data = default.inside.data
    anchors = torch.tensor([3, 88, -1, 5])
    settings = EncodingConfig(katz_order=3, katz_beta=0.3, katz_scaling=scaling)
    whole = katz(
        data.edge_index, data.num_nodes, order=3, beta=0.3, scaling=scaling, anchors=anchors
    )
    nodes = np.array([7, 3, 60])
    few = katz_of(adjacency(data.edge_index, data.num_nodes), nodes, settings, anchors)
    torch.testing.assert_close(few.to_dense(), whole.to_dense()[nodes])


def test_edges_are_removed_in_both_directions(default: Session):
    A = default.adjacency
    b = neighbor(default)
    less = without(A, [(NODE, b)], {0})
    expected = A.toarray()
    expected[NODE, b] = expected[b, NODE] = 0
    expected[0] = expected[:, 0] = 0
    assert np.array_equal(less.toarray(), expected)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"kind": "edge", "a": 5, "b": 5}, "edge between them"),
        ({"kind": "edge", "a": 5, "b": 90}, "b: got 90, expected an integer from 0 to 89"),
        ({"kind": "edge", "a": 5}, "b: got nothing"),
        ({"kind": "node", "node": 5}, "cannot be hidden"),
        ({"kind": "node", "node": -1}, "from 0 to 89"),
        ({"kind": "node", "node": True}, "from 0 to 89"),
        ({"kind": "node", "node": 2.5}, "from 0 to 89"),
        ({"kind": "criterion", "criterion": 3}, "from 0 to 2"),
        ({"kind": "feature", "node": 5, "column": 12, "value": 1}, "from 0 to 11"),
        ({"kind": "feature", "node": 5, "column": 1, "value": "x"}, "value: got 'x'"),
        ({"kind": "feature", "node": 5, "column": 1, "value": float("nan")}, "a number"),
        ({"kind": "feature", "node": 5, "column": 1, "value": 1e39}, "a number"),
        ({"kind": "key", "block": 1, "criterion": 0, "head": 0, "key": 0}, "block: got 1"),
        (
            {"kind": "key", "block": 0, "criterion": 0, "head": 0, "key": 0, "position": 8},
            "from 0 to 7",
        ),
        ({"kind": "teleport"}, "kind: got 'teleport'"),
        ({"kind": ["edge"]}, "kind"),
        ({"kind": "node", "node": 7, "more": 1}, "unknown name 'more'"),
    ],
)
def test_bad_changes_are_refused(default: Session, edit: dict, message: str):
    with pytest.raises(InputError, match=message):
        Edits.of(default, NODE, Asked({"edits": [edit]}).every("edits", 50))


def test_models_without_sequences_refuse_keys_and_large_graphs(tmp_path, monkeypatch):
    run = session(tmp_path, model="gcn")
    key = {"kind": "key", "block": 0, "criterion": 0, "head": 0, "key": 0, "position": 1}
    with pytest.raises(InputError, match="no sequences"):
        Edits.of(run, NODE, [Asked(key)])
    monkeypatch.setattr("dgt.explore.whatif.FEW_NODES", 10)
    with pytest.raises(InputError, match="up to 10 nodes"):
        what_if(run, NODE, Edits(), 0)
