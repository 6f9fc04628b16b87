"""Records and functions of the user: their results are checked, and their errors name them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier
from dgt.config import CRITERIA, ENCODINGS, METRICS, MODELS
from dgt.encodings import Encoding
from dgt.errors import OwnCodeError
from dgt.evaluate import Metric
from dgt.models import Model
from dgt.sequences import Criterion, node_sequences
from tests.small import QUICK, block_graph

SHORT = QUICK | {"epochs": 2}
N, L = 90, 4


def neighbors(bases: range) -> np.ndarray:
    return (np.array(bases)[:, None] + np.arange(L)) % N


def criterion(result: Callable[[range], Any]) -> Criterion:
    return Criterion(begin=lambda graph, settings, folder: lambda bases, advance: result(bases))


def changed(change: Callable[[np.ndarray], Any]) -> Callable[[range], Any]:
    return lambda bases: (change(neighbors(bases)), None)


def set_to(row: int, column: int, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(sequences: np.ndarray) -> np.ndarray:
        sequences[row, column] = value
        return sequences

    return change


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (changed(lambda s: s.astype(float)), "returned float64, expected integers"),
        (changed(set_to(3, 2, N)), "row 3, column 2 is 90, expected -1 or a node below 90"),
        (changed(set_to(3, 2, 3)), "row 3, column 2 is 3, expected no node twice"),
        (changed(set_to(3, 0, 5)), "row 3, column 0 is 5, expected the row's own node first"),
        (changed(set_to(3, 2, -1)), "row 3, column 3 is 6, expected -1, as before it"),
        (changed(lambda s: s[:-1]), r"returned shape \(89, 4\), expected \(90, 4\)"),
        (changed(lambda s: [[1], [1, 2]]), "got list, expected a tensor"),
        (changed(lambda s: "text"), "got str, expected a tensor"),
        (lambda bases: neighbors(bases), "returned ndarray, expected a pair of sequences"),
        (lambda bases: (neighbors(bases), np.ones(3)), "returned scores of shape"),
        (
            lambda bases: (neighbors(bases), -np.ones((N, L))),
            "returned scores that are not positive",
        ),
        (lambda bases: 1 / 0, "failed in <lambda>, .*test_own_records.*: ZeroDivisionError"),
    ],
)
def test_results_of_criteria(result, message, monkeypatch):
    monkeypatch.setitem(CRITERIA._entries, "own", criterion(result))
    with pytest.raises(InputError, match=f"^criterion own: {message}"):
        node_sequences(block_graph(), ["own"], length=L)


def test_a_right_criterion(monkeypatch, caplog):
    monkeypatch.setitem(CRITERIA._entries, "own", criterion(changed(lambda s: s)))
    expected = torch.from_numpy(neighbors(range(N))).int()
    assert torch.equal(node_sequences(block_graph(), ["own"], length=L)[0], expected)
    assert caplog.text == ""
    assert torch.equal(
        node_sequences(block_graph(), ["own"], length=L, spacing="score")[0], expected
    )
    assert "spacing score has no effect: criterion own has no scores" in caplog.text


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (lambda *_: torch.full((N, 2), float("nan")), "row 0, column 0 is nan, expected a finite"),
        (lambda *_: np.full((N, 2), 1e300), r"row 0, column 0 is 1e\+300, expected a finite"),
        (lambda *_: torch.ones(N - 1, 2), r"returned shape \(89, 2\), expected \(90, columns\)"),
        (lambda *_: torch.ones(N), "returned shape"),
        (lambda *_: "text", "got str, expected a tensor"),
        (lambda *_: {}["key"], "failed in <lambda>, .*KeyError"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: Encoding(columns=f), lambda f: f], ids=["record", "fn"])
def test_results_of_encodings(columns, message, wrap, monkeypatch):
    monkeypatch.setitem(ENCODINGS._entries, "own", wrap(columns))
    with pytest.raises(InputError, match=f"^encoding own: {message}"):
        NodeClassifier(encoding="own", **SHORT).fit(block_graph())


def test_results_of_metrics_and_models(monkeypatch):
    monkeypatch.setitem(METRICS._entries, "own", Metric(lambda scores, labels: scores))
    with pytest.raises(InputError, match="metric 'own': got Tensor, expected a finite number"):
        NodeClassifier(metric="own", **SHORT).fit(block_graph())
    monkeypatch.setitem(MODELS._entries, "own", Model(build=lambda *_: 3, inputs=("x",)))
    with pytest.raises(InputError, match="model own: built int, expected a torch module"):
        NodeClassifier(model="own", **SHORT).fit(block_graph())
    monkeypatch.setitem(MODELS._entries, "own", Model(build=lambda *_: 1 / 0, inputs=("x",)))
    with pytest.raises(OwnCodeError, match="model own: failed in <lambda>") as caught:
        NodeClassifier(model="own", **SHORT).fit(block_graph())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    monkeypatch.setitem(MODELS._entries, "own", Model(build=lambda *_: 1 / 0, inputs=("xx",)))
    with pytest.raises(InputError, match="model own: unknown input 'xx'; "):
        NodeClassifier(model="own", **SHORT).fit(block_graph())


def test_misspelt_records():
    with pytest.raises(InputError, match="carries_over: got 'alway', expected one of anchors, edg"):
        Encoding(columns=lambda *_: None, carries_over="alway")
    with pytest.raises(InputError, match="columns and rows: expected functions"):
        Encoding(columns=torch.ones(3))
    with pytest.raises(InputError, match="method and closeness: expected functions"):
        Criterion(begin=None)
    with pytest.raises(InputError, match="reads: got 'edge_index', expected a tuple"):
        Criterion(begin=lambda *_: None, reads="edge_index")


def same_name() -> Callable[[Data, int], Any]:
    def twin(data: Data, length: int) -> Any:
        return None

    return twin


class Own:
    def order(self, data: Data, length: int) -> Any:
        return neighbors(range(N))


def test_functions_of_one_name(monkeypatch):
    with pytest.raises(InputError, match="two functions are named 'twin'; rename one of them"):
        NodeClassifier(criteria=[same_name(), same_name()])
    twin = same_name()
    NodeClassifier(criteria=[twin, twin])
    own = Own()
    monkeypatch.setitem(CRITERIA._entries, "order", own.order)
    NodeClassifier(criteria=[own.order])  # a new object each time, but the same method
    with pytest.raises(InputError, match="the function 'order' has the name of another criterion"):
        NodeClassifier(criteria=[Own().order])
