"""Analyses: what a study can ask besides a comparison of posteriors.

A study with the key `analysis` names one of the modules here. Each has a frozen dataclass
`Settings`, whose fields are the keys under `settings`, and a function `run` that returns tables
and figures. To add one: a module, a line in `experiments.analyses.registry`, a study in
`experiments/configs`.
"""
