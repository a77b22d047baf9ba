"""Which states and assignments have positive potential, compiled over flat arrays."""
