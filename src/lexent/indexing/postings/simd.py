"""SIMD and bit instructions that Numba has no names for, as LLVM intrinsics.

Those marked unchecked do not test that they stay inside their arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lexent.cpu_features import CPU_FEATURES
from lexent.jit import njit

AVX512 = {"+avx512bw", "+avx512vbmi", "+avx512vbmi2", "+bmi2"} <= CPU_FEATURES
"""Whether it expands 64 bytes by a mask (VBMI2), and looks 64 bytes up in a table of 128 (VBMI), in one instruction."""
AVX2 = "+avx2" in CPU_FEATURES
"""Whether it shuffles 8 bytes, and looks 32 bytes up in a table of 16, in one instruction."""
LANES = 64
"""Bytes of a vector."""
BLOCK_DOCUMENTS = 512
"""Documents of a bitmap that are processed at a time."""
BLOCK_VECTORS = BLOCK_DOCUMENTS // LANES
"""Vectors of a byte for each of those documents."""
_BYTE, _NUMBER, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES, _BITS, _NUMBERS = (ir.VectorType(kind, LANES) for kind in (_BYTE, ir.IntType(1), _NUMBER))
_WORDS = ir.VectorType(_WORD, BLOCK_VECTORS)
_ZEROS = ir.Constant(_BYTES, [0] * LANES)


class _Code:
    """The instructions of one call of an intrinsic, as they are built."""

    def __init__(self, target: Any, builder: Any, signature: Any, values: Any) -> None:
        self.target, self.builder, self.kinds, self.values = target, builder, signature.args, values

    def at(self, argument: int, place: Any, kind: Any) -> Any:
        """Pointer to a value that begins at a place of an array argument."""
        data = self.target.make_array(self.kinds[argument])(self.target, self.builder, self.values[argument]).data
        return self.builder.bitcast(self.builder.gep(data, [place]), kind.as_pointer())

    def load(self, argument: int, place: Any, kind: Any = _BYTES) -> Any:
        """Loads a value from a place of an array argument, of any alignment."""
        return self.builder.load(self.at(argument, place, kind), align=1)

    def store(self, value: Any, argument: int, place: Any) -> None:
        """Stores a value at a place of an array argument."""
        self.builder.store(value, self.at(argument, place, value.type), align=1)

    def plus(self, place: Any, constant: int) -> Any:
        """A place moved by a constant."""
        return self.builder.add(place, ir.Constant(_WORD, constant))

    def call(self, name: str, kind: Any, *arguments: Any) -> Any:
        """Calls an LLVM intrinsic that returns a value of that type."""
        function = self.builder.module.globals.get(name) or ir.Function(
            self.builder.module, ir.FunctionType(kind, [one.type for one in arguments]), name
        )
        return self.builder.call(function, arguments)

    def saturating_add(self, one: Any, other: Any) -> Any:
        """Adds bytes, saturating at 255."""
        return self.call("llvm.uadd.sat.v64i8", _BYTES, one, other)

    def broadcast(self, number: Any) -> Any:
        """Vector whose elements are all the same number."""
        zero = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        one = self.builder.insert_element(zero, number, ir.Constant(_NUMBER, 0))
        return self.builder.shuffle_vector(one, zero, ir.Constant(_NUMBERS, [0] * LANES))

    def opaque(self, vector: Any) -> Any:
        """Hides a vector from the optimiser, which would fuse two instructions into a slower one under AVX-512."""
        if not AVX512:
            return vector
        return self.builder.asm(ir.FunctionType(_BYTES, [_BYTES]), "", "=v,0", [vector], False)

    def expand(self, vector: Any, mask: Any) -> Any:
        """Expands 64 bytes by a 64-bit mask: the first bytes move to its set bits, the others are 0."""
        bits = self.builder.bitcast(mask, _BITS)
        return self.call("llvm.x86.avx512.mask.expand.v64i8", _BYTES, vector, _ZEROS, bits)

    def add_where(self, bits: Any, value: Any, place: Any) -> None:
        """Adds a vector to 64 bytes of the first argument where the bits of a word are set, saturating."""
        more = self.builder.select(self.builder.bitcast(bits, _BITS), value, _ZEROS)
        self.store(self.saturating_add(self.load(0, place), more), 0, place)


def _emitted(build: Callable[[_Code], Any]) -> Callable[[Any, Any, Any, Any], Any]:
    """The code generator of an intrinsic. Where `build` gives None the intrinsic returns nothing."""

    def emit(target: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = build(_Code(target, builder, signature, values))
        return target.get_dummy_value() if found is None else found

    return emit


@intrinsic
def popcount(_context: Any, bits: Any) -> Any:
    """Number of set bits of a uint64."""
    return types.int64(types.uint64), _emitted(lambda code: code.builder.ctpop(code.values[0]))


def _count_trailing_zeros(*, nonzero: bool) -> Any:
    return _emitted(lambda code: code.builder.cttz(code.values[0], ir.Constant(ir.IntType(1), int(nonzero))))


@intrinsic
def trailing_zeros(_context: Any, bits: Any) -> Any:
    """Number of zeros below the lowest set bit of a uint64, which is not 0."""
    return types.int64(types.uint64), _count_trailing_zeros(nonzero=True)


@intrinsic
def trailing_zeros_or_64(_context: Any, bits: Any) -> Any:
    """`trailing_zeros` for a uint64 that may be 0, which gives 64."""
    return types.int64(types.uint64), _count_trailing_zeros(nonzero=False)


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

    def build(code: _Code) -> None:
        builder, (_, _, _, first, _, place) = code.builder, code.values
        starts = [code.load(2, code.plus(first, number), _WORD) for number in range(n.literal_value)]
        digits = _bit_counts(builder, [code.load(1, builder.add(start, place), _WORDS) for start in starts])
        document = builder.shl(place, ir.Constant(_WORD, 3))
        for vector in range(BLOCK_VECTORS):
            here = code.plus(document, LANES * vector)
            total = code.load(0, here)
            for digit, bits in enumerate(digits):
                word = builder.extract_element(bits, ir.Constant(_NUMBER, vector))
                more = builder.add(total, ir.Constant(_BYTES, [1 << digit] * LANES))
                total = builder.select(builder.bitcast(word, _BITS), more, total)
            code.store(total, 0, here)

    return types.void(counts, data, starts, types.int64, n, types.int64), _emitted(build)


@intrinsic
def bytes_at_least(_context: Any, counts: Any, place: Any, threshold: Any) -> Any:
    """Which of the 64 bytes from a place on reach a threshold, as bits of a word; unchecked."""

    def build(code: _Code) -> Any:
        _, place, threshold = code.values
        reached = code.builder.icmp_unsigned(">=", code.load(0, place), code.broadcast(threshold))
        return code.builder.bitcast(reached, _WORD)

    return types.uint64(counts, types.int64, types.uint8), _emitted(build)


@intrinsic
def prefetch(_context: Any, data: Any, place: Any) -> Any:
    """Prefetches the cache line at a place of an array."""

    def build(code: _Code) -> None:
        at = code.at(0, code.values[1], _BYTE)
        kind = ir.FunctionType(ir.VoidType(), [at.type, _NUMBER, _NUMBER, _NUMBER])
        function = code.builder.module.declare_intrinsic("llvm.prefetch", (at.type,), kind)
        code.builder.call(function, [at, *(ir.Constant(_NUMBER, one) for one in (0, 3, 1))])

    return types.void(data, types.int64), _emitted(build)


@intrinsic
def load_word(_context: Any, data: Any, place: Any) -> Any:
    """Loads a uint64 from a place of an array of bytes, of any alignment; unchecked."""
    return types.uint64(data, types.int64), _emitted(lambda code: code.load(0, code.values[1], _WORD))


@intrinsic
def store_word(_context: Any, data: Any, place: Any, word: Any) -> Any:
    """Stores a uint64 at a place of an array of bytes; unchecked."""
    return types.void(data, types.int64, types.uint64), _emitted(
        lambda code: code.store(code.values[2], 0, code.values[1])
    )


def _shuffle_masks(builder: Any) -> Any:
    """Table of the shuffle masks that expand 8 bytes by each 8-bit mask: source places, and 128 for a zero byte."""
    existing = builder.module.globals.get("lexent.shuffle_masks")
    if existing is not None:
        return existing
    table = bytearray()
    for mask in range(256):
        ones = [mask >> bit & 1 for bit in range(8)]
        table += bytes(sum(ones[:bit]) if ones[bit] else 128 for bit in range(8))
    kind = ir.ArrayType(_BYTE, len(table))
    masks = ir.GlobalVariable(builder.module, kind, "lexent.shuffle_masks")
    masks.linkage, masks.global_constant, masks.initializer = "internal", True, ir.Constant(kind, table)
    return masks


@intrinsic
def _expand_bytes_avx2(_context: Any, data: Any, place: Any, mask: Any) -> Any:
    def build(code: _Code) -> Any:
        builder, (_, place, mask) = code.builder, code.values
        number, pair, half = ir.Constant(_NUMBER, 0), ir.VectorType(_WORD, 2), ir.VectorType(_BYTE, 16)
        row = [ir.Constant(_WORD, 0), builder.shl(mask, ir.Constant(_WORD, 3))]
        shuffle = builder.bitcast(builder.gep(_shuffle_masks(builder), row), _WORD.as_pointer())
        words = code.load(0, place, _WORD), builder.load(shuffle, align=1)
        zero = ir.Constant(pair, [0, 0])
        both = [builder.bitcast(builder.insert_element(zero, word, number), half) for word in words]
        found = code.call("llvm.x86.ssse3.pshuf.b.128", half, *both)
        return builder.extract_element(builder.bitcast(found, pair), number)

    return types.uint64(data, types.int64, types.uint64), _emitted(build)


@njit(cache=True, nogil=True, inline="always")
def expand_bytes_portable(data: Any, place: int, mask: Any) -> Any:
    """`expand_bytes` for any processor."""
    word, at = np.uint64(0), place
    for byte in range(8):
        if (mask >> np.uint64(byte)) & np.uint64(1) != 0:
            word |= np.uint64(data[at]) << np.uint64(8 * byte)
            at += 1
    return word


expand_bytes = _expand_bytes_avx2 if AVX2 else expand_bytes_portable
"""expand_bytes(data, place, mask): the next bytes of an array, moved to the set bits of an 8-bit mask; the other bytes
of the word are 0. May read 8 bytes; unchecked."""


@intrinsic
def max_byte(_context: Any, sums: Any, place: Any) -> Any:
    """Highest of the 64 bytes from a place on; unchecked."""
    name = "llvm.vector.reduce.umax.v64i8"
    return types.uint8(sums, types.int64), _emitted(lambda code: code.call(name, _BYTE, code.load(0, code.values[1])))


@intrinsic
def quantise_scores(_context: Any, scores: Any, place: Any, scale: Any, out: Any) -> Any:
    """Quantises 64 non-negative int32 scores to bytes: 0 for 0, else 1 + score * scale, at most 255; unchecked."""

    def build(code: _Code) -> None:
        builder, (_, place, scale, _) = code.builder, code.values
        found = code.load(0, place, _NUMBERS)
        real = builder.sitofp(found, ir.VectorType(ir.FloatType(), LANES))
        scaled = builder.fptosi(builder.fmul(real, code.broadcast(scale)), _NUMBERS)
        zeros, most = (ir.Constant(_NUMBERS, [value] * LANES) for value in (0, 255))
        more = builder.add(scaled, builder.zext(builder.icmp_signed(">", found, zeros), _NUMBERS))
        least = builder.select(builder.icmp_signed("<", more, most), more, most)
        code.store(builder.trunc(least, _BYTES), 3, place)

    return types.void(scores, types.int64, types.float32, out), _emitted(build)


@intrinsic
def scores_at_least(_context: Any, scores: Any, place: Any, threshold: Any) -> Any:
    """Which of the 64 int32 scores from a place on reach a threshold, as bits of a word; unchecked."""

    def build(code: _Code) -> Any:
        _, place, threshold = code.values
        reached = code.builder.icmp_signed(">=", code.load(0, place, _NUMBERS), code.broadcast(threshold))
        return code.builder.bitcast(reached, _WORD)

    return types.uint64(scores, types.int64, types.int32), _emitted(build)


@intrinsic
def add_where_set(_context: Any, sums: Any, place: Any, bits: Any, value: Any) -> Any:
    """Adds a value to those of 64 bytes whose bit in a word is set, saturating at 255; unchecked."""

    def build(code: _Code) -> None:
        _, place, bits, value = code.values
        code.add_where(bits, code.broadcast(value), place)

    return types.void(sums, types.int64, types.uint64, types.uint8), _emitted(build)


@intrinsic
def add_where_bitmap(_context: Any, sums: Any, place: Any, data: Any, at: Any, nonzero: Any, value: Any) -> Any:
    """Adds a value to those of BLOCK_DOCUMENTS bytes whose bit in a bitmap is set, saturating; unchecked, needs AVX512.

    nonzero: which of the bitmap's 64 bytes are stored, from `at` on in `data`; the others are 0.
    """

    def build(code: _Code) -> None:
        _, place, _, at, nonzero, value = code.values
        bits = code.builder.bitcast(code.expand(code.load(2, at), nonzero), _WORDS)
        value = code.broadcast(value)
        for vector in range(BLOCK_VECTORS):
            word = code.builder.extract_element(bits, ir.Constant(_NUMBER, vector))
            code.add_where(word, value, code.plus(place, LANES * vector))

    return types.void(sums, types.int64, data, types.int64, types.uint64, types.uint8), _emitted(build)


def _table_lookup_avx512(code: _Code, table: Callable[[int, Any], Any]) -> Callable[[Any], Any]:
    """A function that looks 64 bytes below 128 up in a table of 128 bytes."""
    low, high = (code.opaque(table(half, _BYTES)) for half in (0, LANES))
    return lambda places: code.call("llvm.x86.avx512.vpermi2var.qi.512", _BYTES, low, places, high)


def _table_lookup_avx2(code: _Code, table: Callable[[int, Any], Any]) -> Callable[[Any], Any]:
    """A function that looks 64 bytes below 128 up in a table of 32 bytes, by their 5 highest bits."""
    builder, part, words = code.builder, ir.VectorType(_BYTE, 32), ir.VectorType(ir.IntType(16), 16)
    rows = table(0, part)

    def picked(vector: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_NUMBER, len(lanes)), lanes))

    low, high = (picked(rows, [*range(first, first + 16)] * 2) for first in (0, 16))

    def shifted(vector: Any, shift: Any, by: int) -> Any:
        return builder.bitcast(shift(builder.bitcast(vector, words), ir.Constant(words, [by] * 16)), part)

    def look_up_half(places: Any) -> Any:
        row = builder.and_(shifted(places, builder.lshr, 2), ir.Constant(part, [31] * 32))
        upper = builder.icmp_signed("<", shifted(row, builder.shl, 3), ir.Constant(part, [0] * 32))
        return builder.select(upper, *(code.call("llvm.x86.avx2.pshuf.b", part, half, row) for half in (high, low)))

    def look_up(places: Any) -> Any:
        halves = [look_up_half(picked(places, [*range(first, first + 32)])) for first in (0, 32)]
        return builder.shuffle_vector(*halves, ir.Constant(_NUMBERS, [*range(LANES)]))

    return look_up


def _table_byte_adder(code: _Code) -> Callable[[int, Any, Any], None]:
    """A function that adds a table's bytes for 64 codes to the sums of 64 documents.

    The first arguments of the intrinsic are `sums` and `place`, the last `offsets`, `base`, `table`.
    """
    offsets, table = len(code.values) - 3, len(code.values) - 1
    look_up = (_table_lookup_avx512 if AVX512 else _table_lookup_avx2)(
        code, lambda first, vector: code.load(table, ir.Constant(_WORD, first), vector)
    )
    base = code.broadcast(code.values[-2])

    def add(vector: int, codes: Any, there: Any) -> None:
        place = code.plus(code.values[1], LANES * vector)
        above = code.call("llvm.usub.sat.v64i8", _BYTES, code.saturating_add(codes, code.load(offsets, place)), base)
        above = code.call("llvm.umin.v64i8", _BYTES, above, ir.Constant(_BYTES, [127] * LANES))
        found = code.builder.select(there, look_up(above), _ZEROS)
        code.store(code.opaque(code.saturating_add(code.load(0, place), found)), 0, place)

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

    def build(code: _Code) -> None:
        add = _table_byte_adder(code)
        for vector in range(BLOCK_VECTORS):
            codes = code.load(2, code.plus(code.values[3], LANES * vector))
            add(vector, codes, code.builder.icmp_unsigned("!=", codes, _ZEROS))

    return types.void(sums, types.int64, data, types.int64, offsets, types.uint8, table), _emitted(build)


@intrinsic
def add_table_bytes_where_bitmap(
    _context: Any,
    sums: Any,
    place: Any,
    data: Any,
    at: Any,
    nonzero: Any,
    first_code: Any,
    offsets: Any,
    base: Any,
    table: Any,
) -> Any:
    """`add_table_bytes` for the documents whose bit in a bitmap is set (see `add_where_bitmap`); needs AVX512.

    Their codes are the bytes of `data` from `first_code` on. Returns where the next codes begin.
    """

    def build(code: _Code) -> Any:
        builder, add = code.builder, _table_byte_adder(code)
        at, nonzero, next_code = code.values[3:6]
        for vector in range(BLOCK_VECTORS):
            mask = builder.and_(builder.lshr(nonzero, ir.Constant(_WORD, 8 * vector)), ir.Constant(_WORD, 255))
            spread = code.call("llvm.x86.bmi.pdep.64", _WORD, mask, ir.Constant(_WORD, 0x0101010101010101))
            stored_bytes = builder.mul(spread, ir.Constant(_WORD, 255))
            bits = code.call("llvm.x86.bmi.pdep.64", _WORD, code.load(2, at, _WORD), stored_bytes)
            add(vector, code.expand(code.opaque(code.load(2, next_code)), bits), builder.bitcast(bits, _BITS))
            at = builder.add(at, builder.ctpop(mask))
            next_code = builder.add(next_code, builder.ctpop(bits))
        return next_code

    kind = types.int64(sums, types.int64, data, types.int64, types.uint64, types.int64, offsets, types.uint8, table)
    return kind, _emitted(build)
