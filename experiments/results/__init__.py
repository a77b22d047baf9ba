"""Tidy rows of a run, and what is computed from them."""
