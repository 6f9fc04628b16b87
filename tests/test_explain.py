"""Explanations against sums over single entries, and against NetworkX."""

from pathlib import Path

import networkx as nx
import pytest
import torch

from dgt.cli import main
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.explain import key_weights, same_label_share
from dgt.nn import Attention
from tests.sequences.graphs import to_networkx
from tests.small import LABELS, QUICK, block_graph, flags, write_folder


@pytest.fixture(scope="module")
def fitted() -> NodeClassifier:
    return NodeClassifier(**QUICK).fit(block_graph())


def summed(classifier: NodeClassifier, node: int) -> list[float]:
    """Returns the weight of each key, summed entry by entry."""
    weights = [0.0] * 90
    for criterion in classifier.model_.eval().attention(**classifier._steps.given):
        for head in criterion:
            for n, key, weight in zip(*(part.tolist() for part in head), strict=True):
                if n == node:
                    weights[key] += weight
    return [w / sum(weights) for w in weights]


def test_the_most_important_keys(fitted: NodeClassifier) -> None:
    data, graph = block_graph(), to_networkx(block_graph())
    found = fitted.explain(17, top=5)
    truth = summed(fitted, 17)
    order = sorted(range(90), key=lambda key: (-round(truth[key], 6), key))[:5]
    assert [key.id for key in found.keys] == order
    assert [key.weight for key in found.keys] == pytest.approx([truth[k] for k in order], rel=1e-5)
    assert [key.label for key in found.keys] == [str(int(data.y[k])) for k in order]
    predictions = fitted.predict().tolist()
    assert [key.prediction for key in found.keys] == [str(predictions[k]) for k in order]
    assert (found.label, found.prediction) == (str(int(data.y[17])), str(predictions[17]))
    hops = nx.single_source_shortest_path_length(graph, 17)
    assert [key.hops for key in found.keys] == [hops.get(k) for k in order]
    same = sum(truth[key] for key in range(90) if data.y[key] == data.y[17])
    assert found.same_label == pytest.approx(same, rel=1e-5)
    shown = {0: 17} | {i: key for i, key in enumerate(order, start=1) if key != 17}
    joined = {(a, b) for a in shown for b in shown if a < b and graph.has_edge(shown[a], shown[b])}
    assert set(found.edges) == joined
    everything = fitted.explain("17", top=1000).keys
    assert len(everything) == sum(w > 0 for w in truth)
    assert sum(key.weight for key in everything) == pytest.approx(1)


def test_share_of_the_same_label(fitted: NodeClassifier) -> None:
    mask = torch.zeros(90, dtype=torch.bool)
    mask[[3, 17, 60]] = True
    found = fitted.same_label_share(mask)
    shares = [fitted.explain(node).same_label for node in (3, 17, 60)]
    assert found == pytest.approx(sum(shares) / 3)


def test_heads_are_summed() -> None:
    one = Attention(torch.tensor([0, 2, 2]), torch.tensor([1, 1, 0]), torch.tensor([1.0, 2.0, 1.0]))
    other = Attention(torch.tensor([2, 1]), torch.tensor([3, 3]), torch.tensor([5.0, 9.0]))
    with_rest = key_weights([[one], [other]], 4, torch.tensor([2, 0, 1]))
    weights = with_rest[:2]
    torch.testing.assert_close(weights * 8, torch.tensor([[1, 2, 0, 5], [0, 8, 0, 0]]).double())
    y = torch.tensor([1, 0, 1, 1])
    share = same_label_share(weights, torch.tensor([2, 0]), y)
    torch.testing.assert_close(share, torch.tensor([6 / 8, 0]).double())
    nodes = torch.tensor([3, 1])
    # the rows as those of 3, which attends to 0 and 1 too, and of 1, which only attends to itself
    share = same_label_share(weights, nodes, y, itself=False)
    torch.testing.assert_close(share, torch.tensor([1 / 3, torch.nan]).double(), equal_nan=True)


TRANSFORMERS = ("transformer", "graphormer", "gt-full", "gt-sparse")


@pytest.mark.parametrize("model", TRANSFORMERS)
def test_attention_is_that_of_the_last_block(model: str) -> None:
    """If the values are one-hot, the output of attention is its weights."""
    classifier = NodeClassifier(model=model, heads=2, blocks=2, **QUICK | {"epochs": 3})
    classifier.fit(block_graph(nodes=8, features=5, classes=2))
    nodes = torch.tensor([5, 1])
    attention = classifier.model_.blocks[-1].attention
    with torch.no_grad():  # the values of each head, 8 of 16 channels, are one-hot
        attention.out.weight.copy_(torch.eye(16))
        attention.out.bias.zero_()
    read, split = [], attention._split
    attention._split = lambda z, nodes: (*split(z, nodes)[:2], torch.eye(8).expand(2, 8, 8))
    attention.register_forward_hook(lambda module, given, out: read.append(out))
    classifier.predict()
    truth = read[0].view(8, 2, 8).mean(dim=1)[nodes]
    found = key_weights(
        classifier.model_.attention(**classifier._steps.given, nodes=nodes), 8, nodes
    )
    torch.testing.assert_close(found.float(), truth, rtol=1e-4, atol=1e-6)
    whole = classifier.model_.attention(**classifier._steps.given)
    torch.testing.assert_close(key_weights(whole, 8, torch.arange(8))[nodes], found)


def test_a_model_without_attention() -> None:
    classifier = NodeClassifier(model="gcn", **QUICK | {"epochs": 2}).fit(block_graph())
    with pytest.raises(InputError, match="gcn: this model has no attention over nodes"):
        classifier.explain(1)


def test_unknown_nodes_and_invalid_top_are_refused(fitted: NodeClassifier) -> None:
    with pytest.raises(InputError, match="has no node '90'"):
        fitted.explain(90)
    with pytest.raises(InputError, match="top: got 0, expected an integer of at least 1"):
        fitted.explain(1, top=0)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = write_folder(tmp_path / "graph", block_graph())
    run = tmp_path / "run"
    assert main(["train", str(graph), "--out", str(run), "--quiet", *flags()]) == 0
    capsys.readouterr()
    for suffix, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        out = tmp_path / f"keys.{suffix}"
        assert main(["explain", str(run), "n4", "--top", "7", "--out", str(out)]) == 0
        shown = capsys.readouterr().out
        assert out.read_bytes().startswith(start)
    assert f"Node n4: label {LABELS[1]}, prediction" in shown
    assert sum(line.startswith("│ n") for line in shown.splitlines()) == 7
    assert "attention on nodes with the same label: " in shown
    assert main(["explain", str(run), "n9"]) == 0  # has no label
    assert "Node n9: no label" in capsys.readouterr().out
    for tokens, message in [
        (["n90"], "has no node 'n90'"),
        (["n4", "--out", str(tmp_path / "keys.txt")], "expected a .png or .pdf file"),
        (["n4", "--top", "0"], 'Invalid value "0" for --top. Expected at least 1'),
    ]:
        assert main(["explain", str(run), *tokens]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "keys.txt").exists()
    own = tmp_path / "own.png"
    own.write_bytes(b"a picture")
    assert main(["explain", str(run), "n4", "--out", str(own)]) == 2
    assert (
        f"--out: {own} exists; choose another file or pass --overwrite" in capsys.readouterr().err
    )
    assert own.read_bytes() == b"a picture"
    assert main(["explain", str(run), "n4", "--out", str(own), "--overwrite"]) == 0
    assert own.read_bytes().startswith(b"\x89PNG")


def test_a_new_node_of_a_larger_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The training graph with a new node, n90, joined to n4 and n5, and without labels."""
    data = block_graph()
    graph, run = write_folder(tmp_path / "graph", data), tmp_path / "run"
    assert main(["train", str(graph), "--out", str(run), "--quiet", *flags(epochs=2)]) == 0
    larger = block_graph()
    larger.x = torch.cat([data.x, data.x[4:5]])
    larger.y = torch.cat([data.y, data.y[4:5]])
    larger.edge_index = torch.cat([data.edge_index, torch.tensor([[90, 90], [4, 5]])], dim=1)
    other = write_folder(tmp_path / "larger", larger)
    nodes = (other / "nodes.csv").read_text().splitlines()
    unlabeled = [",".join([row.split(",")[0], *row.split(",")[2:]]) for row in nodes]
    (other / "nodes.csv").write_text("\n".join(unlabeled) + "\n")
    assert main(["explain", str(run), "n90"]) == 2
    assert "has no node 'n90'" in capsys.readouterr().err
    assert main(["explain", str(run), "n90", "--graph", str(other)]) == 0
    shown = capsys.readouterr().out
    assert "Node n90: no label, prediction" in shown
    hops = {line.split("│")[1].strip(): line.split("│")[3].strip()
            for line in shown.splitlines() if line.startswith("│ n")}  # fmt: skip
    assert hops["n4"] == hops["n5"] == "1"
    assert main(["predict", str(run), str(other), "--out", str(tmp_path / "p.csv"), "--quiet"]) == 0
    rows = (tmp_path / "p.csv").read_text().splitlines()
    prediction = next(row.split(",")[1].strip('"') for row in rows if row.startswith('"n90"'))
    assert f"Node n90: no label, prediction {prediction}" in shown
    assert main(["explain", str(run), "n4", "--graph", str(tmp_path / "nothing")]) == 2
    assert "no such file, folder or benchmark" in capsys.readouterr().err
