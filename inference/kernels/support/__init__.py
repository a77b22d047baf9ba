"""States and assignments of positive potential, compiled over flat arrays."""
