"""Metrics against scikit-learn and their definitions, summaries against SciPy."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn import metrics

from dgt.config import Config
from dgt.errors import InputError
from dgt.evaluate import METRICS, summarize


@pytest.fixture(scope="module")
def predicted() -> tuple[torch.Tensor, torch.Tensor]:
    """Returns probabilities of five classes and labels; the last class has no node."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 4, (200,), generator=generator)
    logits = torch.randn(200, 5, generator=generator).double()
    logits[torch.arange(200), labels] += 1
    return logits.softmax(dim=1), labels


def test_accuracy_against_scikit_learn(predicted):
    scores, labels = predicted
    assert METRICS["accuracy"].compute(scores, labels) == metrics.accuracy_score(
        labels, scores.argmax(1)
    )


def test_metrics_of_classes_against_their_definitions(predicted):
    scores, labels = predicted
    predictions = scores.argmax(1)
    recall, f1 = [], []
    for c in range(5):
        right = int(((predictions == c) & (labels == c)).sum())
        found, there = int((predictions == c).sum()), int((labels == c).sum())
        recall += [right / there] if there else []
        f1.append(2 * right / (found + there))
    assert METRICS["balanced-accuracy"].compute(scores, labels) == pytest.approx(np.mean(recall))
    assert METRICS["macro-f1"].compute(scores, labels) == pytest.approx(np.mean(f1))
    loss = torch.nn.functional.nll_loss(scores.log(), labels).item()
    assert METRICS["log-loss"].compute(scores, labels) == pytest.approx(loss)


def drawn(seed: int, classes: int, ties: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns random probabilities, with ties if asked for, and labels; with five classes, the last
    one has no node."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2 if classes == 2 else classes - 1, (97,), generator=generator)
    logits = torch.randn(97, classes, generator=generator).double()
    return (logits.round() if ties else logits).softmax(dim=1), labels


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ties", [False, True])
def test_two_classes_against_scikit_learn(seed: int, ties: bool):
    scores, labels = drawn(seed, 2, ties)
    y, p, found = labels.numpy(), scores[:, 1].numpy(), scores.argmax(1).numpy()
    truth = {
        "accuracy": metrics.accuracy_score(y, found),
        "balanced-accuracy": metrics.balanced_accuracy_score(y, found),
        "f1": metrics.f1_score(y, found),
        "macro-f1": metrics.f1_score(y, found, average="macro"),
        "auroc": metrics.roc_auc_score(y, p),
        "average-precision": metrics.average_precision_score(y, p),
        "log-loss": metrics.log_loss(y, p),
    }
    assert set(truth) == {name for name, metric in METRICS.items() if "binary" in metric.tasks}
    for name, value in truth.items():
        assert METRICS[name].value(name, scores, labels) == pytest.approx(value, abs=1e-12), name


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ties", [False, True])
def test_several_classes_against_scikit_learn(seed: int, ties: bool):
    scores, labels = drawn(seed, 5, ties)
    y, found = labels.numpy(), scores.argmax(1).numpy()
    there = np.eye(5)[y][:, :4]  # the last class has no node
    truth = {
        "accuracy": metrics.accuracy_score(y, found),
        "macro-f1": metrics.f1_score(y, found, average="macro", zero_division=0.0),
        "auroc": metrics.roc_auc_score(there, scores[:, :4], average="macro"),
        "average-precision": metrics.average_precision_score(there, scores[:, :4]),
        "log-loss": metrics.log_loss(y, scores, labels=range(5)),
    }
    for name, value in truth.items():
        assert METRICS[name].value(name, scores, labels) == pytest.approx(value, abs=1e-12), name
    assert "f1" not in [name for name, metric in METRICS.items() if "multiclass" in metric.tasks]


@pytest.mark.parametrize("seed", range(5))
def test_several_labels_against_scikit_learn(seed: int):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (60, 4), generator=generator)
    labels[:, 3] = 0  # without a node, and thus without a ranking
    scores = torch.rand(60, 4, generator=generator).double()
    y, found, ranked = labels.numpy(), (scores >= 0.5).long().numpy(), slice(0, 3)
    truth = {
        "accuracy": metrics.accuracy_score(y, found),
        "f1": metrics.f1_score(y, found, average="micro"),
        "macro-f1": metrics.f1_score(y, found, average="macro", zero_division=0.0),
        "auroc": metrics.roc_auc_score(y[:, ranked], scores[:, ranked]),
        "average-precision": metrics.average_precision_score(y[:, ranked], scores[:, ranked]),
        "log-loss": np.mean(
            [metrics.log_loss(y[:, c], scores[:, c], labels=[0, 1]) for c in range(4)]
        ),
    }
    assert set(truth) == {name for name, metric in METRICS.items() if "multilabel" in metric.tasks}
    for name, value in truth.items():
        assert METRICS[name].value(name, scores, labels) == pytest.approx(value, abs=1e-12), name


def test_regression_against_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randn(50, generator=generator).double()
    scores = labels[:, None] + torch.randn(50, 1, generator=generator)
    for name, function in (("mae", metrics.mean_absolute_error), ("r2", metrics.r2_score)):
        value = function(labels, scores[:, 0])
        assert METRICS[name].value(name, scores, labels) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("metric", [n for n, m in METRICS.items() if "binary" in m.tasks])
def test_better_scores_have_a_better_value(metric: str):
    scores, labels = drawn(0, 2, ties=False)
    sure = torch.nn.functional.one_hot(labels, 2).double() * 0.9 + 0.05
    good, bad = (METRICS[metric].compute(s, labels) for s in (sure, scores))
    assert (good > bad) == METRICS[metric].larger_is_better


@pytest.mark.parametrize("metric", [n for n, m in METRICS.items() if "binary" in m.tasks])
def test_metrics_with_a_single_class(metric: str):
    """Labels of one class and predictions of both give no warning. Rankings are not defined."""
    scores = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).double()
    labels = torch.tensor([1, 1])
    if metric in ("auroc", "average-precision"):
        with pytest.raises(InputError, match=f"'{metric}': got nan, expected a finite number"):
            METRICS[metric].value(metric, scores, labels)
    else:
        assert np.isfinite(METRICS[metric].value(metric, scores, labels))


def test_shares_are_shown_in_percent():
    assert METRICS["accuracy"].text(0.8765) == "87.65%"
    assert METRICS["log-loss"].text(0.8765) == "0.8765"
    assert METRICS["macro-f1"].text(0.8765, digits=1) == "87.6%"


def test_the_names_are_known_without_torch_and_scikit_learn():
    code = (
        "import sys, dgt.config; dgt.config.TrainConfig(metric='macro-f1'); "
        "print([m for m in ('torch', 'sklearn', 'scipy', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_summary_against_numpy_and_scipy():
    values = np.random.default_rng(0).uniform(0.7, 0.9, 30).tolist()
    summary = summarize(values)
    low, high = scipy.stats.t.interval(
        0.95, len(values) - 1, loc=np.mean(values), scale=scipy.stats.sem(values)
    )
    assert summary["mean"] == pytest.approx(np.mean(values))
    assert summary["std"] == pytest.approx(np.std(values, ddof=1))
    assert summary["ci95"] == pytest.approx((high - low) / 2)
    assert summary["runs"] == 30


def test_one_run_has_no_spread():
    assert summarize([0.5]) == {"mean": 0.5, "std": None, "ci95": None, "runs": 1}


def test_a_function_of_the_users_own_is_a_metric():
    scores, labels = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0])
    try:
        METRICS["first"] = lambda scores, labels: scores[0, 0]
        assert METRICS["first"].value("first", scores, labels) == pytest.approx(0.9)
        METRICS["broken"] = lambda scores, labels: "high"
        with pytest.raises(InputError, match="'broken': got 'high', expected a finite number"):
            METRICS["broken"].value("broken", scores, labels)
        with pytest.raises(InputError, match="register the function first"):
            Config.of("dgt").replace(metric=lambda scores, labels: 1.0)
    finally:
        for name in {"first", "broken"} & set(METRICS):
            del METRICS[name]
