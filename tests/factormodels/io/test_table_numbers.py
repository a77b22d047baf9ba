"""Numbers of cells: decimal commas and per cent are read and told, the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest

from factormodels.io.table_numbers import Notation, cell_number, cell_share, notation_remark
from tests.refusals import refused

COMMA, PERCENT = Notation.COMMA, Notation.PERCENT


@pytest.mark.parametrize(
    ("value", "number", "notation"),
    [
        (0.5, 0.5, set()),
        (1, 1.0, set()),
        ("0.5", 0.5, set()),
        (" .5 ", 0.5, set()),
        ("5e-1", 0.5, set()),
        ("0,625", 0.625, {COMMA}),
        (",5", 0.5, {COMMA}),
        ("62.5%", 0.625, {PERCENT}),
        ("62,5 %", 0.625, {COMMA, PERCENT}),
        ("62,5\N{NO-BREAK SPACE}%", 0.625, {COMMA, PERCENT}),
        ("100 %", 1.0, {PERCENT}),
    ],
)
def test_numbers_are_read_as_people_write_them(value: Any, number: float, notation: Any) -> None:
    found, told = cell_number(value)
    # A division by 100 may round.
    assert found == pytest.approx(number, abs=1e-15)
    assert told == notation


@pytest.mark.parametrize(
    "value", ["1.234,5", "1,234.5", "1_0", "٠,٥", "0,5,5", "half", "%", "", "5 %%"]
)
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        cell_number(value)


def test_shares_are_from_0_to_1_or_missing() -> None:
    assert [cell_share(v, "x", "a share")[0] for v in (None, "", "NA", "nan", float("nan"))] == [
        None
    ] * 5
    refused(
        "x: '75' is not a share; give a number from 0 to 1, or per cent",
        cell_share,
        "75",
        "x",
        "a share",
    )
    refused("x: '120 %' is not a share", cell_share, "120 %", "x", "a share")
    refused("x: 'inf' is not a share", cell_share, "inf", "x", "a share")
    refused("x: 'much' is not a share", cell_share, "much", "x", "a share")


def test_the_remark_counts_each_notation() -> None:
    assert notation_remark("p", {}) == ""
    told = notation_remark("p", {COMMA: 12, PERCENT: 3})
    assert "'p'" in told
    assert "12 with a decimal comma and 3 with a per cent sign" in told
