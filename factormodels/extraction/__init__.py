"""Extraction of graphs from text, the only package that calls language models."""
