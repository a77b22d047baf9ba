"""Families of scores, one per file, with the definitions of their scores in `FAMILY`.

`calibration.scores.registry` imports every file in this folder, so that a new score is available
throughout the package.
"""
