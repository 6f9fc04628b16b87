"""The tables and figures of the paper, one file each, and ``dgt reproduce``.

A file defines a :class:`Table`: which settings are trained on which data sets, and how the results
are laid out. ``runner`` trains the runs that are not recorded yet, ``record`` stores finished runs
together with a digest of the code (``code``) and the ``machine``, ``verification`` trains recorded
runs again, and ``paper`` holds the published figures. How tables are printed and figures are drawn
is defined in :mod:`dgt.report`, how a single run is trained in :mod:`dgt.estimator`.
"""

from dgt.experiments import (
    attention,
    defaults,
    efficiency,
    encodings,
    ensembles,
    interpolation,
    nodesort,
    table1,
)
from dgt.experiments.runner import reproduce
from dgt.experiments.table import Table
from dgt.experiments.verification import verify

TABLES: dict[str, Table] = {
    module.TABLE.name: module.TABLE
    for module in (
        *(table1, defaults, efficiency, nodesort, encodings, interpolation, attention),
        ensembles,
    )
}

__all__ = ["TABLES", "Table", "reproduce", "verify"]
