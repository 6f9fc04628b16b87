"""Recognizing the training graph: by ids and edges, in any order and with more nodes."""

import random

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from dgt.data.files import normalize
from dgt.runs.identity import GraphIdentity


def data_of(graph: nx.Graph, ids: list[object], given: bool = True) -> Data:
    """Returns a NetworkX graph with the nodes in the order of ``ids``."""
    place = {name: i for i, name in enumerate(ids)}
    edges = torch.tensor([[place[a], place[b]] for a, b in graph.edges]).t()
    extra = {"node_ids": [name if isinstance(name, int) else str(name) for name in ids]}
    return normalize(Data(edge_index=edges, num_nodes=len(ids), **(extra if given else {})))


def contains(whole: nx.Graph, part: nx.Graph) -> bool:
    """The definition: the subgraph induced by the nodes of a part equals the part."""
    return part.nodes <= whole.nodes and nx.utils.graphs_equal(
        nx.Graph(whole.subgraph(part.nodes)), nx.Graph(part)
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("names", ["numbers", "text", "no ids"])
def test_containment_is_that_of_networkx(seed: int, names: str) -> None:
    rng = random.Random(seed)
    whole = nx.gnp_random_graph(14, 0.3, seed=seed)
    first = 9 if names == "no ids" else rng.choice([9, 14])
    part = nx.Graph(whole.subgraph(range(first)))
    change = rng.choice(["none", "edge added", "edge removed", "node lost"])
    if change == "edge added":
        part.add_edge(*rng.choice(list(nx.non_edges(part))))
    elif change == "edge removed":
        part.remove_edge(*rng.choice(list(part.edges)))
    elif change == "node lost":
        whole.remove_node(0 if names != "no ids" else 13)
    if names == "text":
        whole, part = (nx.relabel_nodes(g, lambda n: f"n{n}") for g in (whole, part))
    ids, others = list(part.nodes), list(whole.nodes)
    if names != "no ids":
        rng.shuffle(ids)
        rng.shuffle(others)
    given = names != "no ids"
    identity = GraphIdentity.of(data_of(part, ids, given))
    assert identity.is_part_of(data_of(whole, others, given)) == contains(whole, part)


def test_the_same_graph_has_the_same_ids_in_the_same_order() -> None:
    graph = nx.gnp_random_graph(12, 0.4, seed=1)
    ids = list(range(12))
    identity = GraphIdentity.of(data_of(graph, ids, given=False))
    assert identity.keys is None
    assert identity.is_same(data_of(graph, ids))
    text = nx.relabel_nodes(graph, str)
    assert identity.is_same(data_of(text, [str(i) for i in ids]))
    assert not identity.is_same(data_of(graph, ids[::-1]))
    assert identity.is_part_of(data_of(graph, ids[::-1]))
    # The same numbers, but other ids.
    renamed = data_of(nx.relabel_nodes(graph, lambda n: f"n{n}"), [f"n{i}" for i in ids])
    assert not identity.is_same(renamed)
    assert not identity.is_part_of(renamed)
    assert not GraphIdentity.of(renamed).is_same(data_of(graph, ids))
    assert GraphIdentity.of(renamed).is_same(renamed)
    graph.remove_edge(*next(iter(graph.edges)))
    assert not identity.is_same(data_of(graph, ids))
