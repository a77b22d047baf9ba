"""Readers of datasets as their owners publish them, one format per module.

`formats` names them all; `factormodels.read_many` and `read_prompts` tell them apart by content.
"""
