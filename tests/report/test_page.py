"""Reports in a real browser: they load nothing, show the numbers of the run, execute no name."""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from dgt.cli import main
from dgt.evaluate import METRICS, summarize
from dgt.report.display import chart_text
from tests.browser import OpenTab, Tab
from tests.report.hostile import HOSTILE
from tests.small import block_graph, flags, write_folder

MEGABYTE = 1_000_000
FEW = {"epochs": 12}


def train(graph: Path | str, out: Path, *tokens: str) -> Path:
    assert main(["train", str(graph), "--out", str(out), "--quiet", "--json", *tokens]) == 0
    return out


def report(out: Path, *runs: Path) -> Path:
    assert main(["report", *map(str, runs), "--out", str(out), "--quiet"]) == 0
    return out


def visit(open_tab: OpenTab, path: Path, **options: object) -> Tab:
    tab = open_tab(**options)
    tab.page.goto(path.as_uri())
    tab.page.wait_for_selector("html[data-ready=true]")
    return tab


def assert_clean(tab: Tab) -> None:
    assert tab.requests == []
    assert tab.errors == []


def cells(tab: Tab) -> dict[str, tuple[str, float]]:
    """The numbers of the page that name their place in ``metrics.json``."""
    script = "all => all.map(c => [c.dataset.metric, c.innerText, Number(c.dataset.value)])"
    return {name: (t, v) for name, t, v in tab.page.eval_on_selector_all("[data-metric]", script)}


def table(tab: Tab, section: str, column: str) -> list[dict[str, str]]:
    """The rows of the first table of a section that has a column."""
    script = """(root, column) => {
      for (const table of root.querySelectorAll("table")) {
        const heads = [...table.tHead.rows[0].cells].map(c => c.textContent.trim());
        if (heads.includes(column)) return [...table.tBodies[0].rows].map(row =>
          Object.fromEntries([...row.cells].map((c, i) => [heads[i], c.textContent.trim()])));
      }
      return [];
    }"""
    return tab.page.eval_on_selector(f"#{section}", script, column)


@pytest.fixture(scope="module")
def colors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's own graph; every tenth node has no label."""
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


@pytest.fixture(scope="module")
def cora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "cora"
    return train("cora", out, "--epochs=15", "--report")


@pytest.fixture(scope="module")
def several(colors: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "several"
    return train(colors, out, "--runs=3", *flags(**FEW))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cora_in_one_file_with_the_numbers_of_the_run(open_tab: OpenTab, cora: Path, scheme: str):
    path = cora / "report.html"
    assert path.stat().st_size < 6 * MEGABYTE
    tab = visit(open_tab, path, color_scheme=scheme)
    assert_clean(tab)
    metrics = json.loads((cora / "metrics.json").read_text())
    shown = cells(tab)
    assert len(shown) == 3 * len(metrics["test"])
    for part in ("train", "val", "test"):
        for name, value in metrics[part].items():
            assert shown[f"{part}.{name}"] == (METRICS[name].text(value), value)
    # The sections below agree with them.
    rows = table(tab, "classes", "recall")
    nodes = np.array([int(row["test nodes"]) for row in rows])
    recall = np.array([float(row["recall"].strip("%–") or 0) for row in rows])
    accuracy = (nodes * recall).sum() / nodes.sum()
    assert accuracy == pytest.approx(100 * metrics["test_accuracy"], abs=0.06)
    text = tab.page.inner_text("#classes")
    right = round(metrics["test_accuracy"] * nodes.sum())
    assert f"{right} of {nodes.sum()} are on the diagonal" in text
    wrong = nodes.sum() - right
    assert f"{wrong} test nodes have a wrong prediction" in tab.page.inner_text("#mistakes")
    lost = table(tab, "attention", "change, points")
    criteria = ["alike", "neighbors", "ppr", "similarity"]
    assert [row["left out"] for row in lost[:5]] == ["all attention", *criteria]
    about = tab.page.inner_text("#overview")
    assert f"{metrics['best_epoch']} of {metrics['epochs']}" in about
    assert f"{metrics['parameters']:,}" in about
    background = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_every_chart_is_drawn_and_has_words(open_tab: OpenTab, cora: Path):
    tab = visit(open_tab, cora / "report.html")
    charts = tab.page.query_selector_all(".chart")
    assert len(charts) == 16
    for chart in charts:
        words = tab.page.inner_text(f"#{chart.get_attribute('aria-labelledby')}")
        assert len(words) > 40
        box = chart.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
    assert tab.page.locator("canvas").count() >= 15


def test_the_map_is_colored_and_the_page_switched(open_tab: OpenTab, cora: Path):
    tab = visit(open_tab, cora / "report.html", color_scheme="light")
    field = """() => { for (const root of Bokeh.index.roots)
      for (const model of root.model.references())
        if (model.name === "map") return model.glyph.fill_color.field; }"""
    assert tab.page.evaluate(field) == "color_label"
    for name in ("prediction", "error", "label"):
        tab.page.check(f"#map input[value={name}]")
        assert tab.page.evaluate(field) == f"color_{name}"
        legend = tab.page.locator("#map .legend:visible")
        assert legend.count() == 1
        assert legend.get_attribute("data-color") == name
    assert "Rule_Learning" in tab.page.inner_text("#map")
    tab.page.click("#theme")
    assert tab.page.get_attribute("html", "data-theme") == "dark"
    axis = """() => { for (const root of Bokeh.index.roots)
      for (const model of root.model.references())
        if (/Axis$/.test(model.type)) return model.major_label_text_color; }"""
    assert tab.page.evaluate(axis) == "#e6e9ed"
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.page.get_attribute("html", "data-theme") == "light"
    assert tab.page.locator("details:not([open])").count() == 0
    tab.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.page.get_attribute("html", "data-theme") == "dark"
    assert_clean(tab)


def test_nothing_is_wider_than_a_phone(open_tab: OpenTab, cora: Path):
    tab = visit(open_tab, cora / "report.html", viewport={"width": 400, "height": 800})
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert_clean(tab)


def luminance(color: str) -> float:
    values = [int(part) / 255 for part in color[color.index("(") + 1 : -1].split(",")[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_controls_have_names(open_tab: OpenTab, cora: Path, scheme: str):
    tab = visit(open_tab, cora / "report.html", color_scheme=scheme)
    paper = luminance(tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    for selector in ("p", "figcaption", "th", "td", "a", "summary", "h2", "footer", "caption"):
        ink = luminance(
            tab.page.eval_on_selector(f"body {selector}", "e => getComputedStyle(e).color")
        )
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast >= 4.5, selector
    unnamed = """all => all.filter(e =>
      !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length"""
    assert tab.page.eval_on_selector_all("button, input, a, summary", unnamed) == 0
    assert tab.page.locator("h1").count() == 1
    assert tab.page.get_attribute("html", "lang") == "en"
    # not those in the shadow trees of the charts
    ids = tab.page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility(
    open_tab: OpenTab, cora: Path, several: Path, tmp_path: Path, violations, scheme: str
):
    tab = visit(open_tab, cora / "report.html", color_scheme=scheme)
    assert violations(tab.page) == []
    tab = visit(open_tab, report(tmp_path / "both.html", cora, several), color_scheme=scheme)
    assert violations(tab.page) == []


def test_several_runs_have_intervals(open_tab: OpenTab, several: Path, tmp_path: Path):
    tab = visit(open_tab, report(tmp_path / "report.html", several))
    assert_clean(tab)
    metrics = json.loads((several / "metrics.json").read_text())
    text = METRICS["accuracy"].text
    shown, value = cells(tab)["test.accuracy"]
    assert value == metrics["test_accuracy"]
    spread = f"{text(metrics['test_accuracy_ci95'])} ({text(metrics['test_accuracy_std'])})"
    assert shown == f"{text(value)} ± {spread}"
    assert all(" ± " in row["F1"] for row in table(tab, "classes", "F1"))
    each = [run["test_accuracy"] for run in metrics["runs"]]
    assert summarize(each)["mean"] == pytest.approx(value)
    assert "Shown is the first run" in tab.page.inner_text("#map")


def test_models_side_by_side(open_tab: OpenTab, colors: Path, several: Path, tmp_path: Path):
    gcn = train(colors, tmp_path / "gcn", "--model=gcn", *flags(epochs=1, lr=1e-6))
    transformer = train(colors, tmp_path / "tf", "--model=transformer", *flags(**FEW))
    path = report(tmp_path / "report.html", gcn, several, transformer)
    tab = visit(open_tab, path)
    assert_clean(tab)
    assert path.stat().st_size < 6 * MEGABYTE
    heads = "all => all.map(c => c.textContent.trim())"
    shown = tab.page.eval_on_selector_all("#overview thead tr:first-child th", heads)
    assert [name for name in shown if name][1:4] == ["gcn", "several", "tf"]
    text = tab.page.inner_text("#attention")
    assert "gcn has no attention over nodes" in text
    assert "all nodes" in tab.page.text_content("#attention")
    assert "no keys are shown" in tab.page.inner_text("#mistakes")
    different = tab.page.inner_text("#overview")
    assert "Settings that differ" in different


def test_hostile_names_are_shown_and_nothing_runs(open_tab: OpenTab, tmp_path: Path):
    names = [name for name in HOSTILE if name.strip()]
    assert len(names) >= 50
    rng = np.random.default_rng(0)
    count = 4 * len(names)
    label = [names[i % len(names)] for i in range(count)]
    ids = [names[i] if i < len(names) else f"{names[i % len(names)]}#{i}" for i in range(count)]
    x = rng.normal(size=(len(names), 8))[np.arange(count) % len(names)] * 2
    columns = {"id": ids, "label": label, **{names[i]: x[:, i] for i in range(8)}}
    # the first feature names are hostile, too
    folder = tmp_path / "<img src=x onerror=alert(0)>"
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "nodes.parquet")
    a = rng.integers(0, count, 3 * count)
    b = (a + rng.integers(1, 4, 3 * count) * len(names)) % count
    edges = pyarrow.table({"source": [ids[i] for i in a], "target": [ids[i] for i in b]})
    pyarrow.parquet.write_table(edges, folder / "edges.parquet")
    run = train(folder, tmp_path / "<script>alert(1)", *flags(epochs=40))
    path = report(tmp_path / "report.html", run)
    tab = visit(open_tab, path)
    assert_clean(tab)
    assert "<script>alert(1)" in tab.page.inner_text("h1")
    assert tab.page.title() == "Report on <script>alert(1)"
    shown = [row["class"] for row in table(tab, "classes", "recall")]
    assert len(shown) == len(names)
    for name in ("<script>alert(1)</script>", "{{ 7 * 7 }}", "$$\\frac{1}{2}$$", "nul ␀ nul"):
        assert name in shown
    # hover over the map, so that names appear as a tooltip
    canvas = tab.page.locator("#map .chart")
    canvas.scroll_into_view_if_needed()
    script = """() => { for (const root of Bokeh.index.roots)
      for (const model of root.model.references()) if (model.name === "map") {
        const { x, y } = model.data_source.data, { x_scale, y_scale } = root.frame;
        return [...x].map((each, i) => [x_scale.compute(each), y_scale.compute(y[i])]); } }"""
    box = canvas.bounding_box()
    seen: set[str] = set()
    for px, py in tab.page.evaluate(script)[::9]:
        tab.page.mouse.move(box["x"] + px, box["y"] + py)
        tab.page.wait_for_timeout(40)
        seen |= set(tab.page.locator(".bk-tooltip-row-value").all_inner_texts())
    assert len(seen & {chart_text(name) for name in names}) > 3
    assert tab.page.locator("img, iframe, svg[onload], base, link").count() == 0
    assert_clean(tab)


def test_a_changed_graph_is_told(open_tab: OpenTab, tmp_path: Path):
    graph = write_folder(tmp_path / "graph", block_graph())
    run = train(graph, tmp_path / "run", "--encoding=none", *flags(**FEW))
    path = graph / "nodes.csv"
    path.write_text(
        path.read_text().replace("red", "x").replace("green", "red").replace("x", "green")
    )
    tab = visit(open_tab, report(tmp_path / "report.html", run))
    assert "metrics.json says" in tab.page.inner_text("#overview .warning")


def refused(capsys: pytest.CaptureFixture[str], *tokens: object) -> str:
    capsys.readouterr()
    assert main([str(token) for token in tokens]) == 2
    return capsys.readouterr().err


def test_refusals(several: Path, colors: Path, tmp_path: Path, capsys, monkeypatch):
    out = tmp_path / "report.html"
    assert "expected an .html file" in refused(capsys, "report", several, "--out", "report.pdf")
    assert "got 0 runs" in refused(capsys, "report", "--out", out)
    assert "no such folder" in refused(capsys, "report", tmp_path / "none", "--out", out)
    graph = write_folder(tmp_path / "numbers", block_graph())
    numbers = train(graph, tmp_path / "predicted", "--task=regression", "--label=f0", *flags(**FEW))
    message = refused(capsys, "report", numbers, "--out", out)
    assert "the model predicts regression; only classes can be reported" in message
    message = refused(capsys, "train", graph, "--out", out, "--report", "--task=regression")
    assert "--report: the task is regression" in message
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.toml").write_text("")
    assert "the run is not complete" in refused(capsys, "report", unfinished, "--out", out)
    out.write_text("mine")
    assert "exists" in refused(capsys, "report", several, "--out", out)
    assert out.read_text() == "mine"
    monkeypatch.setattr("dgt.report.page.PACKAGES", ("no_such_package",))
    message = refused(capsys, "report", several, "--out", tmp_path / "b.html")
    assert "needs no_such_package; install it with: pip install" in message
    run = tmp_path / "run"
    message = refused(capsys, "train", colors, "--out", run, "--report", *flags(**FEW))
    assert "needs no_such_package" in message
    assert not run.exists()  # before any training


def test_large_graphs_are_sampled(open_tab: OpenTab, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("dgt.report.projection.MOST", {"pca": 50, "tsne": 50})
    monkeypatch.setattr("dgt.report.attending.QUERIES", 5)
    graph = write_folder(tmp_path / "graph", block_graph())
    run = train(graph, tmp_path / "run", *flags(**FEW))
    tab = visit(open_tab, report(tmp_path / "report.html", run))
    assert "50 of 90 nodes, drawn at random" in tab.page.inner_text("#map")
    assert "averaged over 5 test nodes drawn at random" in tab.page.inner_text("#attention")
    assert math.isfinite(cells(tab)["test.accuracy"][1])
