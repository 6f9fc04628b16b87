"""The figure of the nodes that a query node attends to."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke

from dgt.explain import Explanation, Key
from dgt.report.display import count, percent, shown

SAME, OTHER, UNKNOWN = "tab:red", "tab:blue", "white"
SAME_LINE, OTHER_LINE, EDGE, RING = "tab:orange", "0.55", "0.8", "0.9"
AREA = 1500.0  # square points of all attention
STAR = 2.8  # a star covers 1 / 2.8 of the circle around it
SMALLEST = 7.0  # square points, so that a node can be seen
SCALE = (0.01, 0.1, 0.25)
# Inches, so that names do not overlap.
BETWEEN_NAMES, BETWEEN_RINGS, FIRST_RING, MARGIN = 0.85, 0.8, 0.95, 0.55
ID = 12  # characters
FONT = 7


class Layout(NamedTuple):
    """The places of the keys of a query, in inches from the query."""

    places: np.ndarray
    """Shape: ``(keys, 2)``."""
    rings: dict[str, float]
    """The radius of each ring, by its distance in the graph."""

    @property
    def radius(self) -> float:
        return max([FIRST_RING, *self.rings.values()]) + MARGIN


def attention(panels: Mapping[str, Explanation]) -> Figure:
    """Draws the most important keys of a query node, with one panel per model.

    The query is in the center, and the rings around it are the distances of its keys in the graph.
    The area of a node, also of the query, is proportional to its attention weight, on the same
    scale in all panels. Color tells whether a key has the label of the query. If the query has no
    label, its prediction takes the place of the label.

    Args:
        panels: Results of :meth:`dgt.NodeClassifier.explain` by title.
    """
    layouts = [lay_out(each) for each in panels.values()]
    radius = max(each.radius for each in layouts)
    side, top, bottom = 2 * radius, 0.75, 0.75
    figure = Figure(figsize=(side * len(panels), side + top + bottom))
    height = side + top + bottom
    for i, (title, found) in enumerate(panels.items()):
        axis = figure.add_axes((i / len(panels), bottom / height, 1 / len(panels), side / height))
        axis.set_xlim(-radius, radius)
        axis.set_ylim(-radius, radius)
        axis.axis("off")
        _panel(axis, layouts[i], title, found)
    _legend(figure, list(panels.values()))
    return figure


def lay_out(found: Explanation) -> Layout:
    """Places keys on rings by their distance, unreachable ones outermost."""
    hops = [None if key.id == found.id else key.hops for key in found.keys]
    outside = [key.id != found.id and key.hops is None for key in found.keys]
    places, rings, radius = np.zeros((len(hops), 2)), {}, 0.0
    distances = sorted({h for h in hops if h is not None})
    groups = [(count(d, "hop"), [i for i, h in enumerate(hops) if h == d]) for d in distances]
    groups.append(("no path", [i for i, far in enumerate(outside) if far]))
    for ring, (name, members) in enumerate(each for each in groups if each[1]):
        least = len(members) * BETWEEN_NAMES / (2 * np.pi)
        radius = max(least, radius + BETWEEN_RINGS if radius else FIRST_RING)
        # The top is left free for the ring's name; rings are turned against each other.
        step = 2 * np.pi / len(members)
        angles = np.pi / 2 + step * (np.arange(len(members)) + 0.5 + 0.2 * (ring % 3 - 1))
        places[members] = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        rings[name] = radius
    return Layout(places, rings)


def _panel(axis: Axes, layout: Layout, title: str, found: Explanation) -> None:
    for name, radius in layout.rings.items():
        axis.add_patch(Circle((0, 0), radius, fill=False, color=RING, lw=0.8, zorder=0))
        _text(axis, 0, radius, name, color="0.45", box=True)
    own = _own(found)
    at = np.vstack([np.zeros((1, 2)), layout.places])
    for a, b in found.edges:
        axis.plot(*at[[a, b]].T, color=EDGE, lw=0.8, zorder=1)
    itself = 0.0
    for place, key in zip(layout.places, found.keys, strict=True):
        if key.id == found.id:
            itself = key.weight
            continue
        same = key.label == own
        axis.plot(
            *np.vstack([np.zeros(2), place]).T, color=SAME_LINE if same else OTHER_LINE, ls="--",
            lw=0.7 + 6 * key.weight, zorder=2,
        )  # fmt: skip
        axis.scatter(
            place[0], place[1], s=area(key.weight), color=_color(key, own), edgecolors="black",
            linewidths=0.6, zorder=3,
        )  # fmt: skip
        below = place[1] - np.sqrt(area(key.weight)) / 2 / 72 - 0.04
        _text(axis, place[0], below, f"{shown(key.id, ID)}\n{percent(key.weight)}", under=True)
    color = SAME if found.label is not None else UNKNOWN
    size = STAR * area(itself)  # so that the star covers as much as a circle of its weight
    axis.scatter(0, 0, marker="*", s=size, color=color, edgecolors="black", lw=0.6, zorder=4)
    weight = percent(itself) if itself else "not among these keys"
    below = -np.sqrt(size) / 2 / 72 - 0.04
    _text(axis, 0, below, f"{shown(found.id, ID)}\n{weight}", under=True, bold=True)
    axis.set_title(f"{shown(title)}\n{_caption(found)}", fontsize=9, parse_math=False)


def area(weight: float) -> float:
    """Returns the area of a node in square points."""
    return max(SMALLEST, AREA * weight)


def _own(found: Explanation) -> str:
    return found.prediction if found.label is None else found.label


def _color(key: Key, own: str) -> str:
    return UNKNOWN if key.label is None else SAME if key.label == own else OTHER


def _caption(found: Explanation) -> str:
    same = sum(key.label == _own(found) for key in found.keys)
    if found.label is None:
        what = f"the label {shown(found.prediction, 24)} that is predicted for it"
        return f"{same} of {len(found.keys)} keys have {what}"
    itself = any(key.id == found.id for key in found.keys)
    among = ", itself included," if itself else ""
    text = f"{same} of {len(found.keys)} keys{among} have the label {shown(found.label, 24)}"
    return f"{text};\n{percent(found.same_label, 0)} of all attention is on such nodes"


def _text(
    axis: Axes, x: float, y: float, text: str, *, color: str = "black", box: bool = False,
    under: bool = False, bold: bool = False,
) -> None:  # fmt: skip
    frame = {"facecolor": "white", "edgecolor": "none", "pad": 1} if box else None
    axis.text(
        x, y, text, fontsize=FONT, ha="center", va="top" if under else "center", color=color,
        bbox=frame, zorder=5, linespacing=1.05, fontweight="bold" if bold else "normal",
        parse_math=False, path_effects=[withStroke(linewidth=2, foreground="white")],
    )  # fmt: skip


def _legend(figure: Figure, panels: list[Explanation]) -> None:
    """Explains every color, mark, line and size that occurs, each once."""
    keys = [(key, found) for found in panels for key in found.keys if key.id != found.id]
    labeled = all(found.label is not None for found in panels)
    own = "the query's label" if labeled else "the label predicted for the query"
    same = any(key.label == _own(found) for key, found in keys)
    other = any(key.label not in (None, _own(found)) for key, found in keys)
    none = any(key.label is None for key, _ in keys)
    query = "query" if labeled else "query, without a label"
    marks = [(_mark("*", SAME if labeled else UNKNOWN, 11), query)]
    marks += [(_mark("o", SAME, 7), f"key with {own}")] if same else []
    marks += [(_mark("o", OTHER, 7), "key with another label")] if other else []
    marks += [(_mark("o", UNKNOWN, 7), "key without a label")] if none else []
    marks += [(_line(SAME_LINE, "--"), f"attention on {own}")] if same else []
    marks += [(_line(OTHER_LINE, "--"), "other attention")] if other or none else []
    marks += [(_line(EDGE, "-"), "edge of the graph")] if any(f.edges for f in panels) else []
    marks += [(_mark("o", "0.75", np.sqrt(area(w))), f"weight {w:.0%}") for w in SCALE]
    columns = 5 if len(panels) == 1 else len(marks)
    figure.legend(
        *zip(*marks, strict=True), loc="lower center", ncols=columns, frameon=False, fontsize=7.5,
        handletextpad=1.0, columnspacing=1.6, labelspacing=0.9,
    )  # fmt: skip


def _mark(marker: str, color: str, size: float) -> Line2D:
    return Line2D(
        [], [], marker=marker, color=color, markeredgecolor="black", markersize=size, ls="",
        markeredgewidth=0.6,
    )  # fmt: skip


def _line(color: str, style: str) -> Line2D:
    return Line2D([], [], color=color, ls=style, lw=1.3)
