"""Compiled kernels of the exact tasks, which compute more than marginals on a cluster tree."""
