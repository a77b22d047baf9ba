"""Compiled kernels of the exact tasks: what is computed over a cluster tree besides marginals."""
