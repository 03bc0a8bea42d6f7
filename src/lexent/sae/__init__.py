"""Sparse autoencoders as they are used: states to codes, exact and fast on a CPU."""
