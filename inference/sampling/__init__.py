"""Sampling: block Gibbs, chains and their diagnostics, and the kernels."""
