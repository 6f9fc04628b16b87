"""The figure of keys: what is drawn has the size, the color and the name that it should have."""

from pathlib import Path

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dgt.explain import Explanation, Key
from dgt.report.attention_figure import AREA, SAME, UNKNOWN, attention
from dgt.report.plots import save
from tests.report.hostile import HOSTILE


def explanation(keys: int = 20, label: str | None = "a", itself: float = 0.5) -> Explanation:
    weights = (1 - itself) * np.arange(keys, 0, -1) / np.arange(keys + 1).sum()
    found = [
        Key(f"node-{i}", float(w), None if i % 7 == 6 else 1 + i % 4, "abc"[i % 3], "a")
        for i, w in enumerate(weights)
    ]
    if itself:
        found.append(Key("query", itself, 0, label, "a"))
    edges = [(0, 1), (1, 2)] if keys > 1 else []
    return Explanation("query", label, "a", found, None if label is None else 0.4, edges)


def dots(figure: Figure) -> list[tuple[float, str]]:
    """The covered area, in circles of one square point, and the color of each dot, the query
    last."""
    (axis,) = figure.axes
    found = []
    for each in axis.collections:
        x, y = each.get_paths()[0].to_polygons(closed_only=True)[0].T
        covered = abs(np.dot(x[:-1], y[1:]) - np.dot(x[1:], y[:-1])) / 2
        area = float(each.get_sizes()[0]) * covered / (np.pi / 4)
        found.append((area, matplotlib.colors.to_hex(each.get_facecolor()[0])))
    return found


def test_areas_are_weights_also_that_of_the_query():
    found = explanation()
    *keys, query = dots(attention({"Model": found}))
    assert query[0] == pytest.approx(0.5 * AREA, rel=0.01)
    for (area, _), key in zip(keys, found.keys[:-1], strict=True):
        assert area == pytest.approx(max(key.weight * AREA, 7), rel=0.01)
    least = dots(attention({"Model": explanation(itself=0.0)}))[-1][0]
    assert least == pytest.approx(7, rel=0.01)


def test_a_query_without_a_label_is_not_drawn_as_same():
    for label, color in (("a", SAME), (None, UNKNOWN)):
        *_, query = dots(attention({"Model": explanation(label=label)}))
        assert query[1] == matplotlib.colors.to_hex(color)
    figure = attention({"Model": explanation(label=None)})
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "query, without a label" in texts
    assert "key with the label predicted for the query" in texts
    assert "the query's label" not in " ".join(texts)


@pytest.mark.parametrize("label", ["a", None])
def test_the_legend_names_everything_once(label: str | None):
    found = explanation(label=label)
    found.keys[3] = Key("unknown", 0.01, 2, None, "a")
    (legend,) = attention({"One": found, "Two": found}).legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(set(texts)) == 10


@pytest.mark.parametrize("keys", [1, 5, 20, 40])
def test_names_do_not_overlap(keys: int):
    figure = attention({"Model": explanation(keys)})
    renderer = FigureCanvasAgg(figure).get_renderer()
    (axis,) = figure.axes
    shown = [text for text in axis.texts if "\n" in text.get_text()]
    assert len(shown) == keys + 1
    assert shown[0].get_text().startswith("node-0\n")
    boxes = [text.get_window_extent(renderer) for text in shown]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_hostile_names(tmp_path: Path):
    found = explanation(5)
    for i, name in enumerate(HOSTILE[:60]):
        found.keys[i % 5] = Key(name, 0.05, 1 + i % 3, name, name)
        if i % 5 == 4:
            panel = Explanation(name, name, name, found.keys, 0.5, [])
            save(attention({f"Node {name}": panel}), tmp_path / f"{i}.png")
    assert len(list(tmp_path.iterdir())) == 12
