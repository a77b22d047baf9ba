"""Pre-verification: claims and labels are read in any form, and what is certain enough skips."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from factormodels import Atom, FactGraph
from factormodels.extraction.asking.claim_lines import (
    ClaimLines,
    PreLabel,
    PreVerified,
    read_claims,
)
from factormodels.extraction.asking.stage import Fault
from factormodels.extraction.fastfact import FastFactSettings, fastfact
from factormodels.extraction.language_model import Completion, Token
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.preverification import (
    Extraction,
    choose_threshold,
    extract,
)
from factormodels.extraction.retrieval.bm25 import build_collection
from factormodels.extraction.retrieval.documents import Document
from factormodels.extraction.sentences import Chunk
from factormodels.extraction.stages.assessors import assess
from tests.factormodels.extraction.server import Reply, ScriptedServer
from tests.refusals import refused

pytestmark = pytest.mark.service

RESPONSE = "One is odd. Two is even. Three is prime. Four is even. Five is odd."
CHUNK = Chunk(1, ("One is odd.", "Two is even."))


def model(server: ScriptedServer) -> LitellmModel:
    return LitellmModel(LitellmSettings("openai/test", api_base=server.url, attempts=1))


def read(text: str, chunk: Chunk = CHUNK, tokens: tuple[Token, ...] = ()) -> ClaimLines:
    lines = read_claims(Completion(text, tokens), chunk)
    assert isinstance(lines, ClaimLines), lines
    return lines


def claims_of(extraction: ClaimLines | Extraction) -> list[str]:
    return [claim.claim for claim in extraction.claims]


def test_labels_keep_the_probability_of_all_their_tokens() -> None:
    words = ["1 | One is odd.", " | ", "likely", " support", "ed"]
    words += ["\n2 | Two. | ", "Un", "sure", ""]
    chances = [1.0, 1.0, 0.8, 0.5, 0.9, 1.0, 0.3, 1.0, 1.0]
    tokens = tuple(Token(w, math.log(c)) for w, c in zip(words, chances, strict=True))
    lines = read("".join(words), CHUNK, tokens)
    assert [claim.label for claim in lines.claims] == [PreLabel.LIKELY_SUPPORTED, PreLabel.UNSURE]
    assert [claim.confidence for claim in lines.claims] == pytest.approx([0.36, 0.3])
    assert claims_of(lines) == ["One is odd.", "Two."]


@pytest.mark.parametrize(
    "text",
    [
        *("1 | One. | true", "3 | Three. | supported", "1 | One.", "supported", "1 |  | supported"),
        *("\n\n", '[{"claim": "One."}]', "1 | supported", "1 | One. | mostly supported"),
        *("1 | One. | supported | unsure", "1 | One. | supported (not by all)"),
        *("1 | One. | supported - not by all", "1 | One. | supported - unsure"),
        *("1 | One. | supported ❌", "1 | One. | non-supported ✓"),
        *("1 | One - supported - by many.", "Claim: One.\nVerdict: supported"),
        "I would say that all of it is supported.",
    ],
)
def test_another_form_is_a_failure(text: str) -> None:
    assert isinstance(read_claims(Completion(text), CHUNK), Fault)


def test_no_claim_is_an_answer_and_a_cut_one_is_not() -> None:
    for none in ("None.", "There are no claims in these sentences."):
        assert read_claims(Completion(none), CHUNK) == ClaimLines(())
    cut = read_claims(Completion("1 | One. | supported", finish="length"), CHUNK)
    assert isinstance(cut, Fault)
    assert "cut off" in cut.words


def test_only_definite_labels_above_the_threshold_skip() -> None:
    for label in PreLabel:
        definite = label in ("supported", "non-supported", "irrelevant")
        assert PreVerified("c", 1, label, 0.96).skips(0.95) == definite
        assert not PreVerified("c", 1, label, 0.95).skips(0.95)
        assert not PreVerified("c", 1, label, None).skips(0.0)


@pytest.mark.parametrize(("stride", "calls"), [(1, 5), (2, 3), (5, 1), (None, 1)])
def test_a_call_takes_as_many_sentences_as_the_stride(
    server: ScriptedServer, stride: int | None, calls: int
) -> None:
    extracted = extract(RESPONSE, model(server), stride=stride)
    assert (extracted.sentences, extracted.chunks, len(server.requests)) == (5, calls, calls)
    assert extracted.claims == ()


def test_chunks_without_an_answer_are_named(server: ScriptedServer) -> None:
    server.script = lambda request, _: (
        Reply("no", status=400) if "3: Three" in str(request["messages"][-1]) else Reply("none")
    )
    extracted = extract(RESPONSE, model(server), stride=2)
    assert [first for first, _ in extracted.failures] == [3]


def test_an_empty_response_has_no_claims(server: ScriptedServer) -> None:
    searched = build_collection([Document("One", "", "One is odd.")])
    judged = fastfact(FactGraph("r", (), response=""), model(server), searched)
    assert judged.p_true == {}
    assert server.requests == []


def test_the_threshold_keeps_the_error_below_the_target() -> None:
    # Confidence is the probability of being right: errors above theta average (1 - theta) / 2.
    generator = np.random.default_rng(0)
    kept = 0
    for _ in range(200):
        confidence = generator.random(400)
        correct = generator.random(400) < confidence
        chosen = choose_threshold(confidence.tolist(), correct.tolist(), 0.1)
        true_error = (1.0 - chosen.value) / 2.0
        kept += chosen.skipped == 0 or true_error <= 0.1
        assert chosen.skipped == 0 or chosen.upper <= 0.1
    # At least 95% by the bound, which is conservative; 200 runs tell 90% from it.
    assert kept >= 184


def test_the_threshold_is_the_lowest_that_will_do() -> None:
    confidence = [0.5] * 500 + [0.9] * 500
    correct = [False] * 100 + [True] * 400 + [True] * 500
    chosen = choose_threshold(confidence, correct, 0.05)
    assert 0.5 <= chosen.value < 0.9
    assert (chosen.skipped, chosen.error) == (500, 0.0)
    assert choose_threshold(confidence, correct, 0.2).skipped == 1000
    nothing = choose_threshold([0.9] * 10, [True] * 10, 0.01)
    assert (nothing.value, nothing.skipped) == (1.0, 0)
    assert math.isnan(nothing.error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [True, False], 0.1), "1 confidences and 2 labels"),
        (([], [], 0.1), "0 confidences and 0 labels"),
        (([1.2], [True], 0.1), "the confidence 1.2 is not between 0 and 1"),
        (([0.5], [True], 0.0), "target_error is 0.0"),
    ],
)
def test_wrong_input_is_refused(arguments: tuple[Any, Any, float], message: str) -> None:
    refused(message, choose_threshold, *arguments)
    refused(r"audit_rate is 1.5", FastFactSettings, audit_rate=1.5)


@pytest.mark.parametrize(
    "text",
    [
        "Here are the claims:\n1 | One. | supported",
        "I see one claim.\n1 | One. | supported",
        "1 | One. | supported\n\nLet me know if you need anything else!",
        "1 | One. | supported\n\n**Note:** these are only my own beliefs.",
        *("```\n1 | One. | supported\n```", "```text\n1 | One. | supported\n```"),
        *("- 1 | One. | supported", "1. 1 | One. | **supported**", "| 1 | One. | supported |"),
        "| Sentence | Claim | Verdict |\n|---|:---:|---|\n| 1 | One. | supported |",
        "Sentence | Claim | Verdict\n1 | One. | supported",
        "Sentence │ Claim │ Verdict\n─────────┼───────┼────────\n1 │ One. │ supported",
        "┏━━━┳━━━━━━┓\n┃ 1 ┃ One. ┃ supported ┃\n┗━━━┻━━━━━━┛",
        "╔═══╦══════╗\n║ 1 ║ One. ║ supported ║\n╚═══╩══════╝",
        "+---+------+\n| 1 | One. | supported |\n+===+======+",
        "|||\n1 | One. | supported\n| | | |\n***\n—|—|—\n___",
        "•\n1 | One. | supported\n· · ·\n<|>",
        *("1: One. | supported", "1: | One. | supported", "1:\n- One. | supported"),
        "**Sentence 1**\n- One. ###SUPPORTED###\n**Sentence 2**\nNo verifiable claim.",
        *("Sentence 1:\nOne. | supported", "1: One is odd.\n- One. ###SUPPORTED###"),
        *("Sentence 1 | One. | Supported.", "[1] | One. | [supported]", "1\tOne.\tsupported"),
        *("1, One., supported", "1 - One. - supported", "1 | **One.** | `SUPPORTED`"),
        *('1 | "One." | supported', "1 | One. | ###SUPPORTED###", "1 | One. ###SUPPORTED###"),
        *("1 | One. | Verdict: supported", "1 | One. | supported | 0.98"),
        *("1 | One. | supported (95%)", "1 | One. | ✅ supported", "1 | One. -> supported"),
        *("> 1 | One. | supported", "`1 | One. | supported`", "1｜One.｜supported"),
        *("1 | Claim: One. | Verdict: supported", "1 | One. | supported | a well known fact"),
        "1 | One. ###SUPPORTED### – a well known fact",
        *("1 | One. | supported - a well known fact", "1 | One. | supported ✓"),
        *("1 | One. | supported ✔️.", "\u200b1 | One.\u200b | sup\u200bported\ufeff"),
        *("1 │ One. │ supported", "1 ¦ One. ¦ supported", "1 | One. | supported\n2 | none"),
        "1 | One. | supported\n2 | No verifiable claim. |",
        '[{"sentence": 1, "claim": "One.", "verdict": "supported"}]',
        '{"sentence": "1", "claim": "One.", "label": "Supported"}\n',
        '```json\n{"claims": [{"sentence": 1, "claim": "One.", "verdict": "SUPPORTED"}]}\n```',
    ],
)
def test_the_form_of_lines_does_not_matter_where_they_are_clear(text: str) -> None:
    lines = read(text)
    (claim,) = lines.claims
    assert (claim.claim, claim.sentence, claim.label, lines.unread) == ("One.", 1, "supported", ())


@pytest.mark.parametrize(
    ("words", "label"),
    [
        *((words, PreLabel.NON_SUPPORTED) for words in (
            "not supported", "unsupported", "NON_SUPPORTED", "###NON-SUPPORTED###",
            "nonsupported", "refuted", "non-supported ✗",
        )),
        ("likely not supported", PreLabel.LIKELY_NON_SUPPORTED),
        ("###LIKELY NON-SUPPORTED###", PreLabel.LIKELY_NON_SUPPORTED),
        ("Likely supported", PreLabel.LIKELY_SUPPORTED),
        *(("not relevant", PreLabel.IRRELEVANT), ("not sure", PreLabel.UNSURE)),
    ],
)  # fmt: skip
def test_labels_are_known_by_other_words(words: str, label: PreLabel) -> None:
    tokens = (Token("1 | One. | ", 0.0), Token(words, math.log(0.5)))
    (claim,) = read(f"1 | One. | {words}", CHUNK, tokens).claims
    assert claim.label == label
    assert claim.confidence == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "claims", "unread"),
    [
        # A verdict that is none, a sentence that was not shown, no verdict at all.
        ("1 | One. | supported\n2 | Two. | true", ["One."], ["2 | Two. | true"]),
        ("1 | One. | unsure\n3 | Three. | supported", ["One."], ["3 | Three. | supported"]),
        ("1 | One. | unsure\n2 | Two.", ["One."], ["2 | Two."]),
        # A claim broken into two lines: its end is no claim.
        ("1 | One. | unsure\n2 | Two\nand three. | supported", ["One."],
         ["2 | Two", "and three. | supported"]),
        # Prose in the place of a claim.
        ("1 | One. | unsure\nTwo is even.\n2 | Two. | unsure", ["One.", "Two."], ["Two is even."]),
        ("- One. | unsure\n- Two.", ["One."], ["- Two."]),
        # A verdict in two columns, a number of no sentence: neither is a part of the claim.
        ("1 | One. | unsure\n2 | Two. | Likely: supported", ["One."],
         ["2 | Two. | Likely: supported"]),
        ("1 | One. | unsure\n2 | Two. | no | supported", ["One."], ["2 | Two. | no | supported"]),
        ("1 | One. | unsure\n1.2 | Two. | supported", ["One."], ["1.2 | Two. | supported"]),
        ('[{"claim": "One.", "verdict": "unsure"}, {"claim": "Two.", "verdict": "true"}]',
         ["One."], ["{'claim': 'Two.', 'verdict': 'true'}"]),
    ],
)  # fmt: skip
def test_clear_values_are_kept_and_others_counted(
    text: str, claims: list[str], unread: list[str]
) -> None:
    lines = read(text)
    assert claims_of(lines) == claims
    assert list(lines.unread) == unread


def test_a_list_does_not_number_sentences() -> None:
    lines = read("1. One. (supported)\n2. Also one. (unsure)")
    assert claims_of(lines) == ["One.", "Also one."]
    assert [claim.sentence for claim in lines.claims] == [None, None]
    alone = read("1. Seven. (supported)", Chunk(7, ("Seven is odd.",)))
    assert alone.claims[0].sentence == 7


def test_a_number_may_begin_a_claim() -> None:
    text = "1890: the bridge opened. | supported\n- 2.5 million live there | unsure"
    lines = read(text, Chunk(1, ("It opened in 1890, for 2.5 million.",)))
    assert claims_of(lines) == ["1890: the bridge opened.", "2.5 million live there"]


@pytest.mark.parametrize("mark", ["|", " ", "#", "1 | ", "- ", "supported ", "(", "1"])
def test_a_long_line_of_marks_is_no_work(mark: str) -> None:
    # A pattern that went back over it would take hours.
    read(f"1 | One. | supported\n{mark * 50_000}x")


def test_a_number_of_any_length_is_none_of_a_sentence() -> None:
    long = "1" * 5000
    text = f"1 | One. | supported\n{long} | Two. | supported"
    lines = read(text)
    assert claims_of(lines) == ["One."]
    objects = f'[{{"claim": "One.", "verdict": "unsure", "sentence": "{long}"}}]'
    assert isinstance(read_claims(Completion(objects), CHUNK), Fault)


HALF_CLEAR = "1 | One is odd. | unsure\n2 | Two is even. | true"


def test_a_chunk_with_lines_that_are_not_clear_is_asked_about_once_more(
    server: ScriptedServer,
) -> None:
    whole = "1 | One is odd. | unsure\n2 | Two is even. | unsure"
    server.script = lambda _, number: Reply(whole if number else HALF_CLEAR)
    extracted = extract("One is odd. Two is even.", model(server))
    assert claims_of(extracted) == ["One is odd.", "Two is even."]
    assert (extracted.calls, len(server.requests), extracted.unread) == (2, 2, ())
    asked = server.requests[1]["messages"][-1]["content"]
    assert "1 line does not have the requested form, the first: '2 | Two is even. | true'" in asked


@pytest.mark.parametrize(
    ("second", "unread"),
    [("none", 1), ("I cannot.", 1), ("1 | One is odd. | true", 1), ("1 | One. | unsure", 0)],
)
def test_a_second_answer_does_not_take_away_what_was_clear(
    server: ScriptedServer, second: str, unread: int
) -> None:
    server.script = lambda _, number: Reply(second if number else HALF_CLEAR)
    extracted = extract("One is odd. Two is even.", model(server))
    assert [claim.sentence for claim in extracted.claims] == [1]
    assert len(server.requests) == extracted.calls == 2
    assert len(extracted.unread) == unread


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Nothing bears it out. Verdict: not supported", "insufficient"),
        ("Verdict: **Unsupported**", "insufficient"),
        ("Verdict: non-supported", "insufficient"),
        ("Verdict: partially supported", "insufficient"),
        ("So it goes. Decision: ###not enough evidence###", "insufficient"),
        ("So it goes. Decision: ###conflicting###", "conflicting"),
        ("It is refuted.\n###refuted###", "refuted"),
        ("Verdict: supported", "supported"),
        ("Verdict: ###supported###", "supported"),
    ],
)
def test_verdicts_are_known_by_other_words(server: ScriptedServer, text: str, label: str) -> None:
    server.always(Reply(text))
    graph = FactGraph("r", (Atom("a1", "One is odd."),))
    (verdict,) = assess(graph, "fastfact", model(server))
    assert (verdict.label, verdict.missing) == (label, "")
