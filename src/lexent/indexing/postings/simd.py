"""SIMD and bit instructions that Numba has no names for, as LLVM intrinsics.

Those marked unchecked do not test that they stay inside their arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from lexent.cpu import CPU_FEATURES

AVX512 = {"+avx512bw", "+avx512vbmi", "+avx512vbmi2", "+bmi2"} <= CPU_FEATURES
"""Whether it expands 64 bytes by a mask (VBMI2), and looks 64 bytes up in a table of 128 (VBMI), in one instruction."""
AVX2 = "+avx2" in CPU_FEATURES
"""Whether it shuffles 8 bytes, and looks 32 bytes up in a table of 16, in one instruction."""


@intrinsic
def popcount(_context: Any, bits: Any) -> Any:
    """Number of set bits of a uint64."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.ctpop(values[0])

    return types.int64(types.uint64), emit


@intrinsic
def trailing_zeros(_context: Any, bits: Any) -> Any:
    """Number of zeros below the lowest set bit of a uint64, which is not 0."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), emit


@intrinsic
def trailing_zeros_or_64(_context: Any, bits: Any) -> Any:
    """`trailing_zeros` for a uint64 that may be 0, which gives 64."""

    def emit(_target: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), emit


LANES = 64
"""Bytes of a vector."""
BLOCK_DOCUMENTS = 512
"""Documents of a bitmap that are processed at a time."""
_BYTES, _BITS = ir.VectorType(ir.IntType(8), LANES), ir.VectorType(ir.IntType(1), LANES)
_WORDS = ir.VectorType(ir.IntType(64), BLOCK_DOCUMENTS // LANES)


def _vector_at(target: Any, builder: Any, kind: Any, array: Any, place: Any, vector: Any) -> Any:
    """Pointer to a vector that begins at a place of an array."""
    data = target.make_array(kind)(target, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _bit_counts(builder: Any, words: list[Any]) -> list[Any]:
    """For each bit position, in how many words it is set: the bits of that number as words, lowest first.

    Carry-save addition.
    """
    digits: list[Any] = []
    level = words
    while level:
        above: list[Any] = []
        while len(level) > 1:
            one, other, *level = level
            odd, both = builder.xor(one, other), builder.and_(one, other)
            if level:  # full adder: three bits make a sum and a carry
                third, *level = level
                both = builder.or_(both, builder.and_(odd, third))
                odd = builder.xor(odd, third)
            level, above = [*level, odd], [*above, both]
        digits, level = [*digits, level[0]], above
    return digits


@intrinsic(prefer_literal=True)
def add_bitmaps(_context: Any, counts: Any, data: Any, starts: Any, first: Any, n: Any, place: Any) -> Any:
    """Adds BLOCK_DOCUMENTS bits of each of n bitmaps to 8-bit counts; unchecked.

    The bitmaps begin at starts[first], starts[first + 1], ... in `data`; the block begins `place` bytes into each. n is
    a compile-time constant.
    """
    if not isinstance(n, types.IntegerLiteral):
        return None

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.IntType(64)
        words = []
        for number in range(n.literal_value):
            start = target.make_array(kinds[2])(target, builder, values[2]).data
            start = builder.load(builder.gep(start, [builder.add(values[3], ir.Constant(wide, number))]))
            at = _vector_at(target, builder, kinds[1], values[1], builder.add(start, values[5]), _WORDS)
            words.append(builder.load(at, align=1))
        digits = _bit_counts(builder, words)
        document = builder.shl(values[5], ir.Constant(wide, 3))
        for lane in range(BLOCK_DOCUMENTS // LANES):
            place = builder.add(document, ir.Constant(wide, LANES * lane))
            at = _vector_at(target, builder, kinds[0], values[0], place, _BYTES)
            total = builder.load(at, align=1)
            for digit, bits in enumerate(digits):
                word = builder.extract_element(bits, ir.Constant(ir.IntType(32), lane))
                more = builder.add(total, ir.Constant(_BYTES, [1 << digit] * LANES))
                total = builder.select(builder.bitcast(word, _BITS), more, total)
            builder.store(total, at, align=1)
        return target.get_dummy_value()

    return types.void(counts, data, starts, types.int64, n, types.int64), emit


@intrinsic
def bytes_at_least(_context: Any, counts: Any, place: Any, threshold: Any) -> Any:
    """Which of the 64 bytes from a place on reach a threshold, as bits of a word; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_vector_at(target, builder, signature.args[0], values[0], values[1], _BYTES), align=1)
        return builder.bitcast(builder.icmp_unsigned(">=", found, _broadcast(builder, values[2])), ir.IntType(64))

    return types.uint64(counts, types.int64, types.uint8), emit


@intrinsic
def prefetch(_context: Any, data: Any, place: Any) -> Any:
    """Prefetches the cache line at a place of an array."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = builder.gep(target.make_array(signature.args[0])(target, builder, values[0]).data, [values[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [at.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (at.type,), kind)
        builder.call(function, [at, ir.Constant(number, 0), ir.Constant(number, 3), ir.Constant(number, 1)])
        return target.get_dummy_value()

    return types.void(data, types.int64), emit


@intrinsic
def load_word(context: Any, data: Any, place: Any) -> Any:
    """Loads a uint64 from a place of an array of bytes, of any alignment; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = target.make_array(signature.args[0])(target, builder, values[0])
        at = builder.gep(array.data, [values[1]])
        return builder.load(builder.bitcast(at, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), emit


@intrinsic
def store_word(_context: Any, data: Any, place: Any, word: Any) -> Any:
    """Stores a uint64 at a place of an array of bytes; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(
            values[2], _vector_at(target, builder, signature.args[0], values[0], values[1], ir.IntType(64)), align=1
        )
        return target.get_dummy_value()

    return types.void(data, types.int64, types.uint64), emit


def _shuffle_masks(builder: Any) -> Any:
    """Table of the shuffle masks that expand 8 bytes by each 8-bit mask: source places, and 128 for a zero byte."""
    existing = builder.module.globals.get("lexent.shuffle_masks")
    if existing is not None:
        return existing
    table = bytearray()
    for mask in range(256):
        ones = [mask >> bit & 1 for bit in range(8)]
        table += bytes(sum(ones[:bit]) if ones[bit] else 128 for bit in range(8))
    kind = ir.ArrayType(ir.IntType(8), len(table))
    masks = ir.GlobalVariable(builder.module, kind, "lexent.shuffle_masks")
    masks.linkage, masks.global_constant, masks.initializer = "internal", True, ir.Constant(kind, table)
    return masks


@intrinsic
def _expand_bytes_avx2(_context: Any, data: Any, place: Any, mask: Any) -> Any:
    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide, number = ir.IntType(64), ir.Constant(ir.IntType(32), 0)
        pair, bytes_ = ir.VectorType(wide, 2), ir.VectorType(ir.IntType(8), 16)
        turn = builder.gep(
            _shuffle_masks(builder), [ir.Constant(wide, 0), builder.shl(values[2], ir.Constant(wide, 3))]
        )
        both = [
            builder.load(at, align=1)
            for at in (
                _vector_at(target, builder, signature.args[0], values[0], values[1], wide),
                builder.bitcast(turn, wide.as_pointer()),
            )
        ]
        zero = ir.Constant(pair, [0, 0])
        both = [builder.bitcast(builder.insert_element(zero, word, number), bytes_) for word in both]
        found = builder.call(_llvm_function(builder, "llvm.x86.ssse3.pshuf.b.128", bytes_, 2), both)
        return builder.extract_element(builder.bitcast(found, pair), number)

    return types.uint64(data, types.int64, types.uint64), emit


def _expand_bytes_portable(data: Any, place: int, mask: Any) -> Any:
    word, at = np.uint64(0), place
    for byte in range(8):
        if (mask >> np.uint64(byte)) & np.uint64(1) != 0:
            word |= np.uint64(data[at]) << np.uint64(8 * byte)
            at += 1
    return word


expand_bytes_portable = njit(cache=True, nogil=True, inline="always")(_expand_bytes_portable)
expand_bytes = _expand_bytes_avx2 if AVX2 else expand_bytes_portable
"""expand_bytes(data, place, mask): the next bytes of an array, moved to the set bits of an 8-bit mask; the other bytes
of the word are 0. May read 8 bytes; unchecked."""


def _llvm_function(builder: Any, name: str, kind: Any, n: int, *others: Any) -> Any:
    """Declares an LLVM intrinsic that takes n values of the type it returns, and others."""
    existing = builder.module.globals.get(name)
    return existing or ir.Function(builder.module, ir.FunctionType(kind, [kind] * n + list(others)), name)


def _saturating_add(builder: Any, one: Any, other: Any) -> Any:
    """Adds bytes, saturating at 255."""
    return builder.call(_llvm_function(builder, "llvm.uadd.sat.v64i8", _BYTES, 2), [one, other])


def _broadcast(builder: Any, number: Any) -> Any:
    """Vector whose elements are all the same number."""
    zero = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    one = builder.insert_element(zero, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, zero, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _opaque(builder: Any, found: Any) -> Any:
    """Hides a vector from the optimiser, which would fuse two instructions into a slower one under AVX-512."""
    if not AVX512:
        return found
    return builder.asm(ir.FunctionType(_BYTES, [_BYTES]), "", "=v,0", [found], False)


def _expand(builder: Any, found: Any, mask: Any) -> Any:
    """Expands 64 bytes by a 64-bit mask: the first bytes move to its set bits, the others are 0."""
    expand = _llvm_function(builder, "llvm.x86.avx512.mask.expand.v64i8", _BYTES, 2, _BITS)
    return builder.call(expand, [found, ir.Constant(_BYTES, [0] * LANES), builder.bitcast(mask, _BITS)])


@intrinsic
def max_byte(_context: Any, sums: Any, place: Any) -> Any:
    """Highest of the 64 bytes from a place on; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_vector_at(target, builder, signature.args[0], values[0], values[1], _BYTES), align=1)
        name, byte = "llvm.vector.reduce.umax.v64i8", ir.IntType(8)
        known = builder.module.globals.get(name)
        return builder.call(known or ir.Function(builder.module, ir.FunctionType(byte, [_BYTES]), name), [found])

    return types.uint8(sums, types.int64), emit


@intrinsic
def quantise_scores(_context: Any, scores: Any, place: Any, scale: Any, out: Any) -> Any:
    """Quantises 64 non-negative int32 scores to bytes: 0 for 0, else 1 + score * scale, at most 255; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide, real = signature.args, *(ir.VectorType(kind, LANES) for kind in (ir.IntType(32), ir.FloatType()))
        found = builder.load(_vector_at(target, builder, kinds[0], values[0], values[1], wide), align=1)
        whole = builder.fptosi(builder.fmul(builder.sitofp(found, real), _broadcast(builder, values[2])), wide)
        zeros, most = ir.Constant(wide, [0] * LANES), ir.Constant(wide, [255] * LANES)
        more = builder.add(whole, builder.zext(builder.icmp_signed(">", found, zeros), wide))
        least = builder.select(builder.icmp_signed("<", more, most), more, most)
        at = _vector_at(target, builder, kinds[3], values[3], values[1], _BYTES)
        builder.store(builder.trunc(least, _BYTES), at, align=1)
        return target.get_dummy_value()

    return types.void(scores, types.int64, types.float32, out), emit


@intrinsic
def scores_at_least(_context: Any, scores: Any, place: Any, threshold: Any) -> Any:
    """Which of the 64 int32 scores from a place on reach a threshold, as bits of a word; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        wide = ir.VectorType(ir.IntType(32), LANES)
        found = builder.load(_vector_at(target, builder, signature.args[0], values[0], values[1], wide), align=1)
        return builder.bitcast(builder.icmp_signed(">=", found, _broadcast(builder, values[2])), ir.IntType(64))

    return types.uint64(scores, types.int64, types.int32), emit


@intrinsic
def add_where_set(_context: Any, sums: Any, place: Any, bits: Any, value: Any) -> Any:
    """Adds a value to those of 64 bytes whose bit in a word is set, saturating at 255; unchecked."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        at = _vector_at(target, builder, signature.args[0], values[0], values[1], _BYTES)
        more = builder.select(
            builder.bitcast(values[2], _BITS), _broadcast(builder, values[3]), ir.Constant(_BYTES, [0] * LANES)
        )
        builder.store(_saturating_add(builder, builder.load(at, align=1), more), at, align=1)
        return target.get_dummy_value()

    return types.void(sums, types.int64, types.uint64, types.uint8), emit


@intrinsic
def add_where_bitmap(_context: Any, sums: Any, place: Any, data: Any, at: Any, nonzero: Any, value: Any) -> Any:
    """Adds a value to those of BLOCK_DOCUMENTS bytes whose bit in a bitmap is set, saturating; unchecked, needs AVX512.

    nonzero: which of the bitmap's 64 bytes are stored, from `at` on in `data`; the others are 0.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, zeros = signature.args, ir.Constant(_BYTES, [0] * LANES)
        found = builder.load(_vector_at(target, builder, kinds[2], values[2], values[3], _BYTES), align=1)
        bits, value = builder.bitcast(_expand(builder, found, values[4]), _WORDS), _broadcast(builder, values[5])
        for lane in range(BLOCK_DOCUMENTS // LANES):
            place = builder.add(values[1], ir.Constant(ir.IntType(64), LANES * lane))
            at = _vector_at(target, builder, kinds[0], values[0], place, _BYTES)
            word = builder.extract_element(bits, ir.Constant(ir.IntType(32), lane))
            more = builder.select(builder.bitcast(word, _BITS), value, zeros)
            builder.store(_saturating_add(builder, builder.load(at, align=1), more), at, align=1)
        return target.get_dummy_value()

    return types.void(sums, types.int64, data, types.int64, types.uint64, types.uint8), emit


def _table_lookup_avx512(builder: Any, table: Any) -> Any:
    """A function that looks 64 bytes below 128 up in a table of 128 bytes."""
    find = _llvm_function(builder, "llvm.x86.avx512.vpermi2var.qi.512", _BYTES, 3)
    low, high = (_opaque(builder, table(half, _BYTES)) for half in (0, LANES))
    return lambda places: builder.call(find, [low, places, high])


def _table_lookup_avx2(builder: Any, table: Any) -> Any:
    """A function that looks 64 bytes below 128 up in a table of 32 bytes, by their 5 highest bits."""
    part, words = ir.VectorType(ir.IntType(8), 32), ir.VectorType(ir.IntType(16), 16)
    number = ir.VectorType(ir.IntType(32), 32)
    find = _llvm_function(builder, "llvm.x86.avx2.pshuf.b", part, 2)
    rows = table(0, part)
    low, high = (
        builder.shuffle_vector(rows, rows, ir.Constant(number, [*range(first, first + 16)] * 2)) for first in (0, 16)
    )

    def shifted(vector: Any, shift: Any, by: int) -> Any:
        return builder.bitcast(shift(builder.bitcast(vector, words), ir.Constant(words, [by] * 16)), part)

    def scale(places: Any) -> Any:
        row = builder.and_(shifted(places, builder.lshr, 2), ir.Constant(part, [31] * 32))
        upper = builder.icmp_signed("<", shifted(row, builder.shl, 3), ir.Constant(part, [0] * 32))
        return builder.select(upper, builder.call(find, [high, row]), builder.call(find, [low, row]))

    def all_(places: Any) -> Any:
        halves = [
            scale(builder.shuffle_vector(places, places, ir.Constant(number, [*range(first, first + 32)])))
            for first in (0, 32)
        ]
        return builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [*range(LANES)]))

    return all_


def _table_byte_adder(target: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """A function that adds a table's bytes for 64 codes to the sums of 64 documents.

    kinds, values: of an intrinsic whose first arguments are `sums` and `place`, the last `offsets`, `base`, `table`.
    """
    wide, zeros = ir.IntType(64), ir.Constant(_BYTES, [0] * LANES)
    subtract, least = (_llvm_function(builder, f"llvm.{name}.v64i8", _BYTES, 2) for name in ("usub.sat", "umin"))

    def load(number: int, place: Any, vector: Any = _BYTES) -> Any:
        return builder.load(_vector_at(target, builder, kinds[number], values[number], place, vector), align=1)

    look_up = (_table_lookup_avx512 if AVX512 else _table_lookup_avx2)(
        builder, lambda first, vector: load(len(values) - 1, ir.Constant(wide, first), vector)
    )
    base = _broadcast(builder, values[-2])

    def add(lane: int, codes: Any, there: Any) -> None:
        place = builder.add(values[1], ir.Constant(wide, LANES * lane))
        above = builder.call(subtract, [_saturating_add(builder, codes, load(len(values) - 3, place)), base])
        above = builder.call(least, [above, ir.Constant(_BYTES, [127] * LANES)])
        found = builder.select(there, look_up(above), zeros)
        total = _opaque(builder, _saturating_add(builder, load(0, place), found))
        builder.store(total, _vector_at(target, builder, kinds[0], values[0], place, _BYTES), align=1)

    return add


@intrinsic
def add_table_bytes(
    _context: Any, sums: Any, place: Any, data: Any, at: Any, offsets: Any, base: Any, table: Any
) -> Any:
    """Adds the table's bytes for BLOCK_DOCUMENTS codes to as many sums from a place on, saturating; unchecked.

    The table index of a document is code + offset - base, clipped to [0, 127]; a code of 0 adds nothing. The table has
    128 bytes under AVX512, else 32, one for each four indices. The codes are the bytes of `data` from `at` on;
    `offsets` has a byte for each sum.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        add = _table_byte_adder(target, builder, signature.args, values)
        for lane in range(BLOCK_DOCUMENTS // LANES):
            here = builder.add(values[3], ir.Constant(ir.IntType(64), LANES * lane))
            codes = builder.load(_vector_at(target, builder, signature.args[2], values[2], here, _BYTES), align=1)
            add(lane, codes, builder.icmp_unsigned("!=", codes, ir.Constant(_BYTES, [0] * LANES)))
        return target.get_dummy_value()

    return types.void(sums, types.int64, data, types.int64, offsets, types.uint8, table), emit


@intrinsic
def add_table_bytes_where_bitmap(
    _context: Any,
    sums: Any,
    place: Any,
    data: Any,
    at: Any,
    nonzero: Any,
    code: Any,
    offsets: Any,
    base: Any,
    table: Any,
) -> Any:
    """`add_table_bytes` for the documents whose bit in a bitmap is set (see `add_where_bitmap`); needs AVX512.

    Their codes are the bytes of `data` from `code` on. Returns where the next codes begin.
    """

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds, wide = signature.args, ir.IntType(64)
        deposit = _llvm_function(builder, "llvm.x86.bmi.pdep.64", wide, 2)
        add = _table_byte_adder(target, builder, kinds, values)
        at, code = values[3], values[5]
        for lane in range(BLOCK_DOCUMENTS // LANES):
            mask = builder.and_(builder.lshr(values[4], ir.Constant(wide, 8 * lane)), ir.Constant(wide, 255))
            expand_bytes = builder.mul(
                builder.call(deposit, [mask, ir.Constant(wide, 0x0101010101010101)]), ir.Constant(wide, 255)
            )
            word = builder.load(_vector_at(target, builder, kinds[2], values[2], at, wide), align=1)
            bits = builder.call(deposit, [word, expand_bytes])
            found = builder.load(_vector_at(target, builder, kinds[2], values[2], code, _BYTES), align=1)
            codes = _expand(builder, _opaque(builder, found), bits)
            add(lane, codes, builder.bitcast(bits, _BITS))
            at = builder.add(at, builder.ctpop(mask))
            code = builder.add(code, builder.ctpop(bits))
        return code

    kind = types.int64(sums, types.int64, data, types.int64, types.uint64, types.int64, offsets, types.uint8, table)
    return kind, emit
