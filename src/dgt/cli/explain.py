"""``dgt explain``."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dgt.cli.options import (
    Count,
    Device,
    Flag,
    Modules,
    Threads,
    check_replaceable,
    graph_of,
    use_threads,
)

if TYPE_CHECKING:
    from dgt.explain import Explanation


def explain(
    run: Path,
    node: str,
    /,
    *,
    graph: str | None = None,
    top: Count = 20,
    out: Path | None = None,
    overwrite: Flag = False,
    modules: Modules = (),
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Show the nodes that a node attends to most.

    The weights are those of the last block, summed over criteria and heads; the weights of all
    keys sum to 100%. Requires a model with attention over nodes.

    Args:
        run: Folder created by dgt train.
        node: Id of the node.
        graph: Name of a benchmark or a path, as for dgt predict, for instance of a graph with new
            nodes. Default: the graph that the model was trained on.
        top: Number of nodes to show.
        out: Output file for a figure, .png or .pdf.
        overwrite: Replace the file --out, if it exists, even if dgt did not write it.
    """
    use_threads(threads)

    from dgt.data import load
    from dgt.estimator import load_estimator

    if out is not None:
        from dgt.report import plots
        from dgt.report.attention_figure import attention

        plots.check_path(out)
        check_replaceable(out, [], overwrite)
    model = load_estimator(run, device)
    name, config = graph_of(run, graph), model.config
    data = load(name, config.train.splits, config.data, labeled=graph is None)
    found = model.inspect(data).explain(node, top)
    show_keys(found)
    if out is not None:
        plots.save(attention({f"Node {found.id}": found}), out)
        print(f"figure in {out}")


def show_keys(found: "Explanation") -> None:
    """Prints the keys of a node, one per row."""
    from dgt.report.display import shown

    label = "no label" if found.label is None else f"label {shown(found.label)}"
    table = Table("key", "weight", "hops", "label", "prediction")
    table.title = Text(f"Node {shown(found.id)}: {label}, prediction {shown(found.prediction)}")
    for key in found.keys:
        hops = "none" if key.hops is None else str(key.hops)
        own = "" if key.label is None else shown(key.label)
        # As Text, since names in brackets would be taken for markup.
        names = [Text(each) for each in (shown(key.id), own, shown(key.prediction))]
        table.add_row(names[0], f"{key.weight:.2%}", hops, *names[1:])
    Console().print(table)
    if found.same_label is not None:
        print(f"attention on nodes with the same label: {found.same_label:.1%}")
