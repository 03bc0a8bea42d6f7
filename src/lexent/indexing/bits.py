"""Machine instructions that Numba does not name."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

_GIVEN: str | None = getattr(config, "CPU_FEATURES", None)
FEATURES = frozenset((get_host_cpu_features() if _GIVEN is None else _GIVEN).split(","))
"""What the processor that kernels are compiled for can do, as LLVM writes it: +bmi2, -avx512vbmi2, and so on."""
WIDE = {"+avx512bw", "+avx512vbmi", "+avx512vbmi2", "+bmi2"} <= FEATURES
"""Whether it spreads and looks up 64 bytes in one step."""


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
def first_one(_context: Any, bits: Any) -> Any:
    """The same for a uint64 that may be 0, which gives 64."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

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
        return builder.bitcast(builder.icmp_unsigned(">=", found, _each(builder, values[2])), ir.IntType(64))

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


@intrinsic
def deposit(_context: Any, bits: Any, mask: Any) -> Any:
    """The lowest bits of a word, moved to where a mask has ones, in order; for processors that can."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.call(_named(builder, "llvm.x86.bmi.pdep.64", ir.IntType(64), 2), values)

    return types.uint64(types.uint64, types.uint64), emit


def _spread_in_steps(data: Any, place: int, which: Any) -> Any:
    """The word whose bytes that the 8 bits `which` name are the next ones of an array, in order; the others are 0."""
    word, at = np.uint64(0), place
    for byte in range(8):
        if (which >> np.uint64(byte)) & np.uint64(1) != 0:
            word |= np.uint64(data[at]) << np.uint64(8 * byte)
            at += 1
    return word


def _spread_at_once(data: Any, place: int, which: Any) -> Any:
    """The same in four instructions; reads 8 bytes."""
    ones = deposit(which, np.uint64(0x0101010101010101))
    return deposit(word_at(data, place), ones * np.uint64(255))


spread_in_steps = njit(cache=True, nogil=True, inline="always")(_spread_in_steps)
spread = njit(cache=True, nogil=True, inline="always")(_spread_at_once if "+bmi2" in FEATURES else _spread_in_steps)


def _named(builder: Any, name: str, kind: Any, n: int, *others: Any) -> Any:
    """An instruction by LLVM's name for it, that takes n values of the kind it gives, and others."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(kind, [kind] * n + list(others)), name)


def _sum(builder: Any, one: Any, other: Any) -> Any:
    """Bytes added, 255 at most."""
    return builder.call(_named(builder, "llvm.uadd.sat.v64i8", _BYTES, 2), [one, other])


def _each(builder: Any, byte: Any) -> Any:
    """A vector of one byte, again and again."""
    nothing = ir.Constant(_BYTES, ir.Undefined)
    one = builder.insert_element(nothing, byte, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _opaque(builder: Any, found: Any) -> Any:
    """A vector that the optimiser knows nothing of: it would make a slower instruction of two."""
    return builder.asm(ir.FunctionType(_BYTES, [_BYTES]), "", "=v,0", [found], False)


def _expanded(builder: Any, found: Any, mask: Any) -> Any:
    """The first of 64 bytes, moved to where a word has ones; 0 elsewhere."""
    expand = _named(builder, "llvm.x86.avx512.mask.expand.v64i8", _BYTES, 2, _BITS)
    return builder.call(expand, [found, ir.Constant(_BYTES, [0] * LANES), builder.bitcast(mask, _BITS)])


@intrinsic
def reaching(_context: Any, scores: Any, hopes: Any, place: Any, unit: Any, bar: Any) -> Any:
    """Which of 64 documents from a place on have score + hope * unit >= bar, as bits of a word; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.VectorType(ir.IntType(32), LANES)

        def each(number: int) -> Any:
            nothing = ir.Constant(wide, ir.Undefined)
            one = builder.insert_element(nothing, values[number], ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, nothing, ir.Constant(wide, [0] * LANES))

        score = builder.load(_at(target, builder, kinds[0], values[0], values[2], wide), align=1)
        hope = builder.load(_at(target, builder, kinds[1], values[1], values[2], _BYTES), align=1)
        lacking = builder.sub(each(4), builder.mul(builder.zext(hope, wide), each(3)))
        return builder.bitcast(builder.icmp_signed(">=", score, lacking), ir.IntType(64))

    return types.uint64(scores, hopes, types.int64, types.int32, types.int32), emit


@intrinsic
def add_where(_context: Any, sums: Any, place: Any, bits: Any, value: Any) -> Any:
    """Adds a value to those of the 64 bytes at a place that a word has ones for, up to 255; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _at(target, builder, signature.args[0], values[0], values[1], _BYTES)
        more = builder.select(
            builder.bitcast(values[2], _BITS), _each(builder, values[3]), ir.Constant(_BYTES, [0] * LANES)
        )
        builder.store(_sum(builder, builder.load(at, align=1), more), at, align=1)
        return target.get_dummy_value()

    return types.void(sums, types.int64, types.uint64, types.uint8), emit


@intrinsic
def add_block(_context: Any, sums: Any, place: Any, data: Any, at: Any, top: Any, value: Any) -> Any:
    """Adds a value to those of BLOCK bytes that a bitmap has ones for, up to 255; unchecked, for WIDE processors.

    The bitmap's bytes that a word, `top`, has ones for are the next ones of `data` from `at` on; the others are 0.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, zeros = signature.args, ir.Constant(_BYTES, [0] * LANES)
        found = builder.load(_at(target, builder, kinds[2], values[2], values[3], _BYTES), align=1)
        bits, value = builder.bitcast(_expanded(builder, found, values[4]), _WORDS), _each(builder, values[5])
        for lane in range(BLOCK // LANES):
            place = builder.add(values[1], ir.Constant(ir.IntType(64), LANES * lane))
            at = _at(target, builder, kinds[0], values[0], place, _BYTES)
            word = builder.extract_element(bits, ir.Constant(ir.IntType(32), lane))
            more = builder.select(builder.bitcast(word, _BITS), value, zeros)
            builder.store(_sum(builder, builder.load(at, align=1), more), at, align=1)
        return target.get_dummy_value()

    return types.void(sums, types.int64, data, types.int64, types.uint64, types.uint8), emit


@intrinsic
def add_block_looked_up(
    _context: Any,
    sums: Any,
    place: Any,
    data: Any,
    at: Any,
    top: Any,
    code: Any,
    moved: Any,
    base: Any,
    table: Any,
) -> Any:
    """Adds to those of BLOCK bytes that a bitmap has ones for, up to 255: see `add_block`. Gives where codes go on.

    What is added stands in the table (128 bytes) at code + moved - base: the codes are the next bytes of `data` from
    `code` on; `moved` has a byte for each sum.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.IntType(64)
        deposit = _named(builder, "llvm.x86.bmi.pdep.64", wide, 2)
        subtract = _named(builder, "llvm.usub.sat.v64i8", _BYTES, 2)
        find = _named(builder, "llvm.x86.avx512.vpermi2var.qi.512", _BYTES, 3)

        def load(number: int, place: Any) -> Any:
            return builder.load(_at(target, builder, kinds[number], values[number], place, _BYTES), align=1)

        low, high = (_opaque(builder, load(8, ir.Constant(wide, half))) for half in (0, LANES))
        base, at, code = _each(builder, values[7]), values[3], values[5]
        for lane in range(BLOCK // LANES):
            which = builder.and_(builder.lshr(values[4], ir.Constant(wide, 8 * lane)), ir.Constant(wide, 255))
            spread = builder.mul(
                builder.call(deposit, [which, ir.Constant(wide, 0x0101010101010101)]), ir.Constant(wide, 255)
            )
            word = _at(target, builder, kinds[2], values[2], at, wide)
            bits = builder.call(deposit, [builder.load(word, align=1), spread])
            place = builder.add(values[1], ir.Constant(wide, LANES * lane))
            codes = _expanded(builder, _opaque(builder, load(2, code)), bits)
            above = builder.call(subtract, [_sum(builder, codes, load(6, place)), base])
            found = builder.call(find, [low, above, high])
            found = builder.select(builder.bitcast(bits, _BITS), found, ir.Constant(_BYTES, [0] * LANES))
            total = _opaque(builder, _sum(builder, load(0, place), found))
            builder.store(total, _at(target, builder, kinds[0], values[0], place, _BYTES), align=1)
            at = builder.add(at, builder.ctpop(which))
            code = builder.add(code, builder.ctpop(bits))
        return code

    kind = types.int64(sums, types.int64, data, types.int64, types.uint64, types.int64, moved, types.uint8, table)
    return kind, emit
