"""Subclaims with the data that a selection needs: source sentence and topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph


@dataclass(frozen=True, slots=True)
class Subclaim:
    """Claim of a decomposition.

    Attributes:
        text: the claim.
        source: the sentence or chunk that it was extracted from; empty if unknown.
        topic: topic of the response, which bleached claims name.
        id: its name, by which relation models may look up records.
    """

    text: str
    source: str = ""
    topic: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InputError(f"subclaim {self.id!r}: its text is {self.text!r}; give a sentence")


def subclaims_of(graph: FactGraph, sentences: Sequence[str] | None = None) -> list[Subclaim]:
    """Return the atoms of a fact graph as subclaims, in order.

    Args:
        graph: the response; its topic, or else its id, becomes the topic of the subclaims.
        sentences: the sentences of the response, which give each atom its source; None leaves
            sources empty.

    Raises:
        InputError: if an atom has no text, or its sentence does not exist.
    """
    claims = []
    for atom in graph.atoms:
        source = ""
        if sentences is not None and atom.sentence is not None:
            if not 1 <= atom.sentence <= len(sentences):
                raise InputError(
                    f"graph {graph.id!r}: atom {atom.id!r} is from sentence {atom.sentence} of "
                    f"{len(sentences)}; split it into sentences the way its atoms count them"
                )
            source = sentences[atom.sentence - 1]
        if not atom.text.strip():
            raise InputError(
                f"graph {graph.id!r}: atom {atom.id!r} has no text, and selection compares texts; "
                "give a file with the texts of its claims"
            )
        claims.append(Subclaim(atom.text, source, graph.topic or graph.id, atom.id))
    return claims
