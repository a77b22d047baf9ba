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
