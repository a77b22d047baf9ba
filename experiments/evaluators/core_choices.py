"""Setup of Core for a response, and the share of labeled claims that it keeps.

Source: Core, sections 3 to 5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from experiments.findings.interval_values import difference_of_clusters, mean_of_clusters
from experiments.findings.table import named
from factormodels.errors import InputError
from factormodels.extraction.relation_models.base import RelationModel
from factormodels.fact_graph import FactGraph
from factormodels.selection import (
    CachedRelations,
    Core,
    Informativeness,
    SolverSettings,
    Weighting,
    read_templates,
    restricted,
    select,
    subclaims_of,
    templates_of,
    uniform,
)
from factormodels.selection.program import EdgeRule
from factormodels.selection.weights import EPSILON


@dataclass(frozen=True)
class Subject:
    """Subject of a response.

    Attributes:
        name: name that fills the bleached claims.
        domain: the domain of the bleached claims.
    """

    name: str
    domain: str = "things"


DEMONSTRATION: Mapping[str, Subject] = MappingProxyType(
    {
        "demo-01-marie-curie": Subject("Marie Curie", "people"),
        "demo-02-lake-baikal": Subject("Lake Baikal", "places"),
        "demo-03-penicillin": Subject("penicillin", "medicine"),
        "demo-04-world-cup-1966": Subject("the 1966 football World Cup", "events"),
        "demo-05-apollo-11": Subject("the flight of Apollo 11", "events"),
        "demo-06-mona-lisa": Subject("the Mona Lisa"),
        "demo-07-octopus": Subject("the octopus"),
        "demo-08-beethoven": Subject("Ludwig van Beethoven", "people"),
        "demo-09-chocolate": Subject("chocolate"),
        "demo-10-world-wide-web": Subject("the World Wide Web"),
        "demo-11-magna-carta": Subject("Magna Carta"),
        "demo-12-alan-turing": Subject("Alan Turing", "people"),
        "demo-13-panama-canal": Subject("the Panama Canal", "places"),
        "demo-14-antarctica": Subject("Antarctica", "places"),
    }
)
"""Subjects of the embedded responses, whose topics are subject areas."""


def subject_of(graph: FactGraph) -> Subject:
    """Return the subject of a response: known for embedded responses, otherwise its topic."""
    if graph.id in DEMONSTRATION:
        return DEMONSTRATION[graph.id]
    return Subject(graph.topic or graph.id)


WEIGHTS = ("informativeness", "uniform")


@dataclass(frozen=True)
class CoreChoices:
    """Setup of the selection for each response.

    Attributes:
        relations: the relation model that judges claims.
        weights: "informativeness" (with the bleached claims of the response's domain) or "uniform".
        rule: see `factormodels.selection.conflicts_of`.
        domain: domain of the bleached claims; None for the domain of `subject_of`.
        templates: file of bleached claims by domain; None for the embedded one.
        solver: limits of the solver.
        share: smallest share of faithful claims among the chosen; None for no requirement.
        epsilon: amount subtracted from each informativeness.
        cap: the relation model whose answer caps informativeness; None means `relations`.
        graded: the relation model that gives P(claim given a bleached claim), as Core requires;
            None means `relations`.

    Raises:
        InputError: for unknown weights, or templates without the domain.
    """

    relations: RelationModel
    weights: str = "informativeness"
    rule: EdgeRule = "either"
    domain: str | None = None
    templates: Path | None = None
    solver: SolverSettings = field(default_factory=SolverSettings)
    share: float | None = None
    epsilon: float = EPSILON
    cap: RelationModel | None = None
    graded: RelationModel | None = None

    def __post_init__(self) -> None:
        if self.weights not in WEIGHTS:
            raise InputError(
                f"the weights {self.weights!r} are unknown; use one of {', '.join(WEIGHTS)}"
            )

    def core(self, graph: FactGraph) -> Core:
        """Core for a response and its padded versions."""
        # Weights and exclusions ask about the same pairs.
        cached = CachedRelations(self.relations)
        weighting: Weighting = uniform
        if self.weights == "informativeness":
            informing = cached if self.graded is None else CachedRelations(self.graded)
            domain = self.domain or subject_of(graph).domain
            # With a graded model, the judge of exclusion still judges the entailments of a bleached
            # claim.
            capping = self.cap or (None if self.graded is None else cached)
            weighting = Informativeness(
                informing, self.bleached(domain), cap=capping, epsilon=self.epsilon
            )
        return Core(cached, weighting, self.rule, share=self.share, solver=self.solver)

    def remembering(self) -> CoreChoices:
        """The same choices with relation models that remember their answers.

        Use a new instance for each response: its versions and paddings share most of their pairs.
        Different responses share few, and remembering all answers would need memory for each.
        """
        return replace(
            self,
            relations=CachedRelations(self.relations),
            cap=None if self.cap is None else CachedRelations(self.cap),
            graded=None if self.graded is None else CachedRelations(self.graded),
        )

    def bleached(self, domain: str) -> tuple[str, ...]:
        """Return the bleached claims of a domain.

        Raises:
            InputError: if there are none, or the file of templates cannot be read.
        """
        if self.templates is None:
            return templates_of(domain)
        by_domain = read_templates(self.templates)
        if domain not in by_domain:
            raise InputError(
                f"{self.templates} has no bleached claims of the domain {domain!r}; name one of "
                f"{', '.join(by_domain)}"
            )
        return by_domain[domain]


def selected(graph: FactGraph, core: Core) -> FactGraph:
    """The response with only the claims that count, as an assessor sees it."""
    # The subject fills bleached claims; topics of the embedded responses are subject areas.
    topic = subject_of(graph).name
    claims = [replace(claim, topic=topic) for claim in subclaims_of(graph)]
    return restricted(graph, [claim.id for claim in select(claims, core).chosen])


KEPT = MappingProxyType({"kept": "kept", "true": "true of all", "true_kept": "true of kept"})
"""Shares of `kept_by_sentence`, with their titles in a figure."""

KEPT_COLUMNS = "sentence | claims:0 | kept:2± | true:3± | true_kept:3± true of kept | change:3±"
KEPT_NOTE = "Intervals: 95% over responses, paired for the change. True: share of labeled claims."


def kept_by_sentence(
    selections: Sequence[tuple[FactGraph, Collection[str]]], *, sentences: int = 10, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield the share of kept claims by position of the sentence: a row per position, and last
    "all".

    A row has `sentence`, from "1"; `claims`, their number; and the following shares, with bootstrap
    intervals over responses in NAME_lower and NAME_upper: `kept`, the share of claims that count;
    `true` and `true_kept`, the shares labeled true among all labeled claims and among labeled
    claims that count; `change`, `true_kept` minus `true`, paired. Claims without a sentence are
    only in the last row.

    Args:
        selections: responses with claims, and the ids of their claims that count.
        sentences: number of sentences with their own row; later sentences share a row.
        seed: seed of the intervals.
    """
    columns = np.array(
        [
            (
                *(number, 0 if atom.sentence is None else min(atom.sentence, sentences + 1)),
                *(atom.id in chosen, atom.label is not None, atom.label is True),
            )
            for number, (graph, chosen) in enumerate(selections)
            for atom in graph.atoms
        ],
        dtype=np.int64,
    )
    owner, sentence, kept, labeled, true = columns.reshape(-1, 5).T
    sums = partial(np.bincount, owner, minlength=len(selections))
    titles = [*map(str, range(1, sentences + 1)), f"from {sentences + 1}", "all"]
    for number, title in enumerate(titles, start=1):
        here = np.ones_like(sentence) if title == "all" else (sentence == number).astype(np.int64)
        if not here.any():
            continue
        before = sums(here * true), sums(here * labeled)
        after = sums(here * true * kept), sums(here * labeled * kept)
        yield {
            "sentence": title,
            "claims": int(here.sum()),
            **named("kept", mean_of_clusters(sums(here * kept), sums(here), seed)),
            **named("true", mean_of_clusters(*before, seed)),
            **named("true_kept", mean_of_clusters(*after, seed)),
            **named("change", difference_of_clusters(after, before, seed)),
        }
