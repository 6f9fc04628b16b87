"""Counts the global memory traffic and the arithmetic of a kernel from its generated code.

The code is Triton's GPU intermediate representation (TTGIR), after all optimizations of layouts and
memory accesses. Each access there states the shape and the type of what it loads or stores, and
each loop with a fixed number of rounds states its bounds. An access inside a loop counts once per
round.

A kernel must use one warp per program: the threads of a warp that need the same element then
read it together. An access counts at least 32 bytes, which is what memory transfers at once. Masks
are ignored, so the count is that of the longest sequences and of keys whose windows cover them.
Accesses that the cache would serve, such as a sequence that is read a second time, are counted.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from generated import Launch

SECTOR = 32
ACCESS = re.compile(r"(?:^|= )(?:tt|amdg)\.(?:buffer_)?(load|atomic_rmw|store)\b")
TENSOR = re.compile(r"tensor<([\dx]+)x(?:!tt\.ptr<)?([a-z]+\d+)")
SCALAR = re.compile(r"!tt\.ptr<([a-z]+\d+)")
CONSTANT = re.compile(r"(%\S+) = arith\.constant (-?\d+) : i\d+")
LOOP = re.compile(r"scf\.for %\S+ = (\S+) to (\S+) step (\S+)")
ARITHMETIC = re.compile(r"= (?:arith\.\w+f|math\.\w+|tt\.extern_elementwise)\b")
"""Operations on floating-point numbers, comparisons included; a reduction counts its elements."""


class Traffic(NamedTuple):
    """What one program loads and stores, in bytes, and its floating-point operations."""

    loads: int
    stores: int
    atomics: int
    operations: int

    @property
    def bytes(self) -> int:
        return self.loads + self.stores + self.atomics


def count(ttgir: str, rounds: Sequence[int] = ()) -> Traffic:
    """Counts the traffic of a program.

    Args:
        ttgir: The code.
        rounds: The rounds of the loops whose bounds depend on the data, in order.
    """
    if '"ttg.num-warps" = 1 ' not in ttgir:
        raise ValueError("traffic is only counted for kernels with one warp per program")
    constants: dict[str, int] = {}
    unknown = iter(rounds)
    regions = [1]  # how often the code of each enclosing region is run
    found = {"load": 0, "store": 0, "atomic_rmw": 0}
    operations = 0
    for raw in ttgir.splitlines():
        line = re.sub(r"\s*loc\(.*$", "", raw).strip()
        if constant := CONSTANT.match(line):
            constants[constant[1]] = int(constant[2])
        if line.startswith("}"):
            regions.pop()
        if access := ACCESS.search(line):
            size = _elements(line) * _bytes(line)
            found[access[1]] += regions[-1] * math.ceil(size / SECTOR) * SECTOR
        if ARITHMETIC.search(line) or line.startswith("}) : (tensor<"):  # the end of a reduction
            operations += regions[-1] * _elements(line)
        if line.endswith("{"):
            loop = LOOP.search(line)
            regions.append(regions[-1] * (_rounds(loop, constants, unknown) if loop else 1))
    if next(unknown, None) is not None:
        raise ValueError(f"got rounds {tuple(rounds)}, but the code has fewer loops of that kind")
    return Traffic(found["load"], found["store"], found["atomic_rmw"], operations)


def _rounds(loop: re.Match[str], constants: dict[str, int], unknown: Iterator[int]) -> int:
    if all(name in constants for name in loop.groups()):
        first, last, step = (constants[name] for name in loop.groups())
        return max(0, -(-(last - first) // step))
    rounds = next(unknown, None)
    if rounds is None:
        raise ValueError(f"the bounds of a loop depend on the data: {loop[0]}")
    return rounds


def _elements(line: str) -> int:
    tensor = TENSOR.search(line)
    return math.prod(int(n) for n in tensor[1].split("x")) if tensor else 1


def _bytes(line: str) -> int:
    found = TENSOR.search(line) or SCALAR.search(line)
    if found is None:
        raise ValueError(f"an access without a type: {line}")
    return int(re.sub(r"\D", "", found[found.lastindex or 1])) // 8


def per_query(name: str, launch: Launch, ttgir: str) -> Traffic:
    """Counts the traffic of a launch per query. With as many queries as nodes and full sequences,
    a node has L entries on average, and ``gather`` handles one node per query."""
    L, T = launch.constants["L"], launch.constants["T"]
    M, groups = launch.constants["M"], -(-launch.constants["M"] // launch.constants["HEADS"])
    if name != "gather":
        return Traffic(*(T * groups * n for n in count(ttgir)))
    traffic = count(ttgir, rounds=[-(-L // launch.constants["BLOCK"]), 0])
    # The weights of an entry are at a place of their own, and take a sector at least.
    alone = L * max(0, SECTOR - M * launch.inputs[1].element_size())
    return Traffic(*(T * groups * n for n in (traffic.loads + alone, *traffic[1:])))


def minimum(name: str, launch: Launch) -> int:
    """Returns the bytes per query that a launch needs at least: every row of values or gradients,
    the sequence or index, the query and the result, each once."""
    sizes = launch.constants
    T, M, K, D, L = (sizes[letter] for letter in "TMKDL")
    real = launch.inputs[0].element_size()
    total = max(real, 4)  # the dtype of sums
    row, query, sequence = M * D * real, 2 * M * K * real, 4 * L
    least = {
        "forward": L * row + sequence + query + row,
        "backward": L * row + L * M * D * total + sequence + query + row + query,
        "backward-deterministic": L * row + sequence + query + row + query,
        "gather": L * row + sequence + row,
    }
    return T * least[name]
