"""What the papers' studies share: printed numbers, the user's data, and stand-ins for them."""
