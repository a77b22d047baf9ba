"""Error messages on unknown names."""

from __future__ import annotations

import pytest

from factormodels.errors import as_arguments, unknown_name


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("sede", [f"name{i}" for i in range(9)] + ["seed"], "'seed'?)"),
        # Names that differ in case alone count as one: fewer than three are near.
        ("abx", ["abcd", "abcD", "abCd", "aBcd", "Abcd", "abCD", "aBCd", "ABcd", "ABCd", "ABCD"],
         "(did you mean 'ABCD'?)"),
    ],
)  # fmt: skip
def test_nearest_of_many_names_are_listed(name: str, known: list[str], hint: str) -> None:
    sentence = unknown_name(f"the option {name!r}", name, known)
    assert sentence.startswith(f"the option {name!r} is unknown (did you mean ")
    assert hint in sentence


def test_a_name_near_none_of_many_is_answered_with_the_list() -> None:
    known = [f"name{i}" for i in range(10)]
    assert unknown_name("the option 'x'", "x", known, "--help-all shows every option") == (
        "the option 'x' is unknown; --help-all shows every option"
    )
    assert unknown_name("the option 'x'", "x", known).endswith("name7, name8 or 1 more")
    # Hyphens do not make options alike.
    options = [f"--{name}" for name in (*known, "seed")]
    assert unknown_name("--sede", "--sede", options) == "--sede is unknown (did you mean '--seed'?)"


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
