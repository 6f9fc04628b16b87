"""The warnings about classes that are never predicted, and about memorized training nodes."""

import logging

import pytest
import torch
from torch_geometric.data import Data

from dgt import Config, NodeClassifier
from dgt.training.results import warn_memorized, warn_unpredicted, without_class_warnings
from dgt.tune.worker import Job, train_once
from tests.small import QUICK, block_graph


def graph(y: list[int], names: str) -> Data:
    return Data(y=torch.tensor(y), class_names=list(names))


def test_the_classes_and_their_counts_are_named(caplog: pytest.LogCaptureFixture) -> None:
    data = graph([0, 0, 1, 2, 2, 2, -1], "abcd")
    warn_unpredicted(torch.tensor([0, 0, 0, 0, 0, 0, 1]), data)
    assert "never predicts 1 of 4 classes: 'c' (3 labeled nodes);" in caplog.text  # d: no nodes
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert caplog.records[0].name.startswith("dgt")
    caplog.clear()
    warn_unpredicted(torch.tensor([0, 1, 1, 1, 2, 1, 0]), data)
    assert caplog.text == ""


def test_many_classes_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    data = graph(list(range(26)), "abcdefghijklmnopqrstuvwxyz")
    warn_unpredicted(torch.zeros(26, dtype=torch.int64), data)
    assert "25 of 26 classes: 'b' (1 labeled nodes)" in caplog.text
    assert "'k' (1 labeled nodes), 15 more;" in caplog.text


def test_fit_warns_and_a_search_does_not(caplog: pytest.LogCaptureFixture, tmp_path) -> None:
    data = block_graph()
    data.x = torch.ones(90, 2)  # all nodes are equal, so that all get the same prediction
    settings = {**QUICK, "model": "dgt", "epochs": 3, "encoding": "none"}
    with caplog.at_level(logging.WARNING, "dgt"):
        predictions = NodeClassifier(**settings).fit(data).predict()
        missing = sorted({0, 1, 2} - set(predictions.tolist()))
        assert len(missing) == 2
        for c in missing:
            count = int((data.y == c).sum())
            assert f"'{c}' ({count} labeled nodes)" in caplog.text
        caplog.clear()
        with without_class_warnings():
            NodeClassifier(**settings).fit(data)
        torch.save(data, tmp_path / "graph.pt")
        config = Config.of("dgt").replace(metric="accuracy")
        train_once(Job(str(tmp_path / "graph.pt"), config, settings))
        assert "never predicts" not in caplog.text


def test_memorized_training_nodes(caplog: pytest.LogCaptureFixture) -> None:
    config = Config.of("dgt")
    warn_memorized({"average-precision": 0.98}, {"average-precision": 0.04}, config)
    assert "average-precision is 0.98 on training nodes and 0.04 on validation nodes" in caplog.text
    assert "try --encoding none, --criteria neighbors, fewer than 64 --hidden-ch" in caplog.text
    assert len(caplog.records) == 1
    caplog.clear()
    warn_memorized({"macro-f1": 0.9}, {"macro-f1": 0.4}, Config.of(model="gcn"))
    assert "try fewer than 64 --hidden-channels or more --dropout" in caplog.text
    caplog.clear()
    warn_memorized({"average-precision": 0.9}, {"average-precision": 0.5}, config)
    warn_memorized({"average-precision": 0.4}, {"average-precision": 0.02}, config)
    warn_memorized({"log-loss": 0.9}, {"log-loss": 0.1}, config)
    assert caplog.text == ""


def test_fit_warns_of_memorized_nodes_if_a_class_is_rare(caplog: pytest.LogCaptureFixture) -> None:
    data = block_graph(nodes=300)
    generator = torch.Generator().manual_seed(0)
    data.x = torch.randn(300, 64, generator=generator)  # says nothing about the labels
    for n, part in enumerate(("train", "val", "test")):
        data[f"{part}_mask"] = torch.arange(300) % 3 == n
    settings = {**QUICK, "model": "mlp", "epochs": 40, "patience": 40, "input_dropout": 0.0}
    for every, warned in ((13, True), (8, False)):
        data.y = (torch.arange(300) % every == 0).long()
        caplog.clear()
        model = NodeClassifier(**settings, dropout=0.0, metric="average-precision").fit(data)
        assert model.score(mask="train") > 0.7
        assert model.score(mask="val") < 0.35
        assert ("memorized the training nodes" in caplog.text) is warned
