"""Defines operators from a plain form for any device and fused forms for some of them."""

from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import torch
from torch import Tensor
from torch.library import CustomOpDef

from dgt.ops.checks import Check, Takes
from dgt.ops.direct import Operator
from dgt.ops.half import in_single

AUTOCAST_DEVICES = ("cpu", "cuda", "mps", "xpu")
"""The types of devices on which operators support ``torch.autocast``."""
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

CALLED: dict[str, Operator] = {}
"""The same operators as the package calls them."""


def define(
    name: str,
    plain: Callable[..., Any],
    *,
    fused: Callable[..., Any],
    fake: Callable[..., Any],
    takes: Mapping[str, Takes],
    positive: str = "",
    label: str | None = None,
    devices: Mapping[str, str] | None = None,
    autocast: torch.dtype | None = None,
    statistics: tuple[int, ...] = (),
    half: tuple[str, ...] = (),
) -> Operator:
    """Defines the operator ``torch.ops.dgt.<name>``.

    Autograd cannot trace an operator. Operators that need a gradient call ``register_autograd``
    with further operators. All forms check their inputs before they access memory, also if
    ``torch.ops.dgt.<name>`` is called directly.

    Args:
        name: Name of the operator.
        plain: The operator in plain PyTorch, for any device. Its annotations define the schema.
        fused: The same operator for the CPU.
        fake: Returns empty tensors with the shapes, dtypes and device of the result.
        takes: What each input must be, in order.
        positive: Axes that must not have size 0, separated by spaces.
        label: Name in error messages (default: ``name``).
        devices: Fused forms for other types of devices, such as ``{"cuda": "module:function"}``.
            The module is imported when the first tensor on such a device comes. If it needs a
            package that is not installed, or if the function returns ``NotImplemented``, the plain
            form is used.
        autocast: Type to which inputs are converted under ``torch.autocast`` (default: none).
        statistics: Indices of the outputs that are in single precision if the inputs are in half
            precision.
        half: The forms, ``"plain"`` or ``"fused"``, that take half precision and compute sums in
            single precision themselves. The inputs of the others are converted to single precision
            and their outputs back.

    Returns:
        The operator, which is called without PyTorch's dispatcher where possible.
    """

    check = Check(label or name, takes, positive)

    def checked(form: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(form)
        def run(*inputs: Any) -> Any:
            check(inputs)
            return form(*inputs)

        return run

    unchecked = plain if "plain" in half else in_single(plain, statistics)
    plain, fake = checked(unchecked), checked(fake)
    fused = checked(fused if "fused" in half else in_single(fused, statistics))
    operator = torch.library.custom_op(f"dgt::{name}", plain, mutates_args=())
    # Unlike register_kernel, this does not load torch._dynamo, which takes as long as torch itself.
    torch.library.impl(f"dgt::{name}", "cpu", fused)
    for device, place in (devices or {}).items():
        operator.register_kernel(device)(checked(first_of(place, unchecked)))
    operator.register_fake(fake)
    if autocast is not None:
        for device in AUTOCAST_DEVICES:
            operator.register_autocast(device, autocast)
    OPERATORS[name] = Forms(operator, plain, fused)
    CALLED[name] = Operator(operator, plain, fused)
    return CALLED[name]


def first_of(place: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a form that calls the function at ``place``, or ``plain`` if that is not available or
    returns ``NotImplemented``."""

    @wraps(plain)
    def run(*inputs: Any) -> Any:
        form = _load(place)
        out = NotImplemented if form is None else form(*inputs)
        return plain(*inputs) if out is NotImplemented else out

    return run


@cache
def _load(place: str) -> Callable[..., Any] | None:
    module, _, function = place.partition(":")
    try:
        return getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        missing = (error.name or "dgt").partition(".")[0]
        if missing == "dgt":
            raise
        _warn_missing(missing)
        return None


@cache
def _warn_missing(package: str) -> None:
    warn(
        f"the package {package} is not installed: operators on GPUs use their plain forms, which "
        f"are slower and take more memory; install it with: pip install {package}",
        stacklevel=2,
    )


def arrays(*tensors: Tensor) -> list[np.ndarray]:
    """Returns the tensors as contiguous NumPy arrays, without a copy where possible."""
    return [x.detach().resolve_neg().contiguous().numpy() for x in tensors]
