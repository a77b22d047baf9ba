"""Belief propagation: loopy and tree-reweighted, what both share, and their kernels."""
