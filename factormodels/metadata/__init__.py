"""Metadata of a response: source of its evidence, verdicts, figures, and use of its labels."""
