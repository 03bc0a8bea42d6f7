"""Autoencoders that learn to rebuild states (TopK, BatchTopK)."""
