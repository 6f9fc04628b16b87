"""The paper's tables: what is run for each, and how it is laid out. One file a table."""

from dgt.experiments import defaults, table1
from dgt.experiments.runner import reproduce
from dgt.experiments.table import Table

TABLES: dict[str, Table] = {table.name: table for table in (table1.TABLE, defaults.TABLE)}

__all__ = ["TABLES", "Table", "reproduce"]
