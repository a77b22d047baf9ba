"""Analyses: what a study can ask besides a comparison of posteriors.

A study with the key `analysis` names one of the modules of `papers` or `ours`, which are there for
the studies of `experiments/configs/papers` and `experiments/configs/ours`. Each has a frozen
dataclass `Settings`, whose fields are the keys under `settings`, and a function `run` that returns
tables and figures. To add one: a module and a study.
"""
