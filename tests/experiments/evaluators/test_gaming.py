"""Padding raises plain precision and does not change the precision of Core's selection."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from experiments.analyses.papers.padding import curve_figure
from experiments.evaluators.core_choices import CoreChoices, selected
from experiments.evaluators.gaming import (
    NO_GUARD,
    VERSIONS,
    CanonicalRelations,
    Guard,
    by_inference,
    by_kind,
    by_labels,
    by_prompt,
    by_related_atoms,
    curves,
    gains,
    gaming,
    verified,
)
from experiments.evaluators.padding import Padded, paddings_of, repetitive, written_by
from factormodels import FactGraph, datasets
from factormodels.extraction.language_model import Failure
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

pytestmark = pytest.mark.slow

GRAPHS = datasets.load("demonstration").graphs
CHOICES = CoreChoices(LexicalRelations())
KNOWN = {"known": Guard(CHOICES, templates_known=True)}
TEMPLATES = ("repetitive", "uninformative")
LABELS = "human labels"


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    """Twenty sentences appended to every embedded response, or alone, under two guards."""
    return gaming(
        GRAPHS,
        {"words": Guard(CHOICES), **KNOWN},
        assessors={LABELS: by_labels, "FR1": by_inference("FR1"), "FR2": by_inference("FR2")},
    )


def test_twenty_true_sentences_raise_plain_precision_alone(scores: pd.DataFrame) -> None:
    means = scores[(scores.version == "clean") & scores.padding.isin(TEMPLATES)]
    keys = ["response", "padding", "assessor"]
    by_count = {
        (guard, count): part.set_index(keys)
        for (guard, count), part in means.groupby(["guard", "appended"])
    }
    clean, padded = by_count[NO_GUARD, 0], by_count[NO_GUARD, 20]
    assert len(clean) == len(GRAPHS) * len(TEMPLATES) * 3
    assert (padded.counted == clean.counted + 20).all()
    assert (padded.precision > clean.precision).all()
    # The same claims are selected, so that any assessor says the same of them.
    for column in ("counted", "supported", "precision", "f1"):
        assert (by_count["known", 20][column] == by_count["known", 0][column]).all()
    graph = GRAPHS[0]
    padding = repetitive(graph, 20)
    core = KNOWN["known"].core(graph, padding)
    assert selected(padding.graph, core).atom_ids == selected(graph, core).atom_ids


def test_a_lexical_judge_that_does_not_know_the_templates_lets_little_through(
    scores: pd.DataFrame,
) -> None:
    rises = gains(scores)
    rises = rises[(rises.guard == "words") & (rises.assessor == LABELS)].set_index("kind")
    for padding in TEMPLATES:
        row: Any = rises.loc[f"{padding}, appended"]
        # Measured: 0.220 plain; 0.012 (repetitive) and 0.014 (uninformative) with Core.
        assert row.plain == pytest.approx(0.220, abs=0.001)
        assert row.core < 0.02
        assert row.responses == 14


def test_the_table_has_every_kind_of_response_with_and_without_core(scores: pd.DataFrame) -> None:
    table = by_kind(scores)
    kinds = [f"{padding}, {how}" for padding in (*TEMPLATES, "off-topic")
             for how in ("appended", "alone")]  # fmt: skip
    assert table.kind.tolist() == ["normal", *kinds] * 9
    assert table.assessor.tolist()[::21] == [LABELS, "FR1", "FR2"]
    assert table.guard.tolist()[:21:7] == [NO_GUARD, "words", "known"]
    rows: Any = {(r.guard, r.kind): r for r in table[table.assessor == LABELS].itertuples()}
    for padding in TEMPLATES:
        assert rows[NO_GUARD, f"{padding}, alone"].precision == 1.0
    assert rows["known", "uninformative, alone"].counted == 0.0
    # One claim at most is left of what is repeated: F1@K' is low although precision is not.
    alone = rows["known", "repetitive, alone"]
    assert alone.counted <= 1.0
    assert alone.f1 < rows["known", "normal"].f1
    normal = rows[NO_GUARD, "normal"]
    assert normal.counted == pytest.approx(np.mean([len(graph.atoms) for graph in GRAPHS]))


def test_core_does_not_see_that_a_true_claim_is_beside_the_topic(scores: pd.DataFrame) -> None:
    gained = gains(scores)
    rows = gained[(gained.guard == "known") & (gained.assessor == LABELS)].set_index("kind")
    for padding in TEMPLATES:
        row: Any = rows.loc[f"{padding}, appended"]
        assert row.plain_lower > 0
        # The same claims are selected of every response: nothing is gained, nor does it vary.
        assert row.core == 0
        assert math.isnan(row.core_lower)
        assert row.kept_off == pytest.approx(row.plain - row.core)
    # Informative and said once: nothing but relevance would keep it off.
    row = rows.loc["off-topic, appended"]
    assert row.core > 0.05
    clean = scores[(scores.version == "clean") & (scores.padding == "off-topic")]
    clean = clean[(clean.guard == NO_GUARD) & (clean.assessor == LABELS)].set_index("response")
    differences = (
        clean[clean.appended == 20].precision - clean[clean.appended == 0].precision
    ).to_numpy()
    half = t.ppf(0.975, 13) * differences.std(ddof=1) / np.sqrt(14)
    assert row.plain == pytest.approx(differences.mean())
    # Cut where no redrawn responses reach.
    assert row.plain_upper <= differences.mean() + half + 1e-12
    refused("no scores have 3 appended sentences", gains, scores, 3)


def test_curves_of_corrupted_responses_pass_the_clean_level_without_core_alone() -> None:
    padded = gaming(GRAPHS[:2], KNOWN, counts=(10, 20), versions=VERSIONS)
    assert not ((padded.version == "alone") & (padded.appended == 0)).any()
    points = curves(padded)
    assert points.appended.unique().tolist() == [0, 10, 20]
    assert points.version.unique().tolist() == ["clean", "corrupted", "swapped"]
    assert (points.responses == 2).all()
    for padding in TEMPLATES:
        rows: Any = {
            (row.guard, row.version, row.appended): row
            for row in points[points.padding == padding].itertuples()
        }
        clean, passing = rows[NO_GUARD, "clean", 0], rows[NO_GUARD, "corrupted", 20]
        assert rows[NO_GUARD, "corrupted", 0].precision < clean.precision < passing.precision
        assert rows["known", "corrupted", 20].precision == rows["known", "corrupted", 0].precision
        assert rows["known", "corrupted", 20].precision <= rows["known", "clean", 0].precision
        assert rows[NO_GUARD, "clean", 20].raised == 2
        assert clean.raised == 0
    drawn = points[points.padding == "repetitive"].rename(columns={"version": "response"})
    drawn["core"] = np.where(drawn.guard == NO_GUARD, "without", "with")
    figure = curve_figure(drawn, LABELS, "repetitive")
    assert figure.axes[0].get_xlabel() == "Repetitive sentences appended"


def test_versions_and_paddings_of_a_response_ask_about_each_pair_once() -> None:
    asked: list[TextPair] = []

    class Counting(LexicalRelations):
        def judge(self, pairs: Sequence[TextPair]) -> list[Judgment | Missing]:
            asked.extend(pairs)
            return LexicalRelations().judge(pairs)

    choices = CoreChoices(Counting(), graded=Counting(name="graded"))
    gaming(GRAPHS[:1], {"Core": Guard(choices, True)}, counts=(2,), versions=VERSIONS)
    # Both models are asked what bleached claims entail, one alone what claims entail.
    assert {*Counter(asked).values()} == {1, 2}


def test_known_templates_are_judged_by_what_they_say() -> None:
    model = CanonicalRelations(LexicalRelations(), {"In fact, A.": "A.", "Truly, A.": "A."})
    pairs = [TextPair("In fact, A.", "Truly, A."), TextPair("In fact, A.", "Zebras bark.")]
    same, other = model.judge(pairs)
    assert same.kind == "entailment"  # type: ignore[union-attr]
    assert [other] == LexicalRelations().judge([TextPair("A.", "Zebras bark.")])
    assert model.name == "lexical, templates known"


def test_a_prompt_based_assessor_takes_part_and_what_it_misses_is_counted() -> None:
    model = AnsweringModel(
        lambda request: "true" if "1867" in request.messages[-1].content else "false"
    )
    missing: Counter[str] = Counter()
    verdicts = by_prompt("factscore", model, missing)(GRAPHS[0])
    assert len(verdicts) == len(GRAPHS[0].atoms)
    assert any(verdicts)
    assert missing["factscore"] == 0
    # "true" is not a verdict of this one.
    assert not any(by_prompt("veriscore", model, missing)(GRAPHS[0]))
    assert missing["veriscore"] == len(GRAPHS[0].atoms)


@pytest.mark.parametrize("variant", ["FR1", "FR2"])
def test_related_atoms_count_once_and_keep_their_verdicts(variant: str) -> None:
    for graph in GRAPHS[:6]:
        padding = repetitive(graph, 20)
        known = CanonicalRelations(LexicalRelations(), padding.canonical)
        assessor = by_related_atoms(variant, known)
        clean, repeated = list(assessor(graph)), list(assessor(padding.graph))
        # Twenty repetitions are the atom that they repeat.
        assert repeated == clean
        assert len(clean) <= len(graph.atoms)


def test_related_atoms_alone_resist_repetition_but_not_emptiness() -> None:
    canonical: dict[str, str] = {}
    for graph in GRAPHS[:4]:
        for padder in paddings_of([graph]).values():
            canonical |= padder(graph, 10).canonical
    related = by_related_atoms("FR2", CanonicalRelations(LexicalRelations(), canonical))
    rows: Any = by_kind(
        gaming(GRAPHS[:4], KNOWN, assessors={"related": related}, counts=(10,))
    ).itertuples()
    precision = {(row.guard, row.kind): row.precision for row in rows}
    assert precision[NO_GUARD, "repetitive, appended"] == precision[NO_GUARD, "normal"]
    assert precision[NO_GUARD, "uninformative, appended"] > precision[NO_GUARD, "normal"]
    assert precision["known", "uninformative, appended"] == precision["known", "normal"]


def test_the_verdicts_of_an_assessor_stand_for_labels() -> None:
    plain = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in GRAPHS[:3]]
    verdicts = {graph.id: by_inference("FR1")(graph) for graph in GRAPHS[:3]}
    judged = verified(plain, by_inference("FR1"))
    assert {graph.id: [atom.label for atom in graph.atoms] for graph in judged} == verdicts
    # Nothing true can be appended to what nothing is true of.
    assert [g.id for g in verified(plain, lambda g: [g.id == plain[1].id] * len(g.atoms))] == [
        plain[1].id
    ]
    gamed = gaming(judged, {}, counts=(1,), versions=())
    counts = gamed[gamed.appended == 0].drop_duplicates("response").set_index("response").supported
    assert counts.to_dict() == {name: sum(each) for name, each in verdicts.items()}


def test_a_padding_has_rows_for_as_many_sentences_as_it_has() -> None:
    answers = {GRAPHS[0].id: '["One.", "Two."]', GRAPHS[1].id: "no list"}

    def padder(graph: FactGraph, n: int) -> Padded:
        model = AnsweringModel(lambda _: answers[graph.id])
        return written_by(model, "uninformative")(graph, n)

    gamed = gaming(GRAPHS[:2], KNOWN, paddings={"written": padder}, counts=(2, 5), versions=())
    rows = gamed[gamed.guard == NO_GUARD]
    assert rows[["response", "appended"]].to_numpy().tolist() == [
        [GRAPHS[0].id, 0], [GRAPHS[0].id, 2], [GRAPHS[1].id, 0]
    ]  # fmt: skip
    assert gains(gamed).responses.tolist() == [1]
    assert curves(gamed).responses.tolist() == [2, 1, 2, 1]


def test_bad_input_is_named() -> None:
    refused("no responses to pad", gaming, [], KNOWN)
    refused("two responses have the same id", gaming, [GRAPHS[0]] * 2, KNOWN)
    refused("appended sentences is -1", gaming, GRAPHS[:1], KNOWN, counts=[-1])
    refused("the version 'loud' is unknown", gaming, GRAPHS[:1], KNOWN, versions=["loud"])
    refused("the guard 'no guard'", gaming, GRAPHS[:1], {NO_GUARD: KNOWN["known"]})
    refused("the weights 'heavy' are unknown", CoreChoices, LexicalRelations(), "heavy")
    failed = written_by(AnsweringModel(lambda _: Failure("status 500")), "repetitive")
    assert failed(GRAPHS[0], 3) == Padded(GRAPHS[0], {}, ("status 500",))
