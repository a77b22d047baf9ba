"""Weighted mini-buckets: bounds on log Z, certified intervals of probabilities, their kernels."""
