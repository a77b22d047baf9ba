"""Exact inference: elimination over a bucket tree, conditioning, and their kernels."""
