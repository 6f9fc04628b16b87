"""Compiles the Triton kernels of deformable attention for GPUs that need not be present."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from dgt.ops.deformable_attention import triton as fused
from dgt.ops.deformable_attention.triton_sizes import default

TARGETS = {
    "sm_75": GPUTarget("cuda", 75, 32),
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
SHARED_LIMITS = {"sm_75": 64 * 1024, "sm_80": 163 * 1024, "sm_90": 227 * 1024, "gfx942": 64 * 1024}
"""The bytes of shared memory that a program can use."""
KERNELS = ("forward", "backward", "backward-deterministic", "gather-parts", "gather")
"""The launches of a step: the last three replace ``backward`` under deterministic algorithms."""
TYPES = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int32: "i32",
    torch.int64: "i64",
}


class Problem(NamedTuple):
    """The sizes that kernels are compiled for."""

    T: int = 3
    M: int = 4
    K: int = 4
    D: int = 16
    L: int = 64
    dtype: torch.dtype = torch.float32
    bilinear: bool = False
    gamma: float = 4.0
    epsilon: float = 4.0
    normalize: bool = True


class Launch(NamedTuple):
    """A kernel with the arguments that it would be launched with."""

    kernel: Any
    inputs: tuple[Any, ...]
    constants: dict[str, Any]
    config: triton.Config


class Code(NamedTuple):
    """The code of a kernel and the resources that it needs."""

    ttgir: str
    assembly: str
    registers: int
    spills: int
    shared: int


@contextmanager
def _deterministic(enabled: bool) -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(enabled)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def launches(problem: Problem, N: int = 16) -> dict[str, Launch]:
    """Returns the launches of a forward and a backward pass, without tuning. Nothing is run."""
    T, M, K, D, L, dtype, *kernel = problem
    values = torch.zeros(N, T, M, D, dtype=dtype)
    sequences = torch.zeros(T, N, L, dtype=torch.int32)
    query = torch.zeros(N, 2, T, M, K, dtype=dtype)
    found: list[Launch] = []

    def record(code: Any, grid: Any, shared: Any, inputs: tuple[Any, ...], **sizes: Any) -> None:
        config = default(shared, fused.BLOCKS[code])
        constants = {**shared._asdict(), **sizes, **config.kwargs}
        found.append(Launch(code, inputs, constants, config))

    with patch.object(fused, "_launch", record):
        fused.forward(values, sequences, query, *kernel)
        for deterministic in (False, True):
            with _deterministic(deterministic):
                fused.backward(values, values, sequences, query, *kernel)
    # A deterministic backward pass repeats its launches for every criterion.
    return dict(zip(KERNELS, found, strict=False))


def compiled(launch: Launch, target: str) -> Code:
    """Compiles a kernel for a GPU, such as ``"sm_80"``."""
    names = launch.kernel.arg_names
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    aligned: dict[tuple[int, ...], list[list[Any]]] = {}
    for place, name in enumerate(names):
        if name in launch.constants:
            signature[name] = "constexpr"
            constants[(place,)] = launch.constants[name]
            continue
        x = launch.inputs[place]
        if isinstance(x, int) and x == 1:  # Triton compiles the number 1 into the code
            signature[name] = "constexpr"
            constants[(place,)] = 1
            continue
        signature[name] = "*" + TYPES[x.dtype] if isinstance(x, Tensor) else "i32"
        # PyTorch aligns tensors, and Triton also looks for integers that are divisible by 16.
        if isinstance(x, Tensor) or x % 16 == 0:
            aligned[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(launch.kernel, signature, constants, aligned)
    options = {"num_warps": launch.config.num_warps, "num_stages": 1, "enable_fp_fusion": True}
    result = triton.compile(source, target=TARGETS[target], options=options)
    shared, ttgir = result.metadata.shared, result.asm["ttgir"]
    if TARGETS[target].backend == "hip":
        assembly = result.asm["amdgcn"]
        spills = _number(r"\.vgpr_spill_count:\s+(\d+)", assembly)
        spills += _number(r"\.sgpr_spill_count:\s+(\d+)", assembly)
        return Code(ttgir, assembly, _number(r"\.vgpr_count:\s+(\d+)", assembly), spills, shared)
    report = _ptxas(result.asm["ptx"], target)
    spills = _number(r"(\d+) bytes spill stores", report) + _number(r"(\d+) bytes spill", report)
    return Code(ttgir, result.asm["ptx"], _number(r"Used (\d+) registers", report), spills, shared)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the compiler did not report {pattern!r}: {text[:500]}")
    return int(found[1])


def _ptxas(ptx: str, target: str) -> str:
    """Returns what the assembler reports about registers and spills."""
    name = re.search(r"\.target (sm_\w+)", ptx)
    assert name is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx)
        command = [get_ptxas(TARGETS[target].arch).path, "-v", f"--gpu-name={name[1]}", str(file)]
        run = [*command, "-o", str(Path(folder) / "kernel.cubin")]
        result = subprocess.run(run, capture_output=True, text=True, check=True)
    return result.stdout + result.stderr
