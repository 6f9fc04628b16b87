"""The inner loops of the attention, written in vector instructions.

LLVM often fails to vectorize a loop over the channels of a head, as it cannot know whether source
and target overlap. Here, a row of ``D`` channels is one LLVM vector, and sums stay in registers.
The exponential function is also defined here, as LLVM has no vector version of it.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

# Products and sums may be fused and reordered.
FLAGS = ("reassoc", "contract", "nsz")


@intrinsic
def exp(_: Any, array: Any, size: Any) -> Any:
    """Replaces the first ``len(size)`` values of a flat array by their exponentials, accurate to
    one or two bits. Results are clamped at about the smallest normal number.

    exp(x) = 2^n · exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2, where the Taylor series
    converges fast.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, size.count)
        single = code.align == 4
        terms, digits, bias = (7, 23, 127) if single else (13, 52, 1023)
        least = -87.0 if single else -708.0
        # ln 2 in two parts: the first has few digits, so that its product with n is exact.
        high = 0.693145751953125
        low = math.log(2) - high if single else 1.42860682030941723212e-6

        def number(value: float) -> Any:
            return code.splat(code.real(value))

        x = code.load_row(0, ir.IntType(64)(0))
        # Ordered comparisons keep NaN.
        x = builder.select(builder.fcmp_ordered("<", x, number(least)), number(least), x)
        x = builder.select(builder.fcmp_ordered(">", x, number(-least)), number(-least), x)
        n = code.call("llvm.rint", builder.fmul(x, number(1 / math.log(2))))
        r = builder.fsub(x, builder.fmul(n, number(high)))
        r = builder.fsub(r, builder.fmul(n, number(low)))
        total = number(1 / math.factorial(terms))
        for k in range(terms - 1, -1, -1):
            total = builder.fadd(
                builder.fmul(total, r, flags=("contract",)),
                number(1 / math.factorial(k)),
                flags=("contract",),
            )
        bits = ir.VectorType(ir.IntType(8 * code.align), size.count)

        def integer(value: int) -> Any:
            return ir.Constant(bits, [value] * size.count)

        # 0 for NaN, which has no integer value; the product below stays NaN.
        whole = builder.select(builder.fcmp_ordered("ord", n, n), n, number(0.0))
        exponent = builder.add(builder.fptosi(whole, bits), integer(bias))
        scale = builder.bitcast(builder.shl(exponent, integer(digits)), code.vector)
        code.store_row(builder.fmul(total, scale), 0, ir.IntType(64)(0))
        return context.get_dummy_value()

    return types.void(array, size), build


@intrinsic
def add_scaled(_: Any, target: Any, at: Any, factor: Any, source: Any, start: Any, W: Any) -> Any:
    """target[at:at + W] += factor · source[start:start + W]; W is ``(0,) * W``."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, W.count)
        product = builder.fmul(code.splat(args[2]), code.load_row(3, args[4]), flags=FLAGS)
        code.store_row(builder.fadd(code.load_row(0, args[1]), product, flags=FLAGS), 0, args[1])
        return context.get_dummy_value()

    return types.void(target, at, factor, source, start, W), build


@intrinsic
def prefetch(_: Any, plane: Any, row: Any, D: Any) -> Any:
    """Prefetches ``plane[row]`` into the cache."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, D.count)
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        call = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0",
        )
        start = builder.mul(args[1], args[1].type(D.count))
        pointer = builder.bitcast(code.item(0, start), byte)
        builder.call(call, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(plane, row, D), build


@intrinsic
def gather_sum(
    _: Any, plane: Any, rows: Any, weights: Any, begin: Any, end: Any, out: Any, start: Any, D: Any
) -> Any:
    """out[start:start + D] = Σ_i weights[i] · plane[rows[i]], over begin <= i < end.

    ``plane`` is contiguous ``(N, D)``, all others are contiguous and flat; D is ``(0,) * D``.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, D.count)
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
def gather_dot(
    _: Any, plane: Any, rows: Any, begin: Any, end: Any, factor: Any, start: Any, dots: Any, D: Any
) -> Any:
    """dots[i] = factor[start:start + D] · plane[rows[i]], for begin <= i < end; arrays as in
    :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, D.count)
        u = code.load_row(4, args[5])
        with cgutils.for_range(builder, args[3], start=args[2]) as loop:
            product = builder.fmul(u, code.load_row(0, code.row_start(1, loop.index)), flags=FLAGS)
            builder.store(code.sum(product), code.item(6, loop.index))
        return context.get_dummy_value()

    return types.void(plane, rows, begin, end, factor, start, dots, D), build


@intrinsic
def dot_scatter(
    _: Any, plane: Any, rows: Any, weights: Any, begin: Any, end: Any,
    upstream: Any, start: Any, dots: Any, grad_plane: Any, D: Any,
) -> Any:  # fmt: skip
    """With u = upstream[start:start + D], dots[i] = u · plane[rows[i]] and
    grad_plane[rows[i]] += weights[i] · u, for begin <= i < end in this order; arrays as in
    :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, D.count)
        u = code.load_row(5, args[6])
        with cgutils.for_range(builder, args[4], start=args[3]) as loop:
            at = code.row_start(1, loop.index)
            product = builder.fmul(u, code.load_row(0, at), flags=FLAGS)
            builder.store(code.sum(product), code.item(7, loop.index))
            weight = code.splat(builder.load(code.item(2, loop.index)))
            change = builder.fmul(weight, u, flags=FLAGS)
            code.store_row(builder.fadd(code.load_row(8, at), change, flags=FLAGS), 8, at)
        return context.get_dummy_value()

    arguments = (plane, rows, weights, begin, end, upstream, start, dots, grad_plane, D)
    return types.void(*arguments), build


@intrinsic
def sum_scatter(
    _: Any, plane: Any, rows: Any, weights: Any, factors: Any, begin: Any, end: Any,
    upstream: Any, start: Any, probe: Any, out: Any, grad_plane: Any, D: Any,
) -> Any:  # fmt: skip
    """out[:D] = Σ_i factors[i] · plane[rows[i]] and, with u = upstream[start:start + D] and
    v = probe[:D], grad_plane[rows[i]] += weights[i] · u + factors[i] · v, for begin <= i < end in
    this order; arrays as in :func:`gather_sum`."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, signature, args, D.count)
        u, v = code.load_row(6, args[7]), code.load_row(8, ir.IntType(64)(0))
        total = cgutils.alloca_once_value(builder, code.splat(code.real(0.0)))
        with cgutils.for_range(builder, args[5], start=args[4]) as loop:
            at = code.row_start(1, loop.index)
            weight = code.splat(builder.load(code.item(2, loop.index)))
            factor = code.splat(builder.load(code.item(3, loop.index)))
            product = builder.fmul(factor, code.load_row(0, at), flags=FLAGS)
            builder.store(builder.fadd(builder.load(total), product, flags=FLAGS), total)
            change = builder.fmul(weight, u, flags=FLAGS)
            change = builder.fadd(change, builder.fmul(factor, v, flags=FLAGS), flags=FLAGS)
            code.store_row(builder.fadd(code.load_row(10, at), change, flags=FLAGS), 10, at)
        code.store_row(builder.load(total), 9, ir.IntType(64)(0))
        return context.get_dummy_value()

    arguments = (plane, rows, weights, factors, begin, end, upstream, start, probe, out, grad_plane)
    return types.void(*arguments, D), build


class _Code:
    """Helpers to emit the code of an intrinsic; arrays are identified by their argument index."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any, D: int) -> None:
        self.builder, self.D = builder, D
        self.data = {
            place: context.make_array(kind)(context, builder, value).data
            for place, (kind, value) in enumerate(zip(signature.args, args, strict=True))
            if isinstance(kind, types.Array)
        }
        self.real = context.get_data_type(signature.args[0].dtype)
        self.vector = ir.VectorType(self.real, D)
        self.align = signature.args[0].dtype.bitwidth // 8

    def item(self, array: int, index: Any) -> Any:
        return self.builder.gep(self.data[array], [index])

    def row_start(self, rows: int, index: Any) -> Any:
        """Returns the start of row ``rows[index]`` in a plane."""
        row = self.builder.load(self.item(rows, index))
        return self.builder.mul(row, row.type(self.D))

    def load_row(self, array: int, start: Any) -> Any:
        pointer = self.builder.bitcast(self.item(array, start), self.vector.as_pointer())
        return self.builder.load(pointer, align=self.align)

    def store_row(self, value: Any, array: int, start: Any) -> None:
        pointer = self.builder.bitcast(self.item(array, start), self.vector.as_pointer())
        self.builder.store(value, pointer, align=self.align)

    def splat(self, value: Any) -> Any:
        vector = self.builder.insert_element(
            ir.Constant(self.vector, ir.Undefined), value, ir.IntType(32)(0)
        )
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.D), [0] * self.D)
        return self.builder.shuffle_vector(vector, vector, lanes)

    def sum(self, vector: Any) -> Any:
        kind = ir.FunctionType(self.real, [self.real, self.vector])
        reduce = self._function("llvm.vector.reduce.fadd", kind)
        return self.builder.call(reduce, [self.real(-0.0), vector], fastmath=FLAGS)

    def call(self, name: str, vector: Any) -> Any:
        function = self._function(name, ir.FunctionType(self.vector, [self.vector]))
        return self.builder.call(function, [vector])

    def _function(self, name: str, kind: Any) -> Any:
        name = f"{name}.v{self.D}{'f32' if self.align == 4 else 'f64'}"
        return cgutils.get_or_insert_function(self.builder.module, kind, name)
