"""Numbers of cells: decimal commas and percentages are read and told, the rest is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import estimate, score, self_knowledge
from factormodels import read_many
from factormodels.io.tables.numbers import Notation, cell_number, cell_share, notation_remark
from tests.refusals import refused

COMMA, PERCENT = Notation.COMMA, Notation.PERCENT


@pytest.mark.parametrize(
    ("value", "number", "notation"),
    [
        *((written, 0.5, set()) for written in (0.5, "0.5", " .5 ", "5e-1")),
        *((1, 1.0, set()), ("0,625", 0.625, {COMMA}), (",5", 0.5, {COMMA})),
        ("62.5%", 0.625, {PERCENT}),
        ("62,5 %", 0.625, {COMMA, PERCENT}),
        ("62,5\N{NO-BREAK SPACE}%", 0.625, {COMMA, PERCENT}),
        ("100 %", 1.0, {PERCENT}),
    ],
)
def test_numbers_are_read_as_people_write_them(value: Any, number: float, notation: Any) -> None:
    read_number, read_notation = cell_number(value)
    # A division by 100 may round.
    assert read_number == pytest.approx(number, abs=1e-15)
    assert read_notation == notation


@pytest.mark.parametrize(
    "value", ["1.234,5", "1,234.5", "1_0", "٠,٥", "0,5,5", "half", "%", "", "5 %%"]
)
def test_values_that_are_not_numbers_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        cell_number(value)


def test_shares_are_from_0_to_1_or_missing() -> None:
    for missing in (None, "", "NA", "nan", float("nan")):
        assert cell_share(missing, "x", "a share")[0] is None
    mend = "; give a number from 0 to 1, or a percentage with its sign"
    for wrong, rest in (("75", mend), ("120 %", ""), ("inf", ""), ("much", "")):
        refused(f"x: '{wrong}' is not a share{rest}", cell_share, wrong, "x", "a share")


def test_the_remark_counts_each_notation() -> None:
    assert notation_remark("p", {}) == ""
    remark = notation_remark("p", {COMMA: 12, PERCENT: 3})
    assert "'p'" in remark
    assert (
        "12 numbers with a decimal comma and 3 numbers with a percent sign: 0,625 and 62,5% are"
        in remark
    )


SAID = "has 3 cells with a decimal comma: 1,0 is read as 1."
TABLE = "response;claim;p;label\nr1;a;0.9;1,0\nr1;b;0.3;0,0\nr2;a;0.8;1,0\nr2;b;0.1;0\n"


def test_labels_and_judgments_with_a_decimal_comma_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, sheet = tmp_path / "t.csv", tmp_path / "sheet.csv"
    table.write_text(TABLE)
    quickly: dict[str, Any] = {"n_bootstrap": 20, "resamples": 19}
    assert any(f"'label' {SAID}" in sentence for sentence in score(table, **quickly).sentences)
    judged = tmp_path / "judged.csv"
    judged.write_text("response;claim;judgment;label\nr;a;1,0;1,0\nr;b;0,0;0,0\nr;c;1,0;1,0\n")
    sentences = " ".join(self_knowledge(judged).sentences)
    assert f"'label' {SAID}" in sentences
    assert f"'judgment' {SAID}" in sentences
    table.write_text("response,claim,p\nr1,a,.9\nr1,b,.3\nr2,a,.8\nr2,b,.1\n")
    sheet.write_text(TABLE.replace(";p;", ";probability;").replace("0.", "0,"))
    sentences = " ".join(estimate(table, labels=[str(sheet)]).sentences)
    assert f"{sheet}: Column 'label' {SAID}" in sentences
    assert "4 numbers with a decimal comma: 0,625 is read as 0.625" in sentences
    relations = tmp_path / "relations.csv"
    relations.write_text(
        "response;claim;passage;relation;probability;label\n"
        "r;a;c;entailment;0,9;1,0\nr;b;c;neutral;80 %;0,0\nr;d;c;neutral;0.8;1,0\n"
    )
    read_many(relations)
    label, probability = (record.getMessage() for record in caplog.records[-2:])
    assert SAID in label
    assert "1 number with a decimal comma and 1 number with a percent sign" in probability


def test_a_number_beyond_1_by_the_rounding_of_its_type_is_1() -> None:
    float32, float16 = 2.0**-23, 2.0**-10
    for number, rounding, share in (
        (1 + float32, float32, 1.0),
        (-1e-9, float32, 0.0),
        (1 + float16, float16, 1.0),
        (np.float32(1.0000001), 0.0, 1.0),
        (np.float16(1.001), 0.0, 1.0),
    ):
        expected = share, frozenset({Notation.ROUNDED})
        assert cell_share(number, "x", "a share", rounding) == expected
    beyond: list[tuple[object, float]] = [
        (1 + float32, 0.0),
        (np.float64(1.0000001), 0.0),
        (1.00001, float32),
        (-1e-5, float32),
        (1.01, float16),
        ("1.0000001", 0.0),
    ]
    for value, rounding in beyond:
        refused("is not a share", cell_share, value, "x", "a share", rounding)
    assert "has 2 numbers beyond 0 or 1 by the rounding" in notation_remark(
        "p", {Notation.ROUNDED: 2}
    )
