"""Checks of the entries of index tensors: every index must lie inside the axis that it indexes.

On the CPU, compiled loops check the entries in one pass. Node sequences, which are the largest, are
checked once while the tensor lives and is not modified, as training uses them again in every step.
On a GPU, this also saves a wait for the device.
"""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from dgt.ops.taken import take
from dgt.system import threads

State = tuple[Any, ...]

_seen: Any = WeakIdKeyDictionary()
"""The state in which each sequence tensor was found correct."""


def wrong_index(x: Tensor, count: int) -> str | None:
    """Returns what is wrong if an entry is outside 0 to ``count - 1``, or None."""
    if x.numel() == 0 or (x.dtype == torch.uint8 and count > 255):
        return None
    low, high = _range(x)
    if low >= 0 and high < count:
        return None
    return f"got index {low if low < 0 else high}, expected 0 to {count - 1}"


def wrong_pointers(crow: Tensor, count: int) -> str | None:
    """Returns what is wrong if row pointers do not rise from 0 to ``count``, or None."""
    if crow.is_cpu:
        first, last, rises = _rises(crow.detach().contiguous().numpy())
    else:
        first, last = int(crow[0]), int(crow[-1])
        rises = bool((crow[1:] >= crow[:-1]).all())
    if first != 0 or last != count:
        return f"got row pointers from {first} to {last}, expected 0 to {count}"
    if not rises:
        return "got row pointers that decrease, expected each at least as large as the last"
    return None


def wrong_sequences(sequences: Tensor, count: int) -> str | None:
    """Returns what is wrong if an entry is outside -1 to ``count - 1``, or if a node follows the
    padding, or None."""
    state = _state(sequences, count)
    if state is not None and _seen.get(sequences) == state:
        return None
    if state is not None and _are_rows_of_seen(sequences, count):
        return None
    wrong = find_wrong_sequences(sequences, count)
    if wrong is None and state is not None:
        _seen[sequences] = state
    return wrong


def take_sequences(sequences: Tensor, nodes: Tensor) -> Tensor:
    """Returns the sequences of some nodes, ``sequences[:, nodes]``, of shape ``(T, Q, L)``. They
    are not checked again if all sequences were found correct. The sequences may be on the CPU while
    the nodes are on a GPU."""
    taken = take(sequences, nodes)
    if not torch.compiler.is_compiling():
        state = _seen.get(sequences)
        if state is not None and state == _state(sequences, state[-1]):
            _seen[taken] = _state(taken, state[-1])
    return taken


def find_wrong_sequences(sequences: Tensor, count: int) -> str | None:
    """Does the work of :func:`wrong_sequences`, even if the tensor was checked before."""
    if sequences.numel() == 0:
        return None
    low, high = _range(sequences)
    if low < -1 or high >= count:
        got = low if low < -1 else high
        return f"got node index {got}, expected 0 to {count - 1}, or -1 for padding"
    if low < 0 and not _padded_at_end(sequences):
        return "got a node after -1, expected padding only at the end"
    return None


def _state(x: Tensor, count: int) -> State | None:
    """Returns what must not change between two uses, or None if PyTorch does not track it."""
    if x.is_inference():
        return None
    return x._version, x.data_ptr(), x.shape, x.stride(), count


def _are_rows_of_seen(x: Tensor, count: int) -> bool:
    """Returns whether a view, such as a chunk, consists of whole rows of a tensor that was found
    correct."""
    base = x._base
    if base is None or base.dtype != x.dtype or not base.is_contiguous() or base.dim() == 0:
        return False
    state = _state(base, count)
    if state is None or _seen.get(base) != state:
        return False
    L = base.size(-1)
    start = x.storage_offset() - base.storage_offset()
    whole = x.size(-1) == L and (L < 2 or x.stride(-1) == 1)
    return whole and not start % L and not any(step % L for step in x.stride()[:-1])


def _range(x: Tensor) -> tuple[int, int]:
    """Returns the smallest and the largest entry."""
    if not x.is_cpu:
        low, high = x.aminmax()
        return int(low), int(high)
    ranges = threads.run(_limits, 1 + x.numel() // 65536, _rows(x).reshape(-1))
    return min(int(low) for low, _ in ranges), max(int(high) for _, high in ranges)


def _padded_at_end(sequences: Tensor) -> bool:
    if not sequences.is_cpu:
        return bool(((sequences[..., :-1] >= 0) | (sequences[..., 1:] < 0)).all())
    return all(threads.run(_padded, 1 + sequences.numel() // 65536, _rows(sequences)))


def _rows(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().numpy().reshape(-1, x.size(-1))


@njit(cache=True, nogil=True)
def _limits(thread: int, threads: int, x: Any) -> tuple[Any, Any]:
    N = x.size
    low, high = x[0], x[0]
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        low, high = min(low, x[i]), max(high, x[i])
    return low, high


@njit(cache=True, nogil=True)
def _rises(crow: Any) -> tuple[Any, Any, bool]:
    wrong = 0
    for i in range(1, crow.size):
        wrong |= crow[i] < crow[i - 1]
    return crow[0], crow[-1], wrong == 0


@njit(cache=True, nogil=True)
def _padded(thread: int, threads: int, rows: Any) -> bool:
    N, L = rows.shape
    wrong = 0
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for j in range(1, L):
            wrong |= (rows[i, j - 1] < 0) & (rows[i, j] >= 0)
    return wrong == 0
