"""Positional encodings: columns that describe where in the graph each node is."""

from dgt.encodings.katz import Katz, choose_anchors, katz, katz_rows
from dgt.encodings.laplacian import laplacian
from dgt.encodings.node2vec import node2vec

__all__ = ["Katz", "choose_anchors", "katz", "katz_rows", "laplacian", "node2vec"]
