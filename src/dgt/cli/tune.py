"""``dgt tune``."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table

from dgt.cli.options import (
    Count,
    FinalRuns,
    Flag,
    Hours,
    Json,
    Minutes,
    Modules,
    Quiet,
    Runs,
    Workers,
    print_json,
)
from dgt.cli.settings import (
    NO_FLAGS,
    SettingsFlags,
    explicit_settings,
    given_as_flags,
    require_used_flags,
    with_file,
)
from dgt.cli.train import load_graph
from dgt.config import Config
from dgt.errors import InputError

if TYPE_CHECKING:
    from dgt.report.sheet import Sheet


def tune(
    graph: str,
    /,
    *,
    models: list[str] | None = None,
    out: Path | None = None,
    trials: Count | None = None,
    hours: Hours | None = None,
    cpu_minutes: Minutes | None = None,
    runs: Runs = 3,
    final_runs: FinalRuns = 5,
    grid: Literal["paper"] | None = None,
    workers: Workers | None = None,
    config: Path | None = None,
    start: tuple[Path, ...] = (),
    resume: Flag = False,
    modules: Modules = (),
    json_: Json = False,
    quiet: Quiet = False,
    settings: SettingsFlags = NO_FLAGS,
) -> None:
    """Search for good settings on a graph.

    Trials are compared by their validation score; test nodes are never used. Bad trials are stopped
    early: at epochs 30, 90, 270, ... of a run, and after 1, 3, 9, ... runs, only the better half of
    the trials of a model goes on. The first trials use the defaults, the preset of a benchmark,
    settings that are strong on many graphs, and points of the paper's grid. At the end, the best
    three trials and the defaults are compared in further runs; the defaults are kept if nothing is
    better. Settings that are set explicitly, as a flag or in --config, are not searched. The same
    command continues an interrupted search.

    Args:
        graph: Name of a benchmark or a path, as for dgt train.
        models: Models to search settings for at the same time, instead of --model. They share the
            time equally.
        out: Output folder: the best settings as GRAPH-MODEL.toml, all trials in trials.jsonl, their
            history in history.png, the importance of each setting in importance.png (from 20
            trials on), a summary in report.md, and the state of the search. With --models, each
            model has a folder GRAPH-MODEL in it. Default: tune/GRAPH-MODEL.
        trials: Total number of trials per model, including those already in the folder. Default:
            50, or the whole grid; no limit with --hours or --cpu-minutes.
        hours: Stop after this time, such as 2 or 0.5. The end of it is for the final comparison.
        cpu_minutes: Stop after this CPU time of the workers per model, including that of earlier
            searches in the folder; at most one run more. Unlike --hours, it does not depend on what
            else the machine does.
        runs: Largest number of runs per trial, the first ones of dgt train --runs.
        final_runs: Number of further runs for the final comparison. 0: choose by --runs alone.
        grid: Search the paper's grid (for dgt: lr, weight decay, blocks and gamma, 162 points)
            exhaustively instead of sampling with Optuna's TPE. For most baselines, TPE samples from
            this grid, too; graph neural networks such as gcn have a larger space, with norm and
            skip.
        workers: Number of processes, with one thread each. Default: one per core.
        config: TOML file with settings that are not searched. Flags take precedence.
        start: TOML files with settings to try right after the defaults, such as the result of an
            earlier search.
        resume: Only continue an earlier search: raise an error if the folder has none.
    """
    chosen, fixed = settings.config(), explicit_settings()

    from dgt.data import short_name
    from dgt.tune import search_models

    def folder(model: str) -> str:
        return "-".join([short_name(graph), model, *([grid] if grid else [])])

    if models is None:
        configs = {out or Path("tune") / folder(chosen.model.model): chosen}
    else:
        configs = {
            (out or Path("tune")) / folder(each.model.model): each
            for each in _each_model(models, chosen, fixed, start)
        }
    require_used_flags(*configs.values())
    if "split" in given_as_flags():
        load_graph(graph, chosen)
    first = [with_file(chosen, path, fixed) for path in start]
    try:
        results = search_models(
            graph,
            configs,
            fixed=fixed,
            grid=grid,
            runs=runs,
            final_runs=final_runs,
            start=first,
            trials=trials,
            hours=hours,
            cpu_minutes=cpu_minutes,
            workers=workers,
            resume=resume,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to continue", file=sys.stderr)
        raise
    if json_:
        print_json(results[0] if models is None else results)
        return
    show_results(results)
    for place, found in zip(configs, results, strict=True):
        if "error" not in found:
            print(f"results in {place}")
            following = ["dgt", "train", graph, "--config", found["preset"]]
            following += [f"--import={module}" for module in modules]
            print(f"next: {shlex.join(following)}")


def _each_model(
    models: list[str], chosen: Config, fixed: tuple[str, ...], start: tuple[Path, ...]
) -> list[Config]:
    """Returns the settings of each model: its defaults, with those that were set explicitly."""
    if "model" in fixed or start:
        raise InputError("--models: cannot be combined with --model or --start")
    if not models:
        raise InputError("--models: expected at least one name")
    settings = chosen.flat()
    given = {name: settings[name] for name in fixed}
    return [Config.of(model).replace(**given) for model in dict.fromkeys(models)]


def show_results(results: list[dict[str, Any]]) -> None:
    """Prints what was gained and the importance of each setting, and compares several models."""
    from dgt.tune.comparison import comparison
    from dgt.tune.report import final_comparison, what_mattered

    console = Console()
    for found in results:
        if "error" not in found:
            if len(results) > 1:
                console.print(f"\n{found['model']}", style="bold")
            console.print(_table(final_comparison(found)))
            if (importances := what_mattered(found)) is not None:
                console.print(_table(importances))
    if len(results) > 1:
        console.print(_table(comparison(results)))


def _table(sheet: "Sheet") -> Table:
    """Renders a table with settings, whose cells may be long."""
    table = Table(*sheet.columns, title=sheet.title, caption="\n".join(sheet.notes))
    for row in sheet.rows:
        table.add_row(*row)
    return table
