"""Recognizes the training graph by its node ids and edges.

Some encodings only have a meaning on the graph that they were computed on. A model file therefore
stores what is needed to find the training graph in another one: a key per node id, and a
fingerprint of the edges. Keys are 8 bytes, so that the file stays small on large graphs; ids that
are 0 to N - 1 need no keys at all.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED, is_directed
from dgt.storage.fingerprint import fingerprint


@dataclass(frozen=True, eq=False)
class GraphIdentity:
    """The node ids and edges of a graph, in a form that takes little space."""

    num_nodes: int
    edges: str
    """Fingerprint of the edges, which number the nodes in the order of their ids."""
    keys: Tensor | None = None
    """Hash of each node id, int64 ``(N,)``. None: the ids are 0 to N - 1."""
    directed: str | None = None
    """Fingerprint of the directed edges, for a model that reads them."""

    @classmethod
    def of(cls, data: Data, directed: bool = False) -> "GraphIdentity":
        """Describes a normalized graph, with or without the direction of its edges."""
        ids = node_ids(data)
        keys = None if _is_numbered(ids) else torch.from_numpy(_keys(ids))
        links = fingerprint([data[DIRECTED]]) if directed else None
        return cls(data.num_nodes, fingerprint([data.edge_index]), keys, links)

    def is_same(self, data: Data) -> bool:
        """Returns whether a graph has the same ids in the same order, and the same edges."""
        if data.num_nodes != self.num_nodes:
            return False
        if not np.array_equal(self.find(data), np.arange(self.num_nodes)):
            return False
        links = fingerprint([data[DIRECTED]]) if is_directed(data) else ""
        return fingerprint([data.edge_index]) == self.edges and self.directed in (None, links)

    def is_part_of(self, data: Data) -> bool:
        """Returns whether a graph has all nodes and, between them, exactly the same edges."""
        if data.num_nodes < self.num_nodes:
            return False
        found = self.find(data)
        if (found < 0).any():
            return False
        # Number the nodes as in this graph, and sort the edges as normalization does.
        number = torch.full((data.num_nodes,), -1)
        number[torch.from_numpy(found)] = torch.arange(self.num_nodes)
        links = self._inside(data[DIRECTED], number) if is_directed(data) else ""
        same = self._inside(data.edge_index, number) == self.edges
        return same and self.directed in (None, links)

    def _inside(self, edges: Tensor, number: Tensor) -> str:
        """Returns the fingerprint of the edges between numbered nodes."""
        source, target = number[edges]
        inside = (source >= 0) & (target >= 0)
        pairs = (source[inside] * self.num_nodes + target[inside]).sort().values
        return fingerprint([torch.stack([pairs // self.num_nodes, pairs % self.num_nodes])])

    def find(self, data: Data) -> np.ndarray:
        """Finds the nodes in a graph by their ids.

        Returns:
            Node indices, int64, -1 for nodes that the graph lacks. Shape: ``(N,)``.
        """
        ids = node_ids(data)
        if self.keys is None and _is_numbered(ids):
            nodes = np.arange(self.num_nodes)
            return np.where(nodes < len(ids), nodes, -1)
        own = _keys(range(self.num_nodes)) if self.keys is None else self.keys.numpy()
        others = _keys(ids)
        order = np.argsort(others, kind="stable")
        place = np.searchsorted(others, own, sorter=order)
        nearest = order[np.minimum(place, len(order) - 1)]
        return np.where(others[nearest] == own, nearest, -1)


def node_ids(data: Data) -> Sequence[int | str]:
    """Returns the user's node ids, or 0 to N - 1."""
    ids = data.get("node_ids")
    return range(data.num_nodes) if ids is None else ids


def _is_numbered(ids: Sequence[int | str]) -> bool:
    # Whether ids are read as numbers or as text depends on the other ids in the file.
    return isinstance(ids, range) or all(str(name) == str(i) for i, name in enumerate(ids))


def _keys(ids: Iterable[int | str]) -> np.ndarray:
    """Hashes ids to int64 ``(N,)``. Numbers and text that look the same have the same key."""
    hashes = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in ids)
    return np.frombuffer(b"".join(hashes), dtype="<i8").astype(np.int64)
