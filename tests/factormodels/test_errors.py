"""Error messages on unknown names."""

from __future__ import annotations

import pytest

from factormodels.errors import as_arguments, unknown_name


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("sede", [f"name{i}" for i in range(9)] + ["seed"], "'seed', "),
        # Names that differ in case alone count as one: fewer than three are near.
        ("abx", ["abcd", "abcD", "abCd", "aBcd", "Abcd", "abCD", "aBCd", "ABcd", "ABCd", "ABCD"],
         "(did you mean 'ABCD'?)"),
    ],
)  # fmt: skip
def test_nearest_of_many_names_are_listed(name: str, known: list[str], hint: str) -> None:
    sentence = unknown_name(f"the option {name!r}", name, known)
    assert sentence.startswith(f"the option {name!r} is unknown (did you mean ")
    assert hint in sentence


def test_few_names_are_all_listed() -> None:
    assert unknown_name("the option 'x'", "x", ["a", "b"]).endswith("use one of a, b")


def test_options_become_arguments_outside_of_code() -> None:
    sentence = (
        "--k-prime: go on with --resume (--unit response), or `factormodels assess --atoms model`"
    )
    assert as_arguments(sentence) == (
        "`k_prime`: go on with `resume` (`unit` response), or `factormodels assess --atoms model`"
    )
    # An option that Python has no word for.
    assert as_arguments("one --with at a time", {"with": "beside"}) == "one `beside` at a time"
