"""Texts of the embedded datasets."""

from __future__ import annotations

from factormodels.datasets import load

WITH_TEXTS = ("demonstration", "at-odds", "worked-examples")


def embedded_passages() -> list[str]:
    """The different passages that the embedded datasets have texts of."""
    texts = {
        context.content
        for name in WITH_TEXTS
        for graph in load(name).graphs
        for context in graph.contexts
    }
    return sorted(filter(None, texts))
