"""The processor's features, for which Numba compiles kernels."""

from __future__ import annotations

from numba import config
from numba.core.codegen import get_host_cpu_features

_GIVEN: str | None = getattr(config, "CPU_FEATURES", None)
_FOUND: str = get_host_cpu_features() if _GIVEN is None else _GIVEN  # type: ignore[no-untyped-call]
CPU_FEATURES = frozenset(_FOUND.split(","))
"""The features, as LLVM writes them: +bmi2, -avx512vbmi2, and so on. NUMBA_CPU_FEATURES overrides the detection."""
