"""Serves the application at a port of this machine."""

import socket
from collections.abc import Callable, Sequence

import uvicorn

from dgt.errors import InputError
from dgt.explore.app import build_app
from dgt.explore.session import Session

HOST = "127.0.0.1"  # other machines cannot connect


def bind(port: int) -> socket.socket:
    """Reserves a port of this machine, before anything expensive is computed.

    Args:
        port: The port; 0 for any free one.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port: cannot use port {port}: {(error.strerror or str(error)).lower()}; "
            "choose another one, or 0 for any free one"
        ) from None
    return listener


def serve(
    sessions: Sequence[Session], listener: socket.socket, ready: Callable[[str], None]
) -> None:
    """Serves until Ctrl-C.

    Args:
        sessions: The runs to explore.
        listener: Result of :func:`bind`.
        ready: Called with the address once the server accepts connections.
    """
    port = listener.getsockname()[1]
    listener.listen()
    ready(f"http://{HOST}:{port}/")
    config = uvicorn.Config(
        build_app(sessions, port),
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
    uvicorn.Server(config).run(sockets=[listener])
