"""A graph of 100,000 nodes, and 300 random clicks."""

import random
from collections import deque
from collections.abc import Iterator

import psutil
import pytest

from dgt import NodeClassifier
from dgt.data import load
from dgt.explore.session import Session
from tests.browser import OpenTab, Tab
from tests.explore.page import ready, title_is, until
from tests.explore.runs import train
from tests.explore.server import serving

GRAPH = "synthetic:nodes=1e5,edges=1e6,features=32"
CLICKABLE = """() => [...document.querySelectorAll(
    'button, select, input, .position, .vertex, .edge, .handle, canvas, summary')]
    .filter(node => node.getClientRects().length && !node.disabled).length"""
# Clicks the n-th thing that can be clicked; another choice of a select, another value of an input.
CLICK = """([n, draw]) => {
    const node = [...document.querySelectorAll(
        'button, select, input, .position, .vertex, .edge, .handle, canvas, summary')]
        .filter(node => node.getClientRects().length && !node.disabled)[n];
    if (!node) return 'gone';
    if (node.tagName === 'SELECT') {
        node.selectedIndex = Math.floor(draw * node.options.length);
        node.dispatchEvent(new Event('change', {bubbles: true}));
    } else if (node.type === 'range') {
        node.value = Math.floor(draw * (Number(node.max) + 1));
        node.dispatchEvent(new Event('input', {bubbles: true}));
    } else if (node.tagName === 'INPUT' && node.type !== 'checkbox') {
        node.value = node.type === 'number' ? String(draw) : draw < 0.5 ? '' : 'n1';
        node.dispatchEvent(new Event('input', {bubbles: true}));
        node.dispatchEvent(new Event('change', {bubbles: true}));
    } else if (node.classList.contains('handle')) {
        node.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
    } else if (node.textContent !== 'Show more' && !node.closest('.export')) {
        node.dispatchEvent(new MouseEvent('click', {bubbles: true}));
    }
    const name = node.name || node.dataset.node || node.dataset.edge || node.textContent;
    return `${node.tagName}.${node.getAttribute('class') ?? ''} ${name.slice(0, 40)} (${draw})`;
}"""


def click_around(tab: Tab, clicks: int, seed: int) -> None:
    """Clicks here and there, and fails at the first error, with the clicks before it."""
    page, rng = tab.page, random.Random(seed)
    done: deque[str] = deque(maxlen=10)
    for i in range(clicks):
        count = page.evaluate(CLICKABLE)
        done.append(page.evaluate(CLICK, [rng.randrange(count), rng.random()]))
        page.wait_for_timeout(rng.choice([0, 5, 40]))  # some clicks come before the answer
        if i == clicks - 1:
            page.wait_for_timeout(2000)
        # Answers 400 to impossible changes, such as hiding the node itself, are shown to the user.
        errors = [error for error in tab.errors if "400 (Bad Request)" not in error]
        if errors:
            last = "\n  ".join(done)
            pytest.fail(f"seed {seed}, click {i}: {errors}\nthe last clicks:\n  {last}\n{page.url}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_300_random_clicks(tmp_path, open_tab: OpenTab, seed: int):
    first = train(tmp_path, "first", keep_checkpoints=4)
    graph = tmp_path / "graph.pt"
    runs = [
        first,
        train(tmp_path, "second", graph, blocks=2),
        train(tmp_path, "gcn", graph, model="gcn"),
    ]
    with serving([Session(run) for run in runs]) as address:
        tab = open_tab(viewport={"width": 1440, "height": 1000})
        tab.page.goto(f"{address}#node=12")
        ready(tab.page)
        click_around(tab, 300, seed)
        tab.page.evaluate("location.hash = 'node=7'")
        title_is(tab.page, "Node n7")


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Iterator[tuple[Session, str]]:
    out = tmp_path_factory.mktemp("large") / "run"
    settings = {"epochs": 1, "length": 8, "keep_checkpoints": 2}
    NodeClassifier(**settings).fit(load(GRAPH), out=out, graph=GRAPH)
    session = Session(out)
    with serving([session]) as address:
        yield session, address


@pytest.mark.slow
def test_100_000_nodes(large: tuple[Session, str], open_tab: OpenTab):
    session, address = large
    tab = open_tab(viewport={"width": 1440, "height": 1000})
    page = tab.page
    page.goto(address)
    ready(page)
    assert page.inner_text("#found") == "100,000 nodes"
    assert "A sample of 20,000 of 100,000 nodes." in page.inner_text("#map-note")
    page.fill("[name=text]", "99999")
    until(page, "document.getElementById('found').textContent === '1 node'")
    page.click(".result")
    title_is(page, "Node 99999")
    rows = page.eval_on_selector_all(
        "#facts .probabilities tbody tr[data-class]",
        """rows => rows.map(r => [+r.dataset.class,
                                 +r.querySelector('.before-value').dataset.value])""",
    )
    for c, shown in rows:
        assert shown == pytest.approx(float(session.inside.probabilities[99999, int(c)]))
    expected = {str(key.id): key.weight for key in session.inside.explain("99999", top=50).keys}
    found = page.eval_on_selector_all(
        "#attended tbody tr",
        "rows => rows.map(r => [r.querySelector('bdi').textContent, +r.dataset.weight])",
    )
    assert dict(found) == pytest.approx(expected, abs=1e-5)
    page.select_option("[name=hops]", "3")
    page.wait_for_selector("#around-note:has-text('within 3 hops')")
    assert "150 of " in page.inner_text("#around-note")
    for selector in (
        ".edge.own .edge-hit",
        "#attended button:text('hide')",
        "input[data-criterion]",
    ):
        page.locator(f"{selector} >> nth=0").dispatch_event("click")
        page.wait_for_selector("#what-if-result .answer")
        page.click("#edits button >> nth=0")
        page.wait_for_selector("#what-if-result >> text=Without changes")
    page.locator("[name=epoch]").focus()
    page.keyboard.press("Home")
    page.wait_for_selector("#ribbons-note:has-text('epoch 0')")
    assert tab.errors == []
    click_around(tab, 60, seed=1)
    # This process also holds the training and the tests.
    assert psutil.Process().memory_info().rss < 2.5e9
