"""Draws the paper's overview figure from a trained model: the sequences of one node of Cora, and
its keys before and after training."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dgt import NodeClassifier, load
from dgt.config import CRITERIA
from dgt.data.splits import choose
from dgt.inspection import Inspection
from dgt.ops.deformable_attention.reference import position_weights, sample
from dgt.report.plots import save

COLORS = ("#3b7fc4", "#d96c1e", "#2f9566", "#cf4257", "#9566c7", "#a36d45", "#c45c9a")
STEP = 0.15  # between the rows of two heads
TITLES = {"bfs": "breadth-first", "ppr": "PageRank", "similarity": "similarity"}


def inspect(run: Path) -> Inspection:
    """Opens a run on Cora."""
    classifier = NodeClassifier.load(run)
    train = classifier.config.train
    return classifier.inspect(choose(load("cora"), train.splits, train.split_index)[0])


@torch.no_grad()
def queries(inside: Inspection) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the inputs of the keys before and after training. Shapes: (N, 2, T, M, K)."""
    model, inputs = inside.model, inside.inputs
    assert len(model.blocks) == 1
    z = model.embed(inputs["x"], inputs["encoding"])
    after = model.blocks[0].attention.queries(model.blocks[0].norm(z))
    return model.blocks[0].attention.start.expand_as(after), after


def choose_node(inside: Inspection, before: torch.Tensor, after: torch.Tensor) -> int:
    """Returns the correctly predicted test node with full sequences whose keys moved farthest."""
    full = (inside.inputs["sequences"] >= 0).all(dim=2).all(dim=0)
    fit = full & inside.data.test_mask & (inside.predictions == inside.y)
    moved = (sample(after)[0] - sample(before)[0]).abs().mean(dim=(1, 2, 3))
    return int(moved.where(fit, -1).argmax())


def draw(inside: Inspection) -> Figure:
    """Draws one row per criterion, with the keys before and after training side by side."""
    both = queries(inside)
    node = choose_node(inside, *both)
    sequences = inside.inputs["sequences"][:, [node]]
    attention = inside.model.blocks[0].attention
    names = [CRITERIA.name(each) for each in inside.config.criteria]
    weights = [position_weights(sequences, q[[node]], attention.kernel)[0] for q in both]
    highest = max(float(each.mean(dim=1).max()) for each in weights)
    figure = Figure(figsize=(13, 1.2 + 2.05 * len(names)))
    axes = figure.subplots(len(names), 2, sharex=True, sharey=True, squeeze=False)
    for column, (query, weight) in enumerate(zip(both, weights, strict=True)):
        places, shares = (each[0] for each in sample(query[[node]]))
        for t, name in enumerate(names):
            nodes = sequences[t, 0].tolist()
            _panel(axes[t, column], inside, nodes, weight[t], places[t], shares[t], highest)
            if column == 0:
                axes[t, 0].set_ylabel(TITLES.get(name, name), fontsize=11)
        axes[0, column].set_title(("before training", "after training")[column], fontsize=12)
        axes[-1, column].set_xlabel("position in the sequence; 0 is the node itself", fontsize=9)
    label = inside.facts.class_names[int(inside.y[node])].replace("_", " ")
    figure.suptitle(
        f"Node {inside.ids[node]} of Cora ({label}): its sequences, and where its keys look",
        fontsize=13,
    )
    _legend(figure, inside)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.88, bottom=0.17, wspace=0.05, hspace=0.12)
    return figure


def _panel(
    axis: Axes,
    inside: Inspection,
    nodes: list[int],
    weight: torch.Tensor,
    places: torch.Tensor,
    shares: torch.Tensor,
    highest: float,
) -> None:
    """Draws a sequence as squares, the attention on them as bars, and the keys as marks.

    Args:
        axis: Where to draw.
        inside: The model and the graph.
        nodes: The nodes of the sequence.
        weight: The attention of each head on each position. Shape: (M, L).
        places: The keys of each head, as a share of the sequence. Shape: (M, K).
        shares: The attention on each key, likewise.
        highest: The highest bar of all panels.
    """
    heights = weight.mean(dim=0).numpy() / highest
    colors = [COLORS[int(inside.y[each]) % len(COLORS)] for each in nodes]
    axis.bar(range(len(nodes)), heights, width=0.82, color=colors, alpha=0.75)
    axis.scatter(range(len(nodes)), [-0.16] * len(nodes), marker="s", s=270, c=colors)
    for i, each in enumerate(nodes):
        axis.text(i, -0.16, str(inside.ids[each]), ha="center", va="center", fontsize=5.5,
                  color="white")  # fmt: skip
    for m, (own, share) in enumerate(zip(places, shares, strict=True)):
        axis.scatter(
            own.numpy() * (len(nodes) - 1), np.full(len(own), 1.15 + STEP * m), marker="v",
            s=180 * share.numpy(), color="0.2", linewidths=0,
        )  # fmt: skip
    axis.set_ylim(-0.34, 1.15 + STEP * len(places))
    axis.set_xlim(-0.7, len(nodes) - 0.3)
    heads = range(len(places))
    axis.set_yticks([1.15 + STEP * m for m in heads], [f"head {m + 1}" for m in heads])
    axis.tick_params(axis="y", length=0, labelsize=7, labelcolor="0.3")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def _legend(figure: Figure, inside: Inspection) -> None:
    marks = [
        Patch(color=COLORS[c % len(COLORS)], label=name.replace("_", " "))
        for c, name in enumerate(inside.facts.class_names)
    ]
    figure.legend(handles=marks, loc="lower center", ncols=7, frameon=False, fontsize=8.5)
    figure.text(
        0.5, 0.062, "Squares: nodes, colored by label. Bars: attention on each position, mean of "
        "the heads. Triangles: keys at their fractional positions, as large as their attention.",
        ha="center", fontsize=8.5, color="0.3",
    )  # fmt: skip


def write(run: Path, out: Path) -> None:
    """Draws the figure from a run on Cora."""
    save(draw(inspect(run)), out)
