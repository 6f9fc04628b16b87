"""``dgt explore``."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dgt.cli.options import Modules, Threads, use_threads
from dgt.config import read_toml
from dgt.errors import InputError

MOST_RUNS = 8


def _port(_: object, value: int) -> None:
    if not 0 <= value <= 65_535:
        raise ValueError("Expected at least 0 and at most 65535.")


Port = Annotated[int, Parameter(validator=_port)]
Browser = Annotated[bool, Parameter(negative="--no-browser", show_default=False)]


def _check(run: Path) -> None:
    if (run / "run-00").is_dir():
        raise InputError(f"{run}: holds several runs; choose one, such as {run / 'run-00'}")
    if not (run / "model.safetensors").is_file():
        raise InputError(f"{run}: not the folder of a finished run: has no model.safetensors")
    settings = read_toml(run / "config.toml").get("train")  # checked when the run is loaded
    task = settings.get("task") if isinstance(settings, dict) else None
    if task in ("multilabel", "regression"):
        raise InputError(f"{run}: the model predicts {task}; only classes can be explored")


def explore(
    *runs: Path,
    graph: str | None = None,
    port: Port = 8765,
    browser: Browser = True,
    modules: Modules = (),
    threads: Threads = None,
) -> None:
    """Explore the attention of a trained model in the browser.

    Serves a page for this machine only, until Ctrl-C. Needs the extra explore: pip install
    'deformable-graph-transformer[explore]'.

    Args:
        runs: Folders created by dgt train. Several runs can be compared with each other.
        graph: Name or path of the graph. Default: the one that each run was trained on.
        port: Port of this machine; 0 for any free one.
        browser: Open the page in the browser.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        raise InputError(f"got {len(runs)} runs, expected 1 to {MOST_RUNS} folders of dgt train")
    # A mistake is reported before the browser opens and before torch is loaded.
    for run in runs:
        _check(run)
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "dgt explore needs packages that are not installed; run: "
            "pip install 'deformable-graph-transformer[explore]'"
        ) from None
    from dgt.explore.listener import address, listen

    with listen(port) as listener:
        print(f"{address(listener)}  (Ctrl-C to stop)", flush=True)
        if browser:  # it starts while the run is loaded, and waits for the answer
            threading.Thread(target=webbrowser.open, args=[address(listener)], daemon=True).start()
        use_threads(threads)

        from dgt.explore.server import make_server
        from dgt.explore.session import Session

        server = make_server([Session(run, graph) for run in runs], listener)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return  # the usual way to end it
