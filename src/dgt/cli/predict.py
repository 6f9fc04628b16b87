"""``dgt predict``."""

import sys
from pathlib import Path

from dgt.cli.options import (
    Device,
    Flag,
    Modules,
    Quiet,
    Threads,
    check_replaceable,
    graph_of,
    use_threads,
)


def predict(
    run: Path,
    graph: str | None = None,
    /,
    *,
    out: Path,
    overwrite: Flag = False,
    modules: Modules = (),
    quiet: Quiet = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Predict the class of every node with a trained model.

    Args:
        run: Folder created by dgt train.
        graph: Name of a benchmark or a path. Default: the graph that the model was trained on.
        out: Output file, .csv or .parquet, with the columns id, prediction, probability, split and
            the probability of each class.
        overwrite: Replace the file --out, if it exists, even if dgt did not write it. The files of
            the graph and of the model are never replaced.
    """
    use_threads(threads)

    from dgt.data import graph_files, load
    from dgt.data.files import check_predictions_path
    from dgt.estimator import load_estimator
    from dgt.runs.files import CONFIG, MODEL

    check_predictions_path(out)
    classifier = load_estimator(run, device)
    name = graph_of(run, graph)
    check_replaceable(out, [*graph_files(name), run / CONFIG, run / MODEL], overwrite)
    data = load(name, classifier.config.train.splits, classifier.config.data, labeled=False)
    classifier.write_predictions(out, data, overwrite=overwrite)
    if not quiet:
        print(f"{data.num_nodes} predictions in {out}", file=sys.stderr)
