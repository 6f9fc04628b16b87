"""The paper's tables: what is run for each, and how it is laid out. One file a table."""

from dgt.experiments import (
    attention,
    defaults,
    efficiency,
    encodings,
    interpolation,
    nodesort,
    table1,
)
from dgt.experiments.runner import reproduce
from dgt.experiments.table import Table

TABLES: dict[str, Table] = {
    module.TABLE.name: module.TABLE
    for module in (table1, defaults, efficiency, nodesort, encodings, interpolation, attention)
}

__all__ = ["TABLES", "Table", "reproduce"]
