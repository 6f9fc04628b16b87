"""The final comparison with the defaults, budgets, and the labels that a search may see."""

import json
from collections import Counter
from typing import Any

import pytest
import torch

from dgt.config import Config, read_toml
from dgt.data.labels import is_labeled
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.estimator import model as estimator
from dgt.training.problem import Problem
from dgt.tune import schedule, search, search_models
from dgt.tune.worker import Job
from tests.small import QUICK, block_graph
from tests.tune.test_rungs import graph, records, train_by

__all__ = ["graph"]


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_the_defaults_are_in_the_final_comparison(graph, tmp_path, monkeypatch):
    """Fresh splits for all finalists, trained to the end: lr is better the larger it is."""
    jobs = train_by(monkeypatch, lambda settings, split, epoch: settings["lr"] + 0.001 * split)
    found = search(graph, Config(), tmp_path, trials=20, runs=2, final_runs=3, workers=1)
    final = [job for job in jobs if job.config.train.split_index >= 2]
    assert all(not job.rungs and not job.least for job in final)
    tried = Counter(json.dumps(as_json(job.settings), sort_keys=True) for job in final)
    assert set(tried.values()) == {3}
    assert len(tried) == 4
    sources = [each["source"] for each in found["final"]]
    assert sources.count("defaults") == 1
    assert found["fresh"]
    assert found["better"]
    assert found["val_accuracy"] == pytest.approx(found["settings"]["lr"] + 0.003)
    assert found["val_accuracy_at_start"] == pytest.approx(0.01 + 0.003)
    assert found["val_accuracy_std"] == pytest.approx(0.001)
    best = max(r["settings"]["lr"] for r in records(tmp_path) if r["state"] == "complete")
    assert found["settings"]["lr"] == best
    text = (tmp_path / "colors-dgt-plus.toml").read_text()
    assert "the mean of 3 runs (defaults: 1.30%): the best of 20 trials" in text
    report = (tmp_path / "report.md").read_text()
    assert "Final comparison" in report
    assert "defaults 1.30%, better in 3 of 3" in report


@pytest.mark.parametrize(
    ("kind", "places"),
    [
        ("random", ["split and seed 1", "split and seed 2"]),
        ("given", ["seed 1", "seed 2"]),
        ("published", ["split 1, seed 0", "split 0, seed 1"]),
    ],
)
def test_progress_names_the_run_of_a_single_value(kind, places, tmp_path, monkeypatch, capsys):
    """A search with one run, and two further ones; here are two published splits."""
    data = block_graph()
    part = torch.arange(90) % 5 % 3
    if kind != "random":
        data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    if kind == "published":
        for name in ("train_mask", "val_mask", "test_mask"):
            data[name] = torch.stack([data[name]] * 2, dim=1)
    torch.save(data, tmp_path / "own.pt")
    train_by(monkeypatch, lambda settings, split, epoch: settings["lr"])
    given = {"trials": 2, "runs": 1, "final_runs": 2, "workers": 1, "progress": True}
    search(str(tmp_path / "own.pt"), Config.of("dgt"), tmp_path / "out", **given)
    shown = capsys.readouterr().err
    assert "searching settings of dgt on own: 2 trials, one run each\n" in shown
    assert ": val 1.00%, one run; best 1.00% (the defaults)" in shown
    for number, place in enumerate(places, start=1):
        assert f"final comparison, trial 0, run {number} of 2 ({place}): val 1.00%" in shown


def test_the_defaults_are_kept_if_nothing_is_better(graph, tmp_path, monkeypatch):
    """Here the splits of the search mislead: on the others, all settings are alike."""

    def curve(settings, split, epoch):
        return settings["lr"] if split < 2 else 0.5

    train_by(monkeypatch, curve)
    found = search(graph, Config.of("dgt"), tmp_path, trials=12, runs=2, final_runs=3, workers=1)
    assert max(r["val_accuracy"] or 0 for r in records(tmp_path)) > 0.01
    assert not found["better"]
    assert found["changed"] == {}
    written = Config.from_dict(read_toml(tmp_path / "colors-dgt.toml"))
    assert written == Config.of("dgt").replace(metric="accuracy")
    assert "No settings are better than the defaults" in (tmp_path / "report.md").read_text()
    assert "the defaults, which none of 12 trials" in (tmp_path / "colors-dgt.toml").read_text()


def test_a_final_comparison_that_was_killed_continues(graph, tmp_path, monkeypatch):
    def curve(settings, split, epoch):
        return settings["lr"] + 0.001 * split

    whole = {"trials": 8, "runs": 1, "final_runs": 3, "workers": 1}
    jobs = train_by(monkeypatch, curve)
    expected = search(graph, Config(), tmp_path / "whole", **whole)
    total = len(jobs)

    def killed(settings: dict[str, Any], split: int, epoch: int) -> float:
        if len(jobs) == total - 4:
            raise KeyboardInterrupt
        return curve(settings, split, epoch)

    jobs = train_by(monkeypatch, killed)
    with pytest.raises(KeyboardInterrupt):
        search(graph, Config(), tmp_path / "killed", **whole)
    before = len(jobs) - 1
    jobs = train_by(monkeypatch, curve)
    found = search(graph, Config(), tmp_path / "killed", **whole, resume=True)
    assert len(jobs) == total - before  # nothing is trained twice
    assert found["final"] == expected["final"]
    assert records(tmp_path / "killed") == records(tmp_path / "whole")
    assert search(graph, Config(), tmp_path / "killed", **whole)["final"] == expected["final"]
    assert len(jobs) == total - before
    with pytest.raises(InputError, match="contains no search to resume"):
        search(graph, Config(), tmp_path / "nowhere", **whole, resume=True)
    assert not (tmp_path / "nowhere").exists()


def test_each_model_gets_the_same_cpu_time(graph, tmp_path, monkeypatch):
    """One model takes ten times as long for a run, so that it gets a tenth of the runs."""
    seconds = {"gcn": 2.0, "mlp": 20.0}

    jobs = train_by(monkeypatch, lambda settings, split, epoch: settings["lr"])
    plain = schedule.train_once

    def slow(job: Job) -> Any:
        made = plain(job)
        model = job.config.model.model
        object.__setattr__(made, "cpu_seconds", seconds[model])
        object.__setattr__(made, "seconds", seconds[model])
        return made

    monkeypatch.setattr("dgt.tune.schedule.train_once", slow)
    configs = {tmp_path / model: Config.of(model) for model in seconds}
    given = {"runs": 1, "final_runs": 2, "workers": 1}
    search_models(graph, configs, cpu_minutes=10, **given)
    used = Counter()
    for job in jobs:
        used[job.config.model.model] += seconds[job.config.model.model]
    for model, each in seconds.items():
        assert 600 <= used[model] < 600 + each + 1e-9
    # The end of the budget was for the final comparison.
    assert all(sum(j.config.train.split_index > 0 for j in jobs if j.config.model.model == m) == 8
               for m in seconds)  # fmt: skip
    count = len(jobs)
    search_models(graph, configs, cpu_minutes=10, **given)
    assert len(jobs) == count  # the budget includes earlier searches
    search_models(graph, configs, cpu_minutes=20, **given)
    assert len(jobs) > 1.5 * count


def test_no_label_of_a_test_node_is_seen(tmp_path, monkeypatch):
    """Training gets them hidden, whatever it does with labels."""
    data = block_graph()
    part = torch.arange(90) % 5 % 3
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    seen = []

    def train(*arguments, **given):
        seen.append((given["y"], given["train_mask"] | given["val_mask"]))
        return real(*arguments, **given)

    real = estimator.fit_members
    monkeypatch.setattr(estimator, "fit_members", train)
    config = Config.of("dgt-plus").replace(**QUICK | {"epochs": 2})
    made = NodeClassifier(config)
    value = made.validate(data)
    ((y, visible),) = seen
    assert (y[~visible] == -1).all()
    assert (y[visible] >= 0).all()
    assert not hasattr(made, "metrics_")
    assert data.y.min() >= 0  # the graph itself is not changed
    fitted = NodeClassifier(config).fit(data)
    assert value == fitted.metrics_["val"]["accuracy"]  # and the result is that of training


def test_labels_of_every_task_are_hidden():
    for task, y in (
        ("regression", torch.randn(90)),
        ("multilabel", torch.eye(3).long()[torch.arange(90) % 3]),
    ):
        data = block_graph()
        data.y = y
        data.class_names = None
        part = torch.arange(90) % 5 % 3
        data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
        problem = Problem.of(data, Config.of("mlp").replace(task=task))
        problem.hide_test_labels()
        assert torch.equal(is_labeled(problem.data.y), ~data.test_mask)
