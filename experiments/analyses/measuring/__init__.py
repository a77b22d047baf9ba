"""Analyses that measure algorithms, for the studies `bench`, `frontier` and `references`."""
