"""Passages longer than a relation model reads at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factormodels import RelationKind
from factormodels.extraction.language_model import Completion, Failure, Request
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel, tokens_at_most
from factormodels.extraction.relation_models.windows import (
    combined,
    combined_pairs,
    window_pairs,
    windows,
)
from tests.factormodels.extraction.models import AnsweringModel
from tests.refusals import refused

E, C, N = RelationKind.ENTAILMENT, RelationKind.CONTRADICTION, RelationKind.NEUTRAL


@given(st.lists(st.integers(1, 25), min_size=1, max_size=12), st.integers(1, 30))
def test_windows_cover_the_text_and_keep_to_their_size(lengths: list[int], longest: int) -> None:
    # Words of letters that occur once each, so that every piece has one place.
    letters = iter(map(chr, range(0x4E00, 0x6000)))
    text = " ".join("".join(next(letters) for _ in range(length)) for length in lengths)
    pieces = windows(text, longest, len)
    assert all(len(piece) <= longest for piece in pieces)
    assert (len(pieces) == 1) == (len(text) <= longest)
    places = [text.index(piece) for piece in pieces]
    assert places == sorted(set(places))
    reached = 0
    for span, piece in zip(places, pieces, strict=True):
        assert not text[reached:span].strip()
        reached = span + len(piece)
    assert reached == len(text)


def test_neighbors_share_words() -> None:
    text = " ".join(f"w{i:02}" for i in range(40))
    first, second, *_ = windows(text, 40, len)
    shared = set(first.split()) & set(second.split())
    # A quarter of ten words, to whole words.
    assert 1 <= len(shared) <= 3


def test_the_most_telling_window_speaks_for_the_passage() -> None:
    open_ = Judgment(N, 0.9, "nli", (0.06, 0.04, 0.9))
    entails = Judgment(E, 0.7, "nli", (0.7, 0.1, 0.2))
    denies = Judgment(C, 0.6, "verbalized")
    assert combined([open_, entails, denies, open_]) == entails
    assert combined([open_, denies]) == denies
    assert combined([open_, Judgment(N, 0.5, "samples")]) == Judgment(N, 0.5, "samples")
    judgment = combined([entails, Missing("no answer")])
    assert judgment == Missing("part 2 of 2: no answer")
    assert combined([Missing("no answer")]) == Missing("no answer")


def test_a_language_model_reads_a_long_passage_to_its_end() -> None:
    def answer(request: Request) -> Completion | Failure | str:
        passage = request.messages[-1].content
        label = "contradiction" if "opened in 1891" in passage else "neutral"
        return f'{{"relation": "{label}", "confidence": 0.9}}'

    asked = AnsweringModel(answer)
    model = PromptedRelationModel(asked, "verbalized", window=1500)
    filler = "It rains on the bridge. " * 400
    pair = TextPair(f"{filler}It opened in 1891.", "The bridge opened in 1890.", title="Bridge")
    (judgment,) = model.judge([pair])
    assert isinstance(judgment, Judgment)
    assert (judgment.kind, judgment.probability) == (C, 0.9)
    assert len(asked.asked) > 3
    for request in asked.asked:
        # What is asked fits, with room for the answer; every part is read below its title.
        size = sum(tokens_at_most(message.content) for message in request.messages)
        assert size + request.max_tokens <= 1500
        assert "Bridge" in request.messages[-1].content


def test_a_prompt_that_leaves_no_room_is_missing() -> None:
    model = PromptedRelationModel(AnsweringModel(lambda _: "neutral"), window=300)
    (missing,) = model.judge([TextPair("A passage.", "A claim.")])
    assert isinstance(missing, Missing)
    assert "the model 300" in missing.reason
    refused("window", PromptedRelationModel, AnsweringModel(lambda _: ""), window=0)


def test_a_passage_that_is_judged_is_read_in_parts_too() -> None:
    rows = window_pairs("p" * 30, "h" * 100, 60, 8, len)
    # Parts of the hypothesis take half the room, and leave the premise the other.
    assert len(rows) > 3
    assert "".join(part for row in rows for _, part in row[:1]).count("h") >= 100
    assert all(len(premise) + len(part) <= 60 for row in rows for premise, part in row)
    assert window_pairs("p" * 30, "h" * 20, 60, 8, len) == [[("p" * 30, "h" * 20)]]
    assert window_pairs("p" * 30, "h" * 100, 15, 8, len) == []


def test_a_passage_is_entailed_whole_and_contradicted_in_part() -> None:
    sure, less = Judgment(E, 0.9, "nli"), Judgment(E, 0.7, "nli")
    denies, open_ = Judgment(C, 0.6, "nli"), Judgment(N, 0.8, "nli")
    assert combined_pairs([[sure], [less]]) == less
    assert combined_pairs([[sure], [open_]]) == open_
    assert combined_pairs([[sure], [denies], [open_]]) == denies
    # A part is as its most telling window says.
    assert combined_pairs([[open_, less], [sure]]) == less
    assert combined_pairs([[sure], [Missing("no answer")]]) == Missing("no answer")


@pytest.mark.parametrize("text", ["", "plain", "語" * 30])
def test_the_count_of_tokens_is_no_less_than_characters_of_dense_scripts(text: str) -> None:
    assert tokens_at_most(text) >= len(text) / 3
    assert tokens_at_most("語" * 30) == 30
