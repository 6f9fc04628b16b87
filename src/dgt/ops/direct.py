"""Calls operators on the CPU without PyTorch's dispatcher.

The dispatcher and the autograd formulas of ``torch.library`` take longer than the computation on a
small graph. In the usual case, their part is known beforehand: the fused form is called, and
autograd records one node. In all other cases, such as another device, compilation, autocast,
functorch or a profiler, the operator is called as usual. Both ways give the same bits.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any, get_type_hints

import torch
from torch import Tensor
from torch.library import CustomOpDef

TYPES: dict[Any, tuple[type, ...]] = {
    Tensor: (Tensor, torch.nn.Parameter),
    Tensor | None: (Tensor, torch.nn.Parameter, NoneType),
}
"""The types of arguments by their annotation, where they differ from it."""


class Operator:
    """An operator that is called directly where possible.

    Args:
        operator: The operator.
        plain: Its plain form, whose annotations define the types of its arguments.
        fused: Its form for the CPU, which checks its inputs.
    """

    def __init__(
        self, operator: CustomOpDef, plain: Callable[..., Any], fused: Callable[..., Any]
    ) -> None:
        self.operator = operator
        self.fused = fused
        hints = get_type_hints(plain)
        hints.pop("return", None)
        self._types = [TYPES.get(hint, (hint,)) for hint in hints.values()]
        self._function: type[torch.autograd.Function] | None = None
        self._rounded: type[torch.autograd.Function] | None = None

    def __call__(self, *inputs: Any) -> Any:
        if torch.compiler.is_compiling() or _is_watched() or len(inputs) != len(self._types):
            return self.operator(*inputs)
        differentiable = False
        for x, types in zip(inputs, self._types, strict=True):
            if type(x) not in types:
                return self.operator(*inputs)
            if isinstance(x, Tensor):
                if not x.is_cpu or x.is_neg():
                    return self.operator(*inputs)
                differentiable = differentiable or x.requires_grad
        if not differentiable or not torch.is_grad_enabled():
            return self.fused(*inputs)
        if self._function is None:
            return self.operator(*inputs)  # has no gradient
        return self._function.apply(*inputs)

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[..., None]
    ) -> None:
        """Defines the gradient, as :meth:`torch.library.CustomOpDef.register_autograd` does."""
        self.operator.register_autograd(backward, setup_context=setup_context)
        fused = self.fused

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = fused(*inputs)
            setup_context(ctx, inputs, output)
            return output

        forms = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        name = self.operator._name.replace("::", "_")
        self._function = type(name, (torch.autograd.Function,), forms)

        def forward_rounded(ctx: Any, *inputs: Any) -> Any:
            output = self(*(_single(x) for x in inputs))
            setup_context(ctx, inputs, output)
            return output

        forms = {"forward": staticmethod(forward_rounded), "backward": staticmethod(backward)}
        self._rounded = type(f"{name}_rounded", (torch.autograd.Function,), forms)

    def rounded(self, *inputs: Any) -> Any:
        """Calls the operator with inputs in double precision rounded to single precision. Their
        gradients are not rounded: those of several calls can then be added up in any order."""
        assert self._rounded is not None
        return self._rounded.apply(*inputs)


def _single(x: Any) -> Any:
    return x.float() if isinstance(x, Tensor) and x.dtype == torch.float64 else x


def _is_watched() -> bool:
    """Returns whether something would notice, or change, what the dispatcher does."""
    return bool(
        torch.is_autocast_enabled("cpu")
        or torch.autograd._profiler_enabled()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch._C._are_functorch_transforms_active()
        or torch._C._get_tracing_state() is not None
    )
