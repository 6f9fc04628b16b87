"""Products of a few rows with many others, exact in 16-bit integers.

A row of 16-bit integers takes half the memory of one in single precision, and processors multiply
and add pairs of them in one instruction. LLVM chooses this instruction for the code that is
emitted here. Sums are exact, so that results do not depend on the order of summation or on the
machine.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

SCALE = 2.0**15 - 1
"""The norm of rows that are then rounded to 16-bit integers; products are below 2^31."""
LANES = 16
"""Number of rows in a group, whose products with another row are computed together."""


def rounded_rows(unit: np.ndarray, norm: float) -> np.ndarray:
    """Rounds rows of a given norm to 16-bit integers.

    Returns:
        int16 ``(N, F)``, padded with 0 to an even number of features.
    """
    N, F = unit.shape
    rows = np.zeros((N, F + F % 2), dtype=np.int16)
    for at in range(0, N, 2**14):
        rows[at : at + 2**14, :F] = np.rint(unit[at : at + 2**14] * (SCALE / norm))
    return rows


def in_groups(rows: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Arranges rows for :func:`four_products`.

    Args:
        rows: From :func:`rounded_rows`, ``(N, F)``.
        members: Rows by group, int ``(groups * LANES,)``; -1 stands for a row of zeros.

    Returns:
        int16 ``(groups, F * LANES)``. Each group has a pair of features of all its rows, then the
        next pair.
    """
    F = rows.shape[1]
    groups = np.empty((len(members) // LANES, F // 2, LANES, 2), dtype=np.int16)
    for at in range(0, len(groups), 2**10):
        own = members[at * LANES : (at + 2**10) * LANES]
        part = np.where(own[:, None] >= 0, rows[own], 0).reshape(-1, LANES, F // 2, 2)
        groups[at : at + 2**10] = part.transpose(0, 2, 1, 3)
    return groups.reshape(len(groups), F * LANES)


@njit(cache=True, nogil=True)
def four_products(rows, a, b, c, d, groups, first, stop, out):  # type: ignore[no-untyped-def]
    """Computes the products of rows a, b, c and d with all rows of some groups.

    Args:
        rows: From :func:`rounded_rows`, ``(N, F)``.
        a: Index of a row, as are b, c and d.
        groups: From :func:`in_groups`.
        first: First group.
        stop: Group after the last one.
        out: The products, int32 ``(4, (stop - first) * LANES)`` or wider.
    """
    for group in range(first, stop - 1, 2):
        _products(rows, (a, b, c, d), groups, group, out, (group - first) * LANES, (0, 0))
    if (stop - first) % 2:
        _products(rows, (a, b, c, d), groups, stop - 1, out, (stop - 1 - first) * LANES, (0,))


@intrinsic
def _products(
    _: Any, rows: Any, chosen: Any, groups: Any, group: Any, out: Any, place: Any, count: Any
) -> Any:
    """Computes the products of the chosen rows with ``len(count)`` groups. Sums stay in registers.

    They are written to ``out``, from column ``place`` on. All arrays are contiguous."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        long, number, short = ir.IntType(64), ir.IntType(32), ir.IntType(16)
        sums, pairs = ir.VectorType(number, LANES), ir.VectorType(short, 2 * LANES)
        wide = ir.VectorType(number, 2 * LANES)
        rows, groups, out = (
            context.make_array(signature.args[at])(context, builder, args[at]) for at in (0, 2, 4)
        )
        (_, F), (_, width) = (cgutils.unpack_tuple(builder, x.shape) for x in (rows, out))

        def start(array: Any, index: Any, step: Any, kind: Any) -> Any:
            pointer = builder.gep(array.data, [builder.mul(index, step)])
            return builder.bitcast(pointer, kind.as_pointer())

        def lanes(*places: int) -> Any:
            return ir.Constant(ir.VectorType(number, len(places)), places)

        own = [start(rows, row, F, number) for row in cgutils.unpack_tuple(builder, args[1])]
        others = [
            start(groups, builder.add(args[3], long(i)), builder.mul(F, long(LANES)), pairs)
            for i in range(count.count)
        ]
        totals = [
            [cgutils.alloca_once_value(builder, ir.Constant(sums, None)) for _ in others]
            for _ in own
        ]
        even, odd = lanes(*range(0, 2 * LANES, 2)), lanes(*range(1, 2 * LANES, 2))
        with cgutils.for_range(builder, builder.lshr(F, long(1))) as loop:
            columns = [builder.load(builder.gep(p, [loop.index]), align=2) for p in others]
            for row, total in zip(own, totals, strict=True):
                pair = builder.load(builder.gep(row, [loop.index]), align=2)
                pair = builder.insert_element(ir.Constant(sums, ir.Undefined), pair, number(0))
                pair = builder.shuffle_vector(pair, pair, lanes(*[0] * LANES))
                pair = builder.sext(builder.bitcast(pair, pairs), wide)
                for column, sum_ in zip(columns, total, strict=True):
                    product = builder.mul(builder.sext(column, wide), pair)
                    both = (builder.shuffle_vector(product, product, half) for half in (even, odd))
                    builder.store(builder.add(builder.load(sum_), builder.add(*both)), sum_)
        for i, total in enumerate(totals):
            for j, sum_ in enumerate(total):
                column = builder.add(args[5], long(j * LANES))
                at = builder.add(builder.mul(width, long(i)), column)
                pointer = builder.bitcast(builder.gep(out.data, [at]), sums.as_pointer())
                builder.store(builder.load(sum_), pointer, align=4)
        return context.get_dummy_value()

    place_type = types.int64
    return types.void(rows, chosen, groups, place_type, out, place_type, count), build


@intrinsic
def lanes_from(_: Any, products: Any, row: Any, place: Any, least: Any) -> Any:
    """Returns which of the products ``[row, place:place + LANES]`` are at least ``least``, as a
    number with one bit for each."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(32)
        vector = ir.VectorType(number, LANES)
        array = context.make_array(signature.args[0])(context, builder, args[0])
        _, width = cgutils.unpack_tuple(builder, array.shape)
        at = builder.add(builder.mul(args[1], width), args[2])
        pointer = builder.bitcast(builder.gep(array.data, [at]), vector.as_pointer())
        bound = builder.insert_element(ir.Constant(vector, ir.Undefined), args[3], number(0))
        bound = builder.shuffle_vector(bound, bound, ir.Constant(vector, None))
        found = builder.icmp_signed(">=", builder.load(pointer, align=4), bound)
        return builder.zext(builder.bitcast(found, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(products, types.int64, types.int64, types.int32), build


@intrinsic
def lowest(_: Any, lanes: Any) -> Any:
    """Returns the lowest bit that is set in a number from :func:`lanes_from`, which is not 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(1))

    return types.int64(types.int64), build
