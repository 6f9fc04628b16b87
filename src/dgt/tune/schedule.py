"""``dgt tune``: searches for the settings of one or several models in a number of trials or hours.

Worker processes only train, one run at a time each. The model that has used the least of their time
gets the next free one, so that several models share it equally.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dgt.config import Config, presets, read_preset
from dgt.data import load
from dgt.data.direction import is_directed
from dgt.errors import InputError
from dgt.runs.many import canonical
from dgt.runs.plan import plan_on
from dgt.system.workers import cores, processes
from dgt.training.problem import Problem
from dgt.tune.display import Display, quiet
from dgt.tune.figures import write_figures
from dgt.tune.final import Final
from dgt.tune.folder import claim, identity
from dgt.tune.records import DEFAULTS, GIVEN, PRESET
from dgt.tune.report import summary, write_report
from dgt.tune.share import Run, Share
from dgt.tune.space import search_space
from dgt.tune.trials import Trials
from dgt.tune.unfinished import reason
from dgt.tune.worker import Board, Outcome, train_once, use_board

DEFAULT_TRIALS = 50
DEFAULT_FINAL_RUNS = 5
NO_LIMIT = 10**9
TICK = 0.5  # seconds between two updates of the display


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
    final_runs: int = DEFAULT_FINAL_RUNS,
    start: Iterable[Config] = (),
    trials: int | None = None,
    hours: float | None = None,
    cpu_minutes: float | None = None,
    workers: int | None = None,
    resume: bool = False,
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
        final_runs: Number of further runs in which the best trials are compared with the defaults.
            0: choose by the runs of the trials.
        start: Additional settings that are tried first.
        trials: Total number of trials per model, including earlier ones in its folder (default: 50,
            or the whole grid; without a limit if there is one for the time).
        hours: Stop after this time.
        cpu_minutes: Stop after this CPU time of the workers per model, including that of earlier
            searches in its folder. At most one run per model exceeds it.
        workers: Number of processes (default: one per core).
        resume: Raise an error unless there is a search in each folder.
        progress: Show progress on stderr.

    Returns:
        For each model, the best settings, the file with them, the best trials and the importance of
        each setting. If all trials of one of several models fail, the model and the error.
    """
    until = None if hours is None else time.monotonic() + 3600 * hours
    workers = workers or cores()
    with quiet(), ExitStack() as stack:
        searches = []
        for out, config in configs.items():
            if config.train.members > 1:
                raise InputError(
                    f"members: got {config.train.members}, expected 1: a search compares single "
                    "networks; train with its result and several members"
                )
            data = load(graph, config.train.splits, config.data)
            problem = Problem.of(data, config)
            follows = _follows(problem.config, config)
            config = config.replace(metric=problem.facts.metric, **follows)
            directed = is_directed(problem.data)
            space = search_space(config, grid, fixed, directed)
            if "criteria" in space and not config.record.single_criterion:
                config = config.replace(criteria=problem.config.criteria)
                space = search_space(config, grid, fixed, directed)
            facts = identity(canonical(graph), config, space, grid, runs)
            study = stack.enter_context(claim(out, facts, resume))
            planned = plan_on(data, config, runs + final_runs)
            made = Trials(study, canonical(graph), config, planned[:runs], space, out)
            given = [_with_criteria(each.by_rule(follows), config) for each in start]
            preset = _preset(graph, config, fixed, follows)
            made.begin({DEFAULTS: [config], GIVEN: given, PRESET: preset}, grid)
            limited = hours is not None or cpu_minutes is not None
            total = trials or (NO_LIMIT if limited else DEFAULT_TRIALS)
            if grid:
                total = min(trials or NO_LIMIT, made.planned())
            given_split = problem.splits == "given"
            searches.append(Share(made, Final(made, planned[runs:]), total, given_split))
        for share in searches:
            if cpu_minutes is not None:
                share.budget, share.cpu = 60 * cpu_minutes, True
            elif hours is not None:
                share.budget = 3600 * hours * workers / len(searches)
        _train(searches, workers, until, progress)
        return [_finish(each, alone=len(searches) == 1) for each in searches]


def _train(searches: Sequence[Share], workers: int, until: float | None, progress: bool) -> None:
    """Trains until all searches are finished or the time is used up. Runs that are not finished
    then are ended; their trials are repeated when the search is continued."""
    running: dict[Future[Outcome], Run] = {}
    board = Board(workers)

    def left() -> float:
        return TICK if until is None else max(0.0, until - time.monotonic())

    def next_run() -> Run | None:
        for share in sorted(searches, key=Share.used):
            if left() > 0 and (run := share.next_run()) is not None:
                return run
        return None

    def start(pool: Executor, run: Run) -> None:
        run.slot = min(set(range(workers)) - {other.slot for other in running.values()})
        board.write(run.slot, 0, 0.0)
        running[pool.submit(train_once, replace(run.job, slot=run.slot))] = run

    first = next_run()
    if first is None:
        return
    begin = partial(use_board, board)
    with processes(workers, begin) as pool, Display(searches, board, until, progress) as display:
        try:
            start(pool, first)
            while True:
                while len(running) < workers and (run := next_run()) is not None:
                    start(pool, run)
                if not running:
                    break
                display.tick(running.values())
                for future in wait(running, min(TICK, left()), FIRST_COMPLETED).done:
                    run = running.pop(future)
                    display.finished(run, run.share.finish(run, future))
                if left() <= 0:
                    break
        finally:
            for run in running.values():
                run.share.put_back(run)
            for share in searches:
                share.close()


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
    kept = (*fixed, "model", "seed", "split", "splits", "device", "metric", "members")
    made = config.replace(**{name: v for name, v in found.items() if name not in kept})
    return [_with_criteria(made, config)]


def _with_criteria(given: Config, config: Config) -> Config:
    """Returns settings with those criteria that follow from the graph, unless they have others."""
    criteria = config.sequences.criteria
    if given.sequences.criteria is not None or criteria is None:
        return given
    return given.replace(criteria=criteria)


def _finish(own: Share, alone: bool) -> dict[str, Any]:
    """Writes the best settings, the report and the figures of a search, and returns its result."""
    try:
        if own.error is not None:
            raise own.error
        if not own.final.finalists():
            raise InputError(f"{own.trials.out}: no trial is complete: {reason(own, alone)}")
        found = summary(own.final)
    except InputError as error:
        if alone:
            raise
        text = str(error).removeprefix(f"{own.trials.out}: ")
        return {"model": own.trials.config.model.model, "error": text}
    write_figures(own.trials.study, found, own.trials.out)
    write_report(found, own.trials.out)
    return found
