"""What a NodeClassifier refuses, where it could answer confidently and wrongly."""

import os
from pathlib import Path

import pytest
import torch

from dgt import InputError, NodeClassifier
from dgt.data.files import read
from dgt.encodings import ENCODINGS
from dgt.encodings.encoding import Encoding
from dgt.evaluate import METRICS, Metric
from dgt.models import MODELS, Model
from tests.small import QUICK, block_graph

SHORT = QUICK | {"epochs": 3}


@pytest.fixture(scope="module")
def fitted() -> NodeClassifier:
    return NodeClassifier(**SHORT).fit(block_graph())


@pytest.mark.parametrize(
    "mask",
    [
        torch.ones(90).long(),
        torch.arange(90),
        torch.tensor([True]),
        torch.tensor(True),
        [True],
        None,
    ],
)
def test_masks_that_are_not_boolean_tensors_of_all_nodes(fitted: NodeClassifier, mask: object):
    with pytest.raises(InputError, match=r"mask: got .*, expected a boolean tensor \(90,\)"):
        fitted.score(mask=mask)


def test_a_complete_run_is_not_resumed_on_another_graph(tmp_path: Path):
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path / "run")
    again = NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path / "run", resume=True)
    assert again.metrics_["epochs"] == 3
    with pytest.raises(InputError, match="cannot resume: the graph is not the one"):
        NodeClassifier(**SHORT).fit(block_graph(seed=1), out=tmp_path / "run", resume=True)


def test_a_model_is_not_saved_over_a_run(fitted: NodeClassifier, tmp_path: Path):
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path / "run")
    with pytest.raises(InputError, match="holds a training run; save to another folder"):
        fitted.save(tmp_path / "run")


def test_an_encoding_with_other_columns_than_in_training(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(
        ENCODINGS._entries, "eye", Encoding(columns=lambda data, *_: torch.eye(data.num_nodes))
    )
    classifier = NodeClassifier(model="dgt", encoding="eye", **SHORT).fit(block_graph())
    with pytest.raises(InputError, match=r"its encoding has 60 columns, .* trained with 90"):
        classifier.predict(block_graph(nodes=60))


def test_metrics_that_are_no_numbers(monkeypatch: pytest.MonkeyPatch, caplog):
    monkeypatch.setitem(METRICS._entries, "nothing", Metric(lambda *_: float("nan")))
    with pytest.raises(InputError, match="metric 'nothing': got nan, expected a finite number"):
        NodeClassifier(metric="nothing", **SHORT).fit(block_graph())
    # One that did not select the model is left out, and the training is not lost.
    metrics = NodeClassifier(**SHORT).fit(block_graph()).metrics_
    assert "nothing" not in metrics["test"]
    assert "metric 'nothing' is left out" in caplog.text


@pytest.mark.parametrize("name", ["loss", "std", "ci95", "accuracy", "two words", ""])
def test_names_of_metrics_that_mean_something_else(name: str):
    with pytest.raises(InputError):
        METRICS[name] = Metric(lambda *_: 1.0)


def test_a_list_of_criteria_is_a_tuple():
    from dgt.config import SequenceConfig

    assert SequenceConfig(criteria=["bfs"]).criteria == ("bfs",)


@pytest.mark.parametrize("channels", [2, 4])
def test_a_model_that_returns_other_logits(monkeypatch: pytest.MonkeyPatch, channels: int):
    class Wide(torch.nn.Linear):
        def forward(self, x: torch.Tensor, nodes: torch.Tensor | None = None) -> torch.Tensor:
            return super().forward(x if nodes is None else x[nodes])

    record = Model(build=lambda config, features, *_: Wide(features, channels), inputs=("x",))
    monkeypatch.setitem(MODELS._entries, "wide", record)
    message = rf"model Wide: returned \(\d+, {channels}\), expected logits of shape \(\d+, 3\)"
    with pytest.raises(InputError, match=message):
        NodeClassifier(model="wide", epochs=1).fit(block_graph())


def test_nothing_is_computed_before_fit():
    with pytest.raises(InputError, match="not fitted yet"):
        NodeClassifier().multiply_adds(block_graph())


@pytest.mark.parametrize("entry", [3, None, "bfs"])
def test_what_is_registered_is_a_function_or_a_record(entry: object):
    with pytest.raises(InputError, match=r"\['own'\]: got .*, expected a function or the record"):
        ENCODINGS["own"] = entry


@pytest.mark.parametrize("name", ["graph.npz", "graph.pt", "nodes.csv", "nodes.parquet"])
def test_only_regular_files_are_opened(tmp_path: Path, name: str):
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=f"{name}: expected a regular file"):
        read(tmp_path if name.startswith("nodes") else tmp_path / name)
