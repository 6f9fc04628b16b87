"""``dgt evaluate``."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dgt.cli.options import (
    Device,
    Flag,
    Json,
    Modules,
    Threads,
    check_replaceable,
    graph_of,
    print_json,
    use_threads,
)


def evaluate(
    run: Path,
    graph: str | None = None,
    /,
    *,
    by: str | None = None,
    out: Path | None = None,
    overwrite: Flag = False,
    modules: Modules = (),
    json_: Json = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Evaluate a trained model: metrics by split and class, and the confusion matrix.

    Args:
        run: Folder created by dgt train.
        graph: Name of a benchmark or a path. Default: the graph that the model was trained on. If
            it does not contain the training graph, all of its labeled nodes are evaluated.
        by: Column of the node table. The test nodes are also evaluated for each of its values.
        out: Output file: .json with everything, or .csv or .tex with a row per class.
        overwrite: Replace the file --out, if it exists. The files of the graph and the run's
            metrics are never replaced.
    """
    use_threads(threads)

    from dgt.data import graph_files, load
    from dgt.estimator import load_estimator
    from dgt.report.evaluation import check_path, evaluation, groups_of, write_evaluation
    from dgt.runs.files import METRICS

    if out is not None:
        check_path(out)
    classifier = load_estimator(run, device)
    config, name = classifier.config, graph_of(run, graph)
    if out is not None:
        check_replaceable(out, [*graph_files(name), run / METRICS], overwrite)
    data = load(name, config.train.splits, config.data)
    inside = classifier.inspect(data)
    groups = None if by is None else groups_of(data, by, inside.ids)
    found = evaluation(inside, groups)
    if out is not None:
        write_evaluation(out, found)
    if json_:
        print_json(found)
        return
    _show(found, by)
    if out is not None:
        print(f"evaluation in {out}")


def _show(found: dict[str, Any], by: str | None) -> None:
    """Prints the metrics of all parts and groups, and the classes of the last part."""
    from dgt.evaluate import METRICS

    console = Console()
    for title, kind in (("nodes", "parts"), (by, "groups")):
        measured = found.get(kind)
        if not measured:
            continue
        names = list(dict.fromkeys(name for each in measured.values() for name in each["metrics"]))
        # Narrow enough for a terminal of 80 columns.
        heads = (name.replace("-", "-\n") for name in names)
        table = Table(title or "", "count", *heads, padding=0)
        for name, each in measured.items():
            values = (each["metrics"].get(metric) for metric in names)
            texts = (
                "–" if value is None else METRICS[metric].text(value)
                for metric, value in zip(names, values, strict=True)
            )
            table.add_row(name, str(each["nodes"]), *texts)
        console.print(table)
    part, last = list(found["parts"].items())[-1]
    if "classes" in last:
        _show_classes(console, part, last)


def _show_classes(console: Console, part: str, measured: dict[str, Any]) -> None:
    columns = [name for name in measured["classes"][0] if name != "class"]
    table = Table("class", *(name.replace("_", " ") for name in columns), title=f"{part} nodes")
    for row in measured["classes"]:
        table.add_row(row["class"], *(_text(row[name]) for name in columns))
    console.print(table)
    names = [row["class"] for row in measured["classes"]]
    if len(names) <= 12:
        matrix = Table("label", *names, title="label (row) and prediction (column)")
        for name, counts in zip(names, measured["confusion"], strict=True):
            matrix.add_row(name, *map(str, counts))
        console.print(matrix)
    print(f"calibration error: {measured['calibration_error']:.2%}")


def _text(value: float | int | None) -> str:
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.2%}"
