"""The warning about classes that are never predicted."""

import logging

import pytest
import torch
from torch_geometric.data import Data

from dgt import Config, NodeClassifier
from dgt.training.results import warn_unpredicted, without_class_warnings
from dgt.tune.worker import train_once
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
    settings = {**QUICK, "epochs": 3, "encoding": "none"}
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
        train_once(str(tmp_path / "graph.pt"), Config(), settings)
        assert "never predicts" not in caplog.text
