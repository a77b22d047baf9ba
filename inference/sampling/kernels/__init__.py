"""Gibbs sampling of forests of variables, compiled over flat arrays."""
