"""Checks the edges of a graph, and normalizes them."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS, distinct
from dgt.data.edge_tables import NAMES, WEIGHTS, largest_of_both
from dgt.data.magnitude import LARGEST
from dgt.data.tensors import plain
from dgt.errors import InputError


def normalized_edges(data: Data, num_nodes: int, place: str) -> Tensor:
    """Returns the edges in both directions, sorted, without duplicates and self-loops."""
    if data.get("edge_index") is None:
        raise InputError(f"{place}: edge_index is missing")
    edges = _undirected(_checked_edges(data, "edge_index", num_nodes, place), num_nodes)
    if edges.size(1) == 0:
        raise InputError(f"{place}: empty graph: no edge between two different nodes")
    return edges


def _checked_edges(data: Data, key: str, num_nodes: int, place: str) -> Tensor:
    edges = plain(data[key], f"{place}: {key}")
    if edges.dim() != 2 or edges.size(0) != 2:
        raise InputError(f"{place}: {key}: got shape {tuple(edges.shape)}, expected (2, E)")
    if edges.dtype != torch.int64:
        kind = str(edges.dtype).removeprefix("torch.")
        raise InputError(f"{place}: {key}: got values of type {kind}, expected integers")
    outside = (edges < 0) | (edges >= num_nodes)
    if bool(outside.any()):
        end, edge = outside.nonzero()[0].tolist()
        raise InputError(
            f"{place}: {key}: edge {edge}: got node {int(edges[end, edge])}, "
            f"expected 0 to {num_nodes - 1}"
        )
    return edges


def _undirected(edges: Tensor, num_nodes: int) -> Tensor:
    """Returns the sorted edges in both directions, without duplicates and self-loops.

    The result equals that of PyG's ``to_undirected`` but needs a third of the memory, since each
    edge is sorted as one number.
    """
    pairs = torch.minimum(*edges).mul_(num_nodes).add_(torch.maximum(*edges))
    pairs = pairs[edges[0] != edges[1]].unique()
    pairs = torch.cat([pairs, pairs % num_nodes * num_nodes + pairs // num_nodes]).sort().values
    return torch.stack([pairs // num_nodes, pairs % num_nodes])


def normalized_weights(data: Data, undirected: Tensor, num_nodes: int, place: str) -> Tensor:
    """Returns the weights of the edges that :func:`normalized_edges` has returned."""
    edges = plain(data.edge_index, f"{place}: edge_index")
    weights = _checked_weights(data, WEIGHTS, edges.size(1), place)
    return largest_of_both(edges, weights, undirected, num_nodes)


def _checked_weights(data: Data, key: str, count: int, place: str) -> Tensor:
    weights = plain(data[key], f"{place}: {key}")
    tables = len(data.get(NAMES) or ("edges",))
    if weights.shape != (count, tables):
        raise InputError(
            f"{place}: {key}: got shape {tuple(weights.shape)}, expected ({count}, {tables})"
        )
    if not bool((weights >= 0).all()) or not bool((weights <= LARGEST).all()):
        raise InputError(f"{place}: {key}: expected finite numbers of at least 0")
    return weights


def add_direction(out: Data, data: Data, num_nodes: int, place: str, directed: bool | None) -> None:
    """Adds the directed edges to a normalized graph, if they are known.

    Args:
        out: The normalized graph.
        data: The graph as given.
        num_nodes: Number of nodes.
        place: Name of the graph in error messages.
        directed: Whether the edges are directed (default: if ``directed_edge_index`` is given, or
            if some edges are listed in both directions and others in one: such a list tells the
            two apart).
    """
    given = data.get(DIRECTED) is not None
    key, weights_key = (DIRECTED, DIRECTED_WEIGHTS) if given else ("edge_index", WEIGHTS)
    edges = _checked_edges(data, key, num_nodes, place)
    if not given and not directed and torch.equal(edges, out.edge_index):
        return  # normalized before
    weights = None
    if WEIGHTS in out and data.get(weights_key) is not None:
        weights = _checked_weights(data, weights_key, edges.size(1), place)
    edges, weights = distinct(edges, weights, num_nodes)
    both = out.edge_index.size(1)
    if not given and edges.size(1) in (both // 2, both):
        if directed is None:
            return
        if edges.size(1) == both:
            raise InputError(
                f"{place}: directed: all edges are in both directions, so that their direction is "
                "not known; read the graph from its files with directed=True, or set "
                "data.directed_edge_index"
            )
    if given and not torch.equal(_undirected(edges, num_nodes), out.edge_index):
        raise InputError(
            f"{place}: {DIRECTED}: has other edges than edge_index; remove it, or set it again "
            "after the edges or nodes have changed"
        )
    if WEIGHTS in out and weights is None:
        raise InputError(f"{place}: {DIRECTED_WEIGHTS} is missing, but edge_weights is given")
    out[DIRECTED] = edges
    if weights is not None:
        out[DIRECTED_WEIGHTS] = weights
