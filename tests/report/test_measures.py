"""Numbers about predictions, against scikit-learn, SciPy and counting."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import f1_score, precision_score, recall_score

from dgt.evaluate import summarize
from dgt.report.measures import Outcome, by_class, by_group, calibration, confusion, wilson


def outcome(seed: int, nodes: int = 200) -> Outcome:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, nodes)
    predicted = np.where(rng.random(nodes) < 0.7, y, rng.integers(0, 4, nodes))
    return Outcome(y, predicted, rng.random(nodes))


def test_scores_by_class_over_runs():
    runs = [outcome(seed) for seed in range(3)]
    found = by_class(runs, 5)
    for c in range(4):
        each = {
            score: [score(o.y, o.predicted, labels=[c], average=None)[0] for o in runs]
            for score in (precision_score, recall_score, f1_score)
        }
        assert found[c].precision == pytest.approx(np.mean(each[precision_score]))
        assert found[c].recall == pytest.approx(np.mean(each[recall_score]))
        over = summarize(each[f1_score])
        assert (found[c].f1, found[c].f1_ci95) == pytest.approx((over["mean"], over["ci95"]))
        assert found[c].nodes == pytest.approx(np.mean([(o.y == c).sum() for o in runs]))
    assert found[4] == (0, None, None, None, None)  # a class without test nodes
    assert by_class(runs[:1], 4)[0].f1_ci95 is None


def test_a_class_that_is_never_predicted():
    (zero, one) = by_class([Outcome(np.array([0, 1]), np.array([0, 0]), np.ones(2))], 2)
    assert (zero.precision, zero.recall) == (0.5, 1)
    assert (one.precision, one.recall, one.f1) == (None, 0, 0)


def test_confusion_is_summed_over_runs():
    runs = [outcome(seed) for seed in range(2)]
    found = confusion(runs, 4)
    for a in range(4):
        for b in range(4):
            assert found[a, b] == sum(((o.y == a) & (o.predicted == b)).sum() for o in runs)


def test_calibration():
    y = np.zeros(6, dtype=int)
    predicted = np.array([0, 1, 0, 0, 0, 1])
    bins, error = calibration([Outcome(y, predicted, np.array([0.05, 0.55, 0.55, 0.6, 1.0, 1.0]))])
    assert [b.nodes for b in bins] == [1, 0, 0, 0, 0, 2, 1, 0, 0, 2]
    assert bins[5][3:] == pytest.approx((0.55, 0.5))
    assert bins[1].accuracy is None
    assert error == pytest.approx((0.95 + 2 * 0.05 + 0.4 + 2 * 0.5) / 6)


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (3, 10), (90, 100), (5, 5)])
def test_wilson_intervals(successes: int, trials: int):
    truth = binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson(successes, trials) == pytest.approx((truth.low, truth.high))


def test_groups():
    correct = np.array([True, False, True, True])
    (a, c) = by_group(correct, np.array([0, 0, 2, -1]), ["a", "b", "c"])
    assert (a.name, a.nodes, a.accuracy) == ("a", 2, 0.5)
    assert (c.name, c.nodes, c.accuracy) == ("c", 1, 1)
