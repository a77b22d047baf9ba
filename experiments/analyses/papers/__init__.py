"""Analyses in the form of a paper's table or figure, for `experiments/configs/papers`.

In `shared` stands what they share: printed numbers, the user's data, verdicts on claims.
"""
