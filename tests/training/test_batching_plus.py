"""dgt-plus in batches, chunks and ranks against the whole graph; no label leaks in any of them."""

import json
from pathlib import Path

import pytest
import torch

from dgt import NodeClassifier
from dgt.cli import main
from dgt.config import Config
from dgt.data.labels import label_columns
from dgt.models import build
from dgt.prepare import prepare
from dgt.training.hidden import Hidden
from dgt.training.steps import steps_for
from tests.nn.test_model import disturb
from tests.small import QUICK, block_graph, flags, write_folder
from tests.training.test_distributed import torchrun

CPU = torch.device("cpu")
WAYS = [{"batch_size": 7}, {"chunk_size": 1000}, {"chunk_size": 13}]
PLUS = QUICK | {"model": "dgt-plus", "norm": "layer", "blocks": 2}
every_kind = pytest.mark.parametrize("labels", ["none", "read", "hide"])
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, *way.items())))
known_kinds = pytest.mark.parametrize("labels", ["read", "hide"])


def case(labels, blocks=2, nodes=120, y=None, **settings):
    """Returns a graph, of which two thirds of the labels are known, a model, and a function that
    returns steps with other settings."""
    config = Config.of("dgt-plus").replace(
        hidden_channels=16, length=5, blocks=blocks, labels=labels, **settings
    )
    data = block_graph(nodes=nodes)
    y = data.y.clone() if y is None else y
    y[::3] = -1
    known = None if labels == "none" else label_columns(y, 3)
    inputs = prepare(data, config, known=known)
    torch.manual_seed(0)
    model = disturb(build(config, data.x.size(1), 3, inputs["encoding"].size(1)))

    def steps(**way):
        return steps_for(config.replace(**way), inputs, CPU)

    return data, model, steps


def gradients(model, steps, nodes):
    torch.manual_seed(2)
    logits = steps.logits(model, nodes)
    weighted = (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()
    grads = torch.autograd.grad(weighted, list(model.parameters()))
    return [logits.detach(), *grads]


@every_way
@every_kind
@pytest.mark.parametrize("blocks", [1, 3])
def test_logits_and_gradients_are_those_of_the_whole_graph(labels, way, blocks):
    _, model, steps = case(labels, blocks)
    nodes = torch.tensor([3, 7, 9, 40, 41, 44, 100])
    found, wanted = (gradients(model, steps(**each), nodes) for each in (way, {}))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        everything = steps().predict(model)
        torch.testing.assert_close(steps(**way).predict(model), everything, rtol=1e-4, atol=1e-5)
        assert len(everything) == 120


@every_kind
@pytest.mark.parametrize("size", [1000, 13])
def test_dropout_in_chunks_is_that_of_the_whole_graph(labels, size):
    _, model, steps = case(labels, node_dropout=0.3, encoding_dropout=0.3)
    nodes = torch.arange(1, 120, 3)
    model.train()
    found, wanted = (gradients(model, steps(**each), nodes) for each in ({"chunk_size": size}, {}))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@every_kind
def test_chunks_train_to_the_result_of_the_whole_graph(labels):
    settings = PLUS | {"labels": labels}
    rows = [
        NodeClassifier(**settings, chunk_size=size).fit(block_graph()).history_
        for size in (None, 1000, 13)
    ]
    for row, chunked, small in zip(*rows, strict=True):
        assert chunked == pytest.approx(row, abs=1e-3)
        assert small == pytest.approx(row, abs=1e-3)


@every_kind
def test_batches_learn(labels):
    model = NodeClassifier(**PLUS, labels=labels, batch_size=8).fit(block_graph())
    assert model.score() > 0.6  # chance: 0.33


@pytest.mark.parametrize("way", [{}, *WAYS], ids=str)
@known_kinds
def test_no_node_reads_its_own_label(labels, way):
    data, model, steps = case(labels)
    everyone = torch.arange(120)
    with torch.no_grad():
        before = steps(**way).predict(model)
        others = 0
        for node in (1, 2, 4, 50, 119):
            y = data.y.clone()
            y[node] = (y[node] + 1) % 3
            changed = case(labels, y=y)[2](**way)
            after = changed.predict(model)
            assert torch.equal(after[node], before[node])
            others += int((after != before).any(1).sum())
            # Nor in a step that learns from it.
            batch = torch.tensor([node, 5, 8])
            stepped, same = (each.logits(model, batch) for each in (changed, steps(**way)))
            assert torch.equal(stepped[0], same[0])
            # Nor in the attention that is shown.
            shown = changed.inputs_of(batch)
            assert labels == "read" or not shown["labels"][batch].any()
        assert others > 0
        assert len(before) == len(everyone)


@pytest.mark.parametrize("way", [{}, *WAYS[:2]], ids=str)
@known_kinds
def test_labels_of_validation_and_test_nodes_reach_no_step(labels, way):
    data, other = block_graph(), block_graph()
    part = torch.arange(90) % 5
    for graph in (data, other):
        graph.train_mask, graph.val_mask, graph.test_mask = part < 3, part == 3, part == 4
    other.y = torch.where(part >= 3, (other.y + 1) % 3, other.y)
    settings = PLUS | {"labels": labels, "splits": "given", "epochs": 8}
    losses = []
    for graph in (data, other):
        model = NodeClassifier(**settings, **way).fit(graph)
        losses.append([row["train_loss"] for row in model.history_])
        assert bool((model.facts_.known[part >= 3] < 0).all())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("size", [4, 1000])
def test_batches_that_hide_labels_show_most_of_them(size):
    _, _, steps = case("hide")
    hidden = steps(batch_size=size)
    assert isinstance(hidden, Hidden)
    nodes = torch.arange(1, 120, 2)
    batches = list(hidden.batches(nodes))
    assert max(map(len, batches)) == min(size, 6)  # a tenth
    assert torch.cat(batches).sort().values.tolist() == nodes.tolist()


def test_a_whole_step_that_hides_labels_learns_from_a_tenth():
    _, _, steps = case("hide")
    for way in ({}, {"chunk_size": 13}):
        (batch,) = steps(**way).batches(torch.arange(1, 120, 2))
        assert len(batch) == 6


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph(nodes=91))


@every_kind
def test_two_ranks_give_the_result_of_one(labels, graph, tmp_path):
    settings = flags(epochs=10, patience=10, blocks=2, dropout=0.3, model="dgt-plus", norm="layer",
                     labels=labels, precision="double")  # fmt: skip
    command = ["train", str(graph), "--quiet", "--json", *settings]
    assert main([*command, "--out", str(tmp_path / "1")]) == 0
    done = torchrun(2, "-m", "dgt", *command, "--out", str(tmp_path / "2"))
    assert done.returncode == 0, done.stderr
    one, two = (
        [json.loads(line) for line in (tmp_path / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("1", "2")
    )
    for row, wanted in zip(two, one, strict=True):
        assert row == pytest.approx(wanted, abs=1e-10)
    scores = [json.loads((tmp_path / run / "metrics.json").read_text()) for run in ("1", "2")]
    assert scores[0]["test_accuracy"] == scores[1]["test_accuracy"]
    assert scores[0]["train_accuracy"] == scores[1]["train_accuracy"]
