"""Analyses: studies that compute something other than posteriors.

A study with the key `analysis` names one of the modules of `papers` or `measuring`, which serve the
studies of `experiments/configs`. Each has a frozen dataclass `Settings`, whose fields are the keys
under `settings`, and a function `run` that returns tables and figures. To add one: a module and a
study. Questions of our own are scripts in `notebooks/questions`.
"""
