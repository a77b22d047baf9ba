"""Conditioning on few variables that leave the others independent (compiled)."""
