"""Successive halving over epochs: which runs are stopped, and what becomes of them."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dgt.config import Config
from dgt.tune import search
from dgt.tune.rungs import Stopped, Watch, after_epochs, after_runs, least_to_go_on
from dgt.tune.worker import Job, Outcome, train_once
from tests.small import QUICK, block_graph, write_folder

Curve = Callable[[dict[str, Any], int, int], float]
"""The best validation value so far by settings, split and epoch."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph()))


def train_by(monkeypatch: pytest.MonkeyPatch, curve: Curve, epochs: int = 100) -> list[Job]:
    """Replaces training by a curve that the real watch looks at; lists the runs."""
    seen: list[Job] = []

    def train(job: Job) -> Outcome:
        seen.append(job)
        watch = Watch(job.rungs, job.least, larger_is_better=True)
        split = job.config.train.split_index
        for epoch in range(1, epochs + 1):
            best = curve(job.settings, split, epoch)
            try:
                watch(epoch, best)
            except Stopped:
                return Outcome(None, epoch, epoch, watch.reached, epoch)
        watch.finish(best)
        return Outcome(best, epochs, epochs, watch.reached, epochs)

    @contextmanager
    def threads(count: int, begin: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(count) as pool:
            yield pool

    monkeypatch.setattr("dgt.tune.schedule.train_once", train)
    monkeypatch.setattr("dgt.tune.schedule.processes", threads)
    return seen


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]


def test_rungs_are_powers_of_three():
    assert after_epochs(1000) == [30, 90, 270, 810]
    assert after_epochs(30) == []
    assert after_runs(10) == [1, 3, 9]
    assert after_runs(1) == []


@pytest.mark.parametrize("larger", [True, False])
def test_the_better_half_goes_on(larger: bool):
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert least_to_go_on(values[:4], larger) is None  # too few to compare with
    for own in (0.5, 1.5, 2.5, 3.0, 3.5, 9.0):
        least = least_to_go_on(values, larger)
        assert least is not None
        better = sum(other > own if larger else other < own for other in values)
        # of six trials, three go on
        assert (own >= least if larger else own <= least) == (better < 3)


def test_a_watch_stops_a_run_at_a_rung_only():
    watch = Watch((30, 90), {90: 0.5}, larger_is_better=True)
    for epoch in range(1, 90):
        watch(epoch, 0.4)
    with pytest.raises(Stopped):
        watch(90, 0.49)
    assert watch.reached == {30: 0.4, 90: 0.49}
    watch = Watch((30, 90), {90: 0.5}, larger_is_better=False)
    watch(30, 9.0)
    watch(90, 0.5)
    watch = Watch((30, 90, 270), {}, larger_is_better=True)
    watch(30, 0.3)
    watch.finish(0.6)  # it ended by itself before epoch 90
    assert watch.reached == {30: 0.3, 90: 0.6, 270: 0.6}


def test_bad_trials_are_stopped_by_their_curve(graph, tmp_path, monkeypatch):
    """A trial is as good as its lr, from the first epoch on and on each split."""

    def curve(settings, split, epoch):
        return settings["lr"] + 0.01 * split + 1e-4 * epoch

    train_by(monkeypatch, curve)
    search(graph, Config(), tmp_path, trials=40, runs=2, workers=1, final_runs=0)
    rows, stopped = records(tmp_path), 0
    for i, row in enumerate(rows):
        assert (row["val_accuracy"] is not None) == (row["state"] == "complete")
        if row.get("start"):
            assert row["state"] == "complete"
            continue
        others = [each["settings"]["lr"] for each in rows[:i]]
        better = sum(other > row["settings"]["lr"] for other in others)
        if len(others) >= 5 and better >= -(-(len(others) + 1) // 2):
            stopped += 1
            assert row["state"] == "pruned"
            assert row["stopped_at_epoch"] == 30
            assert row["values"] == []
            assert row["seconds"] == 30
        else:
            assert "30" in row["rungs"][0]
            assert row.get("stopped_at_epoch") != 30 or len(row["values"]) == 1
    assert stopped > 4
    best = max(r["settings"]["lr"] for r in rows if r["state"] == "complete")
    assert best == max(r["settings"]["lr"] for r in rows)


def test_a_run_that_was_stopped_counts_for_nothing_more(graph, tmp_path, monkeypatch):
    """Only complete trials are listed as the best ones and compared with the defaults."""

    def curve(settings: dict[str, Any], split: int, epoch: int) -> float:
        return 0.5 if settings["lr"] == 0.01 else 0.3 + settings["lr"]

    train_by(monkeypatch, curve)
    found = search(graph, Config(), tmp_path, trials=30, runs=2, workers=1, final_runs=0)
    rows = records(tmp_path)
    pruned = [r for r in rows if r["state"] == "pruned"]
    assert pruned
    assert found["states"]["complete"] == len(rows) - len(pruned)
    assert all(trial["state"] == "complete" for trial in found["best"])
    assert all(len(each["values"]) == 2 for each in found["final"])
    assert not found["better"]


def test_splits_are_compared_by_the_mean_so_far(graph, tmp_path, monkeypatch):
    """On the second split, the mean of both decides: a bad start there is forgiven if the first
    split was good enough."""
    jobs = train_by(
        monkeypatch, lambda settings, split, epoch: settings["lr"] if split == 0 else 0.02
    )
    search(graph, Config(), tmp_path, trials=30, runs=2, workers=1, final_runs=0)
    second = [j for j in jobs if j.config.train.split_index == 1 and j.least]
    assert second
    rows = records(tmp_path)
    for job in second:
        own = next(r for r in rows if r["settings"] == json.loads(json.dumps(job.settings)))
        others = [r for r in rows[: own["trial"]] if len(r["rungs"]) == 2]
        means = sorted(((r["values"][0] + r["rungs"][1]["30"]) / 2 for r in others), reverse=True)
        limit = means[-(-(len(means) + 1) // 2) - 1]
        assert (job.settings["lr"] + job.least[30]) / 2 == pytest.approx(limit)


def test_a_search_with_one_worker_is_repeatable(graph, tmp_path, monkeypatch):
    def curve(settings, split, epoch):
        return settings["lr"] * (1 + split) - 1 / epoch

    train_by(monkeypatch, curve)
    found = [
        search(graph, Config(), tmp_path / name, trials=20, runs=2, final_runs=2, workers=1)
        for name in ("one", "two")
    ]
    assert records(tmp_path / "one") == records(tmp_path / "two")
    assert found[0]["final"] == found[1]["final"]


def test_a_real_run_is_stopped_by_its_curve(graph):
    """No limit: it ends by itself. A limit that cannot be reached: it ends at the rung."""
    config = Config.of("mlp").replace(**QUICK | {"epochs": 6}, metric="accuracy")
    whole = train_once(Job(graph, config, {}, rungs=(2, 4)))
    assert whole.value is not None
    assert whole.epochs == 6
    assert set(whole.rungs) == {2, 4}
    same = train_once(Job(graph, config, {}, rungs=(2, 4), least={4: 0.0}))
    assert (same.value, same.rungs) == (whole.value, whole.rungs)
    stopped = train_once(Job(graph, config, {}, rungs=(2, 4), least={4: 1.1}))
    assert (stopped.value, stopped.epochs) == (None, 4)
    assert stopped.rungs == whole.rungs
