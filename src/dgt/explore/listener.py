"""A port of this machine, opened before anything expensive is loaded."""

import socket

from dgt.errors import InputError

HOST = "127.0.0.1"  # other machines cannot connect


def listen(port: int) -> socket.socket:
    """Opens a port of this machine. Connections wait until the server is ready.

    Args:
        port: The port; 0 for any free one.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(
            f"--port: cannot use port {port}: {(error.strerror or str(error)).lower()}; "
            "choose another one, or 0 for any free one"
        ) from None
    return listener


def address(listener: socket.socket) -> str:
    return f"http://{HOST}:{listener.getsockname()[1]}/"
