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
"""Whether it spreads 64 bytes, and looks them up in a table of 128, in one step."""
SHUFFLES = "+avx2" in FEATURES
"""Whether it spreads 8 bytes, and looks 32 up in a table of 16, in one step."""


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
def put(_context: Any, data: Any, place: Any, word: Any) -> Any:
    """Writes 64 bits to a place of an array of bytes; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _at(target, builder, signature.args[0], values[0], values[1], ir.IntType(64)), align=1)
        return target.get_dummy_value()

    return types.void(data, types.int64, types.uint64), emit


def _turns(builder: Any) -> Any:
    """For each byte what moves the first of 8 bytes to where it has ones: places, and 128 where it has none."""
    known = builder.module.globals.get("lexent.turns")
    if known is not None:
        return known
    table = bytearray()
    for which in range(256):
        ones = [which >> bit & 1 for bit in range(8)]
        table += bytes(sum(ones[:bit]) if ones[bit] else 128 for bit in range(8))
    kind = ir.ArrayType(ir.IntType(8), len(table))
    made = ir.GlobalVariable(builder.module, kind, "lexent.turns")
    made.linkage, made.global_constant, made.initializer = "internal", True, ir.Constant(kind, table)
    return made


@intrinsic
def _spread_at_once(_context: Any, data: Any, place: Any, which: Any) -> Any:
    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide, number = ir.IntType(64), ir.Constant(ir.IntType(32), 0)
        pair, bytes_ = ir.VectorType(wide, 2), ir.VectorType(ir.IntType(8), 16)
        turn = builder.gep(_turns(builder), [ir.Constant(wide, 0), builder.shl(values[2], ir.Constant(wide, 3))])
        both = [
            builder.load(at, align=1)
            for at in (
                _at(target, builder, signature.args[0], values[0], values[1], wide),
                builder.bitcast(turn, wide.as_pointer()),
            )
        ]
        nothing = ir.Constant(pair, [0, 0])
        both = [builder.bitcast(builder.insert_element(nothing, word, number), bytes_) for word in both]
        found = builder.call(_named(builder, "llvm.x86.ssse3.pshuf.b.128", bytes_, 2), both)
        return builder.extract_element(builder.bitcast(found, pair), number)

    return types.uint64(data, types.int64, types.uint64), emit


def _spread_in_steps(data: Any, place: int, which: Any) -> Any:
    word, at = np.uint64(0), place
    for byte in range(8):
        if (which >> np.uint64(byte)) & np.uint64(1) != 0:
            word |= np.uint64(data[at]) << np.uint64(8 * byte)
            at += 1
    return word


spread_in_steps = njit(cache=True, nogil=True, inline="always")(_spread_in_steps)
spread = _spread_at_once if SHUFFLES else spread_in_steps
"""The word whose bytes that the 8 bits `which` name are the next ones of an array, in order; the others are 0. May read
8 bytes; unchecked."""


def _named(builder: Any, name: str, kind: Any, n: int, *others: Any) -> Any:
    """An instruction by LLVM's name for it, that takes n values of the kind it gives, and others."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(kind, [kind] * n + list(others)), name)


def _sum(builder: Any, one: Any, other: Any) -> Any:
    """Bytes added, 255 at most."""
    return builder.call(_named(builder, "llvm.uadd.sat.v64i8", _BYTES, 2), [one, other])


def _each(builder: Any, number: Any) -> Any:
    """A vector of one number, again and again."""
    nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _opaque(builder: Any, found: Any) -> Any:
    """A vector that the optimiser knows nothing of: it would make a slower instruction of two. On WIDE processors."""
    if not WIDE:
        return found
    return builder.asm(ir.FunctionType(_BYTES, [_BYTES]), "", "=v,0", [found], False)


def _expanded(builder: Any, found: Any, mask: Any) -> Any:
    """The first of 64 bytes, moved to where a word has ones; 0 elsewhere."""
    expand = _named(builder, "llvm.x86.avx512.mask.expand.v64i8", _BYTES, 2, _BITS)
    return builder.call(expand, [found, ir.Constant(_BYTES, [0] * LANES), builder.bitcast(mask, _BITS)])


@intrinsic
def peak(_context: Any, sums: Any, place: Any) -> Any:
    """The highest of 64 bytes from a place on; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_at(target, builder, signature.args[0], values[0], values[1], _BYTES), align=1)
        name, byte = "llvm.vector.reduce.umax.v64i8", ir.IntType(8)
        known = builder.module.globals.get(name)
        return builder.call(known or ir.Function(builder.module, ir.FunctionType(byte, [_BYTES]), name), [found])

    return types.uint8(sums, types.int64), emit


@intrinsic
def in_units(_context: Any, scores: Any, place: Any, each: Any, out: Any) -> Any:
    """Writes 64 scores of 32 bits from a place on as bytes: 0 for 0, else the score times `each` and 1, 255 at most.

    None is below 0. Unchecked.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide, real = signature.args, *(ir.VectorType(kind, LANES) for kind in (ir.IntType(32), ir.FloatType()))
        found = builder.load(_at(target, builder, kinds[0], values[0], values[1], wide), align=1)
        whole = builder.fptosi(builder.fmul(builder.sitofp(found, real), _each(builder, values[2])), wide)
        zeros, most = ir.Constant(wide, [0] * LANES), ir.Constant(wide, [255] * LANES)
        more = builder.add(whole, builder.zext(builder.icmp_signed(">", found, zeros), wide))
        least = builder.select(builder.icmp_signed("<", more, most), more, most)
        at = _at(target, builder, kinds[3], values[3], values[1], _BYTES)
        builder.store(builder.trunc(least, _BYTES), at, align=1)
        return target.get_dummy_value()

    return types.void(scores, types.int64, types.float32, out), emit


@intrinsic
def reaching(_context: Any, scores: Any, place: Any, bar: Any) -> Any:
    """Which of the 64 scores of 32 bits from a place on are at least `bar`, as bits of a word; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide = ir.VectorType(ir.IntType(32), LANES)
        found = builder.load(_at(target, builder, signature.args[0], values[0], values[1], wide), align=1)
        return builder.bitcast(builder.icmp_signed(">=", found, _each(builder, values[2])), ir.IntType(64))

    return types.uint64(scores, types.int64, types.int32), emit


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


def _looked_up_wide(builder: Any, table: Any) -> Any:
    """How to look up 64 bytes below 128 in a table of as many."""
    find = _named(builder, "llvm.x86.avx512.vpermi2var.qi.512", _BYTES, 3)
    low, high = (_opaque(builder, table(half, _BYTES)) for half in (0, LANES))
    return lambda places: builder.call(find, [low, places, high])


def _looked_up_narrow(builder: Any, table: Any) -> Any:
    """How to look up 64 bytes below 128 in a table of 32, by their highest bits."""
    part, words = ir.VectorType(ir.IntType(8), 32), ir.VectorType(ir.IntType(16), 16)
    number = ir.VectorType(ir.IntType(32), 32)
    find = _named(builder, "llvm.x86.avx2.pshuf.b", part, 2)
    rows = table(0, part)
    low, high = (
        builder.shuffle_vector(rows, rows, ir.Constant(number, [*range(first, first + 16)] * 2)) for first in (0, 16)
    )

    def shifted(vector: Any, shift: Any, by: int) -> Any:
        return builder.bitcast(shift(builder.bitcast(vector, words), ir.Constant(words, [by] * 16)), part)

    def each(places: Any) -> Any:
        row = builder.and_(shifted(places, builder.lshr, 2), ir.Constant(part, [31] * 32))
        upper = builder.icmp_signed("<", shifted(row, builder.shl, 3), ir.Constant(part, [0] * 32))
        return builder.select(upper, builder.call(find, [high, row]), builder.call(find, [low, row]))

    def all_(places: Any) -> Any:
        halves = [
            each(builder.shuffle_vector(places, places, ir.Constant(number, [*range(first, first + 32)])))
            for first in (0, 32)
        ]
        return builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [*range(LANES)]))

    return all_


def _strengths(target: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """How to add what a table says of 64 codes to the sums of 64 documents.

    kinds, values: of an instruction whose first arguments are sums and a place, and the last `moved`, `base`, `table`.
    """
    wide, zeros = ir.IntType(64), ir.Constant(_BYTES, [0] * LANES)
    subtract = _named(builder, "llvm.usub.sat.v64i8", _BYTES, 2)

    def load(number: int, place: Any, vector: Any = _BYTES) -> Any:
        return builder.load(_at(target, builder, kinds[number], values[number], place, vector), align=1)

    look_up = (_looked_up_wide if WIDE else _looked_up_narrow)(
        builder, lambda first, vector: load(len(values) - 1, ir.Constant(wide, first), vector)
    )
    base = _each(builder, values[-2])

    def add(lane: int, codes: Any, there: Any) -> None:
        place = builder.add(values[1], ir.Constant(wide, LANES * lane))
        above = builder.call(subtract, [_sum(builder, codes, load(len(values) - 3, place)), base])
        found = builder.select(there, look_up(above), zeros)
        total = _opaque(builder, _sum(builder, load(0, place), found))
        builder.store(total, _at(target, builder, kinds[0], values[0], place, _BYTES), align=1)

    return add


@intrinsic
def add_codes(_context: Any, sums: Any, place: Any, data: Any, at: Any, moved: Any, base: Any, table: Any) -> Any:
    """Adds to BLOCK bytes from a place on what a table says of as many codes, up to 255; unchecked.

    It is what stands at code + moved - base in a table of 128 bytes, or of 32 for four of those each on processors that
    are not WIDE; nothing for codes that are 0. The codes are the bytes of `data` from `at` on; `moved` has a byte for
    each sum.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        add = _strengths(target, builder, signature.args, values)
        for lane in range(BLOCK // LANES):
            here = builder.add(values[3], ir.Constant(ir.IntType(64), LANES * lane))
            codes = builder.load(_at(target, builder, signature.args[2], values[2], here, _BYTES), align=1)
            add(lane, codes, builder.icmp_unsigned("!=", codes, ir.Constant(_BYTES, [0] * LANES)))
        return target.get_dummy_value()

    return types.void(sums, types.int64, data, types.int64, moved, types.uint8, table), emit


@intrinsic
def add_codes_where(
    _context: Any, sums: Any, place: Any, data: Any, at: Any, top: Any, code: Any, moved: Any, base: Any, table: Any
) -> Any:
    """The same for the codes of the documents that a bitmap has ones for (see `add_block`); for WIDE processors.

    They are the next bytes of `data` from `code` on. Gives where codes go on.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.IntType(64)
        deposit = _named(builder, "llvm.x86.bmi.pdep.64", wide, 2)
        add = _strengths(target, builder, kinds, values)
        at, code = values[3], values[5]
        for lane in range(BLOCK // LANES):
            which = builder.and_(builder.lshr(values[4], ir.Constant(wide, 8 * lane)), ir.Constant(wide, 255))
            spread = builder.mul(
                builder.call(deposit, [which, ir.Constant(wide, 0x0101010101010101)]), ir.Constant(wide, 255)
            )
            word = builder.load(_at(target, builder, kinds[2], values[2], at, wide), align=1)
            bits = builder.call(deposit, [word, spread])
            found = builder.load(_at(target, builder, kinds[2], values[2], code, _BYTES), align=1)
            codes = _expanded(builder, _opaque(builder, found), bits)
            add(lane, codes, builder.bitcast(bits, _BITS))
            at = builder.add(at, builder.ctpop(which))
            code = builder.add(code, builder.ctpop(bits))
        return code

    kind = types.int64(sums, types.int64, data, types.int64, types.uint64, types.int64, moved, types.uint8, table)
    return kind, emit
