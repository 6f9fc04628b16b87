"""``dgt report``."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from dgt.cli.options import Device, Flag, Modules, Quiet, Threads, check_replaceable, use_threads


def report(
    *runs: Path,
    out: Path = Path("report.html"),
    graph: str | None = None,
    map_: Annotated[Literal["pca", "tsne"], Parameter(name="--map")] = "pca",
    overwrite: Flag = False,
    modules: Modules = (),
    quiet: Quiet = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Write a report about a run, or about several runs side by side, as one HTML file.

    It shows the settings, training curves, metrics by class, the confusion matrix, calibration, the
    accuracy in different places of the graph, the most confident mistakes, what the attention rests
    on, and a map of the representations. The file needs no network. Needs the packages bokeh and
    jinja2: pip install 'deformable-graph-transformer[report]'.

    Args:
        runs: Folders created by dgt train, with one run or with several (--runs).
        out: Output file, .html.
        graph: Name of a benchmark or a path. Default: the graph that each run names.
        map_: Method of the map: pca is fast, tsne separates groups better.
        overwrite: Replace the file --out, if it exists.
    """
    use_threads(threads)

    from dgt.report.page import check_path, require_packages, write_report

    require_packages()
    check_path(out)
    check_replaceable(out, [], overwrite)
    write_report(list(runs), out, graph=graph, method=map_, device=device)
    if not quiet:
        print(f"report in {out}")
