"""A hint to the processor, for compiled loops."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def prefetch(_: Any, array: Any, place: Any) -> Any:
    """Prefetches item ``place`` of a flat contiguous array into the cache. The item is not read, so
    that any place is allowed."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        call = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0",
        )
        made = context.make_array(array)(context, builder, args[0])
        at = context.cast(builder, args[1], place, types.int64)
        pointer = builder.bitcast(builder.gep(made.data, [at]), byte)
        builder.call(call, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, place), build
