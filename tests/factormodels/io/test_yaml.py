"""Hostile YAML: refused in a sentence, and before it grows."""

from __future__ import annotations

import pytest

from factormodels.errors import InputError
from factormodels.io.yaml import parse_yaml
from tests.memory import at_most
from tests.refusals import refused

ALIASES = "a0: &a0 [x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 8)}]\n" for level in range(1, 10)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 5_000))
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 40)
)
LONG_ALIASES = f"a: &a {'x' * 1000}\nb: [{','.join(['*a'] * 2_000)}]"

REFUSED = {
    "!!int abc": "'abc' is not of the type int",
    '!!float ""': "'' is not of the type float",
    "!!bool maybe": "'maybe' is not of the type bool",
    "!<tag:yaml.org,2002:int> x": "'x' is not of the type int",
    "!!int [1]": "expected a scalar",
    "!!map 1": "this is not a mapping",
    '!!binary "==="': "could not determine a constructor",
    "!!set {a}": "could not determine a constructor",
    "!!omap [a: 1]": "could not determine a constructor",
    "!!python/name:os.system x": "could not determine a constructor",
    "9" * 400: "more than 250 digits",
    "9" * 5_000: "more than 250 digits",
    "0b" + "1" * 5_000: "more than 250 digits",
    '"\\ud800"': "half of a character",
    "{1: a, '1': b}": "the key '1' is given twice",
    "{true: a, 'true': b}": "the key 'true' is given twice",
    "? [a]\n: 1": "unhashable key",
    "&a [*a]": "an alias refers to a value that contains it",
    "[" * 100_000: "nested more than 50 deep",
    "{a: " * 100_000: "nested more than 50 deep",
    "- " * 100_000: "nested more than 50 deep",
    "a: b\n" * 100_000: "more than 20,000 values",
    "[" + "1," * 1_000_000 + "]": "1,048,576 are allowed",
    ALIASES: "more than 20,000 values",
    CHAIN: "aliases nest values more than 50 deep",
    MERGES: "more than 20,000 values",
    LONG_ALIASES: "1,048,576 characters",
    "!" * 5_000: r"!!!\.\.\.; correct",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20].strip())
@pytest.mark.slow
def test_hostile_yaml_is_refused_before_it_grows(text: str) -> None:
    # Twenty thousand values are what may be composed, at less than two kilobytes each.
    with at_most(40 * 2**20), pytest.raises(InputError, match=REFUSED[text]) as refusal:
        parse_yaml(text, "study.yaml")
    assert str(refusal.value).startswith("study.yaml: ")
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize("date", ["2020-13-45", "2020-02-30 25:61:61", "2020-12-12"])
def test_dates_are_the_texts_that_they_are(date: str) -> None:
    assert parse_yaml(f"a: {date}", "study.yaml") == {"a": date}
    assert parse_yaml("!!timestamp abc", "study.yaml") == "abc"


@pytest.mark.parametrize("number", ["1:30", "010", "-12:30:45", "1:30.5"])
def test_numbers_to_other_bases_by_surprise_are_refused(number: str) -> None:
    refused("to base 8 or 60 in YAML: write it to base 10", parse_yaml, f"seed: {number}", "s.yaml")
    assert parse_yaml(f"a: '{number}'", "s.yaml") == {"a": number}
    assert parse_yaml("a: [0, 0x1f, 0b11, 0.5, -0.0, 09]", "s.yaml")["a"][:3] == [0, 31, 3]


def test_an_alias_becomes_a_copy_and_a_merge_is_one() -> None:
    data = parse_yaml("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}", "study.yaml")
    assert data == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    assert data["a"] is not data["b"]
