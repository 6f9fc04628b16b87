"""Defines operators from a plain form for any device and a fused form for the CPU."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.library import CustomOpDef

from dgt.ops.checks import Takes, check_all

FUSED_TYPES = (torch.float32, torch.float64)
"""The dtypes that fused forms support; all others use the plain form."""
FAST: dict[str, Any] = {
    "cache": True,
    # Sums may be reordered for vectorization; NaN and infinity are respected.
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
    "nogil": True,
}
"""Options with which numba compiles the loops of fused forms."""


class Forms(NamedTuple):
    """An operator and its two forms, which check their inputs and compute the same result."""

    operator: CustomOpDef
    plain: Callable[..., Any]
    fused: Callable[..., Any]


OPERATORS: dict[str, Forms] = {}
"""All operators by name, without ``dgt::``; filled when their modules are imported."""


def define(
    name: str,
    plain: Callable[..., Any],
    *,
    fused: Callable[..., Any],
    fake: Callable[..., Any],
    takes: Mapping[str, Takes],
    positive: str = "",
    label: str | None = None,
) -> CustomOpDef:
    """Defines the operator ``torch.ops.dgt.<name>``.

    Autograd cannot trace an operator. Operators that need a gradient call ``register_autograd``
    with further operators. All forms check their inputs before they access memory, also if
    ``torch.ops.dgt.<name>`` is called directly.

    Args:
        name: Name of the operator.
        plain: The operator in plain PyTorch, for any device. Its annotations define the schema.
        fused: The same operator for the CPU, in single and double precision.
        fake: Returns empty tensors with the shapes, dtypes and device of the result.
        takes: What each input must be, in order.
        positive: Axes that must not have size 0, separated by spaces.
        label: Name in error messages (default: ``name``).
    """

    def checked(form: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(form)
        def run(*inputs: Any) -> Any:
            check_all(label or name, takes, inputs, positive)
            return form(*inputs)

        return run

    plain, fused, fake = checked(plain), checked(fused), checked(fake)
    operator = torch.library.custom_op(f"dgt::{name}", plain, mutates_args=())

    def on_cpu(*inputs: Any) -> Any:
        tensors = (x for x in inputs if isinstance(x, Tensor))
        real = next((x.dtype for x in tensors if x.is_floating_point()), None)
        return (fused if real in FUSED_TYPES else plain)(*inputs)

    operator.register_kernel("cpu")(on_cpu)
    operator.register_fake(fake)
    OPERATORS[name] = Forms(operator, plain, fused)
    return operator


def arrays(*tensors: Tensor) -> list[np.ndarray]:
    """Returns the tensors as contiguous NumPy arrays, without a copy where possible."""
    return [x.detach().resolve_neg().contiguous().numpy() for x in tensors]
