"""Scores, tests, tables, diagrams and sentences of a study, from its tidy rows.

`calibration` scores a cell and compares two, and the page is the same as for every command
(`experiments.findings.page`). `calibration.score(frame, by=...)` gives the same numbers from the
whole frame (`tests/experiments/test_front_door.py`). This room reads a cell at a time, so that the
rows of a million responses need not be in memory, and names what only a study has: its measures,
absent backends, agreeing cells, pairs to be tested, and failures.
"""
