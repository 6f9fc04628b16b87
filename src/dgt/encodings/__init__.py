"""Positional encodings: columns that describe where in the graph each node is."""

from dgt.encodings.katz import Katz, choose_anchors, katz
from dgt.encodings.laplacian import laplacian
from dgt.encodings.node2vec import node2vec

__all__ = ["Katz", "choose_anchors", "katz", "laplacian", "node2vec"]
