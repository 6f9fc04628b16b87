"""Half precision: values are stored in 2 bytes, and sums are computed in single precision."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from dgt.ops.memory import convert

HALF = (torch.float16, torch.bfloat16)
"""The dtypes of half precision."""


def in_single(form: Callable[..., Any], statistics: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Returns a form of an operator that converts half-precision inputs to single precision, and
    its outputs back, except for those with an index in ``statistics``."""

    @wraps(form)
    def run(*inputs: Any) -> Any:
        for x in inputs:
            if isinstance(x, Tensor) and x.dtype in HALF:
                half = x.dtype
                break
        else:
            return form(*inputs)
        out = form(*(convert(x, torch.float32) if _is_half(x) else x for x in inputs))
        if isinstance(out, Tensor):
            return convert(out, half)
        return type(out)(x if i in statistics else convert(x, half) for i, x in enumerate(out))

    return run


def statistics_type(x: Tensor) -> torch.dtype:
    """Returns the dtype of statistics of ``x``: single precision for half precision."""
    return torch.float32 if x.dtype in HALF else x.dtype


def _is_half(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype in HALF
