"""Requests to the explorer, and runs that it cannot show."""

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dgt.explore.listener import address, listen
from dgt.explore.server import make_server
from dgt.explore.session import Session
from tests.campaign.case import Case, Outcome, Wrong
from tests.campaign.classes.calls import case
from tests.campaign.judge import command
from tests.campaign.material import NODES, TRAIN, copy, place
from tests.campaign.mutations import REPLACEMENTS, damaged, documents, short, texts

# Valid requests, by the name of the view.
VIEWS: dict[str, dict[str, Any]] = {
    "map": {},
    "node": {"node": 3, "block": 0},
    "search": {"text": "n1", "label": 0, "part": "test", "attribute": "f0", "value": 0.5},
    "around": {"node": 3, "hops": 2},
    "columns": {"node": 3, "text": "f"},
    "brief": {"node": 3},
    "locate": {"id": "n3"},
}
WHAT_IF: dict[str, Any] = {
    "node": 3,
    "edits": [
        {"kind": "node", "node": 4},
        {"kind": "feature", "node": 3, "column": 1, "value": 0.5},
        {"kind": "key", "block": 0, "criterion": 0, "head": 0, "key": 0, "position": 1.5},
    ],
}
QUERIES = (
    "",
    " ",
    "-1",
    str(NODES),
    "1.5",
    "1e400",
    "nan",
    "9" * 5000,
    "x" * 2000,
    "٣",
    "\0",
    "a&b=1",
)
# What is also right for these names: no value is the default, and any text is one to look for.
FREE = {*(("search", name) for name in ("text", "label", "part", "value")), ("columns", "text")}
JSON = {"content-type": "application/json"}


def cases() -> Iterator[Case]:
    for view, query in VIEWS.items():
        yield _get(f"control: {view}", view, query, valid=True)
        yield _get(f"{view}: unknown name", view, {**query, "no_such": 1})
        for name in query:
            rest = {n: v for n, v in query.items() if n != name}
            for value in QUERIES:
                # Digits in another script are read as Python does.
                free = (view, name) in FREE or value == "٣" or (view == "search" and value == "")
                shown = short(value)
                title = f"{view}: {name} is {shown}"
                yield _get(title, view, {**rest, name: value}, valid=None if free else False)
    yield _post("control: what-if", json.dumps(WHAT_IF), valid=True)
    for title, changed in documents(WHAT_IF, 6, "what-if"):
        text = json.dumps(changed)
        yield _post(f"what-if: {title}", text, valid=None)
    for title, content in texts():
        yield _post(f"what-if: {title}", content)
    for value in REPLACEMENTS:
        yield _post(f"what-if: run is {short(value)}", json.dumps({**WHAT_IF, "run": value}), None)
    yield _post("what-if: too long", json.dumps({**WHAT_IF, "x": "x" * 200_000}))
    yield _other("another host", "/api/runs", {"host": "example.com"})
    yield _other("another origin", "/api/runs", {"origin": "http://example.com"})
    yield _other("another site", "/api/runs", {"sec-fetch-site": "cross-site"})
    yield _other("a file outside", "/static/../../pyproject.toml", {})
    yield _other("an escaped file outside", "/static/..%2f..%2fapp.py", {})
    yield _other("no such view", "/api/nothing", {})
    yield from _runs()


@cache
def _server() -> str:
    """Starts the explorer once in this process; returns its host and port."""
    listener = listen(0)
    server = make_server([Session(place() / "kept")], listener)
    threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
    return address(listener).removeprefix("http://").rstrip("/")


def _ask(path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Any:
    """Returns the answer; a status of 400 to 499 is a refusal, one of 500 a failure."""
    connection = http.client.HTTPConnection(_server(), timeout=50)
    connection.request("GET" if body is None else "POST", path, body, headers or {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    if answer.status >= 500:
        raise Wrong(f"status {answer.status}", content[-500:].decode(errors="replace"))
    if answer.status >= 400:
        text = content.decode().strip()
        raise ValueError(json.loads(text)["error"] if text.startswith("{") else text)
    return json.loads(content)


def _request(title: str, act: Callable[[], Any], valid: bool | None) -> Case:
    expect = {True: "accepted", False: "refused", None: "either"}[valid]
    return case(title, expect, act, check=_is_plain)  # type: ignore[arg-type]


def _is_plain(found: Any) -> None:
    if re.search(r"\bNaN\b|\bInfinity\b", json.dumps(found)):
        raise Wrong("wrong answer", "holds numbers that are not finite")


def _get(title: str, view: str, query: dict[str, Any], valid: bool | None = False) -> Case:
    return _request(title, lambda: _ask(f"/api/{view}?{urlencode(query)}"), valid)


def _post(title: str, content: str | bytes, valid: bool | None = False) -> Case:
    body = content.encode() if isinstance(content, str) else content
    return _request(title, lambda: _ask("/api/what-if", body, JSON), valid)


def _other(title: str, path: str, headers: dict[str, str]) -> Case:
    return _request(title, lambda: _ask(path, headers=headers), False)


def _runs() -> Iterator[Case]:
    """Yields kept epochs that are damaged, and runs that the explorer or the report cannot show."""
    name = "epoch-0000001.safetensors"
    content = (place() / "kept" / "epochs" / name).read_bytes()
    for title, changed in damaged(content, "kept", flipped=6):

        def prepare(changed: bytes = changed) -> None:
            copy("kept")
            Path("kept", "epochs", name).write_bytes(changed)

        look = lambda: Session(Path("kept")).model_at(1)
        yield case(f"kept epoch: {title}", "refused", look, (name,), prepare=prepare)
    for task in ("multilabel", "regression"):
        for action in ("explore", "report", "explain"):
            yield _of_task(action, task)


def _of_task(action: str, task: str) -> Case:
    """Only classes can be explored, reported and explained, and the message says so."""

    def prepare() -> None:
        copy("graph")
        label = ["--label=f0"] if task == "regression" else []
        command(*TRAIN, f"--task={task}", *label)()

    more = {"explore": ["--no-browser", "--port=0"], "report": ["--out", "r.html"]}
    tokens = [action, "run", *more.get(action, ["n3"])]
    act: Callable[[], Outcome] = command(*tokens)
    repeat = f"dgt {' '.join(tokens)}  # a run with --task {task}"
    return Case(f"{action} a {task} run", "refused", act, prepare, (task,), repeat=repeat)
