"""Clicks on what is still shown while the answer for the next view is on its way."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from dgt.explore.session import Session
from tests.browser import OpenTab, Tab
from tests.explore.page import ready, title_is, until
from tests.explore.runs import train
from tests.explore.server import serving

CLICK = "node => node.dispatchEvent(new MouseEvent('click', {bubbles: true}))"


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("late")
    first = train(folder, "first", keep_checkpoints=4)
    second = train(folder, "second", folder / "graph.pt", blocks=2, seed=1)
    with serving([Session(first), Session(second)]) as found:
        yield found


@pytest.fixture
def tab(open_tab: OpenTab) -> Iterator[Tab]:
    tab = open_tab(viewport={"width": 1440, "height": 1000})
    yield tab
    assert tab.errors == []


class Held:
    """Keeps back the answers of a part of the server."""

    def __init__(self, page: Any, name: str) -> None:
        self.page, self.pattern = page, f"**/api/{name}*"
        self.routes: list[Any] = []
        page.route(self.pattern, lambda route: self.routes.append(route))

    def wait(self, count: int = 1) -> None:
        for _ in range(500):
            if len(self.routes) >= count:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{len(self.routes)} requests of {self.pattern}, expected {count}")

    def release(self) -> None:
        for route in self.routes:
            route.continue_()
        self.page.unroute(self.pattern)


def edits(page: Any) -> int:
    return page.locator("#edits li").count()


def test_a_neighborhood_after_a_change_of_the_run(tab: Tab, address: str):
    page = tab.page
    page.goto(f"{address}#node=12")
    ready(page)
    page.wait_for_selector(".edge")
    held = Held(page, "around")
    page.select_option("#run", "1")
    until(page, "document.getElementById('views').hidden")
    page.click(".result >> nth=3")
    title_is(page, "Node n3")
    held.wait()
    page.eval_on_selector_all(".edge", f"edges => edges.forEach({CLICK})")
    page.wait_for_timeout(100)
    assert edits(page) == 0
    held.release()
    page.wait_for_selector(".vertex.base[data-node='3']")
    page.eval_on_selector_all(".edge", f"edges => edges.slice(0, 1).forEach({CLICK})")
    page.wait_for_selector("#what-if-result .answer")


def test_hiding_nodes_of_the_view_before(tab: Tab, address: str):
    page = tab.page
    hidden = [{"kind": "node", "node": node, "shown": f"n{node}"} for node in range(30, 60)]
    page.goto(f"{address}#node=12&edits={quote(json.dumps(hidden))}")
    ready(page)
    page.wait_for_selector("#what-if-result .answer")
    held = Held(page, "node")
    page.click(".result >> nth=3")
    held.wait()
    # The table and the sequences are still those of node n12 after its changes.
    page.eval_on_selector_all("#attended button.small", f"all => all.forEach({CLICK})")
    page.locator("#ribbons .handle >> nth=0").dispatch_event("keydown", {"key": "ArrowRight"})
    page.eval_on_selector_all(
        "#facts input[type=number]",
        "all => all.forEach(n => n.dispatchEvent(new Event('change', {bubbles: true})))",
    )
    page.wait_for_timeout(100)
    held.release()
    title_is(page, "Node n3")
    assert edits(page) == 0
    assert "edits" not in page.url


def test_the_nodes_found_in_the_run_before(tab: Tab, address: str):
    page = tab.page
    page.goto(address)
    ready(page)
    held = Held(page, "search")
    page.select_option("#run", "1")
    held.wait()
    until(page, "document.getElementById('found').textContent === 'Searching …'")
    page.click("#theme")
    assert page.locator("#results button").count() == 0
    held.release()
    until(page, "document.querySelectorAll('.result').length === 50")
    page.click(".result >> nth=3")
    title_is(page, "Node n3")


def test_a_change_that_is_refused_leaves_no_result(open_tab: OpenTab, address: str):
    page = open_tab(viewport={"width": 1440, "height": 1000}).page
    page.goto(f"{address}#node=12")
    ready(page)
    page.click("input[data-criterion='0']")
    page.wait_for_selector("#what-if-result .answer")
    page.fill("#what-if-form [name=id] >> nth=0", "n12")
    page.select_option("#what-if-form [name=kind]", "node")
    page.click("#what-if-form button >> nth=0")
    page.wait_for_selector("#what-if-result >> text=Not possible")
    assert page.locator("#what-if-result .answer").count() == 0
    assert page.inner_text("#status.error")


def test_damaged_changes_in_a_link_are_left_out(tab: Tab, address: str):
    page = tab.page
    damaged: list[object] = [
        {"kind": "feature"},
        {"kind": "feature", "node": 12, "column": 0, "value": None},
        {"kind": "node", "node": 3, "shown": {"length": 4e9}},
        {"kind": "toString"},
        {"kind": "key", "criterion": "<b>", "head": [], "key": {}, "position": "x"},
        None,
        {"kind": "criterion", "criterion": 1},
    ]
    page.goto(f"{address}#node=12&edits={quote(json.dumps(damaged))}")
    ready(page)
    title_is(page, "Node n12")
    page.wait_for_selector("#what-if-result .answer")
    assert edits(page) == 1
