"""Three machine instructions that Numba does not name."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array


@intrinsic
def popcount(_context: Any, bits: Any) -> Any:
    """How many bits of a uint64 are set."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.ctpop(values[0])

    return types.int64(types.uint64), emit


@intrinsic
def trailing_zeros(_context: Any, bits: Any) -> Any:
    """How many zeros stand below the lowest set bit of a uint64 that is not 0."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), emit


@intrinsic
def prefetch(_context: Any, array: Any, index: Any) -> Any:
    """Asks for the cache line of an element, counted flat, before it is needed. No harm where it lies outside."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = make_array(signature.args[0])(target, builder, values[0]).data
        address = builder.bitcast(builder.gep(data, [values[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer()] + [ir.IntType(32)] * 3)
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [address, *(ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))])
        return target.get_dummy_value()

    return types.none(array, types.int64), emit
