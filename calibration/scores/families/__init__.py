"""Families of scores, one per file: what computes them, and in `FAMILY` what is known of each.

`calibration.scores.registry` reads every file here: a score that stands in one is everywhere.
"""
