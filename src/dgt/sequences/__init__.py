"""NodeSort: short sequences of nodes for each base node, one per sorting criterion.

``CRITERIA`` maps names to criteria. Each criterion is a record in a file of its own: ``bfs``,
``ppr``, ``similarity``, ``alike``, ``neighbors`` and ``absolute``. ``make`` computes the sequences
or reads them from the cache, and ``nodesort`` is the public interface. How attention reads the
sequences is defined in :mod:`dgt.nn`.

A function of your own can be used in place of a name or registered under one:
``CRITERIA["age"] = by_age``.
"""

from dgt.config import CRITERIA
from dgt.sequences.criterion import Criterion
from dgt.sequences.nodesort import NodeSort, current_sequences, node_sequences

__all__ = ["CRITERIA", "Criterion", "NodeSort", "current_sequences", "node_sequences"]
