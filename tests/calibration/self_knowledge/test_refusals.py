"""Distinguishing responses that decline from responses that answer."""

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
        "I could not recognise this person.",
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


IGNORANCE_AND_ABSENCE = [
    "I don't know who Marla Quist is.",
    "I have no idea who that is.",
    "I'm not sure who you are referring to.",
    "I am not familiar with any person called Marla Quist.",
    "I'm unfamiliar with this name.",
    "I have never heard of Marla Quist.",
    "I've not heard of her.",
    "I wasn't aware of any writer by that name.",
    "There doesn't appear to be any public record of Marla Quist.",
    "There does not seem to be a well-known person named Marla Quist.",
    "There do not appear to be any sources on this painter.",
    "There don't seem to be records of him.",
    "No details on him.",
    "No details about her could be found.",
    "No trace of such a cyclist.",
    "No mention of this person exists.",
    "No record of him exists.",
    "No such person exists.",
    "I found no trace of him.",
    "There are no traces of a composer of that name.",
    "No data for this person.",
    "Nothing is known about her.",
    "Nothing comes up for Marla Quist.",
    "There's nobody by that name that I know of.",
    "There is no such person.",
    "There seems to be no information about him.",
    "There appears to be nobody of this name.",
    "I can't recall anyone with that name.",
    "I do not recall a Marla Quist.",
    "I don't recognize that name.",
    "Her name isn't one I know.",
    "I'm drawing a blank on this name.",
    "I know of no one called Marla Quist.",
    "I know nobody of this name.",
    "I haven't come across anyone named Marla Quist.",
    "I have not encountered this name.",
    "Marla Quist is not someone I know.",
    "Marla Quist is not someone I'm familiar with.",
    "Marla Quist doesn't seem to exist.",
    "Marla Quist does not appear to be a real person.",
    "The name Marla Quist is unknown to me.",
    "I'm not certain who Marla Quist is.",
    "I cannot say who Marla Quist is.",
    "Who is Marla Quist? I don't know.",
    "I couldn't tell you who that is.",
    "I'm afraid I don't know what Marla Quist does.",
    "I don't know who Piet Orlow might be.",
    "I am not aware of what this company makes.",
    "I have never come across a bridge with this name.",
    "No information about this village.",
    "There does not appear to be any film with that title.",
    "There doesn't seem to be anyone notable by that name.",
    "I can't place this name, sorry.",
    "No biographical data on this chemist could be located.",
    "This person does not seem to exist.",
    "There are no records of a battle of that name.",
    "Nothing was found about this song.",
    "I wasn't able to find who directed it.",
    "There were no traces of this author anywhere.",
    "I'm not familiar with what happened there.",
    "I don't remember anyone called Piet Orlow.",
    "No one by that name comes to mind.",
    "The title means nothing to me.",
    "Never heard of him.",
    "No clue who that is.",
    "Don't know him.",
]

ABSENCE_IN_ANSWERS = [
    "No record of him survives from before 1890, when he joined the navy.",
    "No details on him were published until 1950. He died in 1961.",
    "There does not appear to be any mention of her in the census, yet she lived in Leeds.",
    "There doesn't seem to be a portrait of the queen. She reigned for nine years.",
    "He was not familiar with the law. He became a judge.",
    "Nobody knew who he was until 1931, when he won the race.",
    '"I don\'t know who I am" is her best-known song.',
    "I don't know who his parents were, but he was born in Oslo in 1901.",
    "She is an actress of whom little is known outside Chile.",
    "No trace of the ship was found. It sank in 1851.",
    "He had never heard of jazz before 1920.",
    "Nothing is known about her childhood. She married in 1702.",
    "No mention of slavery was made in the treaty of 1783.",
    "There is no such person as a born poet, he wrote in 1911.",
    'The film "Nobody Knows" is from 2004.',
    "No data on rainfall were kept before 1880.",
    "He was unknown to me, she wrote in her memoir of 1950.",
    "There seems to be no record of his birth, though he was baptised in 1604.",
    "No record of the match exists. The club won it 3 to 1.",
    "There were no details on the label. The wine is from Jura.",
    "No record of him exists before 1890.",
    "I have never seen the sea, she writes in the first line of her memoir, published in Lyon.",
    "There is no record of a treaty; the war ended by exhaustion.",
    "No one is known to have climbed it in winter.",
    "He does not appear to be mentioned by Livy. Plutarch calls him a coward.",
    "No trace of the city remains above ground; its harbour lies under the bay.",
    "There was nobody in the theatre when the roof fell.",
    "Nothing is known of its author except that he lived in Ghent.",
    "There is no such thing as a free lunch is an adage from the 1930s.",
    "There does not appear to be a cure; treatment eases the pain.",
    "No people live on the island today.",
    "There were no details in the first edition. The second gave dates for all.",
    "There are no people on the moon.",
    "Is it a fruit? It is a berry.",
    "There is no name for the colour in Homer.",
    "Nothing comes close to its speed. It holds the record.",
    "It isn't one I know by heart, the singer said of the anthem.",
    "There isn't a person in the painting.",
    "There is not much information about his childhood, but he studied law.",
    "While I cannot say when she was born, she painted from 1890 on.",
    "I don't know whether he married; he had two sons.",
    "I could not find her birthplace. She became a judge in 1931.",
]


@pytest.mark.parametrize("text", IGNORANCE_AND_ABSENCE)
def test_who_does_not_know_and_who_denies_that_there_is_such_a_one_declines(text: str) -> None:
    assert declining_clauses(text)


@pytest.mark.parametrize("text", [text for texts in REFUSALS.values() for text in texts])
def test_a_sentence_that_declines_does_so_in_any_case_and_place(text: str) -> None:
    assert declining_clauses(text)
    assert declining_clauses(f"Hello!\n{text.upper()}")
    # Beside an answer it says what is not known.
    assert not declining_clauses(f"Ada Quill was born in 1951. {text} She lives in Oslo.")


# What there was not then, what others did not know, and what is said beside what is not known.
@pytest.mark.parametrize("text", [*ANSWERS, *ABSENCE_IN_ANSWERS])
def test_answers_are_not(text: str) -> None:
    assert declining_clauses(text) == ()


def test_one_clause_may_say_why_a_request_is_turned_down() -> None:
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
        declined = [bool(declining_clauses(text)) for text in texts if half_of(text) == half]
        assert (sum(declined), len(declined)) == expected


def test_the_list_is_long_and_nothing_is_in_it_twice() -> None:
    texts = (*REFUSING, *ANSWERING)
    assert len(texts) == len(set(texts)) >= 200
    assert {half_of(text) for text in texts} == set(HALVES)


def test_anything_may_judge_in_place_of_the_rule() -> None:
    filtered = filter_refusals({"a": "No.", "b": "Yes."}, lambda text: (text,) * (text == "No."))
    assert (filtered.kept, filtered.refused) == (("b",), {"a": ("No.",)})


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
