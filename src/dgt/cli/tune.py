"""``dgt tune``."""

import shlex
import sys
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from dgt.cli.options import Count, Json, Modules, Quiet, Runs, Workers, print_json
from dgt.cli.settings import NO_FLAGS, SettingsFlags, explicit_settings, with_file


def tune(
    graph: str,
    /,
    *,
    out: Path | None = None,
    trials: Count | None = None,
    runs: Runs = 3,
    grid: Literal["paper"] | None = None,
    workers: Workers | None = None,
    config: Path | None = None,
    start: tuple[Path, ...] = (),
    modules: Modules = (),
    json_: Json = False,
    quiet: Quiet = False,
    settings: SettingsFlags = NO_FLAGS,
) -> None:
    """Search for good settings on a graph.

    Trials are compared by their mean validation score over a few runs; test nodes are never used.
    The first trial uses the defaults. Settings that are set explicitly, as a flag or in --config,
    are not searched. The same command continues an interrupted search.

    Args:
        graph: Name of a benchmark or a path, as for dgt train.
        out: Output folder: the best settings as GRAPH-MODEL.toml, all trials in trials.jsonl, their
            history in history.png, the importance of each setting in importance.png (from 20
            trials on), and the state of the search. Default: tune/GRAPH-MODEL.
        trials: Total number of trials, including those already in the folder. Default: 50, or the
            whole grid.
        runs: Number of runs per trial, the first ones of dgt train --runs. Trials that fall behind
            are stopped early.
        grid: Search the paper's grid (for dgt: lr, weight decay, blocks and gamma, 162 points)
            exhaustively instead of sampling with Optuna's TPE. For the baselines, TPE samples from
            this grid, too.
        workers: Number of processes, with one thread each. Default: one per core.
        config: TOML file with settings that are not searched. Flags take precedence.
        start: TOML files with settings to try right after the defaults, such as the result of an
            earlier search.
    """
    chosen, fixed = settings.config(), explicit_settings()

    from dgt.data import short_name
    from dgt.tune import search

    first = [with_file(chosen, path, fixed) for path in start]
    out = out or Path("tune") / "-".join(
        [short_name(graph), chosen.model.model, *([grid] if grid else [])]
    )
    try:
        found = search(
            graph,
            chosen,
            out,
            fixed=fixed,
            grid=grid,
            runs=runs,
            start=first,
            trials=trials,
            workers=workers,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to continue", file=sys.stderr)
        raise
    if json_:
        print_json(found)
        return
    show_trials(found)
    print(f"results in {out}")
    following = ["dgt", "train", graph, "--config", found["preset"]]
    following += [f"--import={module}" for module in modules]
    print(f"next: {shlex.join(following)}")


def show_trials(found: dict[str, Any]) -> None:
    """Prints the best trials and the importance of each setting."""
    from dgt.evaluate import METRICS
    from dgt.tune import describe

    metric = found["metric"]
    table = Table("trial", f"val {metric}", "settings")
    for trial in found["best"]:
        value = METRICS[metric].text(trial[f"val_{metric}"])
        table.add_row(str(trial["trial"]), value, describe(trial["settings"]))
    Console().print(table)
    if found["importances"]:
        table = Table("setting", "importance")
        for name, share in found["importances"].items():
            table.add_row(name, f"{share:.0%}")
        Console().print(table)
