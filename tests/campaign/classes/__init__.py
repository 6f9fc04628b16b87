"""The classes of cases, by name. Each is a function that yields its cases."""

import functools
from collections.abc import Callable, Iterable

from tests.campaign.case import Case
from tests.campaign.classes import (
    array_files,
    attributes,
    calls,
    csv_tables,
    extensions,
    flags,
    graph_names,
    operators,
    parquet_tables,
    parts,
    run_files,
    searches,
    settings_files,
)

CLASSES: dict[str, Callable[[], Iterable[Case]]] = {
    "csv": csv_tables.cases,
    "parquet": parquet_tables.cases,
    "npz": array_files.npz_cases,
    "pt": array_files.pt_cases,
    "toml": settings_files.toml_cases,
    "run files": run_files.cases,
    "searches": searches.cases,
    "flags": flags.cases,
    "keywords": settings_files.keyword_cases,
    "attributes": attributes.cases,
    "methods": calls.method_cases,
    "parts": parts.cases,
    "extensions": extensions.cases,
    "names": graph_names.cases,
    "operators": operators.cases,
}


@functools.cache
def cases(klass: str) -> dict[str, Case]:
    """Returns the cases of a class by name."""
    found: dict[str, Case] = {}
    for case in CLASSES[klass]():
        if case.name in found:
            raise ValueError(f"{klass}: two cases are named {case.name!r}")
        found[case.name] = case
    return found


def find(klass: str, name: str) -> Case:
    return cases(klass)[name]
