"""The classes of cases, by name. Each is a function that yields its cases."""

import functools
from collections.abc import Callable, Iterable

from tests.campaign import known_wrong
from tests.campaign.case import Case
from tests.campaign.classes import (
    attribute_values,
    attributes,
    csv_folders,
    csv_tables,
    extensions,
    faults,
    flags,
    folders,
    graph_files,
    graph_names,
    keywords,
    kills,
    methods,
    modules,
    npz_files,
    operators,
    other_graphs,
    parquet_tables,
    pt_files,
    races,
    requests,
    run_files,
    searches,
    surroundings,
    toml_files,
    transforms,
)

CLASSES: dict[str, Callable[[], Iterable[Case]]] = {
    "csv": csv_tables.cases,
    "csv folders": csv_folders.cases,
    "parquet": parquet_tables.cases,
    "npz": npz_files.cases,
    "pt": pt_files.cases,
    "graph files": graph_files.cases,
    "toml": toml_files.cases,
    "run files": run_files.cases,
    "searches": searches.cases,
    "flags": flags.cases,
    "names": graph_names.cases,
    "keywords": keywords.cases,
    "attributes": attributes.cases,
    "values": attribute_values.cases,
    "methods": methods.cases,
    "other graphs": other_graphs.cases,
    "folders": folders.cases,
    "transforms": transforms.cases,
    "modules": modules.cases,
    "extensions": extensions.cases,
    "requests": requests.cases,
    "faults": faults.cases,
    "races": races.cases,
    "surroundings": surroundings.cases,
    "kills": kills.cases,
    "operators": operators.cases,
}


# Not part of the campaign: cases that must be found wrong.
KNOWN_WRONG = "known wrong"


@functools.cache
def cases(klass: str) -> dict[str, Case]:
    """Returns the cases of a class by name."""
    found: dict[str, Case] = {}
    for case in known_wrong.cases() if klass == KNOWN_WRONG else CLASSES[klass]():
        if case.name in found:
            raise ValueError(f"{klass}: two cases are named {case.name!r}")
        found[case.name] = case
    return found


def find(klass: str, name: str) -> Case:
    return cases(klass)[name]
