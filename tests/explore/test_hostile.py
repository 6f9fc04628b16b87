"""Hostile ids, labels and column names: nothing executes, and nothing breaks."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dgt import NodeClassifier
from dgt.explore.facts import short
from dgt.explore.session import Session
from tests.browser import OpenTab
from tests.explore.hostile import HOSTILE, hostile_graph
from tests.explore.page import ready, until
from tests.explore.server import Client, serving
from tests.small import QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Session:
    folder = tmp_path_factory.mktemp("hostile")
    data = hostile_graph()
    torch.save(data, folder / "graph.pt")
    settings = QUICK | {"epochs": 4, "keep_checkpoints": 3}
    out = folder / "<img src=x onerror=window.pwned=1>"
    NodeClassifier(**settings).fit(data, out=out, graph=str(folder / "graph.pt"))
    return Session(out)


@pytest.fixture(scope="module")
def address(run: Session) -> Iterator[str]:
    with serving([run]) as found:
        yield found


def test_there_are_50_of_them(run: Session):
    assert len(set(HOSTILE)) == 50
    assert run.inside.ids[:50] == HOSTILE


def test_the_answers_hold_them_as_plain_values(run: Session, address: str):
    client = Client(address)
    for node, text in enumerate(HOSTILE):
        status, found = client.get("node", node=node)
        assert status == 200
        assert found["id"] == short(text)
        if len(text) <= 1000:
            assert client.get("locate", id=text) == (200, {"node": node})
            status, found = client.get("search", text=text)
            assert status == 200
            assert node in [each["node"] for each in found["found"]]
        else:
            assert client.get("locate", id=text)[0] == 400


def intact(page: Any) -> None:
    """Nothing of the data has become code or an element."""
    assert page.evaluate("window.pwned") is None
    assert page.locator("script").count() == 1
    assert page.locator("iframe, object, embed, base, img, body style, body link").count() == 0
    foreign = page.evaluate(
        """() => [...document.querySelectorAll('*')].flatMap(n => n.getAttributeNames()
            .filter(a => a.startsWith('on') || (/(href|src|action|data)$/.test(a) &&
                                                n.getAttribute(a).startsWith('javascript:'))))"""
    )
    assert foreign == []


def test_every_view_shows_them_as_text(open_tab: OpenTab, address: str):
    tab = open_tab(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
    page = tab.page
    page.goto(address)
    ready(page)
    intact(page)
    for node, text in enumerate(HOSTILE):
        page.evaluate("node => { location.hash = `node=${node}&hops=2`; }", node)
        shown = text if len(text) <= 60 else short(text)[:59] + "…"
        until(
            page,
            "text => document.getElementById('node-title').textContent === text",
            f"Node {shown}",
        )
        intact(page)
    page.hover("#ribbons .position >> nth=1")
    page.wait_for_selector("#tooltip:not([hidden]) >> text=columns")
    page.hover(".vertex:not(.base) >> nth=0", force=True)
    intact(page)
    page.evaluate(
        """() => { location.hash = 'node=3&withRun=0&withNode=36&edits=' + encodeURIComponent(
            JSON.stringify([{kind: 'node', node: 5, shown: '<img src=x onerror=pwned=1>'},
                            {kind: 'feature', node: 3, column: 0, value: 2, shown: '<b>'}])); }"""
    )
    page.wait_for_selector("#compare-view svg.ribbons")
    page.wait_for_selector("#what-if-result .answer")
    intact(page)
    for panel in ("map", "ribbons", "around", "compare"):
        for kind in ("PNG", "SVG", "CSV"):
            with page.expect_download() as download:
                page.click(f".export[data-panel={panel}] button:text('{kind}')")
            content = Path(download.value.path()).read_bytes()
            if kind == "SVG":
                picture = open_tab().page
                picture.route("**/*", lambda route: route.abort())
                picture.set_content("<p>")
                parsed = picture.evaluate(
                    """text => new DOMParser().parseFromString(text, 'image/svg+xml')
                        .querySelectorAll('parsererror, script, foreignObject').length""",
                    content.decode(),
                )
                assert parsed == 0
            if kind == "CSV":
                rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
                assert len({len(row) for row in rows}) == 1
                assert not any(cell.startswith("=") for row in rows for cell in row)
    assert tab.errors == []
    assert all(request.startswith(address) for request in tab.requests)


@pytest.mark.parametrize(
    "link",
    [
        "node=<script>pwned=1</script>",
        "run=javascript:pwned=1",
        "text=" + "%3Cimg src=x onerror=pwned=1%3E",
        "edits=[{%22kind%22:%22__proto__%22}]",
        "edits=[[[[[",
        "edits=[null,5,{}]",
        "head=constructor&node=1&color=__proto__&map=constructor",
        "node=1&hops=999",
        "node=99999999999999999999",
        "%00%ff=%zz",
    ],
)
def test_hostile_links(open_tab: OpenTab, address: str, link: str):
    tab = open_tab()
    tab.page.goto(f"{address}#{link}")
    ready(tab.page, shown=False)
    intact(tab.page)
    assert [e for e in tab.errors if "400 (Bad Request)" not in e] == []
