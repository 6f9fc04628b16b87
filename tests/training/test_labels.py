"""Rare classes: the metric, the positive class, class weights and the threshold."""

import logging
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.metrics import f1_score
from sklearn.utils.class_weight import compute_class_weight
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier, NodeRegressor
from dgt.cli.train import show_metrics
from dgt.config import Config
from dgt.data import load
from dgt.data.splits import random_split
from dgt.training.labels import balanced_weights, minority, positive_class, rare_classes
from dgt.training.problem import Problem
from dgt.training.task import Classification, best_threshold
from tests.small import QUICK, block_graph


def with_few(positive: int = 6, nodes: int = 90) -> Data:
    """Returns a graph in which a few nodes are of the second class."""
    data = block_graph(nodes=nodes)
    data.y = (torch.arange(nodes) < positive).long()
    noise = torch.randn(nodes, 1, generator=torch.Generator().manual_seed(0))
    data.x = torch.cat([data.x, data.y[:, None] + 0.1 * noise], dim=1)
    data.class_names = ["legit", "fraud"]
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.zeros(nodes, dtype=torch.bool)
    for n, part in enumerate(("train", "val", "test")):
        data[f"{part}_mask"][n::3] = True
    return data


def test_the_minority_is_what_remains_of_the_training_nodes():
    data = with_few(positive=12)
    assert minority(data, "classification") == int(data.y[data.train_mask].sum()) == 4
    assert minority(data, "regression") == int(data.train_mask.sum())


def test_which_classes_are_rare():
    assert rare_classes(torch.tensor([980, 20])) == [1]
    assert rare_classes(torch.tensor([800, 200])) == []
    assert rare_classes(torch.tensor([50] * 20)) == []  # each has 5%, but all are equal
    assert rare_classes(torch.tensor([500, 400, 0, 30])) == [3]
    cora = torch.tensor([351, 217, 418, 818, 426, 298, 180])
    assert rare_classes(cora) == []


def test_the_positive_class():
    assert positive_class(["0", "1"], torch.tensor([10, 90])) == 1
    assert positive_class(["True", "False"], torch.tensor([90, 10])) == 0
    assert positive_class(["fraud", "legit"], torch.tensor([2, 98])) == 0
    assert positive_class(["fraud", "legit"], torch.tensor([98, 2])) == 1
    assert positive_class(["a", "b", "c"], torch.tensor([1, 2, 3])) is None


def test_balanced_weights_against_scikit_learn():
    y = np.repeat([0, 1, 3], [50, 8, 2])
    found = balanced_weights(torch.from_numpy(y).bincount(minlength=5))
    truth = compute_class_weight("balanced", classes=np.array([0, 1, 3]), y=y)
    assert found[[0, 1, 3]].numpy() == pytest.approx(truth)
    assert found[[2, 4]].tolist() == [1, 1]  # without training nodes, the weight has no effect


def test_class_weights_weigh_the_loss():
    logits, y = torch.randn(10, 2).double(), torch.tensor([0] * 8 + [1] * 2)
    weights = torch.tensor([0.5, 3.0])
    each = torch.nn.functional.cross_entropy(logits, y, reduction="none")
    found = Classification(2, class_weights=weights).loss(logits, y)
    assert float(found) == pytest.approx(float((each * weights[y]).sum()))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("positive", [0, 1])
def test_the_threshold_has_the_best_f1(seed: int, positive: int):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(40, 2, generator=generator).round(decimals=1)
    y = torch.randint(0, 2, (40,), generator=generator)
    task = Classification(2, "f1", positive=positive)
    task.threshold = best_threshold(task, logits, y)
    found = task.measure(logits, y, ["f1"])["f1"]
    assert found == f1_score(y, task.predict(logits), pos_label=positive)
    p = logits.double().softmax(1)[:, positive]
    every = [f1_score(y == positive, p >= t) for t in [*p.tolist(), 2.0]]
    assert found == pytest.approx(max(every), abs=1e-12)


def test_the_metric_follows_the_labels(caplog: pytest.LogCaptureFixture):
    problem = Problem.of(with_few(), Config.of("dgt"))
    assert problem.facts.metric == "average-precision"
    assert "class 'fraud' (6.7%)" in caplog.text
    assert "selected by average-precision (set --metric for another)" in caplog.text
    assert Problem.of(with_few(), Config.of("dgt").replace(metric="auroc")).facts.metric == "auroc"
    assert Problem.of(with_few(40), Config.of("dgt")).facts.metric == "accuracy"
    three = with_few()
    three.y[30:60] = 2
    three.class_names = ["a", "b", "c"]
    assert Problem.of(three, Config.of("dgt")).facts.metric == "macro-f1"
    three.metric = "accuracy"
    caplog.clear()
    assert Problem.of(three, Config.of("dgt")).facts.metric == "accuracy"
    assert caplog.text == ""


@pytest.mark.parametrize("positive", [0.0, 0.5, 1.0])
def test_labels_of_test_nodes_decide_nothing(positive: float):
    """A few positive nodes are rare, unless those among the test nodes count."""
    before, after = with_few(), with_few()
    test = after.test_mask
    after.y[test] = (torch.arange(int(test.sum())) < positive * int(test.sum())).long()
    problems = [Problem.of(data, Config.of("dgt")) for data in (before, after)]
    assert problems[0].rare == problems[1].rare == [1]
    facts = [problem.facts for problem in problems]
    for name in ("metric", "positive", "threshold", "known"):
        assert getattr(facts[0], name) == getattr(facts[1], name)


def test_a_metric_that_is_not_defined_is_refused():
    with pytest.raises(InputError, match="metric: 'f1' is not defined for multiclass labels; ch"):
        NodeClassifier(metric="f1", **QUICK).fit(block_graph())
    with pytest.raises(InputError, match="metric: 'mae' is not defined for binary labels"):
        NodeClassifier(metric="mae", **QUICK).fit(with_few())
    with pytest.raises(InputError, match=r"threshold: got 1\.0, expected above 0 and below 1"):
        NodeClassifier(threshold=1.0)


def test_a_threshold_is_chosen_stored_and_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "120")  # titles of columns are not cut
    data = with_few()
    classifier = NodeClassifier(**QUICK).fit(data, out=tmp_path / "run")
    metrics = classifier.metrics_
    assert metrics["positive"] == "fraud"
    assert metrics["rare_classes"] == ["fraud"]
    threshold = metrics["threshold"]
    p = classifier.predict_proba()[:, 1]
    assert torch.equal(classifier.predict(), (p.double() >= threshold).long())
    loaded = NodeClassifier.load(tmp_path / "run")
    assert loaded.facts_.threshold == threshold
    assert torch.equal(loaded.predict(data), classifier.predict())
    for part in ("train", "val", "test"):
        mask = data[f"{part}_mask"]
        truth = f1_score(data.y[mask], classifier.predict()[mask])
        assert metrics[part]["f1"] == loaded.score(data, part, "f1") == truth
    assert loaded.score(data) == metrics["test"]["average-precision"]
    show_metrics(metrics)
    shown = capsys.readouterr().out
    assert "average-precision" in shown
    assert "balanced-accuracy" in shown
    assert "positive class: fraud, predicted from a probability of" in shown


def test_a_threshold_of_the_user(tmp_path: Path):
    low = NodeClassifier(threshold=0.01, **QUICK).fit(with_few())
    assert torch.equal(low.predict(), (low.predict_proba()[:, 1].double() >= 0.01).long())
    assert low.metrics_["threshold"] == 0.01


def test_predictions_say_which_nodes_were_test_nodes(tmp_path: Path):
    data = with_few()
    data.train_mask[:3] = data.val_mask[:3] = data.test_mask[:3] = False
    classifier = NodeClassifier(**QUICK, model="dgt", encoding="none").fit(
        data, out=tmp_path / "run"
    )
    truth = [
        next((part for part in ("train", "val", "test") if data[f"{part}_mask"][node]), None)
        for node in range(90)
    ]
    table = pq.read_table(tmp_path / "run" / "predictions.parquet")
    assert table["split"].to_pylist() == truth
    loaded = NodeClassifier.load(tmp_path / "run")
    loaded.write_predictions(tmp_path / "again.parquet", data)
    again = pq.read_table(tmp_path / "again.parquet")
    assert again["split"].to_pylist() == truth
    found = np.stack([again["probability:legit"], again["probability:fraud"]], axis=1)
    assert found == pytest.approx(classifier.predict_proba().numpy(), abs=1e-7)

    other = with_few()
    other.edge_index = other.edge_index[:, 2:]
    loaded.write_predictions(tmp_path / "other.parquet", other)
    assert set(pq.read_table(tmp_path / "other.parquet")["split"].to_pylist()) == {None}


@pytest.mark.usefixtures("benchmark_data")
@pytest.mark.parametrize("name", ["minesweeper", "tolokers"])
def test_benchmarks_that_are_compared_by_auroc(name: str, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    data = load(name)
    problem = Problem.of(data, Config.of("dgt").replace(encoding="none"))
    assert data.train_mask.shape == (data.num_nodes, 10)
    assert problem.facts.metric == "auroc"
    assert problem.facts.positive == 1
    share = float((data.y == 1).double().mean())
    assert share == pytest.approx(0.2 if name == "minesweeper" else 0.218, abs=0.001)
    assert caplog.text == ""


@pytest.mark.parametrize("setting", [{"class_weight": "balanced"}, {"threshold": 0.3}])
def test_settings_that_a_task_does_not_use_are_refused(setting: dict) -> None:
    data = block_graph()
    data.y = data.x[:, 0].clone()
    (name,) = setting
    with pytest.raises(InputError, match=f"{name}: got .*, which task regression does not use"):
        NodeRegressor(**QUICK, **setting).fit(data)


def test_numbers_that_are_taken_for_classes_come_with_advice() -> None:
    y, numbers = torch.arange(20), [f"{n}.5" for n in range(20)]
    with pytest.raises(InputError, match=r"test\); to predict numbers, set --task regression"):
        random_split(y, 0, numbers)
    with pytest.raises(InputError, match=r"test\)$"):
        random_split(y, 0, [*numbers[:19], "a"])
    with pytest.raises(InputError, match=r"test\)$"):
        random_split(y[:2], 0, ["0", "1"])
