"""What the studies of the papers share: printed numbers, the user's data, and stand-ins for them."""
