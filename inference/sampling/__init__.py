"""Sampling: Gibbs by blocks, chains and their diagnostics, and the kernels."""
