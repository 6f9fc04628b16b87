"""The search for good settings on a graph, by validation accuracy alone.

Optuna chooses the settings and keeps every trial in a file, so that a search that was killed goes
on. A trial is trained on the same few splits, one after the other, as every other trial, and is
given up when it falls behind. Worker processes train; this one alone asks, judges and writes.
"""

import functools
import json
import logging
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from torch_geometric.data import Data

from dgt.config import Config
from dgt.datasets import load
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.files import write_text
from dgt.runs import canonical, plan
from dgt.space import LIGHT_SPACE, PAPER_GRID, SPACE, decode, encode, flat, points, suggest
from dgt.splits import choose
from dgt.workers import cores, processes

STUDY = "study.log"
SEARCH = "search.json"
TRIALS = "trials.jsonl"
DEFAULT_TRIALS = 50
# Complete trials before one may be given up, and before importances say anything.
PRUNE_FROM = 5
IMPORTANCE_FROM = 10
# The states of trials in trials.jsonl; a failed one is one that its process did not survive.
STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "interrupted",
}
DONE = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass
class Attempt:
    """A trial that is being trained."""

    trial: optuna.Trial
    configs: list[Config]
    accuracies: list[float] = field(default_factory=list)
    seconds: float = 0.0


def search(
    graph: str,
    config: Config,
    out: Path,
    *,
    fixed: tuple[str, ...] = (),
    grid: str | None = None,
    runs: int = 3,
    trials: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Searches settings, or goes on with the search in ``out``.

    Args:
        graph: A benchmark's name or a path.
        config: The settings that are not searched, and where the search begins.
        out: Folder for the search's files.
        fixed: Names of settings that keep their value of ``config``.
        grid: "paper": every point of the paper's grid once, instead of Optuna's choice.
        runs: Runs that a trial's accuracy is the mean of, as :func:`dgt.runs.plan` has them.
        trials: Trials in all, earlier ones in ``out`` included (default: 50, or the whole grid).
        workers: Number of processes (default: one for each core).
        progress: Show progress on stderr.

    Returns:
        The best settings, the file they are in, the best trials and how much each setting matters.
    """
    data = load(graph, config.train.splits)
    for each in plan(data, config, runs):
        choose(data, each.train.splits, each.train.split_index)
    space = search_space(config, grid, fixed)
    with _quiet(), _claim(out, _identity(canonical(graph), config, space, grid, runs)):
        study = _open(out)
        found = Search(study, graph, data, config, space, grid, runs, out)
        found.begin()
        found.write()
        found.run(trials, workers or cores(), progress)
        return found.summary()


def search_space(
    config: Config, grid: str | None = None, fixed: tuple[str, ...] = ()
) -> dict[str, BaseDistribution]:
    """What is searched for a model, without the settings that are fixed."""
    space = SPACE if config.model.model == "dgt" else LIGHT_SPACE
    if grid is not None:
        space = PAPER_GRID
    space = {name: values for name, values in space.items() if name not in fixed}
    if not space:
        raise InputError("every setting of the search is given; leave out one at least")
    return space


@dataclass
class Search:
    """A study and what its trials are trained on."""

    study: optuna.Study
    graph: str
    data: Data
    config: Config
    space: dict[str, BaseDistribution]
    grid: str | None
    runs: int
    out: Path

    @property
    def preset(self) -> Path:
        """The file of the best settings."""
        return self.out / f"{Path(self.graph).stem}-{self.config.model.model}.toml"

    def begin(self) -> None:
        """Settles what an interrupted search has left, and queues what is to be tried first."""
        for trial in self._trials(TrialState.RUNNING):
            self.study.tell(trial.number, state=TrialState.FAIL)
            if "again" not in trial.user_attrs:
                params = trial.system_attrs.get("fixed_params", trial.params)
                self.study.enqueue_trial(params, user_attrs={"again": True})
        first = [encode(self.config, self.space)]
        if self.grid is not None:
            first = points(self.space)
            random.Random(self.config.train.seed).shuffle(first)
        for params in first:
            self.study.enqueue_trial(params, skip_if_exists=True)

    def run(self, trials: int | None, workers: int, progress: bool) -> None:
        """Trains trials until there are ``trials`` in all, or the grid is at its end."""
        done = len(self._trials(*DONE))
        if self.grid is not None:
            trials = min(trials or sys.maxsize, done + len(self._trials(TrialState.WAITING)))
        total = DEFAULT_TRIALS if trials is None else trials
        if done >= total:
            return
        with processes(min(workers, total - done)) as pool, _display(total, progress) as show:
            running: dict[Future[tuple[float, float]], Attempt] = {}

            def submit(attempt: Attempt) -> None:
                config = attempt.configs[len(attempt.accuracies)]
                task = (canonical(self.graph), config)
                running[pool.submit(train_once, task)] = attempt

            while True:
                while len(running) < workers and done + len(running) < total:
                    attempt = self._ask()
                    if attempt is None:
                        done += 1
                        self.write()
                    else:
                        submit(attempt)
                if not running:
                    break
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    attempt = running.pop(future)
                    if self._judge(attempt, future):
                        submit(attempt)
                        continue
                    done += 1
                    self.write()
                    show(done, self._line(attempt.trial.number), self._best_line())

    def write(self) -> None:
        """Writes ``trials.jsonl`` and the best settings, both as the study has them."""
        finished = self._trials(*STATES)
        lines = [json.dumps(_record(trial)) + "\n" for trial in finished]
        write_text(self.out / TRIALS, "".join(lines))
        best = self._best()
        if best:
            config = self.config.replace(**decode(best[0].params))
            note = (
                f"# Validation accuracy {best[0].value:.2%}, the mean of {self.runs} runs: "
                f"the best of {len(self._trials(*DONE))} trials of dgt tune.\n"
            )
            write_text(self.preset, note + preset(config))

    def summary(self) -> dict[str, Any]:
        best = self._best()
        if not best:
            errors = [t.user_attrs["error"] for t in self._trials(*DONE) if t.user_attrs]
            raise InputError(": ".join([str(self.out), "no trial was complete", *errors[-1:]]))
        return {
            "graph": canonical(self.graph),
            "model": self.config.model.model,
            "val_accuracy": best[0].value,
            "settings": decode(best[0].params),
            "preset": str(self.preset),
            "runs": self.runs,
            "trials": len(self._trials(*DONE)),
            "pruned": len(self._trials(TrialState.PRUNED)),
            "best": [_record(trial) for trial in best[:5]],
            "importances": self._importances(),
        }

    def _ask(self) -> Attempt | None:
        """The next trial; None if its settings do not go together."""
        # A sampler for each trial, so that a search that goes on does not draw the same again.
        seed = (self.config.train.seed + len(self.study.trials)) % 2**32
        self.study.sampler = optuna.samplers.TPESampler(
            multivariate=True, group=True, constant_liar=True, seed=seed
        )
        trial = self.study.ask()
        settings = suggest(trial, self.space, self.config)
        try:
            config = self.config.replace(**settings)
        except InputError as error:
            self._give_up(trial, error)
            return None
        return Attempt(trial, plan(self.data, config, self.runs))

    def _judge(self, attempt: Attempt, future: Future[tuple[float, float]]) -> bool:
        """Takes up what a run has come to; returns whether the trial goes on."""
        trial = attempt.trial
        try:
            accuracy, seconds = future.result()
        except InputError as error:
            self._give_up(trial, error)
            return False
        attempt.accuracies.append(accuracy)
        attempt.seconds += seconds
        trial.set_user_attr("val_accuracies", attempt.accuracies)
        trial.set_user_attr("seconds", round(attempt.seconds, 2))
        step, mean = len(attempt.accuracies), statistics.fmean(attempt.accuracies)
        trial.report(mean, step)
        if step == self.runs:
            self.study.tell(trial, mean)
        elif self._behind(mean, step):
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            return True
        return False

    def _behind(self, mean: float, step: int) -> bool:
        """Whether a mean is below the median of the complete trials after as many runs.

        Optuna's own pruner takes a trial's best mean so far instead: where the first split is the
        easiest, it would never give up a trial after it.
        """
        others = [t.intermediate_values[step] for t in self._trials(TrialState.COMPLETE)]
        return len(others) >= PRUNE_FROM and mean < statistics.median(others)

    def _give_up(self, trial: optuna.Trial, error: InputError) -> None:
        # Pruned, not failed: so the sampler learns to keep away from such settings.
        trial.set_user_attr("error", str(error))
        self.study.tell(trial, state=TrialState.PRUNED)

    def _trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states)

    def _best(self) -> list[FrozenTrial]:
        return sorted(self._trials(TrialState.COMPLETE), key=lambda t: (-(t.value or 0), t.number))

    def _importances(self) -> dict[str, float]:
        if len(self._trials(TrialState.COMPLETE)) < IMPORTANCE_FROM:
            return {}
        return optuna.importance.get_param_importances(
            self.study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )

    def _line(self, number: int) -> str:
        trial = _record(self.study.trials[number])
        if "error" in trial:
            return f"failed: {trial['error']}"
        after = f", pruned after {len(trial['val_accuracies'])} of {self.runs} runs"
        return f"val {trial['val_accuracy']:.2%}{after if trial['state'] == 'pruned' else ''}"

    def _best_line(self) -> str:
        best = self._best()
        if not best:
            return ""
        start = flat(self.config)
        changed = {k: v for k, v in decode(best[0].params).items() if v != start[k]}
        return f"best {best[0].value:.2%} ({describe(changed) or 'the settings at the start'})"


@functools.cache
def _graph(graph: str, splits: str) -> Data:
    return load(graph, splits)


def train_once(task: tuple[str, Config]) -> tuple[float, float]:
    """Trains on a graph; returns the validation accuracy, and no other, and the seconds."""
    graph, config = task
    started = time.monotonic()
    classifier = NodeClassifier(config).fit(_graph(graph, config.train.splits), graph=graph)
    return classifier.metrics_["val_accuracy"], time.monotonic() - started


def preset(config: Config) -> str:
    """The model, and the settings that differ from the defaults, as TOML; no seed, no split."""
    defaults = Config().to_dict()
    lines = []
    for table, values in config.to_dict().items():
        kept = [
            f"{name} = {json.dumps(value)}"
            for name, value in values.items()
            if name == "model"
            or (name not in ("seed", "split") and value != defaults[table].get(name))
        ]
        lines += [f"[{table}]", *kept, ""] if kept else []
    return "\n".join(lines)


def describe(settings: dict[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(
        f"{name} {' '.join(value) if isinstance(value, list | tuple) else value}"
        for name, value in settings.items()
    )


def _record(trial: FrozenTrial) -> dict[str, Any]:
    """A trial's line in ``trials.jsonl``."""
    failed = {"error": trial.user_attrs["error"]} if "error" in trial.user_attrs else {}
    return {
        "trial": trial.number,
        "state": "failed" if failed else STATES[trial.state],
        "val_accuracy": trial.value if trial.state in DONE else None,
        "val_accuracies": trial.user_attrs.get("val_accuracies", []),
        "settings": decode(trial.params),
        "seconds": trial.user_attrs.get("seconds", 0.0),
        **failed,
    }


def _identity(
    graph: str,
    config: Config,
    space: dict[str, BaseDistribution],
    grid: str | None,
    runs: int,
) -> dict[str, Any]:
    """What must stay the same for as long as a search lasts."""
    searched = {name: json.loads(distribution_to_json(values)) for name, values in space.items()}
    return {"graph": graph, "runs": runs, "grid": grid, **flat(config), "space": searched}


@contextmanager
def _claim(out: Path, identity: dict[str, Any]) -> Iterator[None]:
    """Makes a folder this search's own for as long as it is at work."""
    path = out / SEARCH
    identity = json.loads(json.dumps(identity))
    if path.is_file():
        _require_same(out, json.loads(path.read_text()), identity)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is not a search's folder; choose an empty one, or a new name")
    else:
        write_text(path, json.dumps(identity, indent=2) + "\n")
    with open(out / STUDY, "ab") as file:
        _lock(file.fileno(), out)
        yield


def _require_same(out: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    before, now = before | before.pop("space"), now | now.pop("space")
    changed = [
        f"{name} was {before.get(name)!r}, now {now.get(name)!r}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise InputError(
            f"{out}: holds a search with other settings: {'; '.join(changed)}; "
            f"choose another folder with --out"
        )


def _lock(descriptor: int, out: Path) -> None:
    """Keeps a second search out of the folder; the system lets go of it when this process ends."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{out}: another search is at work in this folder") from None


def _open(out: Path) -> optuna.Study:
    path = out / STUDY
    # A line that was cut short, as by a power failure, would spoil the one after it.
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Optuna's notes to itself."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="optuna")
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def _display(total: int, enabled: bool) -> Iterator[Callable[[int, str, str], None]]:
    """Yields a function that shows a finished trial: a live bar on a terminal, else a line."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda done, trial, best: None
    elif not console.is_terminal:
        yield lambda done, trial, best: print(
            "; ".join(part for part in (f"trial {done}/{total}: {trial}", best) if part),
            file=sys.stderr,
        )
    else:
        with Progress(
            TextColumn("searching"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
        ) as bar:
            task = bar.add_task("", total=total)
            yield lambda done, trial, best: bar.update(task, completed=done, description=best)
