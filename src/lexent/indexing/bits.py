"""Machine instructions that Numba does not name."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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
def word_at(context: Any, data: Any, place: Any) -> Any:
    """The 64 bits that begin at a place of an array of bytes, whatever its alignment; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        at = builder.gep(array.data, [values[1]])
        return builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), emit
