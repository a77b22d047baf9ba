"""Damaged inputs of every kind, tried on every reader and command: `python -m tests.fuzz`."""
