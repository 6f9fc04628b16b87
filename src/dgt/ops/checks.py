"""Checks of the inputs of operators, done before any memory is accessed.

Each operator declares what it takes, one record per input, such as ``real("N C")`` or
``index("E", below="N")``. Both forms of the operator check the same records, so that they raise the
same errors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from dgt.ops import entries

REAL = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
STATISTICS = (torch.float32, torch.float64)
INDEX = (torch.int32, torch.int64)
SEED_LIMIT = 2**62
PLAIN = (Tensor, torch.nn.Parameter)
REMEMBERED = 1000
"""Number of different devices, dtypes and shapes that an operator remembers."""

Sizes = dict[str, int]


class Takes(NamedTuple):
    """What an operator takes as one input."""

    axes: str | None
    """Axes of a tensor, such as ``"N C"``, or None for a number. Equal letters mean equal sizes,
    ``N+1`` means one more, and a digit means that size. ``...`` stands for any axes, the same in
    all inputs, and ``|`` separates alternatives with different numbers of axes."""
    dtypes: tuple[torch.dtype, ...] = ()
    """The allowed dtypes; with several floating-point inputs, all must have the same one."""
    wrong: Callable[[Any, Sizes], str | None] | None = None
    """Returns what is wrong with the entries of a tensor or with a number, or None."""
    own_device: bool = False
    """Whether the tensor stays on the CPU, whichever device the others are on."""
    defines: str | None = None
    """The letter whose size a number gives."""


def real(axes: str) -> Takes:
    """A floating-point tensor."""
    return Takes(axes, REAL)


def statistics(axes: str) -> Takes:
    """Statistics of floating-point tensors: of their dtype, or in single precision if they are in
    half precision."""
    return Takes(axes, STATISTICS)


def index(axes: str, *, below: str) -> Takes:
    """Indices of an axis, from 0 to its size - 1."""
    return Takes(axes, INDEX, lambda x, sizes: entries.wrong_index(x, sizes[below]))


def pointers(axes: str, *, end: str) -> Takes:
    """Row pointers of a CSR matrix with as many entries as the axis ``end`` has."""
    return Takes(axes, INDEX, lambda x, sizes: entries.wrong_pointers(x, sizes[end]))


def codes(axes: str, *, below: str) -> Takes:
    """Indices of a short axis, uint8."""
    kinds = (torch.uint8,)
    return Takes(axes, kinds, lambda x, sizes: entries.wrong_index(x, sizes[below]))


def sequences_of(axes: str, *, nodes: str) -> Takes:
    """Sequences of the nodes of an axis, int32, padded at the end with -1."""
    kinds = (torch.int32,)
    return Takes(axes, kinds, lambda x, sizes: entries.wrong_sequences(x, sizes[nodes]))


def size(letter: str) -> Takes:
    """A number that is the size of an axis."""
    return Takes(None, wrong=lambda n, _: None if n >= 0 else "at least 0", defines=letter)


def number(low: float, high: float) -> Takes:
    """A number that is at least ``low`` and below ``high``."""
    wanted = f"at least {low} and below {high}"
    return Takes(None, wrong=lambda n, _: None if low <= n < high else wanted)


def at_least(low: float) -> Takes:
    """A finite number that is at least ``low``."""
    wanted = f"finite and at least {low}"
    return Takes(None, wrong=lambda n, _: None if low <= n < float("inf") else wanted)


def seed() -> Takes:
    """A seed of dropout: a tensor with one integer, on the CPU."""

    def wrong(x: Tensor, _: Sizes) -> str | None:
        value = int(x.item())
        return None if 0 <= value <= SEED_LIMIT else f"got {value}, expected 0 to 2^62"

    return Takes("", (torch.int64,), wrong, own_device=True)


ANY = Takes(None)
"""A number without limits."""


def check(operator: str, /, **inputs: tuple[Any, Takes]) -> None:
    """Requires that the inputs are what an operator takes.

    Entries of tensors that hold no data (``meta`` device and fake tensors) are not checked.

    Args:
        operator: Name of the operator, for the error message.
        **inputs: Each input with what the operator takes. None is skipped.

    Raises:
        ValueError: Names the operator, the inputs and the difference.
    """
    check_all(operator, {k: v for k, (_, v) in inputs.items()}, [x for x, _ in inputs.values()])


def check_all(
    operator: str, takes: Mapping[str, Takes], inputs: Sequence[Any], positive: str = ""
) -> None:
    """Does the work of :func:`check`; the axes in ``positive`` must not have size 0."""
    Check(operator, takes, positive)(inputs)


class Check:
    """The check of an operator.

    Devices, dtypes and shapes that were found correct are remembered: in training, they are the
    same in every step, and comparing them takes longer than a small operator.

    Args:
        operator: Name of the operator, for error messages.
        takes: What each input must be, in order.
        positive: Axes that must not have size 0, separated by spaces.
    """

    def __init__(self, operator: str, takes: Mapping[str, Takes], positive: str = "") -> None:
        self.operator, self.takes, self.positive = operator, takes, positive
        self._wanted = tuple(takes.values())
        each = enumerate(takes.items())
        self._entries = [(i, name, t, t.wrong) for i, (name, t) in each if t.wrong is not None]
        self._passed: dict[tuple[Any, ...], Sizes] = {}

    def __call__(self, inputs: Sequence[Any]) -> None:
        if torch.compiler.is_compiling():
            return  # operators still check their own inputs when the compiled code runs
        key = self._key(inputs)
        sizes = None if key is None else self._passed.get(key)
        if sizes is None:
            sizes, always = self._check_kinds(inputs)
            if key is not None and always and len(self._passed) < REMEMBERED:
                self._passed[key] = sizes
        for i, name, wanted, find in self._entries:
            x = inputs[i]
            if x is None:
                continue
            if wanted.axes is None:
                self._check_number(name, wanted, x)
            elif not (x.is_meta or isinstance(x, FakeTensor)):
                wrong = find(x, sizes)
                if wrong is not None:
                    raise ValueError(f"{self.operator}: {name}: {wrong}")

    def _key(self, inputs: Sequence[Any]) -> tuple[Any, ...] | None:
        """Returns everything that :meth:`_check_kinds` depends on; None for unusual tensors."""
        key: list[Any] = []
        for wanted, x in zip(self._wanted, inputs, strict=True):
            if wanted.axes is None:
                key.append(x if wanted.defines is not None else None)
            elif x is None:
                key.append(None)
            elif type(x) not in PLAIN or x.is_nested:
                return None
            else:
                key += (x.shape, x.dtype, x.device, x.layout)
        return tuple(key)

    def _check_number(self, name: str, wanted: Takes, x: Any) -> None:
        wrong = None if wanted.wrong is None else wanted.wrong(x, {})
        if wrong is not None:
            raise ValueError(f"{self.operator}: {name} must be {wrong}, got {x}")

    def _check_kinds(self, inputs: Sequence[Any]) -> tuple[Sizes, bool]:
        """Checks numbers, devices, dtypes and shapes. Returns the sizes of the axes, and whether
        the result does not depend on ``torch.autocast``."""
        operator, takes = self.operator, self.takes
        tensors: dict[str, tuple[Tensor, Takes]] = {}
        sizes: Sizes = {}
        for (name, wanted), x in zip(takes.items(), inputs, strict=True):
            if x is None:
                continue
            if wanted.axes is not None:
                tensors[name] = x, wanted
            else:
                self._check_number(name, wanted, x)
            if wanted.defines is not None:
                sizes[wanted.defines] = x
        _check_devices(operator, tensors)
        _check_dtypes(operator, tensors)
        if not _agree(tensors, sizes):
            _raise_shapes(operator, tensors, sizes, takes)
        for axis in self.positive.split():
            if sizes.get(axis) == 0:
                _raise_shapes(operator, tensors, sizes, takes, f" with {axis} at least 1")
        return sizes, len({x.dtype for x, t in tensors.values() if t.dtypes is REAL}) < 2


def _check_devices(operator: str, tensors: dict[str, tuple[Tensor, Takes]]) -> None:
    first = None
    for x, wanted in tensors.values():
        device = x.device
        if wanted.own_device:
            if device.type == "cpu":
                continue
        elif first is None or device == first:
            first = device
            continue
        places = ", ".join(f"{name} on {y.device}" for name, (y, _) in tensors.items())
        raise ValueError(f"{operator}: all tensors must be on one device, got {places}")


def _check_dtypes(operator: str, tensors: dict[str, tuple[Tensor, Takes]]) -> None:
    shared = None
    for name, (x, wanted) in tensors.items():
        if x.layout != torch.strided or x.is_nested:
            kind = "nested" if x.is_nested else str(x.layout)
            raise ValueError(f"{operator}: {name} must be a dense tensor, got {kind}")
        if x.dtype not in wanted.dtypes:
            names = " or ".join(str(dtype) for dtype in wanted.dtypes)
            raise ValueError(f"{operator}: {name} must have dtype {names}, got {x.dtype}")
        if wanted.dtypes is REAL:
            shared = x.dtype if shared is None else shared
            # Under autocast, operators convert their inputs and then check them.
            if x.dtype != shared and not _autocast(x.device.type):
                got = ", ".join(
                    f"{name} {y.dtype}" for name, (y, t) in tensors.items() if t.dtypes is REAL
                )
                raise ValueError(f"{operator}: dtypes must be the same, got {got}")
    for name, (x, wanted) in tensors.items():
        if wanted.dtypes is STATISTICS and shared is not None:
            expected = torch.float64 if shared == torch.float64 else torch.float32
            if x.dtype != expected:
                raise ValueError(f"{operator}: {name} must have dtype {expected}, got {x.dtype}")


def _autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _agree(tensors: dict[str, tuple[Tensor, Takes]], sizes: Sizes) -> bool:
    """Returns whether all shapes agree, and sets the sizes of the letters."""
    leading: torch.Size | None = None
    for x, wanted in tensors.values():
        shape = x.shape
        letters = _letters(wanted, len(shape))
        if letters[:1] == ["..."]:
            split = len(shape) - len(letters) + 1
            if split < 0 or (leading is not None and shape[:split] != leading):
                return False
            leading, shape, letters = shape[:split], shape[split:], letters[1:]
        if len(shape) != len(letters):
            return False
        for axis, n in zip(letters, shape, strict=True):
            letter, _, more = axis.partition("+")
            found = n - int(more or 0)
            expected = int(letter) if letter.isdigit() else sizes.setdefault(letter, found)
            if found < 0 or found != expected:
                return False
    return True


def _letters(wanted: Takes, dim: int) -> list[str]:
    assert wanted.axes is not None
    choices = [axes.split() for axes in wanted.axes.split("|")]
    return next((axes for axes in choices if len(axes) == dim), choices[0])


def _raise_shapes(
    operator: str,
    tensors: dict[str, tuple[Tensor, Takes]],
    sizes: Sizes,
    takes: Mapping[str, Takes],
    more: str = "",
) -> None:
    shown = {
        name: (x, ", ".join(_letters(wanted, x.dim()))) for name, (x, wanted) in tensors.items()
    }
    numbers = {n: wanted.defines for n, wanted in takes.items() if wanted.defines is not None}
    wanted = [f"{name} ({axes})" for name, (_, axes) in shown.items()]
    wanted += [f"{name} = {letter}" for name, letter in numbers.items()]
    got = [f"{name} {tuple(x.shape)}" for name, (x, _) in shown.items()]
    got += [f"{name} = {sizes[letter]}" for name, letter in numbers.items()]
    raise ValueError(
        f"{operator}: shapes must agree as {', '.join(wanted)}{more}; got {', '.join(got)}"
    )
