"""Telling responses that decline from those that answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.self_knowledge import declining_clauses, filter_refusals
from factormodels.errors import InputError
from factormodels.io import read_many
from tests.calibration.self_knowledge.refusal_texts import ANSWERING, HALVES, REFUSING, half_of
from tests.refusals import refused

REFUSALS = {
    "cannot_answer": [
        "I'm sorry, but I couldn't find any noted potter called so.",
        "I cannot provide a bio for Lee Poe without more to go on.",
        "I am unable to identify this person.",
        "Sorry, I can not share details on a private individual.",
        "As a language model, I was not able to locate any record.",
    ],
    "asks_for_more": [
        "Could you please provide more context on the poet?",
        "Can you give me some additional information about her?",
    ],
    "lacks_information": [
        "Sorry, I don't have anything on a painter of that name.",
        "I currently do not have records about this cyclist.",
        "I could not find any reliable details about her.",
        "I don’t really have a source for this.",
    ],
    "needs_more_information": [
        "To write this I would need some more information.",
        "I need additional biographical details first.",
    ],
    "asks_to_provide": [
        "Please provide me with the years in question.",
        "Please kindly give us a hint.",
    ],
    "asks_to_clarify": ["Please clarify which of the three you mean.", "Please specify a country."],
    "apologises": ["I apologize, this is beyond me.", "I must apologise.", "My apologies!"],
    "too_little_known": [
        "There isn't enough public information on this chemist.",
        "There is insufficient verified data.",
        "There is not much reliable information.",
    ],
    "unfortunately_nothing": [
        "Unfortunately, there is no mention of such a ship.",
        "Unfortunately there are no traces of it.",
        "Unfortunately, there's no way to tell.",
    ],
    "invites_more_information": [
        "If you can share some further details, I will try again.",
        "Perhaps you could provide more to go on.",
    ],
    "suspects_a_mistake": [
        "It seems you might mean somebody else.",
        "It appears that you may have a typing error.",
    ],
}

ANSWERS = [
    "Ada Quill (born 1951) is a Canadian glaciologist. She does not have children.",
    'He told the court: "I don\'t have enough information to answer that." He was acquitted.',
    "The band could not find a label, and recorded at home. It provided more than ten songs.",
    "Unfortunately, the mill burnt down in 1911. There was no insurance.",
    "The treaty needs more signatures. Its text is clear, and the parties apologized.",
    "I could not find her birthplace, but here is what is known: she was a person of the law.",
    "He said that I cannot provide for my sons. Could you provide shelter, she asked a person.",
    "They could not find any person on the island.",
    "It seems the comet might return. There are enough observations to say so.",
    "",
]


@pytest.mark.parametrize("text", [text for texts in REFUSALS.values() for text in texts])
def test_a_sentence_that_declines_does_so_in_any_case_and_place(text: str) -> None:
    assert declining_clauses(text)
    assert declining_clauses(f"Hello!\n{text.upper()}")
    # Beside an answer it says what is not known.
    assert not declining_clauses(f"Ada Quill was born in 1951. {text} She lives in Oslo.")


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_not(text: str) -> None:
    assert declining_clauses(text) == ()


def test_what_is_said_beside_what_is_not_known_is_an_answer() -> None:
    answers = (
        "There is not much information about his childhood, but he studied law.",
        "While I cannot say when she was born, she painted from 1890 on.",
        "I don't know whether he married; he had two sons.",
        "I could not find her birthplace. She became a judge in 1931.",
    )
    for text in answers:
        assert declining_clauses(text) == (), text
    assert declining_clauses("I can't help with that. Such things hurt people.")
    assert not declining_clauses("I can't help with that. Water boils at 100. Ice melts at 0.")


@pytest.mark.parametrize(
    ("half", "recall", "false_alarms"),
    # (found, of), as the guide states them. The second line was measured once, when the rules were
    # as they are: whoever changes these measures it anew, without looking at its texts.
    [("development", (44, 44), (0, 56)), ("held back", (63, 68), (1, 55))],
)
def test_recall_and_false_alarms_are_those_that_are_stated(
    half: str, recall: tuple[int, int], false_alarms: tuple[int, int]
) -> None:
    for texts, expected in ((REFUSING, recall), (ANSWERING, false_alarms)):
        found = [bool(declining_clauses(text)) for text in texts if half_of(text) == half]
        assert (sum(found), len(found)) == expected


def test_the_list_is_long_and_nothing_is_in_it_twice() -> None:
    texts = (*REFUSING, *ANSWERING)
    assert len(texts) == len(set(texts)) >= 200
    assert {half_of(text) for text in texts} == set(HALVES)


def test_anything_may_judge_in_place_of_the_rule() -> None:
    found = filter_refusals({"a": "No.", "b": "Yes."}, lambda text: (text,) * (text == "No."))
    assert (found.kept, found.refused) == (("b",), {"a": ("No.",)})


def test_the_filter_keeps_order_and_reports_the_rate() -> None:
    texts = {"a": ANSWERS[0], "b": REFUSALS["apologises"][0], "c": ANSWERS[3], "d": ANSWERS[4]}
    result = filter_refusals(texts)
    assert result.kept == ("a", "c", "d")
    assert result.refused == {"b": ("I apologize, this is beyond me.",)}
    assert result.rate == 0.25
    assert filter_refusals(texts.items()) == result


def test_bad_input_is_named() -> None:
    refused("responses is empty", filter_refusals, {})
    refused("response is of type NoneType", declining_clauses, None)
    with pytest.raises(InputError, match="response 'a' is given twice"):
        filter_refusals([("a", ANSWERS[0]), ("a", REFUSALS["apologises"][0])])


def test_no_annotated_biography_is_taken_for_a_refusal(shared_data: Path) -> None:
    graphs = read_many(shared_data / "factscore_dev" / "ChatGPT.jsonl")
    answered = {graph.id: graph.response for graph in graphs if graph.metadata["annotated"]}
    assert len(answered) == 31
    assert filter_refusals(answered).refused == {}


def test_every_refusal_of_chatgpt_is_found_and_no_answer_dropped(shared_data: Path) -> None:
    # Those that nobody annotated are those that decline.
    for graph in read_many(shared_data / "factscore_chatgpt" / "ChatGPT.jsonl"):
        assert bool(declining_clauses(graph.response)) == (not graph.atoms), graph.response


@pytest.mark.parametrize(
    "phrase",
    [
        "I don't have", "I do not have", "I need more information", "Please provide me",
        "Please clarify", "I apologize", "there isn't enough information",
        "Unfortunately, there is no", "If you can provide more information",
        "you could provide more", "It seems you might",
    ],
)  # fmt: skip
def test_the_phrases_of_the_paper_are_found(phrase: str) -> None:
    assert declining_clauses(f"{phrase} of her.")
