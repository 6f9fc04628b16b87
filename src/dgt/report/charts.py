"""The charts of a report, drawn by Bokeh.

Their colors are readable on a light and on a dark page; the script of the page changes the color
of everything that is named ``ink``, and of axes and grids. Text in them comes from
:func:`~dgt.report.display.chart_text`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
    Span,
)
from bokeh.plotting import figure

from dgt.report.colors import DASHES, REST_COLOR, RUN_COLORS

ROW = 26  # pixels per row of a horizontal chart


def run_color(run: int) -> str:
    return RUN_COLORS[run % len(RUN_COLORS)]


def lines(
    series: Sequence[tuple[str, Sequence[float], Sequence[float], int]],
    *,
    x: str,
    y: str,
    share: bool,
    marked: float | None = None,
    falls: bool = False,
) -> figure:
    """Draws lines.

    Args:
        series: The name, x, y and color index of each line. Lines of one name are one legend entry.
        x: Label of the x axis.
        y: Label of the y axis.
        share: Whether y is shown in percent.
        marked: An x that is marked by a vertical line.
        falls: Whether the lines fall, so that the upper right corner is free.
    """
    chart = _figure(280, x_axis_label=x, y_axis_label=y)
    for name, xs, ys, color in series:
        source = ColumnDataSource({"x": list(xs), "y": list(ys), "name": [name] * len(xs)})
        chart.line(
            "x", "y", source=source, legend_label=name, color=run_color(color), width=2,
            line_dash=DASHES[color % len(DASHES)], alpha=0.9,
        )  # fmt: skip
    if marked is not None:
        chart.add_layout(
            Span(location=marked, dimension="height", line_dash="dotted", line_color=REST_COLOR)
        )
    form = "{0.0%}" if share else "{0.000}"
    _hover(chart, [("", "@name"), (x, "@x{0}"), (y, f"@y{form}")])
    if share:
        chart.yaxis.formatter = NumeralTickFormatter(format="0%")
    return _legend(chart, "top_right" if falls else "bottom_right")


def calibration(series: Sequence[tuple[str, list[tuple[float, float, int]]]]) -> figure:
    """Draws the accuracy over the confidence, for each run: confidence, accuracy and nodes."""
    chart = _figure(
        320, x_axis_label="probability of the prediction", y_axis_label="accuracy",
        x_range=(0, 1.02), y_range=(0, 1.02),
    )  # fmt: skip
    chart.line([0, 1], [0, 1], color=REST_COLOR, line_dash="dotted", legend_label="ideal")
    for r, (name, bins) in enumerate(series):
        confidence, accuracy, nodes = (list(each) for each in zip(*bins, strict=True))
        size = [5 + 15 * np.sqrt(n / max(nodes)) for n in nodes]
        data = {"x": confidence, "y": accuracy, "nodes": nodes, "size": size}
        source = ColumnDataSource(data)
        chart.line("x", "y", source=source, color=run_color(r), legend_label=name)
        chart.scatter("x", "y", source=source, size="size", color=run_color(r), alpha=0.75)
    _hover(
        chart,
        [("probability", "@x{0.0%}"), ("accuracy", "@y{0.0%}"), ("nodes", "@nodes{0,0}")],
    )
    for axis in (chart.xaxis, chart.yaxis):
        axis.formatter = NumeralTickFormatter(format="0%")
    return _legend(chart, "top_left")


def intervals(
    names: Sequence[str],
    series: Sequence[tuple[str, list[tuple[int, float, float, float, str]]]],
    *,
    x: str,
    whole: bool = False,
) -> figure:
    """Draws points with intervals, one row per name.

    Args:
        names: The rows from top to bottom.
        series: For each run, its name, and row, value, low, high and a note for each point.
        x: Label of the x axis, in percent.
        whole: Whether the axis goes from 0% to 100%.
    """
    chart = _rows(names, x, ROW * len(names) * max(1, 0.6 * len(series)))
    if whole:
        chart.x_range = Range1d(-0.02, 1.02)
    for r, (name, points) in enumerate(series):
        shift = 0.0 if len(series) == 1 else 0.5 * (r / (len(series) - 1) - 0.5)
        place, value, low, high, note = (list(each) for each in zip(*points, strict=True))
        source = ColumnDataSource(
            {
                "y": [each + shift for each in place], "x": value, "low": low, "high": high,
                "note": note, "name": [names[each] for each in place],
            }
        )  # fmt: skip
        color = run_color(r)
        chart.segment("low", "y", "high", "y", source=source, color=color, width=3, alpha=0.5)
        legend = {"legend_label": name} if len(series) > 1 else {}
        chart.scatter("x", "y", source=source, size=9, color=color, **legend)
    _hover(chart, [("", "@name"), (x, "@x{0.0%}"), ("", "@note")])
    chart.xaxis.formatter = NumeralTickFormatter(format="0%")
    return _legend_above(chart) if len(series) > 1 else chart


def heatmap(names: Sequence[str], counts: np.ndarray) -> figure:
    """Draws a confusion matrix; the color of a cell is its share of the row."""
    C = len(names)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chart = _figure(
        120 + max(200, 34 * C), x_range=(-0.5, C - 0.5), y_range=(C - 0.5, -0.5),
        x_axis_label="prediction", y_axis_label="label",
    )  # fmt: skip
    row, column = np.indices(counts.shape)
    every = {
        "x": column.ravel(), "y": row.ravel(), "share": share.ravel(), "nodes": counts.ravel(),
        "alpha": 0.08 + 0.9 * share.ravel(), "text": [str(n) if n else "" for n in counts.ravel()],
        "label": [names[r] for r in row.ravel().tolist()],
        "prediction": [names[c] for c in column.ravel().tolist()],
    }  # fmt: skip
    cells = ColumnDataSource(every)
    chart.rect("x", "y", 0.96, 0.96, source=cells, color="#2b6cb0", alpha="alpha", line_alpha=0)
    size = "12px" if C <= 12 else "9px"
    for dark in (False, True):
        chosen = (every["alpha"] > 0.5) == dark
        some = {key: np.array(value)[chosen] for key, value in every.items()}
        chart.text(
            "x", "y", "text", source=ColumnDataSource({k: some[k] for k in ("x", "y", "text")}),
            text_align="center", text_baseline="middle", text_font_size=size,
            text_color="white" if dark else "#222222", name="white" if dark else "ink",
        )  # fmt: skip
    _hover(
        chart,
        [("label", "@label"), ("prediction", "@prediction"), ("nodes", "@nodes{0,0}"),
         ("of this label", "@share{0.0%}")],
    )  # fmt: skip
    for axis in (chart.xaxis, chart.yaxis):
        axis.ticker = FixedTicker(ticks=list(range(C)))
        axis.major_label_overrides = dict(enumerate(names))
    chart.xaxis.major_label_orientation = 0.8
    chart.grid.visible = False
    return chart


def stacked(
    names: Sequence[str], parts: Sequence[str], shares: np.ndarray, colors: Sequence[str], x: str
) -> figure:
    """Draws horizontal bars of which each consists of parts. Shape of shares: (names, parts)."""
    chart = _rows(names, x, ROW * len(names))
    left = np.zeros(len(names))
    for p, part in enumerate(parts):
        right = left + shares[:, p]
        source = ColumnDataSource(
            {
                "y": np.arange(len(names)), "left": left, "right": right, "share": shares[:, p],
                "name": list(names), "part": [part] * len(names),
            }
        )  # fmt: skip
        chart.hbar(
            "y", left="left", right="right", height=0.8, source=source, color=colors[p],
            line_color=None, legend_label=part,
        )  # fmt: skip
        left = right
    chart.x_range = Range1d(0, 1)
    _hover(chart, [("", "@name"), ("@part", "@share{0.0%}")])
    chart.xaxis.formatter = NumeralTickFormatter(format="0%")
    return _legend_above(chart)


def moved(
    names: Sequence[str], start: np.ndarray, now: np.ndarray, low: np.ndarray, high: np.ndarray
) -> figure:
    """Draws where keys lie in the sequence before and after training, one row per key."""
    chart = _rows(names, "place in the sequence", 18 * len(names))
    y = np.arange(len(names))
    source = ColumnDataSource(
        {"y": y, "start": start, "now": now, "low": low, "high": high, "name": list(names)}
    )
    chart.segment(
        "low", "y", "high", "y", source=source, color=RUN_COLORS[0], width=5, alpha=0.35,
        legend_label="80% of the nodes",
    )  # fmt: skip
    chart.segment("start", "y", "now", "y", source=source, color=REST_COLOR, width=1)
    chart.scatter(
        "start", "y", source=source, size=8, fill_alpha=0, line_color=RUN_COLORS[1], line_width=1.5,
        legend_label="before training",
    )  # fmt: skip
    chart.scatter(
        "now", "y", source=source, size=8, color=RUN_COLORS[0], legend_label="after, mean"
    )
    chart.x_range = Range1d(-0.02, 1.02)
    _hover(chart, [("", "@name"), ("before", "@start{0%}"), ("after", "@now{0%}")])
    chart.xaxis.formatter = NumeralTickFormatter(format="0%")
    return _legend_above(chart)


def bars(names: Sequence[str], values: Sequence[float], x: str, form: str = "0.0%") -> figure:
    """Draws one horizontal bar per name."""
    chart = _rows(names, x, ROW * len(names))
    source = ColumnDataSource(
        {"y": np.arange(len(names)), "x": np.array(values), "name": list(names)}
    )
    chart.hbar("y", right="x", left=0, height=0.7, source=source, color=RUN_COLORS[0])
    _hover(chart, [("", "@name"), (x, f"@x{{{form}}}")])
    chart.xaxis.formatter = NumeralTickFormatter(format=form)
    return chart


def scatter(columns: dict[str, Any], places: np.ndarray) -> figure:
    """Draws the map. The script of the page chooses one of the columns ``color_...``."""
    chart = _figure(520, x_axis_label=None, y_axis_label=None, tools="pan,wheel_zoom,reset")
    low, high = places.min(axis=0) - 0.03, places.max(axis=0) + 0.03
    chart.x_range, chart.y_range = Range1d(low[0], high[0]), Range1d(low[1], high[1])
    source = ColumnDataSource({"x": places[:, 0], "y": places[:, 1], **columns})
    chart.scatter(
        "x", "y", source=source, size=6, fill_color={"field": "color_label"}, fill_alpha=0.8,
        line_color=None, name="map",
    )  # fmt: skip
    _hover(
        chart,
        [("node", "@id"), ("label", "@label"), ("prediction", "@prediction"),
         ("probability", "@probability{0.0%}"), ("split", "@part")],
    )  # fmt: skip
    chart.axis.visible = False
    chart.grid.visible = False
    return chart


def _figure(height: float, tools: str = "", **options: Any) -> figure:
    chart = figure(
        height=int(height), sizing_mode="stretch_width", tools=tools,
        toolbar_location="above" if tools else None, background_fill_alpha=0, border_fill_alpha=0,
        outline_line_alpha=0, **options,
    )  # fmt: skip
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    for axis in chart.axis:
        axis.minor_tick_line_alpha = 0
        axis.axis_label_text_font_style = "normal"
    return chart


def _rows(names: Sequence[str], x: str, height: float) -> figure:
    """Returns a chart with one row per name, from top to bottom."""
    chart = _figure(70 + height, x_axis_label=x, y_range=(len(names) - 0.4, -0.6))
    chart.yaxis.ticker = FixedTicker(ticks=list(range(len(names))))
    chart.yaxis.major_label_overrides = dict(enumerate(names))
    chart.ygrid.visible = False
    return chart


def _hover(chart: figure, tooltips: list[tuple[str, str]]) -> None:
    chart.add_tools(HoverTool(tooltips=tooltips, limit=3, visible=False))


def _legend(chart: figure, location: str = "bottom_right") -> figure:
    chart.legend.location = location
    chart.legend.background_fill_alpha = 0
    chart.legend.border_line_alpha = 0
    chart.legend.label_text_font_size = "12px"
    return chart


def _legend_above(chart: figure) -> figure:
    chart.height = int(chart.height) + 24
    _legend(chart, "center")
    chart.add_layout(chart.legend[0], "above")
    chart.legend.orientation = "horizontal"
    return chart
