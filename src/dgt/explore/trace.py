r"""Follows one node through a Deformable Graph Transformer.

With B blocks, the prediction of a node depends on the nodes in its sequences, in the sequences of
these, and so on, B times. Only these nodes are computed, so that the answer for one node of a large
graph takes milliseconds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dgt.nn import DGT, DGTPlus, ScoredGraphAttention
from dgt.nn.level import Level
from dgt.nn.precision import precision_of
from dgt.ops.deformable_attention import deformable_attention
from dgt.ops.deformable_attention.reference import position_weights, sample, sequence_lengths
from dgt.ops.scored_attention import reference as scored
from dgt.ops.scored_attention import scored_attention
from dgt.ops.sparse import gather_rows
from dgt.training.batching import reach_of

FARTHEST = 30.0  # sigmoid(30) is 1 in single precision


class Key(NamedTuple):
    """The place of a key in the model."""

    block: int
    criterion: int
    head: int
    key: int


class Look(NamedTuple):
    """What one block does for one node."""

    sequences: Tensor  # (T, L), nodes, padded with -1
    positions: Tensor  # (T, M, K), of the keys in the sequences
    attention: Tensor  # (T, M, K), of the keys
    weights: Tensor  # (T, M, L), on the positions


class Trace(NamedTuple):
    """One node on its way through the model."""

    blocks: list[Look]
    logits: Tensor  # (C,)


class Inputs:
    """The model's inputs, a few rows at a time.

    Args:
        given: ``x``, ``sequences`` and ``encoding`` of all nodes and, for dgt-plus, ``closeness``
            and ``labels``.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.num_nodes: int = given["sequences"].size(1)

    def sequences(self, nodes: Tensor) -> Tensor:
        """Shape: ``(T, Q, L)``."""
        return self.read(nodes)[0]

    def read(self, nodes: Tensor) -> tuple[Tensor, Tensor | None]:
        """Returns the sequences of some nodes and, for dgt-plus, their closeness. Shape:
        ``(T, Q, L)``."""
        closeness = self.given.get("closeness")
        of_nodes = None if closeness is None else closeness[:, nodes]
        return self.given["sequences"][:, nodes], of_nodes

    def labels(self, nodes: Tensor) -> Tensor | None:
        """Returns the known labels of some nodes, for dgt-plus."""
        labels = self.given.get("labels")
        return None if labels is None else gather_rows(labels, nodes)

    def embed(self, model: DGT | DGTPlus, nodes: Tensor) -> Tensor:
        """Returns the representations before the first block. Shape: ``(Q, C)``."""
        encoding = self.given["encoding"]
        rows = None if encoding is None else gather_rows(encoding, nodes)
        return embed(model, gather_rows(self.given["x"], nodes), self.labels(nodes), rows)


def embed(
    model: DGT | DGTPlus, x: Tensor, labels: Tensor | None, encoding: Tensor | None
) -> Tensor:
    """Returns the representations before the first block. Shape: ``(Q, C)``."""
    if isinstance(model, DGT):
        return model.embed(x, encoding)
    return model.embed(x, labels, encoding)


@torch.no_grad()
def trace(
    model: DGT | DGTPlus, inputs: Inputs, node: int, moved: Mapping[Key, float] | None = None
) -> Trace:
    """Computes the prediction of a node and how it comes about.

    Args:
        model: The model, in evaluation mode.
        inputs: Its inputs.
        node: The node.
        moved: Positions of keys of this node that replace those of the model.
    """
    nodes = torch.tensor([node])
    levels: list[Level] = []
    own: list[Tensor] = []  # the node's row among those that attend in each block
    read: list[Tensor] = []
    for _ in model.blocks:
        sequences, closeness = inputs.read(nodes)
        own.insert(0, (nodes == node).nonzero().squeeze(1))
        read.insert(0, sequences)
        nodes, level = reach_of(sequences, nodes, inputs.num_nodes)
        labels = None if levels else inputs.labels(nodes)  # only the last block reads labels
        levels.insert(0, level._replace(closeness=closeness, labels=labels))
    with precision_of(model):
        looks, z = _through(model, inputs.embed(model, nodes), levels, own, read, moved or {})
        return Trace(looks, model.head(z)[0].float())


def _through(
    model: DGT | DGTPlus,
    z: Tensor,
    levels: list[Level],
    own: list[Tensor],
    read: list[Tensor],
    moved: Mapping[Key, float],
) -> tuple[list[Look], Tensor]:
    """Passes the representations through all blocks."""
    looks = []
    for b, (block, level) in enumerate(zip(model.blocks, levels, strict=True)):
        attention, normed = block.attention, block.norm(z)
        queries = level.rows(normed)
        query, values = attention.queries(queries), attention.project(normed, labels=level.labels)
        keys = {key: p for key, p in moved.items() if key.block == b}
        sequences = read[b][:, own[b]]
        if isinstance(attention, ScoredGraphAttention):
            skip, probe, closeness = attention.skip, attention.probes(queries), level.closeness
            _move(query, own[b], sequences, keys, skip)
            assert closeness is not None
            inputs = (values, level.sequences, closeness.to(values.dtype), query, probe)
            out = scored_attention(*inputs, attention.kernel, skip)
            of_node = (
                *(values.float(), level.sequences[:, own[b]], closeness[:, own[b]].float()),
                *(query[own[b]].float(), probe[own[b]].float()),
            )
            weights = scored.position_weights(*of_node, attention.kernel, skip)[0]
        else:
            skip = 0
            _move(query, own[b], sequences, keys, skip)
            out = deformable_attention(values, level.sequences, query, attention.kernel)
            weights = position_weights(sequences, query[own[b]].float(), attention.kernel)[0]
        looks.append(_look(query[own[b]].float(), sequences, weights, skip))
        z = block.mlp(attention.mix(out), level.rows(z))
    return looks, z


def _move(
    query: Tensor, own: Tensor, sequences: Tensor, moved: Mapping[Key, float], skip: int
) -> None:
    """Changes the offsets in ``query``, of shape ``(Q, 2, T, M, K)``, such that keys of one node
    lie at given positions of its sequences, of which the first are skipped."""
    lengths = sequence_lengths(sequences)[:, 0] - skip
    for key, position in moved.items():
        last = max(int(lengths[key.criterion]) - 1, 1)
        share = torch.tensor(min(max((position - skip) / last, 0.0), 1.0), dtype=torch.float64)
        offset = torch.logit(share).clamp(-FARTHEST, FARTHEST)
        query[own, 0, key.criterion, key.head, key.key] = offset.to(query.dtype)


def _look(query: Tensor, sequences: Tensor, weights: Tensor, skip: int) -> Look:
    offsets, attention = sample(query)  # (1, T, M, K)
    lengths = sequence_lengths(sequences) - skip  # (T, 1)
    positions = skip + offsets[0] * (lengths - 1).clamp(min=0).unsqueeze(-1)
    return Look(sequences[:, 0], positions, attention[0], weights)
