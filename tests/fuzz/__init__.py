"""Damaged inputs of every kind, tried on every reader and command: `make fuzz`."""
