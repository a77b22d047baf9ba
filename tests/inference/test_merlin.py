"""merlin by its program: what it is asked, and what is made of each answer.

A script replaces the program, which has to be compiled. It reads the files that merlin reads and
writes the JSON that merlin's documentation shows, with exact numbers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from factormodels.errors import MissingDependencyError
from factormodels.synthetic import grid
from inference import InferenceError, LogZKind, infer
from inference.peers.merlin_program import Merlin
from tests.inference.answers import given

STAND_IN = """#!{python}
import json, sys
from inference import infer
from factormodels.io import read
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert options["--task"] == "MAR" and options["--algorithm"] == "wmb"
assert open(options["--evidence-file"]).read().split() == ["0"]
graph = read(options["--input-file"])
answer = infer(graph, "enumeration")
solution = ", ".join(
    '{{ "variable" : %d, "states" : 2, "marginal" : [%.6f, %.6f] }}' % (at, *answer.marginals[name])
    for at, name in enumerate(graph.names)
)
{change}
with open(options["--output-file"] + ".json", "w") as file:
    file.write('{{ "task" : "MAR", "value" : %.6f, "status" : "true", "solution" : [ %s ], }}'
               % (answer.log_z, solution))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the path that may hold the program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    return folder


def write_program(folder: Path, change: str = "") -> None:
    path = folder / "merlin"
    path.write_text(STAND_IN.format(python=sys.executable, change=change))
    path.chmod(0o755)


def test_answers_are_those_of_the_program_in_the_graph_s_order(program: Path) -> None:
    write_program(program)
    # Potentials whose product is e^±900 are given in a form that doubles hold.
    graph = grid(2, 5, coupling=1.0, field=90.0, seed=0).with_evidence({3: 1})
    truth = infer(graph, "enumeration")
    answer = Merlin(i_bound=3).infer(graph)
    assert answer.log_z_kind is LogZKind.UPPER
    # Six digits are printed, and the bound is not below what they round.
    assert given(truth) <= given(answer) + 1e-9
    assert given(answer) == pytest.approx(given(truth), abs=2e-6)
    assert np.allclose(answer.marginals.flat, truth.marginals.flat, atol=2e-6)
    assert answer.marginals[graph.names[3]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sys.exit('cannot read it')", "exit code 1.*cannot read it"),
        ("sys.exit(0)", "ended without an answer .exit code 0.: it printed nothing"),
        ("solution = ''", "lacks what it should have"),
        ("solution = solution.replace('0.', 'NaN, 0.', 1)", "NaN is not a JSON number"),
        (
            "solution = solution.replace('[0.', '[0.1, 0.', 1)",
            "marginals that are no distributions",
        ),
        ("import time; time.sleep(30)", "took more than 2 seconds"),
    ],
)
def test_non_answers_are_a_sentence(program: Path, change: str, message: str) -> None:
    write_program(program, change)
    with pytest.raises(InferenceError, match=message):
        Merlin(seconds=2.0 if "sleep" in change else 60.0).infer(
            grid(1, 2, coupling=1.0, field=1.0, seed=0)
        )


def test_a_program_that_is_absent_is_reported(program: Path) -> None:
    assert not (program / "merlin").exists()
    with pytest.raises(MissingDependencyError, match="not on the path; compile https://"):
        Merlin().infer(grid(1, 2, coupling=1.0, field=1.0, seed=0))
