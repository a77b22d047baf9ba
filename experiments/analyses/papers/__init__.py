"""Analyses in the form of a paper's table or figure, for `experiments/configs/papers`."""
