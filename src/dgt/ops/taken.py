"""Selection of the nodes that attend, which training repeats with the same nodes in every step."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary

LIMIT = 2**22
"""Number of entries above which a selection is not kept, as memory then matters more than time."""

_kept: Any = WeakIdKeyDictionary()
"""For each tensor of nodes, what was taken for them: by the id of the tensor that it was taken
from, a weak reference to this tensor, the state of both, and the result."""


def take(x: Tensor, nodes: Tensor) -> Tensor:
    """Returns ``x[:, nodes]``. A small result is kept while ``x`` and ``nodes`` live and are not
    modified, and must not be modified either.

    Args:
        x: Data that needs no gradient, such as sequences. Shape: ``(T, N, L)``.
        nodes: Node indices, int64, on any device. Shape: ``(Q,)``.
    """
    if not _can_keep(x, nodes):
        return x[:, nodes.to(x.device)]
    kept = _kept.setdefault(nodes, {})
    state = (x._version, nodes._version, x.data_ptr(), nodes.data_ptr(), x.shape, x.stride())
    source, known, taken = kept.get(id(x), (None, None, None))
    if source is None or source() is not x or known != state:
        taken = x[:, nodes.to(x.device)]
        kept[id(x)] = TensorWeakRef(x), state, taken
    return taken


def _can_keep(x: Tensor, nodes: Tensor) -> bool:
    if torch.compiler.is_compiling() or type(x) is not Tensor or type(nodes) is not Tensor:
        return False
    if x.is_meta or nodes.is_meta or x.is_inference() or nodes.is_inference():
        return False
    small = x.dim() == 3 and x.size(0) * nodes.numel() * x.size(2) <= LIMIT
    return small and not x.requires_grad
