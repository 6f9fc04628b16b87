"""Batches and chunks against the whole graph."""

import json
from pathlib import Path

import pytest
import torch

from dgt import NodeClassifier
from dgt.cli import main
from dgt.config import Config
from dgt.errors import InputError
from dgt.nn import build
from dgt.prepare import prepare
from dgt.training import loop as train
from dgt.training.batching import Batched, Chunked, Whole, reach
from tests.small import QUICK, block_graph, flags, write_folder


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_reach_is_the_union_of_the_sequences():
    sequences = torch.tensor([[[0, 3, -1], [1, 2, 5], [2, -1, -1], [3, 5, 0], [4, 1, -1]]]).int()
    sequences = torch.cat([sequences, torch.tensor([[[5, 4, -1]]])], dim=1).int()
    nodes = torch.tensor([3, 0])
    found, level = reach(sequences, nodes)
    assert found.tolist() == [0, 3, 5]
    assert found[level.nodes].tolist() == nodes.tolist()
    assert level.sequences.tolist() == [[[1, 2, 0], [0, 1, -1]]]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_batches_give_the_logits_and_gradients_of_the_whole_graph(blocks):
    config = Config.of("dgt").replace(hidden_channels=16, length=5, blocks=blocks, anchors=20)
    data = block_graph(nodes=300)
    inputs = prepare(data, config)
    torch.manual_seed(0)
    model = build(config, data.x.size(1), 3, 20).eval()  # without dropout
    for block in model.blocks:
        torch.nn.init.normal_(block.attention.query.weight, std=0.5)
    batched = Batched(inputs, 7, blocks)
    nodes = torch.randperm(300)[:7]
    assert batched.inputs(nodes)["x"].size(0) < 300 or blocks > 1
    logits, wanted = batched.logits(model, nodes), model(**inputs)[nodes]
    assert torch.allclose(logits, wanted, atol=1e-5)
    grads, wanted_grads = (
        torch.autograd.grad(out.square().sum(), list(model.parameters()))
        for out in (logits, wanted)
    )
    for grad, wanted_grad in zip(grads, wanted_grads, strict=True):
        assert torch.allclose(grad, wanted_grad, rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        everything = Whole(inputs).predict(model)
        assert torch.allclose(batched.predict(model), everything, atol=1e-5)
        assert torch.allclose(Chunked(inputs, 64).predict(model), everything, atol=1e-5)


def test_an_epoch_of_batches_visits_every_node_once_in_seeded_order():
    steps, nodes = Batched({}, 4, 1), torch.arange(10, 21)
    epochs = []
    for _ in range(2):
        torch.manual_seed(5)
        epochs.append([[b.tolist() for b in steps.batches(nodes)] for _ in range(2)])
    assert epochs[0] == epochs[1]
    assert epochs[0][0] != epochs[0][1]
    for epoch in epochs[0]:
        assert [len(batch) for batch in epoch] == [4, 4, 3]
        assert sorted(node for batch in epoch for node in batch) == nodes.tolist()


def test_chunks_train_to_the_result_of_the_whole_graph():
    data = block_graph()
    rows = [
        NodeClassifier(**QUICK, model="dgt", chunk_size=size).fit(data).history_
        for size in (None, 1000, 13)
    ]
    for row, chunked, small in zip(*rows, strict=True):
        assert chunked == pytest.approx(row, abs=1e-4)
        assert small == pytest.approx(row, abs=1e-4)


def test_batches_learn_and_resume_to_the_same_result(tmp_path: Path, monkeypatch):
    graph = write_folder(tmp_path / "colors", block_graph())
    command = ["train", str(graph), "--json", "--quiet", *flags(epochs=12, batch_size=8)]
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0
    evaluate, left = train.evaluate, iter(range(5))

    def stopped(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(train, "CHECKPOINT_SECONDS", 0)
        patch.setattr(train, "evaluate", stopped)
        assert main([*command, "--out", str(tmp_path / "stopped")]) == 130
    assert main([*command, "--out", str(tmp_path / "stopped"), "--resume"]) == 0
    for name in ("metrics.jsonl", "model.safetensors", "predictions.parquet"):
        whole, resumed = (tmp_path / run / name for run in ("whole", "stopped"))
        assert whole.read_bytes() == resumed.read_bytes(), name
    metrics = json.loads((tmp_path / "whole" / "metrics.json").read_text())
    assert metrics["test_accuracy"] > 0.6  # chance: 0.33


@pytest.mark.parametrize("name", ["batch_size", "chunk_size"])
def test_a_batch_norm_needs_all_nodes(name):
    with pytest.raises(InputError, match=f"{name}: a batch norm needs all nodes at once"):
        Config.of("dgt").replace(norm="batch", **{name: 8})
    with pytest.raises(InputError, match=f"{name}: got 0, expected at least 1"):
        Config.of("dgt").replace(**{name: 0})
