"""What the papers' studies share: printed numbers, and the user's data."""
