"""A running explorer for tests."""

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from dgt.explore.listener import address, listen
from dgt.explore.server import make_server
from dgt.explore.session import Session


@contextmanager
def serving(sessions: Sequence[Session]) -> Iterator[str]:
    """Serves runs in a thread, and yields the address."""
    with listen(0) as listener:
        server = make_server(sessions, listener)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address(listener)
        finally:
            server.should_exit = True
            thread.join()


class Client:
    """Sends requests as a page, or as somebody else."""

    def __init__(self, address: str) -> None:
        self.host = address.removeprefix("http://").rstrip("/")

    def ask(
        self, path: str, method: str = "GET", body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Returns the status, the content (of JSON, the value) and the headers of an answer."""
        connection = http.client.HTTPConnection(self.host)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content: Any = answer.read()
        got = {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        if got.get("content-type") == "application/json":
            content = json.loads(content)
        return answer.status, content, got

    def get(self, name: str, **query: object) -> tuple[int, Any]:
        return self.ask(f"/api/{name}?{urlencode(query)}")[:2]

    def post(self, name: str, value: object) -> tuple[int, Any]:
        body = json.dumps(value).encode()
        return self.ask(f"/api/{name}", "POST", body, content_type="application/json")[:2]
