"""``dgt explore``."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dgt.cli.options import Modules, Threads, use_threads
from dgt.errors import InputError


def _port(_: object, value: int) -> None:
    if not 0 <= value <= 65_535:
        raise ValueError("Expected at least 0 and at most 65535.")


Port = Annotated[int, Parameter(validator=_port)]
Browser = Annotated[bool, Parameter(negative="--no-browser", show_default=False)]
MOST_RUNS = 8


def explore(
    *runs: Path,
    graph: str | None = None,
    port: Port = 8765,
    browser: Browser = True,
    modules: Modules = (),
    threads: Threads = None,
) -> None:
    """Explore the attention of a trained model in the browser.

    Serves a page at this machine only, until Ctrl-C. Requires the extra explore: pip install
    'deformable-graph-transformer[explore]'.

    Args:
        runs: Folders created by dgt train. Several runs can be compared with each other.
        graph: Name or path of the graph. Default: the one that the run was trained on.
        port: Port of this machine; 0 for any free one.
        browser: Open the page in the browser.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        raise InputError(f"got {len(runs)} runs, expected 1 to {MOST_RUNS} folders of dgt train")
    use_threads(threads)
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "dgt explore needs packages that are not installed; run: "
            "pip install 'deformable-graph-transformer[explore]'"
        ) from None

    from dgt.explore.server import bind, serve
    from dgt.explore.session import Session

    with bind(port) as listener:
        sessions = [Session(run, graph) for run in runs]

        def ready(address: str) -> None:
            print(f"{address}  (Ctrl-C to stop)", flush=True)
            if browser:
                import webbrowser

                webbrowser.open(address)

        try:
            serve(sessions, listener, ready)
        except KeyboardInterrupt:
            print(file=sys.stderr)
