"""The sizes that the Triton kernels of deformable attention are compiled for."""

import math
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

CHANNELS_LIMIT, KEYS_LIMIT = 1024, 256
"""Larger heads, or more keys, do not fit into the registers of a program."""
GROUP = 256
"""The largest number of channels, or of keys, that the heads of a group have together."""
SCAN_LIMIT = 1024


class Sizes(NamedTuple):
    """Compile-time arguments that all kernels share, in the letters of ``triton_kernels``."""

    T: int
    M: int
    D: int
    K: int
    L: int
    BILINEAR: bool
    GAMMA: float
    EPSILON: float
    HEADS: int
    CHANNELS: int
    KEYS: int
    REAL: Any

    @property
    def groups(self) -> int:
        """The number of groups of heads."""
        return -(-self.M // self.HEADS)

    def scans(self, normalize: bool) -> dict[str, Any]:
        """Returns the arguments of kernels that read sequences and query."""
        # No window is longer than the sequence.
        reach = math.ceil(1 if self.BILINEAR else min(self.EPSILON, self.L))
        window = triton.next_power_of_2(2 * reach)
        return {
            "NORMALIZE": normalize,
            "REACH": reach,
            "WINDOW": min(2 * reach, self.L),
            "SCAN_WINDOW": min(window, 16),
            "SCAN": min(triton.next_power_of_2(self.L), SCAN_LIMIT),
        }


def fits(values: Tensor, query: Tensor) -> bool:
    """Returns whether the kernels can be compiled for these sizes."""
    return values.size(3) <= CHANNELS_LIMIT and query.size(4) <= KEYS_LIMIT


def sizes(
    values: Tensor, sequences: Tensor, query: Tensor, bilinear: bool, gamma: float, epsilon: float
) -> Sizes:
    _, T, M, D = values.shape
    K, L = query.size(4), sequences.size(2)
    channels, keys = triton.next_power_of_2(D), triton.next_power_of_2(K)
    heads = min(triton.next_power_of_2(M), max(1, GROUP // max(channels, keys)))
    real = tl.float64 if values.dtype == torch.float64 else tl.float32
    return Sizes(T, M, D, K, L, bilinear, gamma, epsilon, heads, channels, keys, real)


def default(sizes: Sizes, block: int) -> triton.Config:
    """Returns the config that is used without tuning, for blocks of at most ``block`` positions.
    Blocks are shorter for heads that are so large that a thread would run out of registers."""
    width = sizes.HEADS * max(sizes.CHANNELS, sizes.KEYS)
    warps = min(max(width // 64, 1), 8)
    block = min(triton.next_power_of_2(sizes.L), block, block * 64 * warps // width)
    return triton.Config({"BLOCK": block}, num_warps=warps, num_stages=1)


CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=1)
    for block in (4, 8, 16)
    for warps in (1, 2, 4, 8)
]
"""The block sizes to choose from by tuning."""


def prune(
    configs: list[triton.Config], arguments: dict[str, Any], **kwargs: Any
) -> list[triton.Config]:
    """Returns the configs with 8 to 32 channels per thread and blocks no longer than a sequence."""
    given = {**arguments, **kwargs}
    width = given["HEADS"] * max(given["CHANNELS"], given["KEYS"])
    longest = max(4, triton.next_power_of_2(given["L"]))

    def good(config: triton.Config) -> bool:
        block = config.kwargs["BLOCK"]
        return block <= longest and 8 <= block * width / (32 * config.num_warps) <= 32

    return [config for config in configs if good(config)] or configs[:1]
