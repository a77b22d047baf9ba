"""Compiled kernels: everything in this folder is compiled by `inference.kernels.compiled`."""
