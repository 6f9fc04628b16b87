"""The server of the application."""

import socket
from collections.abc import Sequence

import uvicorn

from dgt.explore.app import build_app
from dgt.explore.session import Session


def make_server(sessions: Sequence[Session], listener: socket.socket) -> uvicorn.Server:
    """Returns a server whose ``run(sockets=[listener])`` serves until Ctrl-C.

    Args:
        sessions: The runs to explore.
        listener: Result of :func:`dgt.explore.listener.listen`.
    """
    config = uvicorn.Config(
        build_app(sessions, listener.getsockname()[1]),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
