"""Keeps other sites away from the application."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests for another host or from another site, and adds security headers.

    The check of the host prevents DNS rebinding, by which a site would reach this server under its
    own name.

    Args:
        app: The application.
        hosts: Accepted values of the ``Host`` header.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    @classmethod
    def at(cls, port: int) -> Middleware:
        """Returns the middleware for a server at a port of this machine."""
        return Middleware(cls, frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost")))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        app = self.app if self._accepts(Headers(scope=scope)) else REFUSED
        await app(scope, receive, guarded)

    def _accepts(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return False
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return False
        return headers.get("host", "") in self.hosts


REFUSED = PlainTextResponse("only this page may ask this server\n", status_code=403)
