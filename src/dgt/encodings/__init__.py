"""Positional encodings: columns that describe the place of each node in the graph.

``ENCODINGS`` maps names to encodings. Each encoding is a record in a file of its own: ``katz``,
``laplacian``, ``node2vec``, ``degree``, ``counts`` and ``walks``. ``make`` puts the columns of
several ones side by side. The layers that embed the columns are in :mod:`dgt.nn`.

A function of your own can be used in place of a name or registered under one:
``ENCODINGS["age"] = ages``.
"""

from dgt.config import ENCODINGS
from dgt.encodings.anchors import choose_anchors
from dgt.encodings.encoding import Encoding
from dgt.encodings.katz import Katz, katz, katz_rows
from dgt.encodings.laplacian import laplacian
from dgt.encodings.node2vec import node2vec

__all__ = [
    "ENCODINGS",
    "Encoding",
    "Katz",
    "choose_anchors",
    "katz",
    "katz_rows",
    "laplacian",
    "node2vec",
]
