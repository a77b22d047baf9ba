"""Names of states: kept from the file to the answer, evidence by name, and refused where wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

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


def test_wrong_names_are_refused() -> None:
    refused("no state 'perhaps'; its states are no, yes", NAMED.with_evidence, {"rain": "perhaps"})
    plain = FactorGraph.from_factors([2, 2], TABLES)
    refused("'yes' is not a whole number", plain.with_evidence, {"0": "yes"})
    for names, message in (
        ([("no", "yes")], "for 1 of 2 variables"),
        ([("no", "yes"), ("on",)], "do not name them"),
        ([("no", "no"), ("off", "on")], "two states of one name"),
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
    assert "there is no state 'broken'" in " ".join(wrong.stderr.split())


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
