"""Weighted mini-buckets: bounded tables and the bounds on log Z that they give, compiled."""
