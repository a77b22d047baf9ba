"""Compiled parts of variational inference."""
