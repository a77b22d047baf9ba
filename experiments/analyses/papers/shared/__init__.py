"""What analyses of papers share: the user's data, printed numbers, verdicts on claims, measures."""
