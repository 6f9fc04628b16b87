"""The paper's table and figure on interpolation: RBF and bilinear kernels, and the RBF width."""

from functools import partial

from matplotlib.figure import Figure as Drawing

from dgt.experiments.accuracy import accuracies, over_runs
from dgt.experiments.nodesort import DATASETS
from dgt.experiments.paper import INTERPOLATION, Figure
from dgt.experiments.table import Line, Setup, Table
from dgt.experiments.table1 import found
from dgt.report import plots

EPSILONS = range(1, 9)
TITLE = "Interpolation in DGT with the settings found for each graph"


def setups() -> list[Setup]:
    kinds = [
        Setup(dataset, kind, found(dataset, "dgt").replace(interpolation=kind))
        for dataset in (*DATASETS, "twitch-gamers")
        for kind in ("bilinear", "rbf")
    ]
    widths = [
        Setup("cora", f"epsilon {e}", found("cora", "dgt").replace(epsilon=float(e)))
        for e in EPSILONS
    ]
    return kinds + widths


def published(dataset: str, variant: str) -> Figure | None:
    return INTERPOLATION.get((dataset, variant))


def draw(lines: list[Line]) -> Drawing | None:
    """Draws the accuracy as a function of epsilon, for the widths that have runs."""
    points = []
    for line in lines:
        name, _, epsilon = line.setup.variant.partition(" ")
        if name == "epsilon" and line.records:
            test = over_runs(line)
            points.append((float(epsilon), test["mean"], test["ci95"] or 0.0))
    if not points:
        return None
    x, means, intervals = (list(values) for values in zip(*points, strict=True))
    return plots.curve(x, means, intervals, xlabel=r"$\epsilon$", ylabel="accuracy on Cora (%)")


TABLE = Table(
    "interpolation",
    setups,
    partial(accuracies, title=TITLE, published=published, variant="interpolation"),
    draw=draw,
)
