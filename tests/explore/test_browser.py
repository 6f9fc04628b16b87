"""The explorer in a real browser: every function, with the numbers of NodeClassifier."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dgt.explore.session import Session
from tests.browser import OpenTab, Tab
from tests.explore.page import contrasts, ready, title_is, until
from tests.explore.runs import train
from tests.explore.server import serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Session]:
    folder = tmp_path_factory.mktemp("explore")
    first = train(folder, "first", keep_checkpoints=4)
    graph = folder / "graph.pt"
    second = train(folder, "second", graph, blocks=2, seed=1)
    return [Session(first), Session(second), Session(train(folder, "third", graph, model="gcn"))]


@pytest.fixture(scope="module")
def address(runs: list[Session]) -> Iterator[str]:
    with serving(runs) as found:
        yield found


@pytest.fixture
def tab(open_tab: OpenTab) -> Iterator[Tab]:
    tab = open_tab(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
    yield tab
    assert tab.errors == []
    assert all(request.startswith("http://127.0.0.1:") for request in tab.requests)


def open_at(tab: Tab, address: str, **state: object) -> Any:
    """Opens the page with a state in its link."""
    shown = {k: json.dumps(v) if isinstance(v, list) else v for k, v in state.items()}
    tab.page.goto(f"{address}#" + "&".join(f"{k}={quote(str(v))}" for k, v in shown.items()))
    ready(tab.page)
    return tab.page


def test_the_first_view(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address)
    assert page.inner_text("#found") == "90 nodes"
    assert "dgt on" in page.inner_text("#about")
    assert page.is_visible("#hint")
    assert page.is_hidden("#views")
    score = runs[0].classifier.metrics_["test_accuracy"]
    assert f"test accuracy {100 * score:.1f}%" in page.inner_text("#about")


def test_finding_a_node(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address)
    page.fill("[name=text]", "n7")
    until(page, "document.getElementById('found').textContent === '11 nodes'")
    assert page.inner_text(".result >> nth=0").startswith("n7")
    page.fill("[name=text]", "")
    page.select_option("[name=label]", "1")
    ones = f"{int((runs[0].labels == 1).sum())} nodes"
    until(page, f"document.getElementById('found').textContent === '{ones}'")
    page.select_option("[name=label]", "")
    page.select_option("[name=mistakes]", "1")
    wrong = (runs[0].labels >= 0) & (runs[0].labels != runs[0].predictions)
    expected = "1 node" if wrong.sum() == 1 else f"{int(wrong.sum())} nodes"
    until(page, f"document.getElementById('found').textContent === '{expected}'")
    page.select_option("[name=mistakes]", "")
    page.select_option("[name=order]", "least sure")
    least = f"n{int(runs[0].confidence.argmin())}"
    until(page, f"document.querySelector('.result bdi').textContent === '{least}'")
    page.fill("[name=attribute]", "f3")
    page.fill("[name=value]", "1")
    page.select_option("[name=comparison]", ">")
    count = int((runs[0].inside.data.x[:, 3] > 1).sum())
    until(page, f"document.getElementById('found').textContent === '{count} nodes'")
    first = page.inner_text(".result bdi >> nth=0")
    page.click(".result >> nth=0")
    title_is(page, f"Node {first}")


def test_showing_more_results(tab: Tab, address: str):
    page = open_at(tab, address)
    assert page.locator(".result").count() == 50
    page.click("text=Show more")
    until(page, "document.querySelectorAll('.result').length === 90")


@pytest.mark.parametrize("run", [0, 1])
def test_the_numbers_are_those_of_the_classifier(tab: Tab, address: str, runs, run: int):
    session, node = runs[run], 12
    page = open_at(tab, address, run=run, node=node)
    rows = page.eval_on_selector_all(
        "#facts .probabilities tbody tr",
        """rows => rows.map(r => [+r.dataset.class,
                                 +r.querySelector('.before-value').dataset.value])""",
    )
    data = session.inside.data
    expected = session.classifier.inspect(data).probabilities[node].tolist()
    assert {int(c): p for c, p in rows} == pytest.approx(dict(enumerate(expected)))
    assert page.inner_text("#node-title") == "Node n12"
    explanation = session.inside.explain("n12", top=50)
    found = page.eval_on_selector_all(
        "#attended tbody tr",
        """rows => rows.map(r => [r.querySelector('bdi').textContent, +r.dataset.weight,
                                 r.children[2].textContent])""",
    )
    assert {name: weight for name, weight, _ in found} == pytest.approx(
        {key.id: key.weight for key in explanation.keys}, abs=1e-5
    )
    hops = {key.id: "none" if key.hops is None else str(key.hops) for key in explanation.keys}
    assert {name: each for name, _, each in found} == hops
    bars = page.eval_on_selector_all(
        "#ribbons .position",
        "all => all.map(p => [+p.dataset.criterion, +p.dataset.node, +p.dataset.weight])",
    )
    # The mean of the rows, whose weights sum to 1 each, is the share of attention.
    total: dict[str, float] = {}
    for _, n, weight in bars:
        total[f"n{int(n)}"] = total.get(f"n{int(n)}", 0.0) + weight / 3
    assert {n: w for n, w in total.items() if w > 1e-9} == pytest.approx(
        {key.id: key.weight for key in explanation.keys}, abs=1e-4
    )
    assert page.locator("#ribbons .handle").count() == 3 * 4 * 4


def test_the_map_is_clickable_and_colored(tab: Tab, address: str):
    page = open_at(tab, address)
    for mode in ("label", "mistakes", "confidence", "prediction"):
        page.select_option("#map-color", mode)
        until(page, f"location.hash.includes('map={mode}') || '{mode}' === 'prediction'")
    target = page.evaluate(
        """async () => {
            const points = await (await fetch('/api/map?run=0')).json();
            const size = document.getElementById('map-canvas').clientWidth;
            const i = points.nodes.findIndex((n, k) => Math.abs(points.x[k]) < 1 &&
                Math.abs(points.y[k]) < 1);
            const half = size / 2;
            return {node: points.nodes[i], x: half + points.x[i] * half * 0.94,
                    y: half - points.y[i] * half * 0.94};
        }"""
    )
    page.hover("#map-canvas", position={"x": target["x"], "y": target["y"]})
    page.wait_for_selector("#tooltip:not([hidden])")
    page.click("#map-canvas", position={"x": target["x"], "y": target["y"]})
    page.wait_for_selector("#views:not([hidden])")
    assert "node=" in page.url
    canvas = page.locator("#map-canvas")
    canvas.hover()
    page.mouse.wheel(0, -400)
    page.mouse.wheel(0, 900)
    canvas.dblclick()


def test_ribbons_by_head_block_and_color(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address, run=1, node=12)
    before = page.inner_html("#ribbons-view")
    page.select_option("[name=head]", "2")
    assert page.locator("#ribbons .handle").count() == 3 * 4
    assert "head=2" in page.url
    assert page.inner_html("#ribbons-view") != before
    first = page.get_attribute(".position >> nth=1", "data-weight")
    page.select_option("[name=block]", "0")
    until(page, f"document.querySelectorAll('.position')[1].dataset.weight !== '{first}'")
    page.select_option("[name=color]", "label")
    assert "color=label" in page.url
    used = page.eval_on_selector_all("#ribbons .position", "all => all.map(p => +p.dataset.node)")
    labels = {int(runs[1].labels[node]) for node in used}
    names = {"no label" if c < 0 else runs[1].inside.facts.class_names[c] for c in labels}
    legend = page.locator("#ribbons .ribbon-legend text").all_text_contents()
    assert legend[0] == "Color: label"
    assert sorted(legend[1:]) == sorted(names)
    page.hover("#ribbons .position >> nth=2")
    page.wait_for_selector("#tooltip:not([hidden]) >> text=columns")
    tip = page.inner_text("#tooltip")
    for word in ("label", "prediction", "position", "weight", "hops", "f0"[:1]):
        assert word in tip
    page.click("#ribbons .position >> nth=2")
    until(page, "!location.hash.includes('node=12')")


def test_epochs(tab: Tab, address: str):
    page = open_at(tab, address, node=12, head=0)
    trained = page.eval_on_selector_all(".handle", "all => all.map(h => h.ariaValueNow)")
    page.locator("[name=epoch]").focus()
    page.keyboard.press("Home")
    until(page, "location.hash.includes('epoch=0')")
    until(page, "document.getElementById('ribbons-note').textContent.includes('epoch 0')")
    start = page.eval_on_selector_all(".handle", "all => all.map(h => h.ariaValueNow)")
    expected = [f"{7 * (4 * k + 0.5) / 16:.2f}" for k in range(4)]
    assert start == expected * 3
    assert trained != start
    page.click("text=Play")
    until(page, "!location.hash.includes('epoch')", seconds=30)


def test_what_if(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address, node=12)

    def answer() -> str:
        page.wait_for_selector("#what-if-result .answer")
        return page.inner_text("#what-if-result .answer")

    def undo() -> None:
        page.click("#edits button >> nth=0")
        page.wait_for_selector("#what-if-result >> text=Without changes")

    page.uncheck("#what-if-form input[data-criterion='1']")
    assert "prediction" in answer()
    assert page.locator(".probabilities .after-value").count() == 3
    undo()
    assert page.is_checked("#what-if-form input[data-criterion='1']")
    session = runs[0]
    other = int(session.adjacency.indices[session.adjacency.indptr[12]])
    page.fill("#what-if-form [name=id]", f"n{other}")
    page.click("#what-if-form button:text('Hide')")
    answer()
    assert page.locator(".edge.gone").count() == 1
    undo()
    page.select_option("#what-if-form [name=kind]", "node")
    page.fill("#what-if-form [name=id]", f"n{other}")
    page.click("#what-if-form button:text('Hide')")
    answer()
    assert f"n{other}" not in page.eval_on_selector_all(
        "#attended tbody bdi:first-child", "all => all.map(each => each.textContent)"
    )
    undo()
    page.fill("#what-if-form [name=column]", "f3")
    page.fill("#what-if-form [name=value]", "25")
    page.click("#what-if-form button:text('Set')")
    answer()
    assert "f3 = 25" in page.inner_text("#edits")
    undo()
    page.click("#attended button:text('hide') >> nth=0")
    answer()
    undo()
    page.locator(".edge.own .edge-hit >> nth=0").dispatch_event("click")
    answer()
    page.locator(".edge.gone .edge-hit").dispatch_event("click")
    page.wait_for_selector("#what-if-result >> text=Without changes")


def test_moving_a_key(tab: Tab, address: str):
    page = open_at(tab, address, node=12, head=1)
    handle = page.locator(".handle[data-criterion='0'][data-key='3']")
    handle.focus()
    before = float(handle.get_attribute("aria-valuenow"))
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#what-if-result .answer")
    until(page, "v => Math.abs(document.activeElement.ariaValueNow - v) < 0.02", before - 0.25)
    page.keyboard.press("ArrowLeft")
    until(page, "v => Math.abs(document.activeElement.ariaValueNow - v) < 0.02", before - 0.5)
    other = page.locator(".handle[data-criterion='2'][data-key='0']")
    box = other.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 4, steps=5)
    page.mouse.up()
    until(page, "document.querySelectorAll('#edits li').length === 3")
    assert page.url.count("position") == 2


def test_the_neighborhood(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address, node=12)
    degree = int(runs[0].degrees[12])
    assert f"All {degree + 1} nodes within 1 hop." in page.inner_text("#around-note")
    assert page.locator(".edge.own").count() >= degree
    page.select_option("[name=hops]", "2")
    until(page, "document.getElementById('around-note').textContent.includes('within 2 hops')")
    names = page.locator(".vertex-label").all_text_contents()
    assert names[0].startswith("n12 ")
    assert len({name.split()[0] for name in names}) == len(names)
    page.hover(".vertex:not(.base) >> nth=0", force=True)
    page.wait_for_selector("#tooltip:not([hidden])")
    page.locator(".vertex.base").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, "!location.hash.includes('node=12')")


def test_comparing_nodes_and_runs(tab: Tab, address: str):
    page = open_at(tab, address, node=12)
    page.fill("#compare-tools [name=id]", "n30")
    page.click("#compare-tools button:text('Compare')")
    page.wait_for_selector("#compare-view svg.ribbons")
    titles = page.locator("#compare-view h3").all_inner_texts()
    assert titles[:2] == ["Node n12 in first", "Node n30 in first"]
    page.select_option("#compare-tools [name=run]", "1")
    page.fill("#compare-tools [name=id]", "")
    page.click("#compare-tools button:text('Compare')")
    page.wait_for_selector("#compare-view h3:has-text('Node n12 in second')")
    share = re.search(r"([\d.]+)% is common", page.inner_text("#compare-view"))
    assert share is not None
    assert 0 < float(share[1]) <= 100
    page.click("#compare-tools button:text('Close')")
    page.wait_for_selector("#compare-view svg.ribbons", state="detached")


def test_a_link_restores_the_view(tab: Tab, address: str):
    edits = [{"kind": "criterion", "criterion": 0}, {"kind": "node", "node": 30}]
    state = {"node": 12, "head": 2, "color": "label", "hops": 2, "epoch": 4, "edits": edits}
    page = open_at(tab, address, **state, withRun=1, withNode=5, text="n1", order="most sure")
    page.wait_for_selector("#what-if-result .answer")
    link, shown = page.url, page.inner_text("#views")
    ribbons = page.inner_html("#ribbons-view")
    page.goto("about:blank")
    page.goto(link)
    ready(page)
    page.wait_for_selector("#what-if-result .answer")
    assert page.inner_text("#views") == shown
    assert page.inner_html("#ribbons-view") == ribbons
    assert page.input_value("[name=text]") == "n1"
    assert page.locator("#edits li").count() == 3


def test_back_returns_to_the_node_before(tab: Tab, address: str):
    page = open_at(tab, address, node=12)
    page.click("#attended tbody button.as-link >> nth=1")
    until(page, "document.getElementById('node-title').textContent !== 'Node n12'")
    page.go_back()
    title_is(page, "Node n12")


@pytest.mark.parametrize("link", ["node=999", "run=7", "node=1&block=9", "node=1&epoch=3"])
def test_a_link_to_something_else_says_so(open_tab: OpenTab, address: str, link: str):
    page = open_tab().page
    page.goto(f"{address}#{link}")
    ready(page, shown=False)
    if "block" not in link:  # a block that does not exist is the last one
        assert page.wait_for_selector("#status.error").inner_text()
    page.goto(f"{address}#node=2")
    title_is(page, "Node n2")


def saved(page: Any, panel: str, kind: str) -> bytes:
    with page.expect_download() as download:
        page.click(f".export[data-panel={panel}] button:text('{kind}')")
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return Path(download.value.path()).read_bytes()


def test_every_view_is_saved(tab: Tab, address: str, runs: list[Session]):
    page = open_at(tab, address, node=12, withRun=1, withNode=12)
    for panel in ("map", "ribbons", "around", "compare"):
        assert saved(page, panel, "PNG").startswith(b"\x89PNG"), panel
        picture = saved(page, panel, "SVG").decode()
        assert picture.startswith("<svg"), panel
        assert "class=" not in picture
        rows = list(csv.reader(io.StringIO(saved(page, panel, "CSV").decode())))
        assert len(rows) > 3, panel
        assert len({len(row) for row in rows}) == 1
    rows = list(csv.DictReader(io.StringIO(saved(page, "around", "CSV").decode())))
    expected = {key.id: key.weight for key in runs[0].inside.explain("n12", top=50).keys}
    weights = {row["target"]: float(row["weight"]) for row in rows if row["kind"] == "attention"}
    assert weights == pytest.approx(expected, abs=1e-5)


def test_a_model_without_attention(tab: Tab, address: str):
    page = open_at(tab, address, run=2, node=12)
    assert "gcn has no attention over nodes" in page.inner_text("#ribbons-note")
    assert page.locator(".vertex").count() > 1
    page.locator(".edge.own .edge-hit >> nth=0").dispatch_event("click")
    page.wait_for_selector("#what-if-result .answer")


def test_changing_the_run(tab: Tab, address: str):
    page = open_at(tab, address, node=12)
    page.select_option("#run", "2")
    until(page, "document.getElementById('about').textContent.startsWith('gcn')")
    assert page.is_visible("#hint")
    page.click("#ideas button >> nth=0")
    page.wait_for_selector("#views:not([hidden])")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_and_controls_have_names(tab, open_tab, address, scheme: str):
    tab = open_tab(color_scheme=scheme, viewport={"width": 1440, "height": 1000})
    page = open_at(
        tab,
        address,
        node=12,
        mistakes=1,
        withRun=1,
        withNode=5,
        edits=[{"kind": "criterion", "criterion": 0}],
    )
    page.wait_for_selector("#what-if-result .answer")
    low = [each for each in page.evaluate(contrasts()) if each["ratio"] < 4.5]
    assert low == []
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, canvas, g[role]')]
            .filter(node => node.offsetParent !== null || node.ownerSVGElement)
            .filter(node => !(node.ariaLabel || node.labels?.length || node.textContent.trim()))
            .map(node => node.outerHTML)"""
    )
    assert nameless == []
    headings = page.evaluate(
        "[...document.querySelectorAll('section')].map(s => s.ariaLabel || "
        "document.getElementById(s.getAttribute('aria-labelledby'))?.textContent)"
    )
    assert all(headings)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(n => n.id)")
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility(open_tab, address, violations, scheme: str):
    edits = [{"kind": "criterion", "criterion": 0}]
    for state in (
        {},
        {"node": 12, "hops": 2},
        {"node": 12, "head": 1, "epoch": 0, "color": "label"},
        {"node": 12, "edits": edits},
        {"node": 12, "withRun": 1, "withNode": 5},
        {"map": "mistakes", "mistakes": 1},
        {"run": 2, "node": 12},
    ):
        tab = open_tab(color_scheme=scheme, viewport={"width": 1440, "height": 1000})
        page = open_at(tab, address, **state)
        assert violations(page) == [], state
        assert tab.errors == []


def test_everything_is_reached_by_keyboard(tab: Tab, address: str):
    page = open_at(tab, address, node=12, head=0)
    seen = set()
    for _ in range(250):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                """() => { const n = document.activeElement;
                return n.id || n.name || n.getAttribute('class') || n.textContent; }"""
            )
        )
        if page.evaluate("document.activeElement === document.body"):
            break
    wanted = {
        "copy-link",
        "theme",
        "text",
        "label",
        "order",
        "result",
        "map-color",
        "head",
        "epoch",
        "hops",
        "handle",
        "position base",
        "vertex base",
        "as-link",
        "id",
        "column",
    }
    assert wanted <= seen
    box = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert box[0] >= box[1]  # nothing is cut off


def test_a_narrow_window(open_tab: OpenTab, address: str):
    tab = open_tab(viewport={"width": 420, "height": 800})
    page = open_at(tab, address, node=12)
    assert page.evaluate("document.documentElement.scrollWidth") <= 421
    assert tab.errors == []


def test_the_theme_can_be_chosen(tab: Tab, address: str):
    page = open_at(tab, address, node=12)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: dark"
    assert page.evaluate(ground) != light
    page.reload()
    ready(page)
    assert page.inner_text("#theme") == "Theme: dark"
