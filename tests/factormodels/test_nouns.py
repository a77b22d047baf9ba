"""Counts with their nouns."""

from __future__ import annotations

import pytest

from factormodels.nouns import counted, is_or_are


@pytest.mark.parametrize(
    ("count", "message"), [(0, "0 entries are"), (1, "1 entry is"), (2000, "2,000 entries are")]
)
def test_a_noun_and_its_verb_follow_the_count(count: int, message: str) -> None:
    assert f"{counted(count, 'entry', 'entries')} {is_or_are(count)}" == message


def test_most_plurals_have_an_s() -> None:
    assert (counted(1, "claim"), counted(2, "claim")) == ("1 claim", "2 claims")
