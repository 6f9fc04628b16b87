"""Emits the vector instructions of the inner loops of the attention.

The exponential function is also defined here, as LLVM has no vector version of it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

# Products and sums may be fused and reordered.
FLAGS = ("reassoc", "contract", "nsz")
LANES = 8
"""Number of rows that are scored at a time."""


class Code:
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

    def add_row(self, change: Any, array: int, start: Any) -> None:
        """Adds a row to one of an array, which may be in double precision."""
        pointer, flags = self.item(array, start), FLAGS
        kind = ir.VectorType(pointer.type.pointee, self.D)
        if kind != self.vector:
            change = self.builder.fpext(change, kind)
        pointer = self.builder.bitcast(pointer, kind.as_pointer())
        total = self.builder.fadd(self.builder.load(pointer, align=self.align), change, flags=flags)
        self.builder.store(total, pointer, align=self.align)

    def item(self, array: int, index: Any) -> Any:
        return self.builder.gep(self.data[array], [index])

    def row_start(self, rows: int, index: Any) -> Any:
        """Returns the start of row ``rows[index]`` in a plane."""
        row = self.builder.load(self.item(rows, index))
        return self.builder.mul(row, row.type(self.D))

    def prefetch(self, plane: int, row: Any) -> None:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        start = self.builder.mul(row, row.type(self.D))
        # A row of doubles takes two cache lines where one of floats takes one.
        lines = 2 if self.data[plane].type.pointee == ir.DoubleType() and self.D == 16 else 1
        for line in range(lines):
            at = self.builder.add(start, start.type(8 * line))
            pointer = self.builder.bitcast(self.item(plane, at), byte)
            self.builder.call(call, [pointer, number(0), number(3), number(1)])

    def load_row(self, array: int, start: Any) -> Any:
        pointer = self.builder.bitcast(self.item(array, start), self.vector.as_pointer())
        return self.builder.load(pointer, align=self.align)

    def store_row(self, value: Any, array: int, start: Any) -> None:
        pointer = self.builder.bitcast(self.item(array, start), self.vector.as_pointer())
        self.builder.store(value, pointer, align=self.align)

    def splat(self, value: Any) -> Any:
        kind = ir.VectorType(value.type, self.D)
        vector = self.builder.insert_element(
            ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0)
        )
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.D), [0] * self.D)
        return self.builder.shuffle_vector(vector, vector, lanes)

    def sum(self, vector: Any) -> Any:
        kind = ir.FunctionType(self.real, [self.real, self.vector])
        reduce = self._function("llvm.vector.reduce.fadd", kind)
        return self.builder.call(reduce, [self.real(-0.0), vector], fastmath=FLAGS)

    def sums(self, vectors: list[Any]) -> Any:
        """Returns the sums of :data:`LANES` vectors as one vector."""
        builder, number = self.builder, ir.IntType(32)
        if self.D % LANES or self.D & (self.D - 1):
            out = ir.Constant(ir.VectorType(self.real, LANES), ir.Undefined)
            for place, vector in enumerate(vectors):
                out = builder.insert_element(out, self.sum(vector), number(place))
            return out

        def folded(x: Any, y: Any, lanes: int) -> Any:
            """Adds neighboring lanes of x, followed by those of y."""
            evens, odds = (
                builder.shuffle_vector(
                    x, y, ir.Constant(ir.VectorType(number, lanes // 2), list(range(odd, lanes, 2)))
                )
                for odd in (0, 1)
            )
            return builder.fadd(evens, odds, flags=FLAGS)

        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [folded(x, y, 2 * self.D) for x, y in pairs]
        lanes, (vector,) = self.D, vectors
        while lanes > LANES:
            vector, lanes = folded(vector, vector, lanes), lanes // 2
        return vector

    def store_vector(self, value: Any, array: int, start: Any) -> None:
        pointer = self.builder.bitcast(self.item(array, start), value.type.as_pointer())
        self.builder.store(value, pointer, align=self.align)

    def before(self, index: Any, stop: Any) -> Any:
        """Returns in which lanes index, index + 1, ... is below ``stop``."""
        left = self.builder.trunc(self.builder.sub(stop, index), ir.IntType(32))
        return self.builder.icmp_signed("<", self.positions(ir.IntType(64)(0)), self.splat(left))

    def load_where(self, lanes: Any, array: int, start: Any) -> Any:
        """Loads a vector, and 0 in other lanes, where the array is not accessed."""
        kind = ir.VectorType(self.item(array, start).type.pointee, self.D)
        pointer = self.builder.bitcast(self.item(array, start), kind.as_pointer())
        size = ir.IntType(32)
        form = ir.FunctionType(kind, [kind.as_pointer(), size, lanes.type, kind])
        name = f"llvm.masked.load.v{self.D}{_suffix(kind.element)}.p0"
        load = cgutils.get_or_insert_function(self.builder.module, form, name)
        return self.builder.call(load, [pointer, size(4), lanes, ir.Constant(kind, None)])

    def store_where(self, lanes: Any, value: Any, array: int, start: Any) -> None:
        """Stores the given lanes of a vector."""
        kind = value.type
        pointer = self.builder.bitcast(self.item(array, start), kind.as_pointer())
        size = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [kind, kind.as_pointer(), size, lanes.type])
        name = f"llvm.masked.store.v{self.D}{_suffix(kind.element)}.p0"
        store = cgutils.get_or_insert_function(self.builder.module, form, name)
        self.builder.call(store, [value, pointer, size(4), lanes])

    def variable(self, value: float) -> Any:
        """Returns a variable that holds a vector, at first the same value in all lanes."""
        return cgutils.alloca_once_value(self.builder, self.splat(self.real(value)))

    @contextmanager
    def groups(self, begin: Any, end: Any) -> Iterator[Any]:
        """Loops over the first index of each group of D values."""
        step = ir.IntType(64)(self.D)
        with cgutils.for_range_slice(self.builder, begin, end, step, inc=True) as (index, _):
            yield index

    def larger(self, x: Any, y: Any) -> Any:
        """Returns the larger values of two vectors; y where it is not NaN and x is."""
        return self.builder.select(self.builder.fcmp_unordered("<", x, y), y, x)

    def most(self, vector: Any) -> Any:
        reduce = self._function(
            "llvm.vector.reduce.fmax", ir.FunctionType(self.real, [self.vector])
        )
        return self.builder.call(reduce, [vector])

    def distances(self, p: Any, first: Any) -> Any:
        """Returns p - first, p - (first + 1), ..."""
        positions = self.builder.sitofp(self.positions(first), self.vector)
        return self.builder.fsub(self.splat(p), positions)

    def positions(self, first: Any) -> Any:
        """Returns first, first + 1, ... as 32-bit integers."""
        number = ir.IntType(32)
        lanes = ir.Constant(ir.VectorType(number, self.D), list(range(self.D)))
        return self.builder.add(self.splat(self.builder.trunc(first, number)), lanes)

    def exp(self, x: Any) -> Any:
        """Returns the exponentials, accurate to one or two bits. Results are clamped at about the
        smallest normal number.

        exp(x) = 2^n · exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2, where the Taylor series
        converges fast.
        """
        builder, single = self.builder, self.align == 4
        terms, digits, bias = (7, 23, 127) if single else (13, 52, 1023)
        least = -87.0 if single else -708.0
        # ln 2 in two parts: the first has few digits, so that its product with n is exact.
        high = 0.693145751953125
        low = math.log(2) - high if single else 1.42860682030941723212e-6

        def number(value: float) -> Any:
            return self.splat(self.real(value))

        # Ordered comparisons keep NaN.
        x = builder.select(builder.fcmp_ordered("<", x, number(least)), number(least), x)
        x = builder.select(builder.fcmp_ordered(">", x, number(-least)), number(-least), x)
        n = self.call("llvm.rint", builder.fmul(x, number(1 / math.log(2))))
        r = builder.fsub(x, builder.fmul(n, number(high)))
        r = builder.fsub(r, builder.fmul(n, number(low)))
        total = number(1 / math.factorial(terms))
        for k in range(terms - 1, -1, -1):
            total = builder.fadd(
                builder.fmul(total, r, flags=("contract",)),
                number(1 / math.factorial(k)),
                flags=("contract",),
            )
        bits = ir.VectorType(ir.IntType(8 * self.align), self.D)

        def integer(value: int) -> Any:
            return ir.Constant(bits, [value] * self.D)

        # 0 for NaN, which has no integer value; the product below stays NaN.
        whole = builder.select(builder.fcmp_ordered("ord", n, n), n, number(0.0))
        exponent = builder.add(builder.fptosi(whole, bits), integer(bias))
        scale = builder.bitcast(builder.shl(exponent, integer(digits)), self.vector)
        return builder.fmul(total, scale)

    def call(self, name: str, vector: Any) -> Any:
        function = self._function(name, ir.FunctionType(self.vector, [self.vector]))
        return self.builder.call(function, [vector])

    def _function(self, name: str, kind: Any) -> Any:
        name = f"{name}.v{self.D}{'f32' if self.align == 4 else 'f64'}"
        return cgutils.get_or_insert_function(self.builder.module, kind, name)


def _suffix(kind: Any) -> str:
    """Returns the name of a type in the names of LLVM's functions."""
    if isinstance(kind, ir.IntType):
        return f"i{kind.width}"
    return "f32" if isinstance(kind, ir.FloatType) else "f64"
