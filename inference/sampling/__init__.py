"""Sampling: block Gibbs, annealing and importance sampling, their diagnostics, and their
kernels."""
