"""``dgt train``."""

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from dgt.cli.options import Flag, Json, Modules, Quiet, Runs, Threads, print_json, use_threads
from dgt.cli.settings import NO_FLAGS, SettingsFlags, given_as_flags, require_used_flags
from dgt.config import Config
from dgt.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data

# Besides the metric that selected the model, where accuracy alone could mislead.
SHOWN = ("average-precision", "f1", "macro-f1", "balanced-accuracy", "accuracy", "mae", "r2")


def train(
    graph: str,
    /,
    *,
    out: Path | None = None,
    runs: Runs = 1,
    config: Path | None = None,
    preset: Flag = False,
    resume: Flag = False,
    overwrite: Flag = False,
    report: Flag = False,
    modules: Modules = (),
    json_: Json = False,
    quiet: Quiet = False,
    threads: Threads = None,
    settings: SettingsFlags = NO_FLAGS,
) -> None:
    """Train a model on a graph.

    Args:
        graph: Name of a benchmark (cora, citeseer, chameleon, squirrel, actor, chameleon-filtered,
            squirrel-filtered, minesweeper, tolokers, ogbn-arxiv, twitch-gamers, reddit), a
            synthetic graph such as
            synthetic:arxiv or synthetic:nodes=1e6,edges=1e7, or the path of a folder or of an
            .npz, .pt, .graphml, .gexf or .mtx file.
        out: Output folder. Default: runs/GRAPH-1, or the next free number.
        runs: Number of runs with different splits and seeds. Prints their mean, standard deviation
            and 95% confidence interval.
        config: TOML file with settings. Flags take precedence.
        preset: Use the tuned settings that dgt ships for this benchmark and --model. Flags and
            --config take precedence.
        resume: Continue the run in --out with the settings it was started with. If there is none
            yet, a new run is started.
        overwrite: Replace the run in --out.
        report: Also write a report as report.html in --out, see dgt report --help.
    """
    chosen = settings.config()
    require_used_flags(chosen)
    if resume and out is None:
        raise InputError("--resume: requires --out, the folder of the run to continue")
    if resume and overwrite:
        raise InputError("--resume and --overwrite are mutually exclusive")
    if report and chosen.train.task != "classification":
        raise InputError(f"--report: the task is {chosen.train.task}; only classes can be reported")
    use_threads(threads)
    if report:
        from dgt.report.page import require_packages

        require_packages()

    from dgt.runs import files
    from dgt.runs.many import canonical, free_folder, train_runs
    from dgt.training import distributed

    if distributed.restarted() and out is not None:
        resume, overwrite = True, False
    try:
        with distributed.job(), ExitStack() as stack:
            if out is None:
                new = free_folder(graph)
                out = distributed.by_first(lambda: stack.enter_context(new))
            complete = resume and (out / files.METRICS).is_file()
            metrics = train_runs(
                load_graph(graph, chosen),
                chosen,
                out,
                graph=canonical(graph),
                runs=runs,
                resume=resume,
                overwrite=overwrite,
                progress=not quiet and distributed.rank() == 0,
            )
    except KeyboardInterrupt:
        if out is not None and (out / files.CONFIG).is_file():
            again = ["dgt", "train", graph, "--out", str(out), "--resume"]
            again += ["--runs", str(runs)] if runs > 1 else []
            again += [f"--import={module}" for module in modules]
            print(f"\ninterrupted; to continue: {shlex.join(again)}", file=sys.stderr)
        elif distributed.rank() == 0:
            print("\ninterrupted before the first checkpoint; nothing was kept", file=sys.stderr)
        raise
    if distributed.rank() > 0:
        return
    if complete:
        print(f"{out}: the run is already complete", file=sys.stderr)
    if report:
        from dgt.report.page import write_report

        write_report([out], out / files.REPORT)
    if json_:
        print_json(metrics)
        return
    show_metrics(metrics)
    print(f"results in {out}{f', report in {out / files.REPORT}' if report else ''}")
    first = out / "run-00" if runs > 1 else out
    following = ["dgt", "predict", str(first), "--out", "predictions.csv"]
    following += [f"--import={module}" for module in modules]
    print(f"next: {shlex.join(following)}")


def load_graph(graph: str, chosen: Config) -> "Data":
    """Loads the graph. Raises an error if --split has no meaning for it."""
    from dgt.data import load
    from dgt.data.splits import require_several

    data = load(graph, chosen.train.splits, chosen.data)
    if "split" in given_as_flags():
        require_several(data, chosen.train.splits, "--split")
    return data


def show_metrics(metrics: dict[str, Any]) -> None:
    """Prints the metric that selected the model, for the train, val and test nodes. If accuracy
    alone could mislead, other metrics are printed, too."""
    from dgt.evaluate import METRICS

    chosen, several = metrics["metric"], "runs" in metrics
    names = [chosen]
    if chosen != "accuracy" or metrics.get("rare_classes"):
        shown = (name for name in SHOWN if name in metrics["test"])
        names = list(dict.fromkeys([chosen, *shown]))
    table = Table(
        "nodes", *(c for n in names for c in [n, *(["std", "95% CI"] if several else [])])
    )
    for part in ("train", "val", "test"):
        row = []
        for name in names:
            text = METRICS[name].text
            row.append(text(metrics[part][name]) if name in metrics[part] else "undefined")
            for spread in ("std", "ci95") if several else ():
                row.append(f"± {text(metrics[f'{part}_{spread}'].get(name) or 0.0)}")
        table.add_row(part, *row)
    Console().print(table)
    if metrics.get("positive") is not None and len(names) > 1:
        threshold = metrics.get("threshold")
        from_on = (
            "" if threshold is None else f", predicted from a probability of {threshold:.4g} on"
        )
        print(f"positive class: {metrics['positive']}{from_on}")
