"""All groups of compiled kernels that have a twin in NumPy, in the order in which indexing and searching need them."""

from __future__ import annotations

from lexent.compiled import KernelGroup
from lexent.encoders.transformer import KERNELS as ENCODER
from lexent.indexing.packing_kernels import KERNELS as PACKING
from lexent.sae.coding_kernels import KERNELS as CODING
from lexent.topk.kernels import BINARY
from lexent.topk.kernels import KERNELS as SEARCH
from lexent.weighting.pooling import KERNELS as POOLING

GROUPS: tuple[KernelGroup, ...] = (ENCODER, CODING, POOLING, PACKING, SEARCH, BINARY)


def prepare(*, weighted: bool, binary: bool) -> None:
    """Make them ready in the background, for a process that answers many queries on indexes of these kinds."""
    for group in GROUPS:
        if (group is not SEARCH or weighted) and (group is not BINARY or binary):
            group.prepare()
