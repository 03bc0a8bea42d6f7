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


LANES = 64
"""Counts that the instructions below work on at a time."""
BLOCK = 512
"""Documents whose bits are added at a time."""
_BYTES, _BITS = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(ir.IntType(1), LANES)
_WORDS = ir.VectorType(ir.IntType(64), BLOCK // LANES)


def _at(target: Any, builder: Any, kind: Any, array: Any, place: Any, vector: Any) -> Any:
    """A pointer to a vector that begins at a place of an array."""
    data = target.make_array(kind)(target, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _binary_sums(builder: Any, words: list[Any]) -> list[Any]:
    """For each bit of some words how many of them have it set, as a binary number: its digits, lowest first."""
    digits: list[Any] = []
    level = words
    while level:
        above: list[Any] = []
        while len(level) > 1:
            one, other, *level = level
            odd, both = builder.xor(one, other), builder.and_(one, other)
            if level:  # three of a digit are one of it and one of the next
                third, *level = level
                both = builder.or_(both, builder.and_(odd, third))
                odd = builder.xor(odd, third)
            level, above = [*level, odd], [*above, both]
        digits, level = [*digits, level[0]], above
    return digits


@intrinsic(prefer_literal=True)
def add_bitmaps(_context: Any, counts: Any, data: Any, starts: Any, first: Any, n: Any, place: Any) -> Any:
    """Adds a BLOCK of n bitmaps to an array of bytes; unchecked.

    The bitmaps begin at starts[first] and so on in `data`; the block begins `place` bytes behind. n: a constant.
    """

    if not isinstance(n, types.IntegerLiteral):
        return None

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.IntType(64)
        words = []
        for number in range(n.literal_value):
            start = target.make_array(kinds[2])(target, builder, values[2]).data
            start = builder.load(builder.gep(start, [builder.add(values[3], ir.Constant(wide, number))]))
            at = _at(target, builder, kinds[1], values[1], builder.add(start, values[5]), _WORDS)
            words.append(builder.load(at, align=1))
        digits = _binary_sums(builder, words)
        document = builder.shl(values[5], ir.Constant(wide, 3))
        for lane in range(BLOCK // LANES):
            place = builder.add(document, ir.Constant(wide, LANES * lane))
            at = _at(target, builder, kinds[0], values[0], place, _BYTES)
            total = builder.load(at, align=1)
            for digit, bits in enumerate(digits):
                word = builder.extract_element(bits, ir.Constant(ir.IntType(32), lane))
                more = builder.add(total, ir.Constant(_BYTES, [1 << digit] * LANES))
                total = builder.select(builder.bitcast(word, _BITS), more, total)
            builder.store(total, at, align=1)
        return target.get_dummy_value()

    return types.void(counts, data, starts, types.int64, n, types.int64), emit


@intrinsic
def at_least(_context: Any, counts: Any, place: Any, bar: Any) -> Any:
    """Which of the 64 bytes of an array that begin at a place are at least `bar`, as bits of a word; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_at(target, builder, signature.args[0], values[0], values[1], _BYTES), align=1)
        nothing, first = ir.Constant(_BYTES, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(nothing, values[2], first)
        every = builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
        return builder.bitcast(builder.icmp_unsigned(">=", found, every), ir.IntType(64))

    return types.uint64(counts, types.int64, types.uint8), emit


@intrinsic
def fetch(_context: Any, data: Any, place: Any) -> Any:
    """Asks for the memory at a place of an array, which is soon to be read."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = builder.gep(target.make_array(signature.args[0])(target, builder, values[0]).data, [values[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [at.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (at.type,), kind)
        builder.call(function, [at, ir.Constant(number, 0), ir.Constant(number, 3), ir.Constant(number, 1)])
        return target.get_dummy_value()

    return types.void(data, types.int64), emit


@intrinsic
def word_at(context: Any, data: Any, place: Any) -> Any:
    """The 64 bits that begin at a place of an array of bytes, whatever its alignment; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        at = builder.gep(array.data, [values[1]])
        return builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), emit
