"""Compiled kernels over flat arrays; everything in this folder is compiled by `compiled.kernel`."""
