"""Mixed precision: activations in bfloat16; weights, sums and logits in float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


def in_bfloat16(model: nn.Module) -> nn.Module:
    """Makes a model compute in bfloat16, in place.

    Its weights stay in float32. Under ``torch.autocast``, matrix products and the operators of
    :mod:`dgt.ops` convert their inputs and store their results in bfloat16, but compute sums in
    float32. The logits are float32.
    """
    kind = type(model)
    mixin = _WithAttention if hasattr(kind, "attention") else _Forward
    model.__class__ = type(kind.__name__, (mixin, kind), {"__module__": kind.__module__})
    return model


def precision_of(model: nn.Module) -> AbstractContextManager[object]:
    """Returns a context in which parts of a model compute as in its forward pass."""
    return model._autocast() if isinstance(model, _Forward) else nullcontext()


def is_mixed(model: nn.Module) -> bool:
    """Returns whether a model computes in bfloat16."""
    return isinstance(model, _Forward)


class _Forward(nn.Module):
    """Runs the forward pass of the next class under autocast."""

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        with self._autocast():
            logits = super().forward(*inputs, **named)
        return logits.float()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(next(self.parameters()).device.type, torch.bfloat16)


class _WithAttention(_Forward):
    """Computes the attention of the next class under autocast, too."""

    def attention(self, *inputs: Any, **named: Any) -> Any:
        with self._autocast():
            return super().attention(*inputs, **named)  # type: ignore[misc]
