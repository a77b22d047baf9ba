"""Columns of a user's table that options or their names find."""

from __future__ import annotations

import pytest

from experiments.settings.columns import PROBABILITY, Columns
from factormodels.errors import InputError


def test_an_error_lists_no_more_columns_than_a_person_reads() -> None:
    columns = Columns([f"k{number}" for number in range(1000)], "wide.csv")
    with pytest.raises(InputError, match=r"wide\.csv: .* it has k0, k1, .*k29 and 970 more$"):
        columns.required("--p", None, PROBABILITY, "probability")
    with pytest.raises(InputError, match=r"there is no such column.* and 970 more$"):
        columns.given("--p", "share")


def test_an_error_names_every_column_that_is_missing() -> None:
    columns = Columns(["Answer #", "is it true?"], "t.csv")
    with pytest.raises(InputError) as raised:
        columns.required("--p", None, PROBABILITY, "probability", lacking={"label": "--label"})
    assert str(raised.value) == (
        "t.csv: no column is known as the probability or the label; name them with --p and "
        "--label; it has Answer #, is it true?"
    )


@pytest.mark.parametrize("name", ["confidence (%)", "Confidence, %", "confidence [%]", "p %"])
def test_a_sign_of_per_cent_hides_no_name(name: str) -> None:
    columns = Columns(["text", name, "true share (%) of all"], "t.csv")
    assert columns.required("--p", None, PROBABILITY, "probability") == name
    # A column of the very name goes first.
    assert Columns([name, "p"], "t.csv").known(("p",)) == "p"
