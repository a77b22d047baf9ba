"""Belief propagation: loopy and tree-reweighted, their common parts, and their kernels."""
