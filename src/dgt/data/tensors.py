"""Converts tensors, arrays and lists of the user to dense tensors of a few types on the CPU."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt.errors import InputError
from dgt.system import machine

INTEGERS = {
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint16,
    torch.uint32,
    torch.uint64,
}
FLOATS = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
SPARSE = {
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
}


def plain(value: Any, place: str, sparse: bool = False) -> Tensor:
    """Converts a value to a dense tensor on the CPU.

    Args:
        value: A tensor, NumPy array or list of numbers.
        place: Place of the value in error messages.
        sparse: Whether sparse tensors are allowed. They become dense.

    Returns:
        A tensor of type bool, int64, float32 or float64.
    """
    given = _tensor(value, place)
    kind = _unsupported(given)
    if kind is None and given.layout != torch.strided and not sparse:
        kind = f"a sparse tensor ({str(given.layout).removeprefix('torch.')})"
    if kind is not None:
        raise InputError(f"{place}: got {kind}, expected a dense tensor of numbers")
    # A sparse tensor, or one with repeated rows, may be much larger than what it stores.
    machine.require(4 * math.prod(given.shape), f"{place}: a tensor of shape {tuple(given.shape)}")
    try:
        tensor = given.detach().cpu()
        if tensor.layout != torch.strided:
            _validate(tensor)
            tensor = tensor.to_dense()
        return _converted(tensor.resolve_neg(), place)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        if machine.out_of_memory(error):
            raise
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{place}: got a tensor that cannot be read, expected a dense one: {reason}"
        ) from None


def _tensor(value: Any, place: str) -> Tensor:
    if hasattr(value, "as_tensor"):  # EdgeIndex and Index of PyG
        value = value.as_tensor()
    elif not isinstance(value, Tensor) and hasattr(value, "to_torch_sparse_csr_tensor"):
        value = value.to_torch_sparse_csr_tensor()  # SparseTensor of torch_sparse
    if isinstance(value, Tensor):
        return value
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        own = isinstance(value, np.ndarray)
        kind = f"an array of type {array.dtype}" if own else type(value).__name__
        raise InputError(f"{place}: got {kind}, expected a tensor of numbers")
    wanted = array.dtype.newbyteorder("=")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        wanted = np.dtype(np.float64)
    # Copied if it is read-only, because torch cannot represent that.
    return torch.from_numpy(np.require(array, dtype=wanted, requirements=["C", "W"]))


def _unsupported(tensor: Tensor) -> str | None:
    """Describes a kind of tensor that is not supported; None if it is."""
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.is_quantized:
        return f"a quantized tensor ({tensor.dtype})"
    if tensor.device.type == "meta":
        return "a tensor without data (device meta)"
    if tensor.layout not in (torch.strided, *SPARSE):
        return f"a tensor of layout {tensor.layout}"
    if tensor.dtype not in (torch.bool, *INTEGERS, *FLOATS):
        return f"values of type {str(tensor.dtype).removeprefix('torch.')}"
    return None


def _validate(tensor: Tensor) -> None:
    """Raises a RuntimeError if the indices of a sparse tensor are out of range."""
    if tensor.layout == torch.sparse_coo:
        torch._validate_sparse_coo_tensor_args(tensor._indices(), tensor._values(), tensor.shape)
        return
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    compressed = tensor.crow_indices() if rows else tensor.ccol_indices()
    other = tensor.col_indices() if rows else tensor.row_indices()
    torch._validate_sparse_compressed_tensor_args(
        compressed, other, tensor.values(), tensor.shape, tensor.layout
    )


def _converted(tensor: Tensor, place: str) -> Tensor:
    if tensor.dtype in (torch.bool, torch.float32, torch.float64):
        return tensor
    if tensor.dtype in FLOATS:
        return tensor.to(torch.float32)
    whole = tensor.to(torch.int64)
    if tensor.dtype == torch.uint64 and bool((whole < 0).any()):  # wrapped around
        index = tuple((whole < 0).nonzero()[0].tolist())
        raise InputError(
            f"{place}: got {int(whole[index]) % 2**64} at index {', '.join(map(str, index))}, "
            "expected integers below 2**63"
        )
    return whole
