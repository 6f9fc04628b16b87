"""What resumable benchmarks share: their options, and a record of the cases that are finished.

A case is a dict of what is measured. Each one runs in its own process, and its result is appended
to a file and not measured again: after Ctrl-C or a crash, the same command resumes.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from measure import append_line, free_gigabytes, in_own_process, read_lines, where

Case = dict[str, Any]
Work = Callable[[Case, argparse.Namespace], dict[str, Any]]


def parser_of(doc: str | None, out: str) -> argparse.ArgumentParser:
    """Returns a parser with the options that all of these benchmarks have.

    Args:
        doc: The docstring of the benchmark; its first line describes the command.
        out: Default output folder.
    """
    parser = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=float, default=free_gigabytes(), help="limit in GB")
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--show", action="store_true", help="only show the results so far")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def finish(
    cases: Iterable[Case],
    work: Work,
    arguments: argparse.Namespace,
    record: str,
    said: Callable[[Case], str],
    first: Callable[[Sequence[Case]], None] = lambda missing: None,
) -> list[Case]:
    """Measures the cases that a file lacks, unless ``--show`` is given.

    Args:
        cases: All cases, with the same names.
        work: Measures a case, in its own process.
        arguments: The options of :func:`parser_of`.
        record: Name of the file in the output folder, one JSON object per line.
        said: Describes a result in a line of progress.
        first: Called with the cases that are missing, if there are any, for instance to compile.

    Returns:
        The finished cases in the order of ``cases``, with their results, the machine and the date.
        A case that did not fit into memory has a message in ``failed``.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    path, cases = arguments.out / record, list(cases)
    names = tuple(cases[0]) if cases else ()

    def key(row: Case) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in names)

    found = {key(row): row for row in read_lines(path)}
    missing = [] if arguments.show else [case for case in cases if key(case) not in found]
    if missing:
        first(missing)
    console = Console(stderr=True)
    for done, case in enumerate(missing, start=1):
        row = {**case, **_attempt(work, case, arguments), **where()}
        append_line(path, row)
        found[key(case)] = row
        named = ", ".join(str(case[name]) for name in names)
        console.print(f"{done}/{len(missing)} {named}: {row.get('failed') or said(row)}")
    return [found[key(case)] for case in cases if key(case) in found]


def _attempt(work: Work, case: Case, arguments: argparse.Namespace) -> dict[str, Any]:
    try:
        return in_own_process(work, case, arguments)
    except (MemoryError, RuntimeError) as error:
        # torch reports a failed allocation as a RuntimeError; BrokenProcessPool is one as well.
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
