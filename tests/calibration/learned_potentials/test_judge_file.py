"""A judge's file: one copy of its weights, values checked, edits noticed, responses recognized."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_potentials import FieldSettings, Judge, learn_judge, read_judge
from calibration.learned_potentials.judge import judge_of
from factormodels import FactGraph, InputError
from factormodels.metadata.learned_from import LearnedFrom
from tests.calibration.learned_potentials.data import of_cities as responses
from tests.refusals import refused

pytest.importorskip("torch")


@cache
def judge() -> Judge:
    """A judge of few columns, of texts among them."""
    settings = FieldSettings(penalty=3.0)
    return learn_judge(responses(), settings, families=("position", "texts"))


@cache
def written() -> str:
    """The text of the judge's file."""
    return json.dumps(judge().as_plain())


def plain(*, signed: bool = False) -> dict[str, Any]:
    """The content of the judge's file, whose digest is left out unless asked for."""
    value: dict[str, Any] = json.loads(written())
    if not signed:
        del value["digest"]
    return value


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value but of entries amid long lists of numbers."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, len(value) // 2, len(value) - 1} & set(range(len(value)))):
            yield from leaves(value[index], (*path, index))


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return the file's content with another value at a path."""
    whole = plain()
    branch: Any = whole
    for key in path[:-1]:
        branch = branch[key]
    branch[path[-1]] = value
    return whole


BAD: tuple[Any, ...] = (
    True,
    None,
    "x",
    "",
    -1,
    0,
    0.5,
    2,
    1e308,
    -1e308,
    1e-320,
    10**30,
    10**300,
    [],
    {},
    [None],
)


def swapped(value: Any) -> Iterator[None]:
    """Swap each two neighbors of an object or list, and back after each step."""
    keys = list(value) if isinstance(value, dict) else list(range(min(len(value), 4)))
    for first, other in pairwise(keys):
        value[first], value[other] = value[other], value[first]
        yield
        value[first], value[other] = value[other], value[first]
    for key in keys:
        if isinstance(value[key], dict | list):
            yield from swapped(value[key])


def refusal_or_sound(text: str) -> str:
    """Return how a file is refused, if not empty; else check the probabilities that it gives."""
    try:
        read_back = judge_of(text, "judge.json")
    except InputError as error:
        return str(error)
    for each in filter(None, (read_back, read_back.without_texts)):
        try:
            p = each.probabilities(each.table(responses()[:2]))
        except InputError as error:
            # The responses lack what a judge of other columns or causes reads.
            return f"judge.json: {error}"
        assert ((p > 0) & (p < 1)).all()
    return ""


KEYS = (
    *("causes", "columns", "converged", "evidence", "families", "format", "intercept"),
    *("labelled_responses", "law", "learned_from", "own_columns", "own_groups", "penalty"),
    *("potential", "scores", "variant", "version", "without_texts"),
)
"""Keys of the file without its digest. Learning a judge to list the tests would take seconds."""


def test_every_key_of_the_file_has_values_that_are_changed() -> None:
    assert tuple(sorted(plain())) == KEYS


@pytest.mark.parametrize("first", KEYS)
def test_a_changed_value_is_refused_by_name_or_gives_sound_probabilities(first: str) -> None:
    values = BAD[::4] if first == "without_texts" else BAD
    for path in leaves(plain()):
        for value in values if path[0] == first else ():
            refusal = refusal_or_sound(json.dumps(changed(path, value)))
            assert not refusal or re.fullmatch(r"judge\.json: .+", refusal), (path, value, refusal)


def test_swapped_neighbors_are_refused_by_name_or_give_sound_probabilities() -> None:
    whole = plain()
    for _ in swapped(whole):
        refusal = refusal_or_sound(json.dumps(whole))
        assert not refusal or re.fullmatch(r"judge\.json: .+", refusal), refusal
    assert whole == plain()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("columns", 0, "spread"), 0, "columns[0]: key 'spread': 0 is not a standard deviation"),
        (("columns", 0, "spread"), -1.0, "columns[0]: key 'spread': -1.0 is not a standard dev"),
        (("columns", 1, "lower"), 1e9, "columns[1]: key 'lower': 1000000000.0 is not a number up"),
        (("columns", 1, "mean"), -50.0, "columns[1]: key 'mean': -50.0 is not a number between"),
        (("columns", 0, "weight"), 1e308, "columns[0]: key 'weight': 1e+308 is not a number from"),
        (("columns", 0, "name"), "log position", "'log position' is not one of 'position'"),
        (("causes", 0, "coupling"), [1e308], "causes[0]: key 'coupling[0]': 1e+308 is not a"),
        (("law", "response", 0), 10**9, "law: key 'response[0]': 1000000000 is not a whole number"),
        (("law", "response", 0), 10**30, "law: key 'response[0]': 1000000000000000"),
        (("law", "label", 0), 2, "law: key 'label[0]': 2 is not a whole number from 0 to 1"),
        (("learned_from", "responses"), 5, "law: key 'response["),
        (("learned_from", "share_true"), 0.9, "share_true': 0.9 is not the share of true labels"),
        (("version",), True, "a judge of version True; this release reads version 2"),
        (("version",), 1, "a judge of version 1; this release reads version 2, so fit it anew"),
        (("columns", 0, "more"), 1, "columns[0]: the key 'more' is unknown"),
        (("more",), 1, "the key 'more' is unknown"),
        (("families",), ["position", "position"], "is not a list of different texts"),
        (("own_columns",), ["mine"], "key 'columns'"),
    ],
)
def test_the_place_of_a_wrong_value_is_named(
    path: tuple[Any, ...], value: Any, message: str
) -> None:
    refused([message, "judge.json"], judge_of, json.dumps(changed(path, value)), "judge.json")


def test_columns_in_another_order_are_refused() -> None:
    whole = plain()
    whole["columns"][:2] = whole["columns"][1::-1]
    refused("'log position' is not one of 'position'", judge_of, json.dumps(whole))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 2', '"version": 2, "version": 2', "the key 'version' is given twice"),
        ('"penalty": 3.0', '"penalty": NaN', "NaN is not a JSON number"),
        ('"penalty": 3.0', '"penalty": 1e999', "1e999 is too large for a number"),
        ('"penalty": 3.0', f'"penalty": {"9" * 400}', "is too large for a number"),
        ('"law": {', '"law": ', "is not JSON"),
    ],
)
def test_text_that_is_not_strict_json_is_refused_with_its_place(
    old: str, new: str, message: str
) -> None:
    text = json.dumps(plain(signed=True))
    assert old in text
    refused(message, judge_of, text.replace(old, new, 1))


def test_a_file_that_was_cut_off_or_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    judge().save(path)
    whole = path.read_text("utf-8")
    for text, message in (
        (whole[: len(whole) // 2], "is not JSON"),
        ("", "this is not a judge; give the file that factormodels fit wrote"),
        ('{"a": 1}\n{"a": 2}\n', "this is not a judge"),
        ("[1, 2]", "this is not a judge"),
    ):
        path.write_text(text, "utf-8")
        refused(message, read_judge, path)
    path.write_text(whole, "utf-16")
    refused("UTF-16", read_judge, path)


def test_an_edit_is_noticed_and_accepted_without_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    judge().save(path)
    assert not read_judge(path).edited
    lines = path.read_text("utf-8").splitlines(keepends=True)
    line = next(each for each in lines if '"name": "position"' in each)
    weight = json.loads(line.strip().rstrip(","))["weight"]
    text = "".join(lines).replace(f'"weight": {weight!r}', '"weight": 0.25', 1)
    path.write_text(text, "utf-8")
    refused("the digest does not match the content", read_judge, path)
    path.write_text("".join(line for line in text.splitlines(keepends=True)
                            if '"digest"' not in line), "utf-8")  # fmt: skip
    edited = read_judge(path)
    assert edited.edited
    # The number that a reader sees in the column's line is the one that is used.
    assert edited.field.parameters[0, 0] == 0.25
    assert "digest" not in edited.as_plain()


def test_numbers_in_another_spelling_keep_the_digest() -> None:
    value = plain(signed=True)
    value["penalty"] = 3
    value["law"]["label"] = [float(each) for each in value["law"]["label"]]
    value["law"]["label"] = [int(each) for each in value["law"]["label"]]
    assert not judge_of(json.dumps(value, indent=7, sort_keys=True)).edited


def test_a_judge_that_is_read_again_is_the_same(tmp_path: Path) -> None:
    judge().save(tmp_path / "judge.json")
    again = read_judge(tmp_path / "judge.json")
    assert again.as_plain() == judge().as_plain()
    for first, other in ((again, judge()), (again.without_texts, judge().without_texts)):
        assert first is not None
        assert other is not None
        table = first.table(responses())
        np.testing.assert_array_equal(first.probabilities(table), other.probabilities(table))
        assert first.taught == other.taught
    errors = again.field.standard_errors
    assert errors is not None
    np.testing.assert_array_equal(errors, judge().field.standard_errors)


def test_weights_that_leave_no_doubt_give_probabilities_inside_the_range() -> None:
    whole = changed(("columns", 0, "weight"), 1e4)
    for cause in whole["causes"]:
        cause |= {"coupling": [1e4], "bias": [-1e4]}
    read_back = judge_of(json.dumps(whole))
    p = read_back.probabilities(read_back.table(responses()))
    assert ((p > 0) & (p < 1)).all()


def marks(graphs: list[FactGraph]) -> list[bool]:
    """True for each response that trained the judge."""
    return [mark is LearnedFrom.THIS_RESPONSE for mark in judge().learned_from(graphs)]


def test_a_response_that_taught_the_judge_is_recognized_by_its_texts() -> None:
    whole = responses()
    assert marks(whole) == [True] * 6
    renamed = [replace(graph, id=f"r{n}") for n, graph in enumerate(whole)]
    assert marks(renamed) == [True] * 6
    spelled = [
        replace(
            g, id=g.id + "x", atoms=tuple(replace(a, text=f" {a.text.upper()}\n") for a in g.atoms)
        )
        for g in whole
    ]
    assert marks(spelled[::-1]) == [True] * 6
    parts = [replace(g, id=g.id + "x", atoms=g.atoms[1:], relations=(), contexts=()) for g in whole]
    assert marks(parts) == [True] * 6
    # Without labels, as new responses are, they are the same responses still.
    bare = [replace(g, atoms=tuple(replace(a, label=None) for a in g.atoms)) for g in whole]
    assert marks(bare) == [True] * 6


def test_another_response_of_the_same_id_did_not_teach_the_judge() -> None:
    others = [
        replace(
            g,
            atoms=tuple(replace(a, text=f"Nobody walks {n} times.") for n, a in enumerate(g.atoms)),
        )
        for g in responses()
    ]
    assert marks(others) == [False] * 6
    # Without texts ids and relations tell.
    silent = [replace(g, atoms=tuple(replace(a, text="") for a in g.atoms)) for g in responses()]
    assert marks(silent) == [True] * 6
    renamed = [replace(g, id=g.id + "x") for g in silent]
    assert marks(renamed) == [True] * 6
    assert marks([replace(g, relations=(), contexts=()) for g in renamed]) == [False] * 6


def test_responses_without_texts_are_recognized_by_their_relations() -> None:
    silent = [replace(g, atoms=tuple(replace(a, text="") for a in g.atoms)) for g in responses()]
    taught = learn_judge(silent, FieldSettings(penalty=3.0), families=("position",))
    renamed = [replace(g, id=f"r{n}", relations=g.relations[::-1]) for n, g in enumerate(silent)]
    assert set(taught.learned_from(renamed)) == {LearnedFrom.THIS_RESPONSE}
    fewer = [replace(g, id=f"r{n}", relations=g.relations[1:]) for n, g in enumerate(silent)]
    assert set(taught.learned_from(fewer)) == {LearnedFrom.OTHER_RESPONSES}


def test_a_family_in_the_spelling_of_earlier_versions_is_read() -> None:
    learned = learn_judge(
        responses(), FieldSettings(penalty=3.0), families=("position", "neighbors")
    )
    value: dict[str, Any] = json.loads(json.dumps(learned.as_plain()))
    del value["digest"]
    value["families"] = ["position", "neighbours"]
    assert judge_of(json.dumps(value)).families == ("position", "neighbors")
