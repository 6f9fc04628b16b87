"""The positions that keys read, as runs, which are copied in vector instructions.

The windows of a head's keys overlap or leave gaps. Together, they are a few runs of consecutive
positions, whose nodes, weights and closeness are consecutive in memory too.
"""

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from dgt.ops.deformable_attention.vectors import LANES, Code


@njit(cache=True, error_model="numpy", inline="always")
def find_runs(first: Any, n: int, W: Any, K: Any, runs: Any) -> int:
    """Writes the runs of positions that the windows of W positions from ``first`` on cover in a
    sequence of length n, each as its start and stop, in ascending order. Shape of ``runs``:
    ``(K, 2)``. Returns their number.
    """
    # Insertion sort: usually, the keys of a head are in order.
    for k in range(len(K)):
        i = k
        while i > 0 and runs[i - 1, 0] > first[k]:
            runs[i, 0] = runs[i - 1, 0]
            i -= 1
        runs[i, 0] = first[k]
    count = 0
    for k in range(len(K)):
        start, stop = max(runs[k, 0], 0), min(runs[k, 0] + len(W), n)
        if stop <= start:
            continue
        if count == 0 or start > runs[count - 1, 1]:
            runs[count, 0] = start
            count += 1
        runs[count - 1, 1] = stop
    return count


@intrinsic
def copy_run(
    _: Any, w: Any, at: Any, sequence: Any, closeness: Any, offset: Any, start: Any, stop: Any,
    plane: Any, N: Any, rows: Any, weights: Any, close: Any, begin: Any, D: Any,
) -> Any:  # fmt: skip
    """Writes the rows sequence[offset + i], the weights w[at + i] and closeness[offset + i] for
    start <= i < stop to ``rows``, ``weights`` and ``close``, from index ``begin`` on. Prefetches
    the rows of ``plane`` ``(N, D)``. All arrays are contiguous. What is written beyond the end, to
    a whole group of :data:`LANES`, has no meaning.

    Returns the number of rows that are none of N; they are replaced by row 0.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, LANES)
        whole = Code(context, builder, signature, args, D.count)
        _, at, _, _, offset, start, stop, _, N, _, _, _, begin, _ = args
        long = ir.IntType(64)
        wrong = cgutils.alloca_once_value(builder, long(0))
        shift = builder.sub(begin, start)
        with code.groups(start, stop) as i:
            place, source = builder.add(i, shift), builder.add(offset, i)
            # The last group may end after the last sequence.
            there = code.before(i, stop)
            found = code.load_where(there, 2, source)
            row = builder.sext(found, ir.VectorType(long, LANES))
            # Unsigned, so that negative rows are beyond the end too.
            inside = builder.icmp_unsigned("<", row, code.splat(N))
            row = builder.select(inside, row, code.splat(long(0)))
            code.store_vector(row, 9, place)
            for lane in range(LANES):
                whole.prefetch(7, builder.extract_element(row, ir.IntType(32)(lane)))
            outside = builder.bitcast(builder.not_(inside), ir.IntType(LANES))
            builder.store(builder.add(builder.load(wrong), builder.zext(outside, long)), wrong)
            code.store_row(code.load_row(0, builder.add(at, i)), 10, place)
            code.store_row(code.load_where(there, 3, source), 11, place)
        return builder.load(wrong)

    whole = types.int64
    arguments = (w, whole, sequence, closeness, whole, whole, whole, plane, whole)
    return whole(*arguments, rows, weights, close, whole, D), build


@intrinsic
def copy_back(_: Any, source: Any, begin: Any, target: Any, at: Any, start: Any, stop: Any) -> Any:
    """target[at + i] = source[begin + i - start] for start <= i < stop; both are flat. Whole groups
    of :data:`LANES` are read."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, LANES)
        _, begin, _, at, start, stop = args
        shift = builder.sub(begin, start)
        with code.groups(start, stop) as i:
            values = code.load_row(0, builder.add(i, shift))
            code.store_where(code.before(i, stop), values, 2, builder.add(at, i))
        return context.get_dummy_value()

    whole = types.int64
    return types.void(source, whole, target, whole, whole, whole), build
