"""The probe's questions: balanced, of every kind, and answerable by every stage."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest

from calibration.label_bias import beats_constant
from experiments.asking.probing import LEVEL
from factormodels.discourse import Sense
from factormodels.extraction.asking.claim_faults import CATEGORIES, FAILURES, MISSING
from factormodels.extraction.asking.table import (
    ASSESSORS,
    ATOMIZER,
    CLAIM_AS_QUESTION,
    CORRECTION,
    PADDING,
    QUERIES,
    RELATION_PROMPTS,
    REVISER,
    SAFE_REVISION,
    SAFE_SEARCH,
    SAMPLED_ANSWER,
    SELF_SETTINGS,
    STAGES,
    STATED_RELATION,
    SUMMARIZER,
)
from factormodels.extraction.language_model import Completion
from factormodels.extraction.probe.asking import probe_calls
from factormodels.extraction.probe.questions import (
    probe_claims,
    probe_extractions,
    probe_facts,
    probe_pairs,
    probe_refusals,
    probe_relevances,
    probe_senses,
    probe_sentences,
)
from factormodels.extraction.probe.table import (
    CLAIM_RELATIONS,
    FAILURES_OF_CLAIMS,
    MISSING_FROM_CLAIMS,
    PRE_VERIFICATIONS,
    PRE_VERIFICATIONS_IN_RESPONSE,
    REFUSALS,
    RELATIONS,
    RELEVANCES,
    assessor_probe,
    probe_named,
    probes,
)
from factormodels.extraction.prompts import load_prompt
from tests.factormodels.extraction.probe.scripted import answer_meaning
from tests.refusals import refused


def test_relations_are_balanced_and_of_every_kind() -> None:
    pairs = probe_pairs()
    assert Counter(pair.label for pair in pairs) == dict.fromkeys(
        ("entailment", "contradiction", "neutral"), 12
    )
    kinds = {"identical", "paraphrase", "negation", "number", "opposite", "subject", "detail"}
    assert {pair.kind for pair in pairs} == {*kinds, "order"}
    assert len({pair.id for pair in pairs}) == len(pairs)
    assert len({(pair.premise, pair.claim) for pair in pairs}) == len(pairs)


def test_no_label_is_told_by_a_kind_or_a_negation_alone() -> None:
    labels: dict[str, set[str]] = {}
    for pair in probe_pairs():
        labels.setdefault(pair.kind, set()).add(pair.label)
    assert len(labels["number"]) == 3
    assert len(labels["negation"]) == len({"entailment", "contradiction"})
    assert len(labels["order"]) == 3


def test_identical_claims_stand_in_their_passage() -> None:
    pairs = [pair for pair in probe_pairs() if pair.kind == "identical"]
    assert len(pairs) == 3
    assert all(pair.claim in pair.premise for pair in pairs)


def test_orders_add_a_sentence_and_want_a_wrong_answer() -> None:
    by_id = {pair.id: pair for pair in probe_pairs()}
    orders = [pair for pair in probe_pairs() if pair.order]
    assert len(orders) == 6
    for pair in orders:
        like = by_id[pair.like]
        assert (like.claim, like.label, like.order) == (pair.claim, pair.label, "")
        assert like.premise in pair.premise
        assert pair.order in pair.premise
        assert pair.order != pair.label
    assert Counter(pair.order for pair in orders) == dict.fromkeys(
        ("entailment", "contradiction", "neutral"), 2
    )


def test_every_sense_is_asked_and_every_relation_twelve_times() -> None:
    asked = Counter(item.label for item in probe_senses())
    assert all(asked[sense] >= 2 for sense in (*Sense, "none"))
    probe = probe_named(CLAIM_RELATIONS)
    assert Counter(question.label for question in probe.questions) == dict.fromkeys(
        probe.labels, 12
    )
    for item in probe_senses():
        assert item.first != item.second


def test_facts_are_balanced_and_change_the_answer_alone() -> None:
    assert Counter(item.label for item in probe_facts()) == {"true": 18, "false": 18}
    by_topic: dict[str, list[str]] = {}
    for item in probe_facts():
        by_topic.setdefault(item.topic, []).append(item.label)
    assert all(sorted(labels) == ["false", "true"] for labels in by_topic.values())


def test_relevance_and_refusals_are_balanced_and_of_the_same_texts() -> None:
    claims, responses = probe_relevances(), probe_refusals()
    assert Counter(item.label for item in claims) == {"relevant": 18, "irrelevant": 18}
    assert Counter(item.label for item in responses) == {"declines": 18, "answers": 18}
    # Neither the question nor the response tells the label.
    for items in (claims, responses):
        by_question: dict[str, list[str]] = {}
        for item in items:
            by_question.setdefault(item.question, []).append(item.label)
        assert all(len(set(labels)) == 2 for labels in by_question.values())


def test_sentences_of_pre_verification_are_twelve_a_verdict() -> None:
    labels = ("supported", "non-supported", "irrelevant", "unsure")
    assert Counter(item.label for item in probe_sentences()) == dict.fromkeys(labels, 12)
    # The question does not tell apart what is irrelevant and what nobody can know.
    asked = {
        label: {item.question for item in probe_sentences() if item.label == label}
        for label in ("irrelevant", "unsure")
    }
    assert asked["irrelevant"] == asked["unsure"]


@pytest.mark.parametrize("name", [PRE_VERIFICATIONS, PRE_VERIFICATIONS_IN_RESPONSE])
def test_certain_and_likely_verdicts_count_alike_and_differing_ones_as_several(name: str) -> None:
    probe = probe_named(name)
    stage, question = probe.stage, probe.questions[0]
    assert stage is not None
    prompt = load_prompt(stage.prompt)

    def read(answer: str) -> str:
        return probe.read(stage.read(Completion(answer), prompt, question.about)).label

    assert read("1 | It is so. | likely supported") == "supported"
    assert read("1 | It is so. | supported\n1 | It was so. | likely supported") == "supported"
    assert read("1 | It is so. | supported\n1 | It was so. | unsure") == "several"
    assert read("none") == ""


def test_claims_are_twelve_a_failure_and_no_place_tells_it() -> None:
    labels = Counter(label for item in probe_claims() for label, _ in item.claims)
    assert labels == {**dict.fromkeys(FAILURES, 12), "none": 24}
    # The best answers by place alone are no evidence.
    places: dict[int, Counter[str]] = {}
    for item in probe_claims():
        for position, (label, _) in enumerate(item.claims):
            places.setdefault(position, Counter())[label] += 1
    right = sum(counts.most_common(1)[0][1] for counts in places.values())
    assert not beats_constant(right, 84, 24 / 84, level=LEVEL)
    # A repetition follows what it repeats.
    for item in probe_claims():
        kinds = [label for label, _ in item.claims]
        assert kinds.index("none") < min(map(kinds.index, CATEGORIES["redundant"]))
    # Each text is one call.
    assert len(probe_named(FAILURES_OF_CLAIMS).asked) == 12
    assert probe_calls(FAILURES_OF_CLAIMS) == 12


def test_missing_claims_are_twelve_a_reason_of_the_same_texts() -> None:
    labels = (*MISSING, "none")
    assert Counter(item.label for item in probe_extractions()) == dict.fromkeys(labels, 12)
    assert len({item.text for item in probe_extractions()}) == 12
    probe = probe_named(MISSING_FROM_CLAIMS)
    both = (("A claim.", "relevance"), ("Another.", "extractor"))
    assert probe.read(both).label == "several"


def test_only_open_questions_have_no_probe() -> None:
    probed = {each.stage.prompt for each in probes().values() if each.stage is not None}
    # The probe of relations is asked with the prompt of the relation model.
    probed |= {*RELATION_PROMPTS, STATED_RELATION.prompt}
    # They answer with a text, or a list of texts.
    opened = (
        *(ATOMIZER, REVISER, QUERIES, SUMMARIZER, CORRECTION, PADDING, CLAIM_AS_QUESTION),
        *(SAMPLED_ANSWER, SAFE_REVISION, SAFE_SEARCH),
    )
    assert {stage.prompt for stage in STAGES} - probed == {stage.prompt for stage in opened}


def test_every_closed_question_has_a_probe_of_36_questions() -> None:
    assert list(probes()) == [
        *(RELATIONS, CLAIM_RELATIONS, *ASSESSORS, *SELF_SETTINGS, RELEVANCES, REFUSALS),
        *(PRE_VERIFICATIONS, PRE_VERIFICATIONS_IN_RESPONSE),
        *(FAILURES_OF_CLAIMS, MISSING_FROM_CLAIMS),
    ]
    for probe in probes().values():
        assert len(probe.questions) >= 36
        ids = [question.id for question in probe.questions]
        assert len(set(ids)) == len(ids)
    refused("the probe 'relation' is unknown", probe_named, "relation")


@pytest.mark.parametrize("name", [name for name in probes() if name != RELATIONS])
def test_a_right_answer_is_read_as_right(name: str) -> None:
    probe = probe_named(name)
    stage = probe.stage
    assert stage is not None
    prompt = load_prompt(stage.prompt)
    for question in probe.questions:
        together = [each for each in probe.questions if each.texts == question.texts]
        assert question.label in probe.labels
        # Every slot is filled, and nothing is left open.
        fields = {slot: question.fields[slot] for slot in prompt.slots}
        messages = prompt.render(**fields)
        assert "{{" not in messages[-1].content
        completion = Completion(answer_meaning(name, together))
        read = probe.read(question.read_part(stage.read(completion, prompt, question.about)))
        assert read.label == question.label


def test_right_verdicts_do_not_depend_on_the_order_of_labels() -> None:
    values = {"true": 1.0, "false": 0.0, "unknown": 0.5}
    assessor = replace(ASSESSORS["factverify"], values=values)
    right = Counter(question.label for question in assessor_probe(assessor).questions)
    assert right == {"true": 12, "false": 12, "unknown": 12}
    for labels in permutations(values):
        ordered = replace(assessor, values={label: values[label] for label in labels})
        assert assessor_probe(ordered).questions == assessor_probe(assessor).questions


def test_chance_is_the_commonest_right_answer() -> None:
    assert probe_named(RELATIONS).chance == 12 / 36
    # What passages do not bear out is false to FActScore: two thirds.
    assert probe_named("factscore").chance == 24 / 36
    assert probe_named("direct_asking").chance == 0.5
    assert probe_named(CLAIM_RELATIONS).chance == 12 / 72
