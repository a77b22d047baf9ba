"""Names of states: kept from the file to the answer, evidence by name, and refused where wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import experiments
from experiments.settings.inputs import with_evidence
from factormodels.factor_graph import FactorGraph
from inference import infer
from tests.experiments.conftest import invoke
from tests.refusals import refused

TABLES: list[tuple[list[int], Any]] = [([0], [0.8, 0.2]), ([0, 1], [[0.6, 0.4], [0.99, 0.01]])]
NAMED = FactorGraph.from_factors(
    [2, 2], TABLES, names=["rain", "sprinkler"], state_names=[("no", "yes"), ("off", "on")]
)

BIF = """network own {
}
variable rain {
  type discrete [ 2 ] { no, yes };
}
variable sprinkler {
  type discrete [ 2 ] { off, on };
}
probability ( rain ) {
  table 0.8, 0.2;
}
probability ( sprinkler | rain ) {
  (no) 0.6, 0.4;
  (yes) 0.99, 0.01;
}
"""


def test_evidence_by_name_is_that_by_number() -> None:
    named = infer(NAMED.with_evidence({"rain": "yes"}))
    numbered = infer(NAMED.with_evidence({"rain": 1}))
    np.testing.assert_array_equal(named.marginals["sprinkler"], [0.99, 0.01])
    assert named.log_z == numbered.log_z
    absorbed = NAMED.with_evidence({"rain": "yes"}).absorb_evidence()
    assert absorbed.state_names == (("yes",), ("off", "on"))
    assert pickle.loads(pickle.dumps(NAMED)).state_names == NAMED.state_names


def test_evidence_is_typed_beside_files(folder: Path) -> None:
    (folder / "net.bif").write_text(BIF)
    (folder / "seen.json").write_text('{"rain": "yes"}')

    def p_on(*evidence: str) -> float:
        words = [word for each in evidence for word in ("--evidence", each)]
        content = json.loads(invoke("infer", "net.bif", *words, "--json").stdout)
        rows = content["tables"]["posteriors"]
        return sum(
            float(row["p"])
            for row in rows
            if (row["variable"], row["state"]) == ("sprinkler", "on")
        )

    # By Bayes' rule, from the tables above.
    assert p_on("rain=yes") == pytest.approx(0.01)
    assert p_on("rain=0") == pytest.approx(0.4)
    assert p_on("rain=[1, 1]") == pytest.approx(0.8 * 0.4 + 0.2 * 0.01)
    assert p_on("seen.json", "sprinkler=on") == 1.0


def test_a_frame_and_a_single_file_hold_a_number_per_state(folder: Path) -> None:
    (folder / "net.bif").write_text(BIF)
    findings = experiments.infer("net.bif", evidence={"rain": "yes"})
    p = findings.frame.set_index(["variable", "state"])["p"]
    assert p["sprinkler", "on"] == pytest.approx(0.01)
    findings.save("net.csv")
    kept = pd.read_csv("net.csv").set_index(["variable", "state"])
    assert kept.loc[("sprinkler", "on"), "p"] == pytest.approx(0.01)
    assert kept["observed"].groupby("variable").all().to_dict() == {
        "rain": True,
        "sprinkler": False,
    }


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        (["rain=wet"], "--evidence rain=wet: "),
        (["rian=yes"], "--evidence rian=yes: "),
        (["rain=yes", "rain=no"], "--evidence rain=no: 'rain' is already observed"),
        (["rain"], "rain: there is no such file"),
    ],
)
def test_typed_evidence_that_does_not_fit_is_refused(
    evidence: list[str], message: str, folder: Path
) -> None:
    (folder / "net.bif").write_text(BIF)
    words = [word for each in evidence for word in ("--evidence", each)]
    assert message in invoke("infer", "net.bif", *words, code=2).stderr


def with_names(*named: str) -> FactorGraph:
    return FactorGraph.from_factors(
        [2, 2], TABLES, names=["rain", "1"], state_names=[("no", "yes"), named]
    )


@pytest.mark.parametrize("named", [("1", "2"), ("5", "wet"), ("1", "0"), ("0.5", "1.0")])
def test_a_number_is_refused_where_states_are_named_by_others(named: tuple[str, str]) -> None:
    graph = with_names(*named)
    for state in (0, 1):
        message = f'{state} may be the number of a state.*named {", ".join(named)}.*"{named[0]}"'
        refused(message, graph.with_evidence, {"1": state})
        refused(message, with_evidence, graph, {"1": state})
    for number, name in enumerate(named):
        assert graph.with_evidence({"1": name}).evidence.tolist() == [-1, number]
        # Whoever counts variables counts states: so do UAI's files of evidence.
        assert graph.with_evidence({1: number}).evidence.tolist() == [-1, number]


def test_numbers_that_are_those_of_states_are_read(tmp_path: Path) -> None:
    for named in (("0", "1"), ("00", "01"), ("low", "1"), ("off", "on"), ("1-5", "nan")):
        graph = with_names(*named)
        assert graph.with_evidence({"1": 1}).evidence.tolist() == [-1, 1]
    evidence = tmp_path / "network.uai.evid"
    evidence.write_text("1 1 0", encoding="utf-8")
    assert with_evidence(with_names("1", "2"), evidence).evidence.tolist() == [-1, 0]


def test_true_is_the_state_of_that_name() -> None:
    for named, truth in ((("True", "False"), 0), (("no", "yes"), 1), (("0", "1"), 1)):
        graph = with_names(*named)
        assert with_evidence(graph, {"1": True}).evidence.tolist() == [-1, truth]
        assert with_evidence(graph, {"1": False}).evidence.tolist() == [-1, 1 - truth]
    refused("true names none of its states, which are off, on", with_evidence,
            with_names("off", "on"), {"1": True})  # fmt: skip
    unnamed = FactorGraph.from_factors([2, 2], TABLES)
    assert with_evidence(unnamed, {"1": True}).evidence.tolist() == [-1, 1]


def test_wrong_names_are_refused() -> None:
    refused(
        "the state 'perhaps' is unknown; use one of no, yes",
        NAMED.with_evidence,
        {"rain": "perhaps"},
    )
    plain = FactorGraph.from_factors([2, 2], TABLES)
    refused("'yes' is not a whole number", plain.with_evidence, {"0": "yes"})
    for names, message in (
        ([("no", "yes")], "for 1 of 2 variables"),
        ([("no", "yes"), ("on",)], "do not name them"),
        ([("no", "no"), ("off", "on")], "two states with the same name"),
    ):
        refused(message, FactorGraph.from_factors, [2, 2], TABLES, state_names=names)


def test_names_go_from_a_file_to_the_answer(folder: Path) -> None:
    (folder / "own.bif").write_text(BIF)
    (folder / "seen.json").write_text('{"sprinkler": "on"}')
    shown = invoke("infer", "own.bif", "--evidence", "seen.json")
    assert "off 0.000000, on 1.000000" in shown.stdout or "observed" in shown.stdout
    # P(rain | sprinkler on) = 0.2 0.01 / (0.2 0.01 + 0.8 0.4).
    assert "yes 0.006211" in shown.stdout
    answer = json.loads(invoke("infer", "own.bif", "--json").stdout)
    rows = answer["tables"]["posteriors"]
    states = [("rain", "no"), ("rain", "yes"), ("sprinkler", "off"), ("sprinkler", "on")]
    assert [(row["variable"], row["state"]) for row in rows] == states
    (folder / "seen.json").write_text('{"sprinkler": "broken"}')
    wrong = invoke("infer", "own.bif", "--evidence", "seen.json", code=2)
    assert "the state 'broken' is unknown" in " ".join(wrong.stderr.split())
    wrong = invoke("infer", "own.bif", "--evidence", "rain=yes,sprinkler=on", code=2)
    assert "write --evidence rain=yes --evidence sprinkler=on" in wrong.stderr


def test_any_factor_graph_is_drawn(folder: Path) -> None:
    from factormodels.io import write

    write(NAMED, folder / "own.uai")
    invoke("draw", "own.uai", "own.png")
    assert (folder / "own.png").stat().st_size > 3000
    invoke("draw", "own.uai", "own.dot")
    text = (folder / "own.dot").read_text()
    assert text.count(" -- ") == 3
    large = FactorGraph.from_factors([2] * 151, [])
    write(large, folder / "large.uai")
    result = invoke("draw", "large.uai", "large.pdf", code=2)
    assert "write .dot for Graphviz" in " ".join(result.stderr.split())
