"""``dgt tune``: searches for the settings of one or several models in a number of trials or hours.

Worker processes only train, one run at a time each. The model that has used the least of their time
gets the next free one, so that several models share it equally.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgt.config import Config, presets, read_preset
from dgt.data import load
from dgt.errors import InputError
from dgt.runs.many import canonical
from dgt.runs.plan import plan_on
from dgt.system.workers import cores, processes
from dgt.training.problem import Problem
from dgt.tune.display import display, quiet
from dgt.tune.figures import write_figures
from dgt.tune.folder import claim, identity
from dgt.tune.report import write_report
from dgt.tune.space import search_space
from dgt.tune.trials import Attempt, Trials
from dgt.tune.worker import Outcome, train_once

DEFAULT_TRIALS = 50
NO_LIMIT = 10**9


def search(graph: str, config: Config, out: Path, **arguments: Any) -> dict[str, Any]:
    """Searches for the best settings of one model, see :func:`search_models`."""
    (found,) = search_models(graph, {out: config}, **arguments)
    return found


def search_models(
    graph: str,
    configs: dict[Path, Config],
    *,
    fixed: tuple[str, ...] = (),
    grid: str | None = None,
    runs: int = 3,
    start: Iterable[Config] = (),
    trials: int | None = None,
    hours: float | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> list[dict[str, Any]]:
    """Searches for the best settings, or continues the searches in the folders.

    Args:
        graph: Name of a benchmark, or a path.
        configs: For each model, the folder of its search and the settings that are not searched,
            which are also those of the first trial. The seed is also the seed of the search.
        fixed: Names of settings that keep their value.
        grid: "paper": try every point of the paper's grid once, instead of sampling.
        runs: Largest number of runs per trial, see :func:`dgt.runs.plan.plan`.
        start: Additional settings that are tried first.
        trials: Total number of trials per model, including earlier ones in its folder (default: 50,
            or the whole grid; without a limit if there is one for the time).
        hours: Stop after this time.
        workers: Number of processes (default: one per core).
        progress: Show progress on stderr.

    Returns:
        For each model, the best settings, the file with them, the best trials and the importance of
        each setting. If all trials of one of several models fail, the model and the error.
    """
    until = None if hours is None else time.monotonic() + 3600 * hours
    with quiet(), ExitStack() as stack:
        searches = []
        for out, config in configs.items():
            data = load(graph, config.train.splits, config.data)
            problem = Problem.of(data, config)
            follows = _follows(problem.config, config)
            config = config.replace(metric=problem.facts.metric, **follows)
            space = search_space(config, grid, fixed)
            facts = identity(canonical(graph), config, space, grid, runs)
            study = stack.enter_context(claim(out, facts))
            planned = plan_on(data, config, runs)
            made = Trials(study, canonical(graph), config, planned, space, out)
            given = [each.by_rule(follows) for each in start]
            given += _preset(graph, config, fixed, follows)
            made.begin([] if grid else [config, *given], grid)
            total = trials or (DEFAULT_TRIALS if hours is None else NO_LIMIT)
            if grid:
                total = min(trials or NO_LIMIT, made.planned())
            searches.append(_Share(made, total))
        _train(searches, workers or cores(), until, progress)
        return [_finish(each, alone=len(searches) == 1) for each in searches]


@dataclass
class _Share:
    """A search, its number of trials and the time that it has used."""

    trials: Trials
    total: int
    seconds: float = 0.0
    running: dict[Future[Outcome], float] = field(default_factory=dict)
    """When each of its runs was started."""
    error: InputError | None = None

    def used(self) -> float:
        now = time.monotonic()
        return self.seconds + sum(now - started for started in self.running.values())

    def wants_more(self) -> bool:
        return self.error is None and self.trials.done + len(self.running) < self.total


def _train(searches: Sequence[_Share], workers: int, until: float | None, progress: bool) -> None:
    """Trains until all trials are finished or the time is used up. Runs that are not finished then
    are ended; their trials are repeated when the search is continued."""
    if not any(each.wants_more() for each in searches):
        return
    running: dict[Future[Outcome], tuple[_Share, Attempt]] = {}

    def left() -> float | None:
        return None if until is None else max(0.0, until - time.monotonic())

    def next_search() -> _Share | None:
        waiting = [each for each in searches if each.wants_more()]
        return min(waiting, key=_Share.used) if waiting and left() != 0 else None

    done, total = sum(each.trials.done for each in searches), sum(each.total for each in searches)
    with processes(workers) as pool, display(done, total, until, progress) as show:

        def train(own: _Share, attempt: Attempt) -> None:
            graph, config = own.trials.graph, attempt.next
            task = pool.submit(train_once, graph, config, attempt.settings)
            running[task] = own, attempt
            own.running[task] = time.monotonic()

        def finish(future: Future[Outcome]) -> None:
            own, attempt = running.pop(future)
            own.seconds += time.monotonic() - own.running.pop(future)
            try:
                if own.trials.add_result(attempt, future):
                    train(own, attempt)
                    return
            except InputError as error:
                own.error = error
            own.trials.write()
            name = f"{own.trials.config.model.model}: " if len(searches) > 1 else ""
            last, best = own.trials.last(attempt.trial.number), own.trials.leader()
            show(sum(each.trials.done for each in searches), name, last, best)

        def put_back() -> None:
            for own, attempt in running.values():
                own.trials.put_back(attempt)

        try:
            while True:
                while len(running) < workers and (chosen := next_search()) is not None:
                    train(chosen, chosen.trials.ask())
                finished = wait(running, left(), FIRST_COMPLETED).done
                if not finished:
                    break
                for future in finished:
                    finish(future)
        except KeyboardInterrupt:
            put_back()
            raise
        put_back()


def _follows(used: Config, config: Config) -> dict[str, Any]:
    """Returns the settings that follow from the graph. The criteria and the direction of edges do
    so again in each run."""
    before = config.flat()
    return {
        name: value
        for name, value in used.flat().items()
        if value != before[name] and name not in ("criteria", "directed")
    }


def _preset(
    graph: str, config: Config, fixed: tuple[str, ...], follows: dict[str, Any]
) -> list[Config]:
    """Returns the settings of the preset of a benchmark and a model, if there is one."""
    model = config.model.model
    if f"{graph}-{model}" not in presets():
        return []
    read = Config.from_dict(read_preset(graph, model), f"preset {graph}-{model}")
    found = read.by_rule(follows).flat()
    kept = (*fixed, "model", "seed", "split", "splits", "device")
    return [config.replace(**{name: v for name, v in found.items() if name not in kept})]


def _finish(own: _Share, alone: bool) -> dict[str, Any]:
    """Writes the report and the figures of a search, and returns its result."""
    try:
        if own.error is not None:
            raise own.error
        found = own.trials.summary()
    except InputError as error:
        if alone:
            raise
        reason = str(error).removeprefix(f"{own.trials.out}: ")
        return {"model": own.trials.config.model.model, "error": reason}
    write_figures(own.trials.study, found, own.trials.out)
    write_report(found, own.trials.out)
    return found
