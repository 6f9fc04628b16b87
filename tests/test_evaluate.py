import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.metrics import accuracy_score

from dgt.evaluate import accuracy, summarize


def test_accuracy_against_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 4, (200,), generator=generator)
    predictions = torch.randint(0, 4, (200,), generator=generator)
    mask = torch.rand(200, generator=generator) < 0.3
    assert accuracy(predictions, y, mask) == accuracy_score(y[mask], predictions[mask])


def test_accuracy_of_no_node_is_none():
    y = torch.zeros(3, dtype=torch.int64)
    assert accuracy(y, y, torch.zeros(3, dtype=torch.bool)) is None


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
