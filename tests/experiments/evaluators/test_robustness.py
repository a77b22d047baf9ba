"""Padding raises plain precision and leaves the Core-adjusted one where it was."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from experiments.evaluators.gaming import (
    DEMONSTRATION,
    OFF_TOPIC,
    PADDINGS,
    CanonicalRelations,
    Padded,
    Padding,
    corrupted,
    known_templates,
    padded,
    padded_by_model,
    padded_from,
    padding_alone,
    paddings_of,
    repeated_claim,
    subject_of,
)
from experiments.evaluators.robustness import (
    CoreChoices,
    by_inference,
    by_labels,
    by_prompt,
    by_related_atoms,
    padded_scores,
    padding_gains,
    robustness_curves,
    robustness_figure,
    robustness_table,
    score,
    selected,
    verified,
)
from factormodels import Atom, FactGraph, InputError, RelationKind, datasets, read_many
from factormodels.extraction.language_model import Failure
from factormodels.extraction.relation_models.base import Judgement, Missing, TextPair
from factormodels.extraction.relation_models.lexical import LexicalRelations
from factormodels.extraction.stages.assessors import ASSESSORS
from factormodels.selection import CachedRelations, domains
from tests.experiments.conftest import invoke
from tests.factormodels.extraction.models import AnsweringModel
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.refusals import refused

pytestmark = [pytest.mark.service, pytest.mark.slow]

GRAPHS = datasets.load("demonstration").graphs
CHOICES = CoreChoices(LexicalRelations(), templates_known=True)


@pytest.mark.parametrize("padding", PADDINGS)
def test_twenty_true_sentences_raise_plain_precision_alone(padding: Padding) -> None:
    for graph in GRAPHS:
        made = padded(graph, padding, 20)
        assert len(made.graph.atoms) == len(graph.atoms) + 20
        core = CHOICES.core(graph, made)
        adjusted, adjusted_padded = selected(graph, core), selected(made.graph, core)
        # The same claims are selected, so that any assessor says the same of them.
        assert adjusted_padded.atom_ids == adjusted.atom_ids
        for assessor in (by_labels, by_inference("FR1"), by_inference("FR2")):
            clean, plain = score(graph, assessor), score(made.graph, assessor)
            assert plain.precision > clean.precision, graph.id
            assert score(adjusted_padded, assessor) == score(adjusted, assessor)


@pytest.mark.parametrize("padding", PADDINGS)
def test_a_lexical_judge_that_does_not_know_the_templates_lets_little_through(padding: str) -> None:
    blind = CoreChoices(LexicalRelations())
    plain = adjusted = 0.0
    for graph in GRAPHS:
        made = padded(graph, padding, 20)  # type: ignore[arg-type]
        core = blind.core(graph, made)
        plain += score(made.graph, by_labels).precision - score(graph, by_labels).precision
        adjusted += (
            score(selected(made.graph, core), by_labels).precision
            - score(selected(graph, core), by_labels).precision
        )
    # Measured: 0.220 plain; 0.012 (repetitive) and 0.014 (uninformative) adjusted.
    assert plain / len(GRAPHS) == pytest.approx(0.220, abs=0.001)
    assert adjusted / len(GRAPHS) < 0.02


def test_the_table_has_every_kind_of_response_with_and_without_core() -> None:
    scores = padded_scores(GRAPHS[:3], {"labels": by_labels}, CHOICES, appended=5)
    rows: list[Any] = list(robustness_table(GRAPHS[:3], scores).itertuples())
    found = {(row.core, row.kind): row for row in rows}
    every = paddings_of(GRAPHS[:3])
    assert every == (*PADDINGS, OFF_TOPIC)
    kinds = ["normal"] + [f"{p}, {how}" for p in every for how in ("appended", "alone")]
    assert [row.kind for row in rows] == kinds * 2
    for padding in PADDINGS:
        assert found[False, f"{padding}, alone"].precision == 1.0
        for number in ("counted", "precision", "f1"):
            with_padding = getattr(found[True, f"{padding}, appended"], number)
            assert with_padding == getattr(found[True, "normal"], number)
    assert found[True, "uninformative, alone"].counted == 0.0
    # One claim at most is left of what is repeated: F1@K' is low although precision is not.
    assert found[True, "repetitive, alone"].counted <= 1.0
    assert found[True, "repetitive, alone"].f1 < found[True, "normal"].f1


def test_curves_of_corrupted_responses_pass_the_clean_level_without_core_alone() -> None:
    curves = robustness_curves(GRAPHS[:4], {"labels": by_labels}, CHOICES, counts=(10, 20))
    rows: list[Any] = list(curves.itertuples())
    assert {row.appended for row in rows} == {0, 10, 20}
    for padding in PADDINGS:
        level = {
            (row.core, row.response, row.appended): row for row in rows if row.padding == padding
        }
        clean, padded_ = level[False, "clean", 0], level[False, "corrupted", 20]
        assert level[False, "corrupted", 0].precision < clean.precision < padded_.precision
        assert level[True, "corrupted", 20].precision == level[True, "corrupted", 0].precision
        assert level[True, "corrupted", 20].precision <= level[True, "clean", 0].precision
        assert level[False, "clean", 20].raised == 4
        figure = robustness_figure(curves, "labels", padding)
        assert figure.axes[0].get_xlabel() == f"{padding} sentences appended"
    refused("no curves of 'nobody'", robustness_figure, curves, "nobody", "repetitive")


def test_versions_and_paddings_of_a_response_ask_about_each_pair_once() -> None:
    asked: list[TextPair] = []

    class Counting(LexicalRelations):
        def judge(self, pairs: Sequence[TextPair]) -> list[Judgement | Missing]:
            asked.extend(pairs)
            return LexicalRelations().judge(pairs)

    counting = CoreChoices(Counting(), templates_known=True, graded=Counting(name="graded"))
    labels = {"labels": by_labels}
    for ask in (
        lambda: robustness_curves(GRAPHS[:1], labels, counting, counts=(2,)),
        lambda: padded_scores(GRAPHS[:1], labels, counting, appended=2),
    ):
        asked.clear()
        ask()
        # Both models are asked what bleached claims entail, one alone what claims entail.
        assert {*Counter(asked).values()} == {1, 2}


def test_repetitions_have_the_evidence_of_what_they_repeat() -> None:
    graph = GRAPHS[0]
    original = repeated_claim(graph)
    made = padded(graph, "repetitive", 12)
    fresh = made.graph.atoms[-12:]
    assert original.label is True
    assert [atom.label for atom in fresh] == [True] * 12
    assert set(made.canonical.values()) == {original.text}
    theirs = {(r.source, r.kind) for r in made.graph.relations if r.target == fresh[3].id}
    assert theirs == {(r.source, r.kind) for r in graph.relations if r.target == original.id}
    served = {c.id for c in made.graph.contexts if fresh[0].id in c.retrieved_for}
    assert served == {c.id for c in graph.contexts if original.id in c.retrieved_for}
    assert fresh[0].sentence == max(atom.sentence or 0 for atom in graph.atoms) + 1


def test_what_says_nothing_names_its_subject_and_has_a_passage() -> None:
    made = padded(GRAPHS[0], "uninformative", 30)
    fresh = made.graph.atoms[-30:]
    assert len({atom.text for atom in fresh}) == 30
    assert all("Marie Curie" in atom.text for atom in fresh)
    alone = padding_alone(made, len(GRAPHS[0].atoms))
    assert alone.atom_ids == tuple(atom.id for atom in fresh)
    assert len(alone.contexts) == 30


def test_every_embedded_response_has_a_subject_of_a_known_domain() -> None:
    assert set(DEMONSTRATION) == {graph.id for graph in GRAPHS}
    assert {subject.domain for subject in DEMONSTRATION.values()} <= set(domains())
    assert subject_of(FactGraph("g", (), topic="Ada Lovelace")).name == "Ada Lovelace"


def test_corruption_turns_labels_and_evidence_but_spares_what_is_repeated() -> None:
    graph = GRAPHS[0]
    wrong = corrupted(graph, 1.0)
    spared = repeated_claim(graph).id
    assert [atom.id for atom in wrong.atoms if atom.label] == [spared]
    before = {(r.source, r.target): r.kind for r in graph.relations}
    turned = next(atom.id for atom in graph.atoms if atom.label and atom.id != spared)
    for relation in wrong.relations:
        if relation.target == turned and relation.kind is not RelationKind.NEUTRAL:
            assert relation.kind is not before[relation.source, relation.target]
    assert corrupted(graph, 0.0) == graph
    assert corrupted(graph, 0.5, 3) == corrupted(graph, 0.5, 3)


def test_known_templates_are_judged_by_what_they_say() -> None:
    model = CanonicalRelations(LexicalRelations(), {"In fact, A.": "A.", "Truly, A.": "A."})
    pairs = [TextPair("In fact, A.", "Truly, A."), TextPair("In fact, A.", "Zebras bark.")]
    same, other = model.judge(pairs)
    assert same.kind is RelationKind.ENTAILMENT  # type: ignore[union-attr]
    assert [other] == LexicalRelations().judge([TextPair("A.", "Zebras bark.")])
    assert model.name == "lexical, templates known"


def test_a_language_model_writes_the_padding() -> None:
    model = AnsweringModel(lambda _: '["Curie is a person.", "Curie lived.", "Curie was."]')
    made = padded_by_model(GRAPHS[0], "uninformative", 2, model)
    assert [atom.text for atom in made.graph.atoms[-2:]] == ["Curie is a person.", "Curie lived."]
    assert "Marie Curie" in model.asked[0].messages[-1].content
    repeated = padded_by_model(GRAPHS[0], "repetitive", 3, model)
    assert repeated_claim(GRAPHS[0]).text in model.asked[1].messages[-1].content
    assert len(repeated.graph.atoms) == len(GRAPHS[0].atoms) + 3
    failed = padded_by_model(
        GRAPHS[0], "repetitive", 3, AnsweringModel(lambda _: Failure("status 500"))
    )
    assert failed == Padded(GRAPHS[0], {}, ("status 500",))
    wrong = padded_by_model(GRAPHS[0], "repetitive", 3, AnsweringModel(lambda _: "[1]"))
    assert "its form is not the requested one" in wrong.failures[0]


def test_a_prompt_based_assessor_takes_part() -> None:
    model = AnsweringModel(
        lambda request: "true" if "1867" in request.messages[-1].content else "false"
    )
    found = by_prompt("factscore", model)(GRAPHS[0])
    assert len(found) == len(GRAPHS[0].atoms)
    assert any(found)


@pytest.mark.parametrize("variant", ["FR1", "FR2"])
def test_related_atoms_count_once_and_keep_their_verdicts(variant: str) -> None:
    for graph in GRAPHS[:6]:
        made = padded(graph, "repetitive", 20)
        assessor = by_related_atoms(variant, CanonicalRelations(LexicalRelations(), made.canonical))
        clean, repeated = list(assessor(graph)), list(assessor(made.graph))
        # Twenty repetitions are the atom that they repeat.
        assert repeated == clean
        assert len(clean) <= len(graph.atoms)


def test_related_atoms_alone_resist_repetition_but_not_emptiness() -> None:
    relations = CachedRelations(known_templates(LexicalRelations(), GRAPHS[:4], 10))
    related = {"related": by_related_atoms("FR2", relations)}
    scores = padded_scores(GRAPHS[:4], related, CHOICES, appended=10)
    rows: Any = robustness_table(GRAPHS[:4], scores).itertuples()
    precision = {(row.core, row.kind): row.precision for row in rows}
    assert precision[False, "repetitive, appended"] == precision[False, "normal"]
    assert precision[False, "uninformative, appended"] > precision[False, "normal"]
    assert precision[True, "uninformative, appended"] == precision[True, "normal"]


def test_the_command_asks_a_language_model_each_question_once(keyed: Path) -> None:
    from factormodels import write

    write(GRAPHS[0], keyed / "one.json")
    arguments = ("select", "one.json", "--append", "2", "--relations", "lexical", "--json")
    with ScriptedServer(lambda *_: Reply("true")) as server:
        # "true" is no verdict of one assessor, all of whose calls so fail: the exit code is 1.
        model = ("--model", f"openai/scripted,api-base={server.url}")
        result = invoke(*arguments, *model, code=1)
        asked = [json.dumps(request["messages"]) for request in server.requests]
    assert len(set(asked)) == len(asked) > 0
    found = json.loads(result.stdout)
    rows = found["tables"]["padding"]
    # Every claim is "true", so that precision is 1 with and without selection.
    normal = [r for r in rows if (r["assessor"], r["kind"]) == ("factscore", "normal")]
    assert [row["precision"] for row in normal] == [1.0, 1.0]
    assert {row["assessor"] for row in rows} >= set(ASSESSORS)
    # "true" is not a verdict of this one, and that is told.
    told = [sentence.partition(":")[0] for sentence in found["findings"]]
    assert "veriscore" in told
    assert "factscore" not in told
    again = json.loads(invoke(*arguments, "--model", "openai/scripted,replay", code=1).stdout)
    assert again["tables"]["padding"] == rows
    assert all(row["calls"] == 0 for row in again["tables"]["cost"])


def test_bad_input_is_named() -> None:
    refused("the padding 'loud' is unknown", padded, GRAPHS[0], "loud", 1)
    refused("appended sentences is -1", padded, GRAPHS[0], "repetitive", -1)
    with pytest.raises(InputError, match="no claim is labelled true"):
        padded(FactGraph("g", (Atom("a", "A.", label=False),)), "repetitive", 1)
    refused("share of corrupted claims is 2", corrupted, GRAPHS[0], 2)
    refused("the weights 'heavy' are unknown", CoreChoices, LexicalRelations(), "heavy")
    refused("no responses to pad", padded_scores, [], {}, CHOICES)


def test_the_command_writes_tables_and_figures(tmp_path: Path) -> None:
    from factormodels import write

    path, out = tmp_path / "one.json", tmp_path / "out"
    write(GRAPHS[0], path)
    result = invoke("select", str(path), "--append", "4", "--out", str(out))
    assert "Normal and padded responses" in result.output
    curve = "padding-FR2-lexical-repetitive"
    rows = list(csv.DictReader((out / f"{curve}.csv").read_text().splitlines()))
    assert {row["appended"] for row in rows} == {"0", "1", "2", "3", "4"}
    assert (out / f"{curve}.pdf").stat().st_size > 1000
    last = [row["precision"] for row in rows if row["appended"] == "4"]
    table = csv.DictReader((out / "curves.csv").read_text().splitlines())
    own = [r for r in table if (r["assessor"], r["padding"]) == ("FR2, lexical", "repetitive")]
    assert [row["p4"] for row in own] == last
    for option in ("--set share", "--set relevance"):
        given = f"{option.replace(' ', '=')}=1"
        refusal = invoke("select", str(path), "--append", "4", given, code=2)
        assert f"{option} is" in refusal.stderr


def test_true_claims_on_other_topics_come_from_the_data_with_their_evidence() -> None:
    graph, *others = GRAPHS[:4]
    made = padded_from(graph, OFF_TOPIC, 7, GRAPHS[:4]).graph
    fresh = made.atoms[len(graph.atoms) :]
    theirs = {atom.text: (other, atom) for other in others for atom in other.atoms if atom.label}
    assert [atom.label for atom in fresh] == [True] * 7
    # One of each other response in turn.
    assert [theirs[atom.text][0].id for atom in fresh[:3]] == [other.id for other in others]
    for atom in fresh:
        other, own = theirs[atom.text]
        kinds = sorted(r.kind for r in made.relations if r.target == atom.id)
        contexts = {context.id for context in other.contexts}
        assert kinds == sorted(
            r.kind for r in other.relations if r.target == own.id and r.source in contexts
        )
    assert made.contexts[: len(graph.contexts)] == graph.contexts
    with pytest.raises(InputError, match="no other response has a claim labelled true"):
        padded_from(graph, OFF_TOPIC, 1, [graph])
    assert paddings_of([graph]) == PADDINGS


def test_core_does_not_see_that_a_true_claim_is_beside_the_topic() -> None:
    scores = padded_scores(GRAPHS[:5], {"labels": by_labels}, CHOICES, appended=10)
    rows: Any = padding_gains(scores).itertuples()
    gains = {row.kind: row for row in rows}
    for padding in PADDINGS:
        row = gains[f"{padding}, appended"]
        assert row.plain_lower > 0
        # The same claims are selected of every response: nothing is gained, nor does it vary.
        assert row.core == 0
        assert math.isnan(row.core_lower)
        assert row.kept_off == pytest.approx(row.plain - row.core)
    # Informative and said once: nothing but relevance would keep it off.
    assert gains["off-topic, appended"].core > 0.05
    precision = [
        [one.precision for one in scores["labels", False, kind]]
        for kind in ("off-topic, appended", "normal")
    ]
    differences = np.array(precision[0]) - np.array(precision[1])
    row = gains["off-topic, appended"]
    half = t.ppf(0.975, 4) * differences.std(ddof=1) / np.sqrt(5)
    assert row.plain == pytest.approx(differences.mean())
    # Cut where no redrawn responses reach.
    assert row.plain_upper <= differences.mean() + half + 1e-12


def test_names_and_numbers_are_swapped_for_others_of_their_kind() -> None:
    graph = GRAPHS[0]
    wrong = corrupted(graph, 1.0, 1, "entities", GRAPHS)
    before = {atom.id: atom for atom in graph.atoms}
    swapped = [
        atom
        for atom in wrong.atoms
        if atom.text != before[atom.id].text and not atom.text.startswith("It is not the case")
    ]
    assert swapped
    for atom in swapped:
        assert atom.label is False
        old, new = before[atom.id].text, atom.text
        assert len(set(new.split()) - set(old.split())) >= 1
        # The rest of the sentence stands.
        assert len(set(old.split()) & set(new.split())) >= 2
    # Verdicts of evidence turn as with denial.
    denied = corrupted(graph, 1.0, 1)
    assert [r.kind for r in wrong.relations] == [r.kind for r in denied.relations]
    assert [a.label for a in wrong.atoms] == [a.label for a in denied.atoms]
    refused("the corruption 'rot13' is unknown", corrupted, graph, 1.0, 1, "rot13")


def test_a_language_model_repeats_in_its_own_words() -> None:
    writer = AnsweringModel(lambda _: '["Curie won.", "She won it."]')
    scores = padded_scores(
        GRAPHS[:2], {"labels": by_labels}, CHOICES, appended=2, paraphraser=writer
    )
    assert {"paraphrased, appended", "paraphrased, alone"} <= {kind for _, _, kind in scores}


def test_the_verdicts_of_an_assessor_stand_for_labels() -> None:
    plain = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in GRAPHS[:3]]
    said = {graph.id: by_inference("FR1")(graph) for graph in GRAPHS[:3]}
    found = verified(plain, by_inference("FR1"))
    assert {graph.id: [atom.label for atom in graph.atoms] for graph in found} == said
    # Nothing true can be appended to what nothing is true of.
    assert [g.id for g in verified(plain, lambda g: [g.id == plain[1].id] * len(g.atoms))] == [
        plain[1].id
    ]


def test_a_table_without_labels_needs_only_a_verifier(folder: Path) -> None:
    (folder / "texts.csv").write_text(
        "id,response\nbridge,The bridge opened in 1890. It is made of wood.\n"
        "tower,The tower opened in 1900. The tower is tall.\n",
        encoding="utf-8",
    )
    (folder / "documents").mkdir()
    (folder / "documents" / "a.txt").write_text("The bridge, of iron, opened in 1890.")
    (folder / "documents" / "b.txt").write_text("The tower opened in 1900 and is tall.")
    bare = invoke("select", "texts.csv", "--append", 1, code=2)
    assert "FR2, lexical supports no claim of it" in " ".join(bare.stderr.split())
    invoke("assess", "texts.csv", "--documents", "documents", "--out", "assessed")
    assert [graph.id for graph in read_many("assessed/graphs.jsonl")] == ["bridge", "tower"]
    result = invoke("select", "assessed/graphs.jsonl", "--append", 1, "--out", "out")
    assert "What FR2 supports counts as true" in result.stdout
    table = (folder / "out" / "padding.csv").read_text()
    assert "verdicts of FR2,False,normal,2.0," in table
    assert "human labels" not in table
    unknown = invoke(
        "select", "assessed/graphs.jsonl", "--append", 1, "--append", "verifier=FR9", code=2
    )
    assert "--append verifier 'FR9'" in unknown.stderr


def test_the_ids_of_a_table_are_kept_wherever_it_is_read(folder: Path) -> None:
    (folder / "texts.csv").write_text(
        "id,question,response\n7,What?,That.\nx,Why?,So.\n,How?,Thus.\n"
    )
    assert [graph.id for graph in read_many("texts.csv")] == ["7", "x", "texts-004"]
