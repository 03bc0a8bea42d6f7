"""The compiled kernels of the quantised first pass as one group: see `lexent.compiled`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lexent.compiled import KernelGroup


def _exercise() -> None:
    """With 8-bit rows and rows in float32, and with and without inputs that are left out."""
    from lexent.sae.first_pass import FirstPass

    states, zeros = np.ones((2, 4), np.float32), np.zeros(32, np.float32)
    rows = np.tile(np.arange(4, dtype=np.int8), (32, 1))
    scaled: tuple[tuple[Any, Any], ...] = ((rows, np.ones(32, np.float32)), (rows.astype(np.float32), None))
    for held, scale in scaled:
        FirstPass(held, scale=scale, b_enc=zeros, b_dec=zeros[:4], with_torch=False).encode(states, 2)


def _entries() -> Sequence[Any]:
    from lexent.sae.first_pass import _code_tiles

    return (_code_tiles,)


KERNELS = KernelGroup("coding", __name__, compile_s=5, exercise=_exercise, entries=_entries)
