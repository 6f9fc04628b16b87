"""The inner loops of scored attention, written in vector instructions as those in
``dgt.ops.deformable_attention.simd``."""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dgt.ops.deformable_attention.vectors import FLAGS, LANES, Code


@intrinsic
def gather_dots(
    _: Any, plane: Any, rows: Any, begin: Any, end: Any, first: Any, start: Any, dots: Any,
    second: Any, start2: Any, dots2: Any, D: Any,
) -> Any:  # fmt: skip
    """dots[i] = first[start:start + D] · plane[rows[i]] and, unless ``second`` is None, dots2[i] =
    second[start2:start2 + D] · plane[rows[i]], for begin <= i < end and the rest of the last group
    of :data:`LANES`; arrays as in :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, D.count)
        factors = [code.load_row(4, args[5])]
        targets = [6]
        if not isinstance(second, types.misc.NoneType):
            factors.append(code.load_row(7, args[8]))
            targets.append(9)
        step = ir.IntType(64)(LANES)
        with cgutils.for_range_slice(builder, args[2], args[3], step, inc=True) as (index, _):
            places = [builder.add(index, index.type(i)) for i in range(LANES)]
            found = [code.load_row(0, code.row_start(1, place)) for place in places]
            for factor, target in zip(factors, targets, strict=True):
                products = [builder.fmul(factor, row, flags=FLAGS) for row in found]
                code.store_vector(code.sums(products), target, index)
        return context.get_dummy_value()

    arguments = (plane, rows, begin, end, first, start, dots, second, start2, dots2, D)
    return types.void(*arguments), build


@intrinsic
def score(
    _: Any, factors: Any, closeness: Any, weights: Any, begin: Any, end: Any, sharpness: Any
) -> Any:
    """Adds sharpness · closeness to the scores ``factors``, replaces them by f = exp(score) / Σ_i
    weights[i] · exp(score_i), and multiplies the weights by f, for begin <= i < end. Where a weight
    is 0, f is 0 too. Arrays are flat, and read and written in groups of :data:`LANES`; the weights
    beyond the end must be 0."""

    def is_read(code: Code, i: Any) -> Any:
        zero = code.splat(code.real(0.0))
        return code.builder.fcmp_unordered("!=", code.load_row(2, i), zero)

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, LANES)
        _, _, _, begin, end, sharpness = args
        b = code.splat(sharpness)
        most = code.variable(-math.inf)
        with code.groups(begin, end) as i:
            x = builder.fmul(b, code.load_row(1, i), flags=FLAGS)
            x = builder.fadd(code.load_row(0, i), x, flags=FLAGS)
            x = builder.select(is_read(code, i), x, code.splat(code.real(-math.inf)))
            code.store_row(x, 0, i)
            builder.store(code.larger(builder.load(most), x), most)
        largest = code.splat(code.most(builder.load(most)))
        total = code.variable(0.0)
        with code.groups(begin, end) as i:
            x = code.exp(builder.fsub(code.load_row(0, i), largest))
            x = builder.select(is_read(code, i), x, code.splat(code.real(0.0)))
            code.store_row(x, 0, i)
            x = builder.fmul(code.load_row(2, i), x, flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), x, flags=FLAGS), total)
        by = code.splat(builder.fdiv(code.real(1.0), code.sum(builder.load(total))))
        with code.groups(begin, end) as i:
            x = builder.fmul(code.load_row(0, i), by)
            code.store_row(x, 0, i)
            code.store_row(builder.fmul(code.load_row(2, i), x), 2, i)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(factors, closeness, weights, whole, whole, sharpness), build


@intrinsic
def score_gradients(
    _: Any, dots: Any, weights: Any, factors: Any, closeness: Any, slopes: Any, begin: Any, end: Any
) -> Any:
    """Given the gradients ``dots`` of the weights after :func:`score`, writes those of the weights
    before it to ``slopes`` and replaces ``dots`` by those of the scores, for begin <= i < end.
    Returns the gradient of the sharpness. Arrays as in :func:`score`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, LANES)
        begin, end = args[5:]
        # The weights sum to 1, so that only differences matter. Those from a row with the largest
        # weight stay exact if there is nothing else.
        most, center = code.variable(-math.inf), code.variable(-math.inf)
        with code.groups(begin, end) as i:
            builder.store(code.larger(builder.load(most), code.load_row(1, i)), most)
        largest = code.splat(code.most(builder.load(most)))
        with code.groups(begin, end) as i:
            is_most = builder.fcmp_ordered("==", code.load_row(1, i), largest)
            x = builder.select(is_most, code.load_row(0, i), code.splat(code.real(-math.inf)))
            builder.store(code.larger(builder.load(center), x), center)
        center = code.splat(code.most(builder.load(center)))
        mean = code.variable(0.0)
        with code.groups(begin, end) as i:
            x = builder.fsub(code.load_row(0, i), center)
            code.store_row(x, 0, i)
            x = builder.fmul(code.load_row(1, i), x, flags=FLAGS)
            builder.store(builder.fadd(builder.load(mean), x, flags=FLAGS), mean)
        mean = code.splat(code.sum(builder.load(mean)))
        total = code.variable(0.0)
        with code.groups(begin, end) as i:
            x = builder.fsub(code.load_row(0, i), mean)
            code.store_row(builder.fmul(code.load_row(2, i), x), 4, i)
            x = builder.fmul(code.load_row(1, i), x)
            code.store_row(x, 0, i)
            x = builder.fmul(x, code.load_row(3, i), flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), x, flags=FLAGS), total)
        return code.sum(builder.load(total))

    whole = types.int64
    return dots.dtype(dots, weights, factors, closeness, slopes, whole, whole), build


@intrinsic
def sum_scatter(
    _: Any, plane: Any, rows: Any, weights: Any, factors: Any, begin: Any, end: Any,
    upstream: Any, start: Any, probe: Any, at: Any, out: Any, grad_plane: Any, D: Any,
) -> Any:  # fmt: skip
    """out[at:at + D] = Σ_i factors[i] · plane[rows[i]] and, with u = upstream[start:start + D] and
    v = probe[at:at + D], grad_plane[rows[i]] += weights[i] · u + factors[i] · v, for
    begin <= i < end in this order; arrays as in :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, D.count)
        u, v = code.load_row(6, args[7]), code.load_row(8, args[9])
        total = code.variable(0.0)
        with cgutils.for_range(builder, args[5], start=args[4]) as loop:
            place = code.row_start(1, loop.index)
            weight = code.splat(builder.load(code.item(2, loop.index)))
            factor = code.splat(builder.load(code.item(3, loop.index)))
            product = builder.fmul(factor, code.load_row(0, place), flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), product, flags=FLAGS), total)
            change = builder.fmul(weight, u, flags=FLAGS)
            change = builder.fadd(change, builder.fmul(factor, v, flags=FLAGS), flags=FLAGS)
            code.add_row(change, 11, place)
        code.store_row(builder.load(total), 10, args[9])
        return context.get_dummy_value()

    arguments = (plane, rows, weights, factors, begin, end, upstream, start, probe, at, out)
    return types.void(*arguments, grad_plane, D), build
