"""Cells that name nothing are no name, and rows that repeat a claim agree or are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from factormodels.io.claim_rows import (
    ClaimRow,
    cell_name,
    is_blank_column,
    repeated_remark,
    repeated_rows,
    required_name,
)
from tests.refusals import refused

MISSING = ("nan", "NaN", "None", "N/A", "#N/A", "<NA>", "null")
BLANK = (None, math.nan, "", " \t", "\u200b", "\ufeff", *MISSING)


@pytest.mark.parametrize("value", BLANK)
def test_a_blank_cell_names_nothing(value: Any) -> None:
    assert cell_name(value) == ""
    refusal = refused(
        "t, line 2: .*, so that its row belongs to no response; give every row",
        *(required_name, value, "t, line 2", "response"),
    )
    # Somebody may be called so, and sees that it was not read as a name.
    assert (f"'{value}' is read as a missing value" in refusal) == (value in MISSING)


@pytest.mark.parametrize("value", ['"', "''", "〃", "...", "?"])
def test_ditto_marks_and_other_punctuation_name_nothing(value: str) -> None:
    assert cell_name(value) == ""
    refusal = refused(
        "is not a name, so that its row belongs to no claim", required_name, value, "t", "claim"
    )
    assert value in refusal


def test_characters_that_cannot_be_seen_are_no_part_of_a_name() -> None:
    assert {cell_name(f"{mark}q 7{mark}") for mark in ("", "\u200b", "\ufeff", "\u00a0")} == {"q 7"}
    assert cell_name("✓") == "✓"


def test_a_name_is_the_same_however_its_column_holds_it() -> None:
    assert [cell_name(value) for value in (7, 7.0, "7", " 7 ", "7.0", 7.5, "q/7")] == [
        *("7", "7", "7", "7", "7.0", "7.5", "q/7")
    ]
    assert is_blank_column(BLANK)
    assert not is_blank_column([*BLANK, 0])


def rows(*stated: tuple[str, str | None, float | None, str]) -> list[ClaimRow]:
    return [
        ClaimRow(
            (claim,),
            f"claim {claim!r}",
            {"label": label, "probability": p},
            {"claim": claim, "label": label, "p": p, "note": note},
            f"t.csv, line {number}",
        )
        for number, (claim, label, p, note) in enumerate(stated, 2)
    ]


def test_rows_that_agree_are_counted_and_named() -> None:
    given = rows(("a", "true", 0.5, ""), ("b", "true", 0.5, ""), *[("a", "true", 0.5, "x")] * 2)
    repeated = repeated_rows(given, alike=False, advice="keep one")
    assert repeated == [2, 3]
    assert repeated_remark(given, repeated) == (
        "2 rows repeat a claim of an earlier row (line 4, line 5): the claim is counted once."
    )
    assert repeated_rows(given, alike=True, advice="keep one") == []
    assert repeated_remark(given, []) == ""


def test_rows_that_differ_are_refused_with_both_places() -> None:
    for other, message in (
        (("a", "false", 0.5, ""), "claim 'a' has the label 'false', and 'true' in line 2; keep"),
        (("a", None, 0.5, ""), "claim 'a' has the label none, and 'true' in line 2; keep"),
        (("a", "true", 0.25, ""), "claim 'a' has the probability 0.25, and 0.5 in line 2; keep"),
    ):
        given = rows(("a", "true", 0.5, ""), other)
        refused(f"^t.csv, line 3: {message}", repeated_rows, given, alike=False, advice="keep one")


def test_rows_that_nothing_identifies_repeat_nothing() -> None:
    given = [ClaimRow(None, "", {"label": each}, {}, "t") for each in ("true", "false")]
    assert repeated_rows(given, alike=False, advice="") == []
