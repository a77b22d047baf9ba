"""Log-probabilities give the right number or a reason, never a wrong number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from factormodels.extraction.language_model import Completion, Token
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    fitted,
    label_shares,
    spelled_tokens,
    token_log_probabilities,
)

LABELS = ("entailment", "contradiction", "neutral")
TRUE = (0.6, 0.25, 0.15)
"""Probabilities of the labels in the cases whose number is right."""

NAN, INFINITE = math.nan, math.inf


def tokens(*listed: tuple[str, float, Sequence[tuple[str, float]]]) -> tuple[Token, ...]:
    """Tokens of (text, log-probability, alternatives)."""
    return tuple(Token(text, value, tuple(others)) for text, value, others in listed)


def logs(**probabilities: float) -> list[tuple[str, float]]:
    return [(text, math.log(p)) for text, p in probabilities.items()]


def written(words: Sequence[str], probabilities: Sequence[float] = TRUE) -> tuple[Token, ...]:
    """A token, the first of some words, whose alternatives are all of them."""
    others = [(word, math.log(p)) for word, p in zip(words, probabilities, strict=True)]
    return tokens((words[0], math.log(probabilities[0]), others))


def shares_of(
    given: Sequence[Token],
    text: str = "entailment",
    word: str = "entailment",
    labels: Sequence[str] = LABELS,
    **settings: float,
) -> tuple[float, ...] | Unusable:
    meanings = {label: label for label in labels}
    start = text.lower().index(word)
    return label_shares(Completion(text, tuple(given)), start, word, meanings, **settings)


@pytest.mark.parametrize(
    "words",
    [
        LABELS,
        tuple(f"Ġ{label}" for label in LABELS),
        tuple(f"▁{label}" for label in LABELS),
        tuple(f" {label}" for label in LABELS),
        ("entailment", "Ġcontradiction", "Ġneutral"),
        ("Ġentailment", "contradiction", " neutral"),
        ("entailment", "▁contradiction", "▁neutral"),
        ("Entailment", "CONTRADICTION", "Neutral."),
        ("entail", "contra", "neut"),
        ("ĊĊentailment", "Ċcontradiction", "neutral"),
    ],
)
def test_tokens_are_read_in_the_spelling_of_their_vocabulary(words: Sequence[str]) -> None:
    given = list(written(words))
    text = {"Entailment": "Entailment"}.get(words[0], "entailment")
    if words[0] == "entail":
        given.append(Token("ment", -0.1))
    assert shares_of(given, text) == pytest.approx(TRUE)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("naïve café", ("naÃ¯ve", "ĠcafÃ©")),
        ("naïve café", ("▁na", "<0xC3>", "<0xAF>", "ve", "▁caf", "<0xC3>", "<0xA9>")),
        ("a\nb", ("a", "<0x0A>", "b")),
        ("a\n\tb", ("a", "ĊĉĠ", "b")),
        ("café", ("caf", "\\xc3\\xa9")),
        ("unbelievable result", ("un", "##belie", "##vable", "result")),
        ("表す", ("è¡¨", "ãģ", "Ļ")),
        ("yes", ("<s>", "yes", "</s>")),
        ("yes", ("yes", "<|eot_id|>")),
        ("yes", ("yes", "<｜end▁of▁sentence｜>")),
        ("\n yes ", ("yes", "")),
    ],
)
def test_tokens_joined_are_the_answer(text: str, spelled: Sequence[str]) -> None:
    plain = spelled_tokens(Completion(text, tokens(*((token, -0.1, ()) for token in spelled))))
    assert not isinstance(plain, Unusable)
    assert "".join(token.text for token in plain) == text
    assert fitted(text, plain) == plain


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        *(("entailment", ("contradiction",)), ("entailment", ("not", " entailment"))),
        *(("entailment", ("entail",)), ("entailment", ("token_id:4213",)), ("yes", ("Yes",))),
        ("entailment", ("entailment", "entailment")),
    ],
)
def test_tokens_of_another_text_are_unusable(text: str, spelled: Sequence[str]) -> None:
    given = tokens(*((token, -0.1, [(token, -0.1)]) for token in spelled))
    assert spelled_tokens(Completion(text, given)) is Unusable.SPELLING
    assert label_shares(Completion(text, given), 0, text, {text: text}) is Unusable.SPELLING


def test_tokens_of_reasoning_are_left_out_where_there_was_some() -> None:
    given = tokens(*((token, -0.1, ()) for token in ("<think>", "no", "</think>", "\n", "ye", "s")))
    assert fitted("yes", given) is None
    kept = fitted("yes", given, thoughts=True)
    assert kept is not None
    assert [token.text for token in kept] == ["ye", "s"]


RIGHT = written(LABELS)[0]


@pytest.mark.parametrize(
    ("fault", "log_probability", "others"),
    [
        (Unusable.NO_ALTERNATIVES, math.log(0.6), ()),
        (Unusable.NO_ALTERNATIVES, 0.0, ()),
        # Not numbers, or no logarithms of probabilities.
        (Unusable.NOT_A_NUMBER, NAN, RIGHT.alternatives),
        (Unusable.NOT_A_NUMBER, math.log(0.6), [*RIGHT.alternatives, ("x", NAN)]),
        (Unusable.POSITIVE, 0.6, [("entailment", 0.6), ("contradiction", 0.25), ("neutral", 0.15)]),
        (Unusable.POSITIVE, math.log(0.6), [*RIGHT.alternatives, ("x", INFINITE)]),
        (Unusable.EXCESS, 0.0, [(label, 0.0) for label in LABELS]),
        (Unusable.EXCESS, math.log10(0.6),
         [(label, math.log10(p)) for label, p in zip(LABELS, TRUE, strict=True)]),
        # What stands for "not among the likeliest".
        *((Unusable.NO_VALUE, absent, RIGHT.alternatives) for absent in (-INFINITE, -9999.0, -100)),
        (Unusable.GREEDY, 0.0, [("entailment", 0.0)]),
        (Unusable.GREEDY, 0.0,
         [("entailment", 0.0), ("contradiction", -INFINITE), ("neutral", -9999.0)]),
        (Unusable.OPEN, math.log(0.6),
         [("entailment", math.log(0.6)), ("contradiction", -100.0), ("neutral", -9999.0)]),
        (Unusable.NOT_LIKELIEST, math.log(0.6),
         [("entailment", math.log(0.6)), ("contradiction", -50.0), ("neutral", -50.0)]),
        (Unusable.TWO_VALUES, math.log(0.6), [("entailment", math.log(0.3))]),
        # Too few are listed: only the chosen one, or one label too few.
        (Unusable.OPEN, math.log(0.36), [("entailment", math.log(0.36))]),
        (Unusable.OPEN, math.log(0.6), logs(entailment=0.6, contradiction=0.25)),
        (Unusable.OPEN, math.log(0.6), logs(contradiction=0.25)),
        (Unusable.OPEN, math.log(0.5), [*logs(entailment=0.5), *logs(entailment=0.3),
                                        *logs(contradiction=0.1, neutral=0.1)]),
    ],
)  # fmt: skip
def test_implausible_values_have_a_reason(
    fault: Unusable, log_probability: float, others: Sequence[tuple[str, float]]
) -> None:
    assert shares_of(tokens(("entailment", log_probability, others))) is fault
    # The same at the second token of the word, where labels have parted already or not.
    split = tokens(("e", math.log(0.6), [("e", math.log(0.6)), *RIGHT.alternatives[1:]]))
    later = shares_of((*split, *tokens(("ntailment", log_probability, others))))
    assert later in (fault, pytest.approx(TRUE))
    if fault in (Unusable.NOT_A_NUMBER, Unusable.POSITIVE, Unusable.NO_VALUE):
        assert later is fault


@pytest.mark.parametrize(
    ("log_probability", "others", "shares"),
    [
        # A list without the chosen token; one with the same token twice; a rounded value.
        (math.log(0.6), logs(contradiction=0.25, neutral=0.15), TRUE),
        (math.log(0.6), [*RIGHT.alternatives, *logs(entailment=0.6)], TRUE),
        (round(math.log(0.6), 3), RIGHT.alternatives, TRUE),
        # Variants of a label have its probability together; other words have no part.
        (math.log(0.4), logs(
            entailment=0.4, Entailment=0.1, contradiction=0.2, neutral=0.1, The=0.2),
         (0.625, 0.25, 0.125)),
        # A label that is not listed has half of what it may have: .01 is the least listed.
        (math.log(0.9), logs(entailment=0.9, contradiction=0.08, maybe=0.01),
         (0.9 / 0.985, 0.08 / 0.985, 0.005 / 0.985)),
        # Both that are not listed have no more than what is left.
        (math.log(0.97), logs(entailment=0.97), (0.97 / 0.985, 0.0075 / 0.985, 0.0075 / 0.985)),
    ],
)  # fmt: skip
def test_shares_of_labels(
    log_probability: float, others: Sequence[tuple[str, float]], shares: tuple[float, ...]
) -> None:
    assert shares_of(tokens(("entailment", log_probability, others))) == pytest.approx(
        shares, abs=1e-9
    )


def test_the_openness_that_is_allowed_decides() -> None:
    # From .95 to 1: the labels that are not listed have .05 at most.
    given = tokens(("entailment", math.log(0.95), logs(entailment=0.95)))
    assert shares_of(given, openness=0.05) == pytest.approx((0.95 / 0.975, *[0.0125 / 0.975] * 2))
    assert shares_of(given, openness=0.049) is Unusable.OPEN
    loose = tokens(("entailment", math.log(0.36), logs(entailment=0.36)))
    assert not isinstance(shares_of(loose, openness=1.0), Unusable)


SUPPORT = ("supported", "superseded", "refuted")
VERDICTS = ("likely supported", "likely refuted", "unsure")


@pytest.mark.parametrize(
    ("labels", "given", "shares"),
    [
        # What parts at a later token has the probability of the tokens before.
        (SUPPORT,
         [("sup", {"sup": 0.7, "Sup": 0.2, "ref": 0.1}),
          ("ported", {"ported": 0.7, "erseded": 0.3})],
         (0.63, 0.27, 0.1)),
        (SUPPORT,
         [("sup", {"sup": 0.8, "superseded": 0.1, "ref": 0.1}),
          ("ported", {"ported": 0.75, "erseded": 0.25})],
         (0.6, 0.3, 0.1)),
        # Of several words, with the space in either token or in one of its own.
        (VERDICTS,
         [("likely", {"likely": 0.9, "unsure": 0.1}),
          (" supported", {" supported": 0.8, " ref": 0.2})],
         (0.72, 0.18, 0.1)),
        (VERDICTS,
         [("likely", {"likely": 0.9, "uns": 0.1}), (" ", {" ": 1.0, "\n": 1e-9}),
          ("supported", {"supported": 0.8, "ref": 0.2})],
         (0.72, 0.18, 0.1)),
        (VERDICTS,
         [("Ġlikely", {"Ġlikely": 0.9, "Ġuns": 0.1}),
          ("Ġsupported", {"Ġsupported": 0.8, "Ġref": 0.2})],
         (0.72, 0.18, 0.1)),
        # A label that could have been is not listed where the others parted.
        (SUPPORT,
         [("sup", {"sup": 0.9, "x": 0.05}), ("ported", {"ported": 0.5, "erseded": 0.5})],
         Unusable.OPEN),
    ],
)  # fmt: skip
def test_labels_of_several_tokens(
    labels: Sequence[str],
    given: Sequence[tuple[str, Mapping[str, float]]],
    shares: tuple[float, ...] | Unusable,
) -> None:
    spelled = tokens(*((token, math.log(others[token]), logs(**others)) for token, others in given))
    computed = shares_of(spelled, labels[0], labels[0], labels)
    assert computed == (shares if isinstance(shares, Unusable) else pytest.approx(shares))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((-0.1, -0.2), (-0.1, -0.2)),
        ((0.0, -0.2), (0.0, -0.2)),
        ((0.0, 0.0), Unusable.GREEDY),
        ((-0.1, NAN), Unusable.NOT_A_NUMBER),
        ((-0.1, 0.5), Unusable.POSITIVE),
        ((-9999.0, -0.1), Unusable.NO_VALUE),
    ],
)
def test_a_stretch_has_the_values_of_its_tokens(
    values: tuple[float, float], expected: tuple[float, ...] | Unusable
) -> None:
    given = tokens(("x", NAN, ()), ("sup", values[0], ()), ("ported", values[1], ()))
    assert token_log_probabilities(given, 1, 10) == expected


def test_the_content_of_a_block_of_code_is_spelled_by_all_its_tokens() -> None:
    # As llama.cpp's server sent it of SmolLM2, held to a schema: the text without its fence, the
    # tokens with it.
    text = '{\n  "relation": "neutral"\n}'
    texts = ["`", "`", "`", "j", "s", "on", "\n", "\n", "{", "\n ", ' "', "rel", "at", "io", "n"]
    texts += ['":', ' "', "n", "eu", "tr", "al", '"', "\n", "}", "\n", "\n", "`", "`", "`", ""]
    tokens = fitted(text, [Token(each, -1.0) for each in texts])
    assert tokens is not None
    assert "".join(token.text for token in tokens) == text
    assert len(tokens) == texts.index("}") - texts.index("{") + 1
    # Anything else around it is no answer of these tokens.
    assert fitted(text, [Token(each, -1.0) for each in ["Well", *texts]]) is None
    assert fitted(text, [Token(each, -1.0) for each in texts[:-4]]) is None
