"""Fused deformable attention for GPUs: launches the kernels of ``triton_kernels``.

This module is imported when the first tensor on a GPU comes. Under Triton's interpreter
(``TRITON_INTERPRET=1``), it also takes tensors on the CPU.
"""

from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor

from dgt.ops.deformable_attention import triton_kernels
from dgt.ops.deformable_attention.transpose import Transposed, transpose
from dgt.ops.deformable_attention.triton_gather import gather
from dgt.ops.deformable_attention.triton_sizes import CONFIGS, Sizes, default, fits, prune, sizes

TUNED_FROM = 4096
"""The number of queries from which block sizes are tuned."""
SEGMENT = 512
"""The number of entries of a node that one program sums; see ``triton_gather``."""
BLOCKS = {triton_kernels.forward: 8, triton_kernels.backward: 4, gather: 8}
"""Positions per block without tuning. The backward pass needs more registers for each."""
SUMS: dict[Any, list[str]] = {triton_kernels.forward: [], triton_kernels.backward: ["grad_values"]}
"""The kernels that are tuned, and the arguments to which they add: zeroed before each trial."""


@cache
def _tuned(kernel: Any) -> Any:
    """Returns a kernel that chooses its block sizes."""
    pruning = {"early_config_prune": prune}
    key = ["T", "M", "D", "K", "L", "BILINEAR", "NORMALIZE"]
    tune = triton.autotune(CONFIGS, key, reset_to_zero=SUMS[kernel], prune_configs_by=pruning)
    return tune(kernel)


def forward(
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> Tensor:
    """Computes the output of attention; ``NotImplemented`` for sizes that do not fit."""
    if not fits(values, query):
        return NotImplemented
    shared = sizes(values, sequences, query, bilinear, gamma, epsilon)
    values, sequences, query = values.contiguous(), _rows(sequences), query.contiguous()
    Q, scans = sequences.size(1), shared.scans(normalize)
    out = values.new_empty(Q, *values.shape[1:])
    inputs = (values, sequences, query, out, values.size(0), sequences.stride(0))
    _launch(triton_kernels.forward, (Q, shared.T, shared.groups), shared, inputs, **scans)
    return out


def backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    """Computes the gradients; ``NotImplemented`` for sizes that do not fit."""
    if not fits(values, query):
        return NotImplemented
    shared = sizes(values, sequences, query, bilinear, gamma, epsilon)
    grad, values, query = grad.contiguous(), values.contiguous(), query.contiguous()
    rows, scans = _rows(sequences), shared.scans(normalize)
    N, Q, T = values.size(0), rows.size(1), shared.T
    real = torch.float64 if values.dtype == torch.float64 else torch.float32
    grad_query = torch.empty_like(query)
    fixed = grad, values, rows, query
    if not torch.are_deterministic_algorithms_enabled():
        sums = torch.zeros(values.shape, dtype=real, device=values.device)
        inputs = (*fixed, sums, grad_query, sums, N, rows.stride(0), 0)
        grid = Q, T, shared.groups
        _launch(triton_kernels.backward, grid, shared, inputs, **scans, ATOMIC=True)
        return sums.to(values.dtype), grad_query
    grad_values = torch.empty_like(values)
    weights = torch.empty(Q, shared.L, shared.M, dtype=real, device=values.device)
    index = transpose(sequences, N, SEGMENT)
    for t in range(T):
        inputs = (*fixed, grad_values, grad_query, weights, N, rows.stride(0), t)
        grid = Q, 1, shared.groups
        _launch(triton_kernels.backward, grid, shared, inputs, **scans, ATOMIC=False)
        _gather(grad, weights, index, grad_values, shared, t)
    return grad_values, grad_query


def _gather(
    grad: Tensor, weights: Tensor, index: Transposed, grad_values: Tensor, shared: Sizes, t: int
) -> None:
    """Computes the gradient of the values of a criterion in a fixed order, see
    ``triton_gather``."""
    *places, starts = index
    N = grad_values.size(0)
    parts = weights.new_empty(len(index.part_rows), shared.M, shared.D)
    inputs = (grad, weights, *places, parts, grad_values, N)
    for first, count, rest in ((starts[t], starts[t + 1] - starts[t], True), (t * N, N, False)):
        grid = count, shared.groups
        _launch(gather, grid, shared, (*inputs, first), SEGMENT=SEGMENT, PARTS=rest)


def _rows(sequences: Tensor) -> Tensor:
    """Returns sequences whose rows are contiguous: chunks and slices of criteria are not copied."""
    L = sequences.size(2)
    return sequences if sequences.stride()[1:] == (L, 1) else sequences.contiguous()


def _may_tune() -> bool:
    """Returns whether trials are possible, and another run may choose other block sizes and thus
    another order of sums."""
    compiled = isinstance(gather, triton.JITFunction)
    return compiled and not torch.are_deterministic_algorithms_enabled()


def _launch(
    kernel: Any, grid: tuple[int, ...], shared: Sizes, inputs: tuple[Any, ...], **sizes: Any
) -> None:
    """Runs a kernel on the device of its inputs."""
    if grid[0] == 0:
        return
    given = {k: v for k, v in shared._asdict().items() if k in kernel.arg_names}
    given |= {**sizes, "enable_fp_fusion": True}
    with torch.cuda.device_of(inputs[0]):
        if kernel in SUMS and grid[0] >= TUNED_FROM and _may_tune():
            _tuned(kernel)[grid](*inputs, **given)
        else:
            config = default(shared, BLOCKS[kernel])
            warps = {"num_warps": config.num_warps, "num_stages": config.num_stages}
            kernel[grid](*inputs, **given, **config.kwargs, **warps)
