"""Figures of how much of a claim's text passages hold, from texts or as a file records them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factormodels import Atom, Context, FactGraph
from factormodels.extraction.text_match import text_match
from factormodels.metadata.recorded_match import TEXT_MATCH_KEY, recorded_match
from tests.refusals import refused

ATOMS = (
    Atom("a", "Ada Lovelace wrote notes in 1843."),
    Atom("b", "Ada Lovelace met Charles Babbage in Turin."),
    Atom("c", "Ada Lovelace."),
)
CONTEXTS = (
    Context("x", "Lovelace wrote letters. Her notes appeared in 1843.", retrieved_for=("a",)),
    Context("y", "Babbage spoke in Turin."),
)
GRAPH = FactGraph("r", ATOMS, CONTEXTS, topic="Ada Lovelace")


def figures_of(graph: FactGraph) -> list[list[float]]:
    figures = text_match(graph)
    assert figures is not None
    return [list(row) for row in figures]


def test_words_of_the_topic_in_a_claim_are_sought_in_all_passages() -> None:
    assert figures_of(GRAPH) == [
        # Of wrote, notes, 1843 the second sentence holds two and the first one; no names.
        [1.0, 0.6667, 0.3333],
        # Of met, Charles, Babbage, Turin one sentence holds two; Charles is nowhere.
        [0.6667, 0.5, 0.0],
        # Nothing is left beside the topic.
        [1.0, 1.0, 1.0],
    ]


def test_without_passages_nothing_is_found() -> None:
    assert figures_of(replace(GRAPH, contexts=())) == [[0.0] * 3] * 3


@pytest.mark.parametrize(
    "lacking",
    [
        replace(GRAPH, contexts=(CONTEXTS[0], Context("y"))),
        replace(GRAPH, atoms=(*ATOMS, Atom("d"))),
        replace(GRAPH, atoms=(*ATOMS, Atom("d", "—"))),
    ],
    ids=["a passage without text", "a claim without text", "a claim without words"],
)
def test_unknown_results_are_not_empty_results(lacking: FactGraph) -> None:
    assert text_match(lacking) is None


def test_snippets_are_texts() -> None:
    snippets = tuple(replace(c, text="", snippet=c.text) for c in CONTEXTS)
    assert figures_of(replace(GRAPH, contexts=snippets)) == figures_of(GRAPH)


def test_recorded_figures_stand_in_for_texts() -> None:
    figures = text_match(GRAPH)
    assert figures is not None
    silent = replace(
        GRAPH,
        atoms=tuple(replace(atom, text="") for atom in ATOMS),
        contexts=tuple(replace(context, text="") for context in CONTEXTS),
        topic="",
    )
    assert text_match(silent) is None
    metadata = {TEXT_MATCH_KEY: recorded_match(figures, GRAPH.atom_ids)}
    assert figures_of(replace(silent, metadata=metadata)) == figures.tolist()


@pytest.mark.parametrize("value", [None, [0.5, 0.5], [0.5, 0.5, 2.0], ["a", 0.1, 0.2], "abc"])
def test_recorded_figures_have_to_be_numbers_from_0_to_1(value: object) -> None:
    silent = replace(GRAPH, atoms=(Atom("a"),), contexts=())
    changed = replace(silent, metadata={TEXT_MATCH_KEY: {"a": value}})
    refused("are not figures of its text; give 3 numbers from 0 to 1", text_match, changed)
