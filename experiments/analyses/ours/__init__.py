"""Analyses of our own questions, for the studies in `experiments/configs/ours`."""
