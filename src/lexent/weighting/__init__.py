"""Stage 3 and 4: codes to sparse vectors, and vectors to weights whose products are the score."""

from lexent.weighting.bm25 import idf
from lexent.weighting.pooling import as_query, pool, transform, unit

__all__ = ["as_query", "idf", "pool", "transform", "unit"]
