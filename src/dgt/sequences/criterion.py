"""The record of a sorting criterion, and the graph it sorts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from dgt.config import SequenceConfig
from dgt.data.direction import (
    DIRECTED,
    DIRECTED_WEIGHTS,
    directed_adjacency,
    weighted_directed_adjacency,
)
from dgt.data.edge_tables import edge_weights
from dgt.data.matrices import adjacency, features
from dgt.errors import InputError
from dgt.sequences.tie_order import OrderedGraph, order_nodes
from dgt.storage.segments import Advance

Sort = Callable[[range, Advance], tuple[np.ndarray, np.ndarray | None]]
"""Returns the sequences of some base nodes, int32 ``(N, L)``, padded with -1, and the scores of
their nodes, float32 ``(N, L)``, or None if there are no scores. The second argument is called with
the number of base nodes processed since the last call."""


class Graph:
    """A graph to sort. What several criteria need is computed only once.

    Args:
        data: The graph.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.num_nodes: int = data.num_nodes

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """Symmetric, without self-loops. Shape: ``(N, N)``."""
        return adjacency(self.data.edge_index, self.num_nodes)

    @cached_property
    def ordered(self) -> OrderedGraph:
        """The graph with its nodes renumbered in the order that breaks ties."""
        return order_nodes(self.adjacency)

    @cached_property
    def weighted(self) -> OrderedGraph:
        """Like :attr:`ordered`, with the weights of the edges; their mean is 1."""
        weights = edge_weights(self.data)
        if weights is None:
            return self.ordered
        return order_nodes(adjacency(self.data.edge_index, self.num_nodes, weights))

    @cached_property
    def out(self) -> OrderedGraph:
        """Like :attr:`ordered`, with the out-links of each node as its neighbors."""
        return order_nodes(directed_adjacency(self.data, "out"), self._degrees)

    @cached_property
    def into(self) -> OrderedGraph:
        """Like :attr:`ordered`, with the in-links of each node as its neighbors."""
        return order_nodes(directed_adjacency(self.data, "in"), self._degrees)

    @cached_property
    def weighted_out(self) -> OrderedGraph:
        """Like :attr:`out`, with the weights of the edges; their mean is 1."""
        return order_nodes(weighted_directed_adjacency(self.data, "out"), self._degrees)

    @cached_property
    def weighted_into(self) -> OrderedGraph:
        """Like :attr:`into`, with the weights of the edges; their mean is 1."""
        return order_nodes(weighted_directed_adjacency(self.data, "in"), self._degrees)

    @cached_property
    def _degrees(self) -> np.ndarray:
        return np.diff(self.adjacency.indptr)

    @cached_property
    def x(self) -> np.ndarray | scipy.sparse.csr_array:
        """The features. Shape: ``(N, F)``."""
        return features(self.data)

    def read(self, name: str) -> np.ndarray | scipy.sparse.csr_array:
        """Returns an attribute of the data as an array."""
        return self.x if name == "x" else np.asarray(self.data[name].cpu())


LINKS = ("edge_index", DIRECTED, DIRECTED_WEIGHTS)
"""What criteria along links read."""


def no_settings(settings: SequenceConfig) -> tuple[object, ...]:
    """For criteria that depend on no settings besides the length and the spacing."""
    return ()


def no_closeness(scores: np.ndarray, settings: SequenceConfig) -> np.ndarray:
    """For criteria whose order says all: every node of a sequence is as close as the others."""
    return np.zeros_like(scores)


def no_method(graph: Graph, settings: SequenceConfig) -> tuple[object, ...]:
    """For criteria that sort all graphs by the same method."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """How a criterion sorts, and what its sequences depend on."""

    begin: Callable[[Graph, SequenceConfig, Path | None], Sort]
    """Called once per graph; returns the function that sorts. The path is a cache folder for
    intermediate results, or None without a cache."""
    settings: Callable[[SequenceConfig], tuple[object, ...]] = no_settings
    """Returns the settings that the sequences depend on, besides the length and the spacing."""
    method: Callable[[Graph, SequenceConfig], tuple[object, ...]] = no_method
    """Returns what the sequences of a graph depend on besides :attr:`settings`, such as the version
    of an approximate method for large graphs."""
    reads: tuple[str, ...] = ("edge_index",)
    """Attributes of the data that the sequences depend on, if the data has them."""
    closeness: Callable[[np.ndarray, SequenceConfig], np.ndarray] = no_closeness
    """Turns the scores of nodes, float32 ``(N, L)``, and the settings into logarithms of the
    weights with which attention that sees scores starts, see
    :class:`~dgt.nn.ScoredGraphAttention`."""
    tuned: bool = False
    """Whether ``dgt tune`` tries the criterion for models that take a single one."""
    cached: bool = True
    """Whether the sequences may be cached. If so, they must depend only on :attr:`settings`,
    :attr:`method`, :attr:`reads`, the length and the spacing. Only criteria of the package are
    cached."""

    def __post_init__(self) -> None:
        functions = (self.begin, self.settings, self.method, self.closeness)
        if not all(map(callable, functions)):
            raise InputError("Criterion: begin, settings, method and closeness: expected functions")
        if not isinstance(self.reads, tuple) or not all(isinstance(r, str) for r in self.reads):
            raise InputError(f"Criterion: reads: got {self.reads!r}, expected a tuple of names")
