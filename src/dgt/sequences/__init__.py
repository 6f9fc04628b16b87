"""NodeSort: for each node and criterion, the nodes that come first from its point of view."""

from dgt.sequences.nodesort import Criterion, NodeSort, node_sequences

__all__ = ["Criterion", "NodeSort", "node_sequences"]
