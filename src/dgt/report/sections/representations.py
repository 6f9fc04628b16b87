"""The map of the representations."""

from collections import Counter

from dgt.report import charts
from dgt.report import colors as palette
from dgt.report.display import chart_text, count
from dgt.report.facts import Facts, MapPoint
from dgt.report.sections.blocks import Block, Chart, Section, of_first_run, side_by_side

FAR = {"t-SNE": "; distances between groups mean little"}


def section(facts: list[Facts]) -> Section:
    blocks = side_by_side(facts, [[_map(each)] for each in facts])
    return Section("map", "Map of the representations", blocks)


def _map(facts: Facts) -> Block:
    # Mistakes are drawn last, so that they are seen.
    order = sorted(range(len(facts.points)), key=lambda i: _is_wrong(facts.points[i]))
    points, places = [facts.points[i] for i in order], facts.map.places[order]
    names = facts.class_names
    # The most frequent classes have colors of their own.
    frequent = Counter(point.label for point in points if point.label >= 0)
    own = [c for c, _ in frequent.most_common(len(palette.CLASS_COLORS))]
    colors = {c: palette.CLASS_COLORS[i] for i, c in enumerate(sorted(own))}
    columns = {
        "id": [chart_text(point.id, 40) for point in points],
        "label": ["none" if p.label < 0 else chart_text(names[p.label]) for p in points],
        "prediction": [chart_text(names[point.prediction]) for point in points],
        "probability": [round(point.probability, 4) for point in points],
        "part": [point.part for point in points],
        "color_label": [colors.get(point.label, palette.REST_COLOR) for point in points],
        "color_prediction": [colors.get(p.prediction, palette.REST_COLOR) for p in points],
        "color_error": [_error_color(point) for point in points],
    }
    classes = [(chart_text(names[c]), color) for c, color in colors.items()]
    rest = [("other or none", palette.REST_COLOR)]
    errors = [("right", palette.RIGHT), ("wrong", palette.WRONG), ("no label", palette.REST_COLOR)]
    wrong = sum(map(_is_wrong, points))
    labeled = sum(point.label >= 0 for point in points)
    some = "all nodes" if len(points) == facts.map.total else (
        f"{len(points):,} of {facts.map.total:,} nodes, drawn at random"
    )  # fmt: skip
    summary = (
        f"Representations of {some}, before the last layer and reduced to two dimensions by "
        f"{facts.map.method}. Nodes that are near each other look alike to the model"
        f"{FAR.get(facts.map.method, '')}. Of {labeled:,} labeled nodes, training nodes included, "
        f"{count(wrong, 'has', 'have')} a wrong prediction.{of_first_run(facts)}"
    )
    legends = {"label": classes + rest, "prediction": classes + rest, "error": errors}
    return Chart(charts.scatter(columns, places), summary, legends=legends)


def _is_wrong(point: MapPoint) -> bool:
    return point.label not in (-1, point.prediction)


def _error_color(point: MapPoint) -> str:
    if point.label < 0:
        return palette.REST_COLOR
    return palette.WRONG if _is_wrong(point) else palette.RIGHT
