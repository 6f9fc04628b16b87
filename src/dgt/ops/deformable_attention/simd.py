"""The inner loops of the attention, written in vector instructions.

LLVM often fails to vectorize a loop over the channels of a head, as it cannot know whether source
and target overlap. Here, a row of ``D`` channels is one LLVM vector, and sums stay in registers.
What one of these functions stores and the next one loads has the same width: otherwise, the load
would have to wait until all earlier stores have reached the cache.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dgt.ops.deformable_attention.vectors import FLAGS, Code


@intrinsic
def exp(_: Any, array: Any, size: Any) -> Any:
    """Replaces the first ``len(size)`` values of a flat array by their exponentials."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, size.count)
        start = ir.IntType(64)(0)
        code.store_row(code.exp(code.load_row(0, start)), 0, start)
        return context.get_dummy_value()

    return types.void(array, size), build


@intrinsic
def sample(_: Any, query: Any, offsets: Any, attention: Any, sampled: Any, K: Any) -> Any:
    """Writes the sigmoid of query[offsets:offsets + K] to sampled[:K], and the softmax of
    query[attention:attention + K] to sampled[K:2 K]; all arrays are contiguous, K is ``(0,) * K``.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, K.count)
        o, a = code.load_row(0, args[1]), code.load_row(0, args[2])
        a = builder.fsub(a, code.splat(code.most(a)), flags=FLAGS)
        # Both exponentials at once.
        kind = ir.VectorType(ir.IntType(32), 2 * K.count)
        both = builder.shuffle_vector(
            builder.fneg(o), a, ir.Constant(kind, list(range(2 * K.count)))
        )
        both = Code(context, builder, signature, args, 2 * K.count).exp(both)
        o, a = (
            builder.shuffle_vector(
                both, both, ir.Constant(ir.VectorType(ir.IntType(32), K.count), list(lanes))
            )
            for lanes in (range(K.count), range(K.count, 2 * K.count))
        )
        one = code.splat(code.real(1.0))
        code.store_row(builder.fdiv(one, builder.fadd(one, o)), 3, ir.IntType(64)(0))
        code.store_row(builder.fdiv(a, code.splat(code.sum(a))), 3, ir.IntType(64)(K.count))
        return context.get_dummy_value()

    return types.void(query, offsets, attention, sampled, K), build


@intrinsic
def fill_window(
    _: Any, g: Any, start: Any, p: Any, first: Any, n: Any, gamma: Any, epsilon: Any, W: Any
) -> Any:
    """Writes the weights exp(-(p - i)^2 / gamma) of the positions i = first, ..., first + W - 1 to
    g[start:start + W], and returns their sum. Positions outside of 0 to n - 1 and those at least
    epsilon away have weight 0."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, W.count)
        _, start, p, first, n, gamma, epsilon, _ = args
        distance = code.distances(p, first)
        squared = builder.fmul(builder.fneg(distance), distance)
        weights = code.exp(builder.fdiv(squared, code.splat(gamma)))
        zero = code.splat(code.real(0.0))
        away = builder.fcmp_ordered(">=", code.call("llvm.fabs", distance), code.splat(epsilon))
        weights = builder.select(away, zero, weights)
        # Unsigned, so that negative positions are beyond the end too.
        end = code.splat(builder.trunc(n, ir.IntType(32)))
        inside = builder.icmp_unsigned("<", code.positions(first), end)
        weights = builder.select(inside, weights, zero)
        code.store_row(weights, 0, start)
        return code.sum(weights)

    whole = types.int64
    return g.dtype(g, whole, p, whole, whole, gamma, epsilon, W), build


@intrinsic
def window_sums(
    _: Any, g: Any, start: Any, s: Any, at: Any, p: Any, first: Any, gamma: Any, W: Any
) -> Any:
    """Returns the sums of g·s, g'·s and g' over the window of a key, where g' = dg/dp, for the
    weights of :func:`fill_window` and s[at:at + W]."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, W.count)
        _, start, _, at, p, first, gamma, _ = args
        weights, of_rows = code.load_row(0, start), code.load_row(2, at)
        slopes = builder.fmul(weights, code.splat(code.real(-2.0)), flags=FLAGS)
        slopes = builder.fmul(slopes, code.distances(p, first), flags=FLAGS)
        slopes = builder.fdiv(slopes, code.splat(gamma), flags=(*FLAGS, "arcp"))
        products = (builder.fmul(each, of_rows, flags=FLAGS) for each in (weights, slopes))
        sums = [code.sum(each) for each in (*products, slopes)]
        return context.make_tuple(builder, signature.return_type, sums)

    whole = types.int64
    return types.containers.UniTuple(g.dtype, 3)(g, whole, s, whole, p, whole, gamma, W), build


@intrinsic
def add_scaled(_: Any, target: Any, at: Any, factor: Any, source: Any, start: Any, W: Any) -> Any:
    """target[at:at + W] += factor · source[start:start + W]; W is ``(0,) * W``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, W.count)
        product = builder.fmul(code.splat(args[2]), code.load_row(3, args[4]), flags=FLAGS)
        code.store_row(builder.fadd(code.load_row(0, args[1]), product, flags=FLAGS), 0, args[1])
        return context.get_dummy_value()

    return types.void(target, at, factor, source, start, W), build


@intrinsic
def fill(_: Any, target: Any, at: Any, value: Any, W: Any) -> Any:
    """target[at:at + W] = value; W is ``(0,) * W``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, W.count)
        code.store_row(code.splat(args[2]), 0, args[1])
        return context.get_dummy_value()

    return types.void(target, at, target.dtype, W), build


@intrinsic
def find_rows(
    _: Any, w: Any, seen: Any, at: Any, sequence: Any, start: Any, low: Any, high: Any, plane: Any,
    N: Any, rows: Any, positions: Any, weights: Any, begin: Any, D: Any,
) -> Any:  # fmt: skip
    """Writes the rows sequence[start + i], the positions i and the weights w[at + i] for
    low <= i < high to ``rows``, ``positions`` and ``weights``, from index ``begin`` on, where
    seen[at + i] is not 0 and the row is one of N. Prefetches the rows of ``plane`` ``(N, D)``. The
    other arrays are flat, and all are contiguous.

    Returns the index after the last row, and the number of rows that are none of N.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, D.count)
        _, _, at, _, start, low, high, _, N, _, _, _, begin, _ = args
        long = ir.IntType(64)
        end = cgutils.alloca_once_value(builder, begin)
        wrong = cgutils.alloca_once_value(builder, long(0))
        with cgutils.for_range(builder, high, start=low) as loop:
            i, place = loop.index, builder.load(end)
            row = builder.sext(builder.load(code.item(3, builder.add(start, i))), long)
            code.prefetch(7, row)
            builder.store(row, code.item(9, place))
            builder.store(i, code.item(10, place))
            weight = builder.load(code.item(0, builder.add(at, i)))
            builder.store(weight, code.item(11, place))
            # Unsigned, so that negative rows are beyond the end too. No branch: it would often be
            # predicted wrongly.
            inside = builder.icmp_unsigned("<", row, N)
            kept = builder.load(code.item(1, builder.add(at, i)))
            kept = builder.and_(builder.fcmp_unordered("!=", kept, code.real(0.0)), inside)
            builder.store(builder.add(place, builder.zext(kept, long)), end)
            outside = builder.zext(builder.not_(inside), long)
            builder.store(builder.add(builder.load(wrong), outside), wrong)
        found = [builder.load(end), builder.load(wrong)]
        return context.make_tuple(builder, signature.return_type, found)

    long = types.int64
    arguments = (w, seen, long, sequence, long, long, long, plane, long, rows, positions, weights)
    return types.containers.UniTuple(long, 2)(*arguments, long, D), build


@intrinsic
def prefetch(_: Any, plane: Any, row: Any, D: Any) -> Any:
    """Prefetches ``plane[row]`` into the cache."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        Code(context, builder, signature, args, D.count).prefetch(0, args[1])
        return context.get_dummy_value()

    return types.void(plane, row, D), build


@intrinsic
def prefetch_at(_: Any, array: Any, index: Any) -> Any:
    """Prefetches the item at an index of a contiguous array, which may lie beyond its end."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        Code(context, builder, signature, args, 1).prefetch(0, args[1])
        return context.get_dummy_value()

    return types.void(array, index), build


@intrinsic
def gather_sum(
    _: Any, plane: Any, rows: Any, weights: Any, begin: Any, end: Any, out: Any, start: Any, D: Any
) -> Any:
    """out[start:start + D] = Σ_i weights[i] · plane[rows[i]], over begin <= i < end.

    ``plane`` is contiguous ``(N, D)``, all others are contiguous and flat; D is ``(0,) * D``.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, D.count)
        total = cgutils.alloca_once_value(builder, code.splat(code.real(0.0)))
        with cgutils.for_range(builder, args[4], start=args[3]) as loop:
            row = code.load_row(0, code.row_start(1, loop.index))
            weight = code.splat(builder.load(code.item(2, loop.index)))
            product = builder.fmul(weight, row, flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), product, flags=FLAGS), total)
        code.store_row(builder.load(total), 5, args[6])
        return context.get_dummy_value()

    return types.void(plane, rows, weights, begin, end, out, start, D), build


@intrinsic
def dot_scatter(
    _: Any, plane: Any, rows: Any, weights: Any, begin: Any, end: Any,
    upstream: Any, start: Any, dots: Any, grad_plane: Any, D: Any,
) -> Any:  # fmt: skip
    """With u = upstream[start:start + D], dots[i] = u · plane[rows[i]] and
    grad_plane[rows[i]] += weights[i] · u, for begin <= i < end in this order; arrays as in
    :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = Code(context, builder, signature, args, D.count)
        u = code.load_row(5, args[6])
        with cgutils.for_range(builder, args[4], start=args[3]) as loop:
            at = code.row_start(1, loop.index)
            product = builder.fmul(u, code.load_row(0, at), flags=FLAGS)
            builder.store(code.sum(product), code.item(7, loop.index))
            weight = code.splat(builder.load(code.item(2, loop.index)))
            change = builder.fmul(weight, u, flags=FLAGS)
            code.add_row(change, 8, at)
        return context.get_dummy_value()

    arguments = (plane, rows, weights, begin, end, upstream, start, dots, grad_plane, D)
    return types.void(*arguments), build
