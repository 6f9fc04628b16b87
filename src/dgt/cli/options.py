"""Options that several commands share."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from dgt.errors import InputError


def up_to(most: int, least: int = 1) -> Callable[[Any, int | None], None]:
    """Returns a validator for an option that counts something, from ``least`` to ``most``."""

    def check(_: Any, value: int | None) -> None:
        if value is not None and not least <= value <= most:
            raise ValueError(f"Expected at least {least} and at most {most}.")

    return check


def _positive(_: Any, value: float | None) -> None:
    if value is not None and not 0 < value <= 10_000:
        raise ValueError("Expected more than 0 and at most 10000.")


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Count = Annotated[int, Parameter(validator=up_to(1_000_000))]
Hours = Annotated[float, Parameter(validator=_positive)]
Minutes = Annotated[float, Parameter(validator=_positive)]
Runs = Annotated[int, Parameter(validator=up_to(10_000))]
FinalRuns = Annotated[int, Parameter(validator=up_to(10_000, least=0))]
Workers = Annotated[int, Parameter(validator=up_to(1024))]
Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative="",
        show_default=False,
        help="Print the result as JSON to stdout and everything else to stderr.",
    ),
]
Quiet = Annotated[
    bool, Parameter(negative="", show_default=False, help="Do not show any progress.")
]
Threads = Annotated[
    int | None,
    Parameter(
        validator=up_to(1024),
        help="Number of CPU threads. The result does not depend on it. Default: all cores.",
    ),
]
Device = Annotated[
    str | None,
    Parameter(help="Device to compute on: auto, cpu, cuda, cuda:1 or mps. Default: auto."),
]
# Imported by dgt.cli.settings.fill_in, before the settings are checked.
Modules = Annotated[
    tuple[str, ...],
    Parameter(
        name="--import",
        metavar="MODULE",
        show_default=False,
        consume_multiple=False,
        help=(
            "Python module to import first, for instance to register your own criteria, "
            "encodings, models or metrics. The current folder is searched, too. May be given "
            "several times."
        ),
    ),
]


def use_threads(threads: int | None) -> None:
    """Limits the threads of PyTorch and, with them, of our compiled functions."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def graph_of(run: Path, graph: str | None) -> str:
    """Returns the graph to use with a run: the given one, else the one it was trained on."""
    from dgt.runs.files import read_settings

    name = read_settings(run).graph if graph is None else graph
    if name is None:
        raise InputError(f"{run}: config.toml does not name a graph; pass it after the run")
    return name


def check_replaceable(out: Path, inputs: Iterable[Path], overwrite: bool) -> None:
    """Raises an error if the file ``--out`` exists, unless it may be overwritten.

    Args:
        out: The output file.
        inputs: Files that the command reads and that are never overwritten.
        overwrite: Whether other files may be overwritten.
    """
    if not out.exists():
        return
    for path in inputs:
        if path.exists() and path.samefile(out):
            raise InputError(f"--out: {out} is an input of this command; choose another file")
    if not overwrite:
        raise InputError(f"--out: {out} exists; choose another file or pass --overwrite")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))
