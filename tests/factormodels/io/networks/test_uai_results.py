"""UAI evidence, marginals and partition functions: every form that is found, and its damage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factormodels import FactorGraph
from factormodels.io.networks import uai_results
from tests.factormodels.io.formats.release_records import written
from tests.refusals import refused


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        *((nothing, {}) for nothing in ("", "0", "0\n", "1\n0\n")),
        ("2 184 1 85 1", {184: 1, 85: 1}),
        ("1\n1 0\n\n", {1: 0}),
        ("10\n" + "".join(f"{i} 0\n" for i in range(10)), dict.fromkeys(range(10), 0)),
        ("1\n2 4 1 7 0\n", {4: 1, 7: 0}),
        ("1 1 4 1", {4: 1}),
        ("2 3 1 3 1", {3: 1}),
    ],
)
def test_forms_of_evidence(text: str, evidence: dict[int, int], tmp_path: Path) -> None:
    assert uai_results.read_evidence(written(tmp_path, text)) == evidence


def test_no_evidence_before_leftovers_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert uai_results.read_evidence(written(tmp_path, "0\n2 0\n")) == {}
    assert "announces no observation, so the 2 numbers after that are ignored" in caplog.text


FIVE = FactorGraph.from_factors([2] * 5, [])
EVIDENCE: Any = partial(uai_results.read_evidence, graph=FIVE)
MARGINALS, PARTITION = uai_results.read_marginals, uai_results.read_log10_partition


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (EVIDENCE, "3 1 0", "it has 3 numbers, but 3 observations take 7"),
        (EVIDENCE, "1 2 0 1", "it has 4 numbers, but 1 observation takes 3"),
        (EVIDENCE, "5", "ends on line 1, where an observed variable should be"),
        (EVIDENCE, "2\n1 0 1\n2 3 1 4 0\n", "it holds 2 samples of evidence"),
        (EVIDENCE, "1 2 a", "'a' is not a number"),
        (EVIDENCE, "1 2 0.5", "line 1: '0.5' is where the observed state of variable 2 should be"),
        (EVIDENCE, "1\n-2 0", "line 2: '-2' is where an observed variable should be"),
        (EVIDENCE, "1 2 nan", "'nan' is where"),
        (EVIDENCE, "2 3 1 3 0", "'0' is the second state given for variable 3, after 1"),
        (EVIDENCE, "1 9 0", "'9' is not a variable of the model, whose variables run from 0 to 4"),
        (EVIDENCE, "1 3 2", "'2' is not a state of variable 3, whose states run from 0 to 1"),
        (MARGINALS, "", "begins with MAR"),
        (MARGINALS, "PR\n1", "line 1: 'PR' is where MAR should be; name a file that begins with"),
        (MARGINALS, "MAR", "ends on line 1, where the number of variables should be"),
        (MARGINALS, "MAR\n2 2 0.5 0.5 2 0.5", "within the 2 probabilities of variable 1"),
        (MARGINALS, "MAR\n2 2 0.5 0.5", "where the number of states of variable 1 should be"),
        (MARGINALS, "MAR\n1 2 0.5 0.5 0.5", "'0.5' follows the marginals of the 1 variable"),
        (MARGINALS, "MAR\n1 2 0.5 0.4", "the marginal of variable 0, which sums to 0.9"),
        (MARGINALS, "MAR\n1 2 1.5 -0.5", "has probability 1.5 for state 0"),
        (MARGINALS, "MAR\n1 2 nan 1", "has probability nan for state 0"),
        (MARGINALS, "MAR\n2 0", "'0' is where the number of states of variable 0"),
        (MARGINALS, "MAR\n1 2.5 0.5 0.5", "'2.5' is where the number of states"),
        (MARGINALS, "MAR\n-BEGIN-\n1 2 0.5 0.5", "line 2: '-BEGIN-' is not a number"),
        (PARTITION, "PR\n", "where log10 Z should be"),
        (PARTITION, "MAR\n1", "begins with PR"),
        (PARTITION, "PR\n1.5 2.5", "'2.5' follows log10 Z"),
        (PARTITION, "PR\nnan", "'nan' is where log10 Z should be"),
        (PARTITION, "PR\ninf", "'inf' is where log10 Z should be"),
        (PARTITION, "PR\n1.5x", "'1.5x' is not a number"),
    ],
)
def test_malformed_input_is_reported_in_one_sentence(
    read: Callable[[Path], object], text: str, words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    assert refused([words], read, path).startswith(f"{path}: ")


@given(st.dictionaries(st.integers(0, 10**6), st.integers(0, 99)))
@settings(deadline=None)
def test_evidence_is_read_back(tmp_path_factory: Any, evidence: dict[int, int]) -> None:
    path = tmp_path_factory.getbasetemp() / "written.evid"
    uai_results.write_evidence(evidence, path)
    again = uai_results.read_evidence(path)
    assert again == evidence
    assert list(again) == list(evidence)


@pytest.mark.parametrize("evidence", [{-1: 0}, {0: -1}, {0: 0.5}, {"a": 1}, {0: True}])
def test_evidence_that_is_not_written(evidence: Any, tmp_path: Path) -> None:
    refused("not an index of a variable", uai_results.write_evidence, evidence, tmp_path / "e.evid")
    assert not list(tmp_path.iterdir())


TWO = [[0.25, 0.75], [0.0, 1.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "marginals"),
    [
        ("MAR\n2 2 0.25 0.75 3 0 1 0", TWO),
        ("MAR\n2\n2 0.25 0.75\n3 0 1 0\n", TWO),
        ("MAR\n1\n2 2 0.25 0.75 3 0 1 0\n", TWO),
        ("mar 2 2 .25 75e-2 3 0 1 0", TWO),
        # One variable is not taken for a number of samples.
        ("MAR\n1 2 0.4 0.6\n", [[0.4, 0.6]]),
        ("MAR\n1\n1 2 0.4 0.6\n", [[0.4, 0.6]]),
        ("MAR\n0\n", []),
    ],
)
def test_forms_of_marginals(text: str, marginals: list[list[float]], tmp_path: Path) -> None:
    read_back = uai_results.read_marginals(written(tmp_path, text))
    assert [vector.tolist() for vector in read_back] == marginals


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PR\n13.563", 13.563),
        ("PR\n-8.39145\n", -8.39145),
        ("PR -1.5e3", -1500.0),
        ("PR\n1\n-2.5\n", -2.5),
        ("PR\n1", 1.0),
        ("PR\n-inf", -np.inf),
    ],
)
def test_forms_of_partition_functions(text: str, value: float, tmp_path: Path) -> None:
    assert uai_results.read_log10_partition(written(tmp_path, text)) == value
