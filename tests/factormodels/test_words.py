"""Vocabulary for labels in tables and answers of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from factormodels.claims import ClaimLabel, ModelJudgment
from factormodels.io.labels import label_spelling
from factormodels.words import LETTERS, REPLIES, STATEMENTS, folded, truth_of
from tests.refusals import refused

T, F, NEITHER = ModelJudgment


@pytest.mark.parametrize(
    ("truth", "values"),
    [
        (T, (True, 1, "1.0", "Yes.", "`Correct`", "vrai", "Sí", "✔️")),
        (F, (np.False_, 0.0, "0,0", "**No**", "INCORRECT!", "«Falsch»", "不正确。", "Nope")),
        (F, ("not correct", "non-factual")),
        (NEITHER, ("None of the above", "I don’t know.")),
        (None, ("A", "perhaps", "2", "10.0", -1, -1.0, "-1.0", "", None, float("nan"))),
    ],
)
def test_a_word_alone_is_read_in_any_case_and_markup(
    truth: ModelJudgment | None, values: tuple[Any, ...]
) -> None:
    for value in values:
        assert truth_of(value) is truth, value


def test_letters_are_read_only_where_they_were_offered() -> None:
    letters = [truth_of(letter, letters=True) for letter in ("A", "(b)", "c.", "d")]
    assert letters == [T, F, NEITHER, None]
    assert truth_of("b") is None


@pytest.mark.parametrize(
    ("truth", "values"),
    [
        (T, ("(A) True", "A) True", "A. true", "a: Correct", "True (A)", "Option A", "**(A)**")),
        (F, ("(B)", "B) False", "Answer: B", "answer: (b) false", "False [B]", "(A) False")),
        (NEITHER, ("(C) None of the above", "choice c", "C - neither")),
        (None, ("A man", "(D)", "a lie (A)", "Option", "answer", "A or B", "cab")),
    ],
)
def test_an_option_is_read_by_its_words_or_else_its_letter(
    truth: ModelJudgment | None, values: tuple[str, ...]
) -> None:
    for value in values:
        assert truth_of(value, letters=True) is truth, value
        assert truth_of(value) is None, value


def test_every_word_is_written_as_it_is_compared_and_means_one_thing() -> None:
    assert not STATEMENTS.keys() & REPLIES.keys()
    for word, truth in {**STATEMENTS, **REPLIES}.items():
        assert folded(word) == word
        assert truth_of(word.upper() if word.isascii() else word) is truth
    assert not LETTERS.keys() & REPLIES.keys()


def labels(*values: Any, **options: Any) -> list[ClaimLabel | None]:
    spelling = label_spelling(values, "t.csv: column 'label'", **options)
    return [spelling.read(value) for value in values]


S, NS, IR = ClaimLabel


@pytest.mark.parametrize(
    ("values", "read"),
    [
        # What pandas writes for 1 and 0 beside a missing value, as numbers and as texts.
        ((1.0, 0.0, float("nan")), [S, NS, None]),
        (("1.0", "0.0", ""), [S, NS, None]),
        (tuple(pd.array([1, 0, None], dtype="Int64")), [S, NS, None]),
        (("1", "1.0", "0", "0.0"), [S, S, NS, NS]),
        # Spellings mixed, each of which passes alone.
        (("true", "0", "yes", "Incorrect"), [S, NS, S, NS]),
        (("S", "true", "NS", "F", "IR"), [S, S, NS, NS, IR]),
        (("Y", "unsupported", "irrelevant", "unknown"), [S, NS, IR, None]),
        (("S", "NS", "yes"), [S, NS, S]),
        (("Supported", "Not Enough Evidence", "no"), [S, NS, NS]),
    ],
)
def test_labels_may_mix_what_is_known(values: Any, read: list[ClaimLabel | None]) -> None:
    assert labels(*values) == read


def test_labels_that_are_not_known_are_reported() -> None:
    refused("column 'label': its labels are 'S', 'no', 'yes', where S", labels, "yes", "no", "S")
    assert labels("yes", "no", "S", irrelevant=["s"]) == [S, NS, IR]
    refused("'0.5', '1.0', which no spelling covers", labels, "1.0", "0.5")
    refused("'-1', '1', which no spelling covers", labels, "1", "-1")
    refused("'-1.0', '1.0', which no spelling covers", labels, 1.0, -1.0)
    refused("'a', 'b', which no spelling covers", labels, "a", "b")
    assert labels("1.0", "0.5", "1", true=["1.0"]) == [S, NS, S]
