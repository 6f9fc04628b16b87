"""The keys of a Deformable Graph Transformer: where training moved them, and what they carry."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from dgt.inspection import Inspection
from dgt.nn import DGT, DGTPlus
from dgt.nn.level import Level
from dgt.nn.rows import Chunks, using
from dgt.ops.deformable_attention.reference import sample, sequence_lengths

CHUNK = 50_000
HEADS_UP_TO = 50_000  # nodes, for leaving out single heads


@dataclass(frozen=True)
class Keys:
    """The keys of the last block, for a sample of nodes."""

    start: np.ndarray
    """Positions before training, as a share of the sequence. Shape: ``(T, M, K)``."""
    now: np.ndarray
    """Positions after training, likewise. Shape: ``(Q, T, M, K)``."""
    attention: np.ndarray
    """The attention on each key; the keys of a head sum to 1. Shape: ``(Q, T, M, K)``."""
    lengths: np.ndarray
    """The number of nodes in each sequence that can be read. Shape: ``(T, Q)``."""
    carried: np.ndarray
    """The share of the length of all heads' outputs. Shape: ``(T, M)``."""

    @property
    def moved(self) -> np.ndarray:
        """How many positions each key has moved. Shape: ``(Q, T, M, K)``."""
        return abs(self.now - self.start) * (self.lengths.T[:, :, None, None] - 1)


@dataclass(frozen=True)
class LeftOut:
    """The accuracy of the trained model without a part of its attention."""

    criterion: int | None
    """None: all attention."""
    head: int | None
    """None: all heads."""
    accuracy: float


@torch.no_grad()
def find_keys(inside: Inspection, queries: Tensor) -> Keys:
    """Returns where the keys of some nodes lie, and what each head adds to them."""
    model = inside.model
    assert isinstance(model, DGT | DGTPlus)
    inputs, last = inside.steps.inputs_of(queries), model.blocks[-1]
    sequences, queries = inputs["sequences"], queries.to(inputs["sequences"].device)
    labels, every = inputs.get("labels"), Level(sequences, None, inputs.get("closeness"))
    with using(Chunks(CHUNK)):
        x, encoding = inputs["x"], inputs.get("encoding")
        if isinstance(model, DGTPlus):
            z = model.embed(x, labels, encoding)
        else:
            z = model.embed(x, encoding)
        for block in model.blocks[:-1]:
            z = block(z, every)
    attention, z = last.attention, last.norm(z)
    level, skip = every.take(queries), getattr(attention, "skip", 0)
    now, weights = sample(attention.queries(z[queries]))
    T, M = attention.criteria, attention.heads
    carried = np.zeros((T, M))
    for t in range(T):
        one = slice(t, t + 1)
        values = attention.project(z, one, labels)  # (N, 1, M, D)
        for m in range(M):
            alone = torch.zeros_like(values)
            alone[:, :, m] = values[:, :, m]
            read = attention.read(alone, level.of(one, z.device), z[queries], one)
            carried[t, m] = read.norm(dim=1).mean()
    return Keys(
        start=torch.sigmoid(attention.start[0]).cpu().numpy(),
        now=now.cpu().numpy(),
        attention=weights.cpu().numpy(),
        lengths=(sequence_lengths(level.sequences) - skip).clamp(min=0).cpu().numpy(),
        carried=carried / max(carried.sum(), 1e-12),
    )


def leave_out(inside: Inspection, nodes: np.ndarray) -> list[LeftOut]:
    """Returns the accuracy on some nodes without each criterion, each head and any attention.

    The weights that read the part are set to zero, in all blocks. Nothing is trained again.
    """
    model = inside.model
    assert isinstance(model, DGT | DGTPlus)
    T, M = model.blocks[-1].attention.criteria, model.blocks[-1].attention.heads
    parts: list[tuple[int | None, int | None]] = [(None, None)]
    parts += [(t, None) for t in range(T)] if T > 1 else []
    if inside.data.num_nodes <= HEADS_UP_TO:
        parts += [(t, m) for t in range(T) for m in range(M)]
    y = inside.y[nodes]
    found = []
    for criterion, head in parts:
        weights = _without(model, criterion, head)

        def part(weights: dict[str, Tensor] = weights, **given: Tensor) -> Tensor:
            return functional_call(model, weights, kwargs=given, tie_weights=False)

        predicted = inside.task.predict(inside.logits_of(part))[nodes]
        found.append(LeftOut(criterion, head, float((predicted == y).double().mean())))
    return found


def _without(model: DGT | DGTPlus, criterion: int | None, head: int | None) -> dict[str, Tensor]:
    """Returns the output weights of the attention, with those of a part set to zero."""
    changed = {}
    for b, block in enumerate(model.blocks):
        attention = block.attention
        weight = attention.out.weight.detach().clone()
        parts = weight.view(len(weight), attention.criteria, attention.heads, -1)
        parts[:, slice(criterion, None if criterion is None else criterion + 1)][
            :, :, slice(head, None if head is None else head + 1)
        ] = 0
        changed[f"blocks.{b}.attention.out.weight"] = weight
    return changed
