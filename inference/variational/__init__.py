"""Variational inference: the nearest distribution of a tractable family, and its bound."""
