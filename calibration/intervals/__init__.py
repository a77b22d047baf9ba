"""Intervals over responses: what is resampled, and the estimates that carry an interval."""
