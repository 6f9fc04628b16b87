"""Random calls of operators with inputs that are wrong in one or two places."""

import importlib
import pkgutil
import random
import sys
from typing import Any

import torch
from torch import Tensor

import dgt.ops
from dgt.ops.define import OPERATORS
from tests.ops.cases import CASES, Draw

for module in pkgutil.iter_modules(dgt.ops.__path__):
    importlib.import_module(f"dgt.ops.{module.name}")

DTYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.bool,
    torch.uint8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip
NUMBERS = (-1, 0, 1, 3, 0.5, -0.5, 1.0, 1 - 1e-12, float("nan"), float("inf"), 2**40, 2**62)


def resize(rng: random.Random, x: Tensor) -> Tensor:
    """Changes the size of one axis, also to 0."""
    if not x.dim():
        return x.expand(2)
    axis = rng.randrange(x.dim())
    count = rng.choice([0, 1, x.size(axis) - 1, x.size(axis) + 1, 2 * x.size(axis)])
    if x.size(axis) == 0:
        return x.new_zeros((*x.shape[:axis], max(count, 0), *x.shape[axis + 1 :]))
    at = torch.arange(max(count, 0)) % x.size(axis)
    return x.index_select(axis, at)


def reshape(rng: random.Random, x: Tensor) -> Tensor:
    """Changes the number of axes."""
    choices = [x[None], x[..., None], x.flatten(), x.sum() if x.is_floating_point() else x[None]]
    return rng.choice(choices)


def retype(rng: random.Random, x: Tensor) -> Tensor:
    return x if x.is_complex() else x.to(rng.choice(DTYPES))


def restride(rng: random.Random, x: Tensor) -> Tensor:
    """Keeps shape and entries, but not the order in memory."""
    if not x.dim():
        return x
    kind = rng.randrange(3)
    if kind == 0:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == 1:
        return torch.stack([x, x], dim=-1)[..., 0]
    return x[:1].expand_as(x) if len(x) else x


def negate(rng: random.Random, x: Tensor) -> Tensor:
    """Returns the same numbers as a lazily negated view."""
    return torch._neg_view(-x) if x.is_floating_point() else x


def misplace(rng: random.Random, x: Tensor) -> Tensor:
    """Sets some entries outside of any range."""
    if not x.numel() or x.dtype == torch.bool:
        return x
    x = x.clone()
    limit = 255 if x.dtype == torch.uint8 else 2**14
    low = 0 if x.dtype == torch.uint8 else -limit
    for _ in range(rng.randint(1, 3)):
        value = rng.choice([low, limit, 0, 5, *(() if low == 0 else (-1, -2))])
        x.view(-1)[rng.randrange(x.numel())] = value
    return x


def elsewhere(rng: random.Random, x: Tensor) -> Tensor:
    return x.to("meta")


def sparse(rng: random.Random, x: Tensor) -> Tensor:
    return x.to_sparse() if x.dim() else x


CHANGES = (resize, resize, reshape, retype, restride, misplace, misplace, negate, elsewhere, sparse)


def wrong_call(name: str, seed: int) -> tuple[Any, ...]:
    """Returns inputs of an operator with up to two changes."""
    rng = random.Random(f"{name} {seed}")
    # The loops of the attention take long to compile.
    single = not name.startswith("deformable") and rng.random() < 0.5
    dtype = torch.float32 if single else torch.float64
    inputs = list(CASES[name](Draw(seed, dtype), *(rng.randint(1, 4) for _ in range(3))))
    for _ in range(rng.randint(0, 2)):
        place = rng.randrange(len(inputs))
        x = inputs[place]
        if isinstance(x, Tensor):
            if x.layout == torch.strided and not x.is_meta:
                changed = rng.choice(CHANGES)(rng, x.contiguous())
                # The fused attention is compiled for each number of channels and of keys.
                keep = name.startswith("deformable") and x.dim() == changed.dim() > 3
                if not keep or changed.size(-1) in (0, x.size(-1)):
                    inputs[place] = changed
        elif isinstance(x, (int, float)) and not isinstance(x, bool):
            value = rng.choice(NUMBERS)
            if name.endswith(("attention", "attention_backward")):
                value = x if value >= 1 else value  # each width of the window is compiled
            if isinstance(x, int):
                value = int(value) if abs(value) < 2**50 else -1
                if value > 2**30 and name.endswith(("_back", "matmul_backward")):
                    value = -1  # a valid size, for which there is no memory
            inputs[place] = type(x)(value)
    return tuple(inputs)


def outcome(form: Any, inputs: tuple[Any, ...]) -> str | list[Tensor]:
    """Returns the message of a ValueError, or the results."""
    try:
        out = form(*inputs)
    except ValueError as error:
        return str(error)
    return [out] if isinstance(out, Tensor) else list(out)


def check_wrong_call(name: str, seed: int) -> bool:
    """Makes one call of all forms; returns whether it was refused.

    Raises:
        AssertionError: If the forms disagree.
    """
    inputs = wrong_call(name, seed)
    operator, plain, fused = OPERATORS[name]
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    forms = [operator, plain]
    # PyTorch's dispatcher never calls the fused form for other devices.
    if any(x.is_cpu and x.dim() for x in tensors):
        forms.append(fused)
    elif all(x.is_meta for x in tensors if x.dim()):
        forms = [operator]
    first, *others = [outcome(form, inputs) for form in forms]
    for other in others:
        if isinstance(first, str) or isinstance(other, str):
            assert first == other, f"{name} {seed}: {first} != {other}"
            continue
        for a, b in zip(first, other, strict=True):
            if not a.is_meta:
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
    return isinstance(first, str)


def main(calls: int, names: list[str]) -> None:
    """Makes random calls of each operator and prints how many were refused."""
    for name in names or sorted(CASES):
        refused = sum(check_wrong_call(name, seed) for seed in range(calls))
        print(f"{name}: {calls} calls, {refused} refused, 0 crashes", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
