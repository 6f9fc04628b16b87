"""The web application: checks each request, asks the sessions, and answers with JSON."""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dgt.errors import InputError
from dgt.explore.around import around
from dgt.explore.attention import view
from dgt.explore.checks import Asked, read_json
from dgt.explore.edits import MOST_EDITS, Edits
from dgt.explore.facts import brief, columns, describe, node_facts
from dgt.explore.guard import Guard
from dgt.explore.map import Map
from dgt.explore.search import Filter, search
from dgt.explore.session import Session
from dgt.explore.whatif import what_if

STATIC = Path(__file__).parent / "static"
MOST_BYTES = 100_000
MOST_START = 10_000_000
MOST_HOPS = 4

# One thread computes everything: models and caches are used by one request at a time, and memory
# that one answer has freed is used for the next.
ONE_AT_A_TIME = ThreadPoolExecutor(1)

Answer = Callable[[Session, Asked], Any]


def build_app(sessions: Sequence[Session], port: int) -> Starlette:
    """Builds the application.

    Args:
        sessions: The runs to explore, on graphs of any kind.
        port: The port that it will be served at, for the check of the ``Host`` header.
    """
    map_of = lru_cache(None)(Map)

    def the_map(session: Session, asked: Asked) -> Any:
        return map_of(session).points()

    def node(session: Session, asked: Asked) -> Any:
        at = _node(session, asked)
        seen = view(session, at, _block(session, asked), _epoch(session, asked))
        return {**node_facts(session, at), "place": map_of(session).place(at), "view": seen}

    answers: dict[str, Answer] = {
        "map": the_map,
        "node": node,
        "search": _search,
        "around": _around,
        "columns": _columns,
        "brief": _brief,
        "locate": _locate,
    }
    routes = [
        Route("/", partial(_page, STATIC / "index.html")),
        Route("/api/runs", partial(_runs, sessions)),
        *(Route(f"/api/{name}", partial(_get, sessions, each)) for name, each in answers.items()),
        Route("/api/what-if", partial(_post, sessions, _what_if), methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return Starlette(routes=routes, middleware=[Guard.at(port)])


async def _page(path: Path, request: Request) -> Response:
    return FileResponse(path)


async def _runs(sessions: Sequence[Session], request: Request) -> Response:
    return _json([describe(session) for session in sessions])


async def _get(sessions: Sequence[Session], answer: Answer, request: Request) -> Response:
    return await _answer(sessions, answer, lambda: _query(request))


async def _post(sessions: Sequence[Session], answer: Answer, request: Request) -> Response:
    # Another site cannot send this type without asking first, and it is never allowed.
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        return _json({"error": "content-type: expected application/json"}, 415)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            return _json({"error": f"the request has more than {MOST_BYTES:,} bytes"}, 413)
    return await _answer(sessions, answer, lambda: read_json(body))


def _query(request: Request) -> Asked:
    names = [name for name, _ in request.query_params.multi_items()]
    if len(set(names)) < len(names):
        raise InputError("a name is given twice")
    return Asked(dict(request.query_params))


async def _answer(
    sessions: Sequence[Session], answer: Answer, read: Callable[[], Asked]
) -> Response:
    def compute() -> Any:
        asked = read()
        session = sessions[asked.integer("run", 0, len(sessions) - 1, 0)]
        found = answer(session, asked)
        asked.done()
        return found

    try:
        return _json(await asyncio.get_running_loop().run_in_executor(ONE_AT_A_TIME, compute))
    except InputError as error:
        return _json({"error": str(error)}, 400)


def _json(value: Any, status: int = 200) -> Response:
    # Ids may hold surrogates, which UTF-8 cannot encode; JSON escapes them.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Response(text, status, media_type="application/json")


def _node(session: Session, asked: Asked) -> int:
    return asked.integer("node", 0, session.num_nodes - 1)


def _block(session: Session, asked: Asked) -> int:
    return asked.integer("block", 0, session.blocks - 1, session.blocks - 1)


def _epoch(session: Session, asked: Asked) -> int | None:
    return asked.optional("epoch", 0, MOST_START)


def _search(session: Session, asked: Asked) -> Any:
    start = asked.integer("start", 0, MOST_START, 0)
    return search(session, Filter.of(session, asked), start)


def _around(session: Session, asked: Asked) -> Any:
    node, hops = _node(session, asked), asked.integer("hops", 1, MOST_HOPS, 1)
    return around(session, node, hops, _block(session, asked), _epoch(session, asked))


def _columns(session: Session, asked: Asked) -> Any:
    return columns(session, _node(session, asked), asked.text("text", ""), 50)


def _brief(session: Session, asked: Asked) -> Any:
    node = _node(session, asked)
    return {**brief(session, [node])[node], "columns": columns(session, node, limit=6)}


def _locate(session: Session, asked: Asked) -> Any:
    name = asked.text("id")
    node = session.find(name)
    if node is None:
        raise InputError(f"id: got {name[:60]!r}, expected the id of a node of this graph")
    return {"node": node}


def _what_if(session: Session, asked: Asked) -> Any:
    node = _node(session, asked)
    edits = Edits.of(session, node, asked.every("edits", MOST_EDITS))
    return what_if(session, node, edits, _block(session, asked), _epoch(session, asked))
