"""Sum-product messages on a factor graph, compiled over flat arrays."""
