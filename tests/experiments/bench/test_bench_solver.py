"""External solvers: the command line, every form of output, every way to fail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.bench.answers import BenchAnswer
from experiments.bench.solver import parse_solver
from experiments.bench.solver_output import read_outputs
from experiments.run.processes import ChildError
from factormodels.errors import InputError
from factormodels.factor_graph import FactorGraph
from inference import infer
from tests.experiments.conftest import invoke

PROGRAM = Path(__file__).with_name("playing_solver.py")

TABLES: list[tuple[tuple[int, ...], Any]] = [
    ((0,), [0.3, 0.7]),
    ((1, 0), [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]),
    ((1, 2), [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]]),
]


def graph() -> FactorGraph:
    return FactorGraph.from_factors([2, 3, 2], TABLES).with_evidence({2: 1})


def command(mode: str, *words: str, kind: str = "") -> str:
    # -I -S: the interpreter starts in half the time without the packages of the environment.
    rest = " ".join(words or ("{model}", "{evidence}", "{out}"))
    return f"other{kind}='{sys.executable}' -I -S '{PROGRAM}' {mode} {rest}"


def answer(mode: str, limit: float = 30.0, kind: str = "") -> BenchAnswer:
    prepared = parse_solver(command(mode, kind=kind), limit).prepare(graph())
    return prepared.read(prepared.run())


@pytest.mark.parametrize("mode", ["competition", "old", "merlin", "json", "print"])
def test_every_form_of_output_is_read(mode: str) -> None:
    found = answer(mode)
    expected = infer(graph())
    assert found.marginals is not None
    # Python prints the shortest number that reads back equal; sums are in another order.
    np.testing.assert_allclose(found.marginals, expected.marginals.flat, atol=1e-12)
    if mode == "print":
        assert found.log_z is None
    else:
        # Six decimals in merlin's text.
        assert found.log_z == pytest.approx(expected.log_z, abs=1e-6)
    assert found.log_z_kind == "none"


def test_the_kind_of_log_z_is_what_the_user_says() -> None:
    found = answer("competition", kind=":upper")
    assert (found.log_z_kind, found.status) == ("upper", "converged")
    assert answer("competition", kind=":exact").status == "exact"


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("crash", "other ended with code 3: out of luck"),
        ("nothing", "the solver wrote no file, and neither a MAR nor a PR section"),
        ("underflow", "the solver says 'Underflow'"),
        ("empty", "its list of marginals is empty"),
        ("short", "too few or too many"),
        ("wrong", "the marginal of variable 0, 0.5 0.4, is not a distribution"),
        ("other", "gave 1 marginals that do not fit the 3 variables"),
    ],
)
def test_what_goes_wrong_is_said(mode: str, reason: str) -> None:
    with pytest.raises(ChildError) as caught:
        answer(mode)
    assert caught.value.kind == "failed"
    assert reason in caught.value.reason


def test_a_program_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ChildError) as caught:
        answer("sleep", limit=0.3)
    assert (caught.value.kind, caught.value.reason) == ("time-out", "no answer within 0.3 s")


def test_an_output_of_an_earlier_run_is_not_read_again(tmp_path: Path) -> None:
    script = tmp_path / "once.sh"
    script.write_text(
        "#!/bin/sh\n"
        f"[ -e '{tmp_path}/done' ] || printf 'PR\\n-1.0\\n' > out.PR\n"
        f"touch '{tmp_path}/done'\n"
    )
    script.chmod(0o755)
    prepared = parse_solver(f"once={script} {{model}}", 30.0).prepare(graph())
    assert prepared.read(prepared.run()).log_z == pytest.approx(-np.log(10.0))
    with pytest.raises(ChildError, match="the solver wrote no file"):
        prepared.run()


def test_the_temporary_folder_goes_with_the_run() -> None:
    prepared = parse_solver(command("competition"), 30.0).prepare(graph())
    (model,) = [word for word in prepared.run.args[1] if word.endswith("model.uai")]  # type: ignore[attr-defined]
    assert Path(model).exists()
    del prepared
    assert not Path(model).parent.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("/bin/true {model}", "it has no name"),
        ("exact=/bin/true {model}", "'exact' is an algorithm of the table"),
        ("s:best=/bin/true {model}", "'best' is not a kind of log Z"),
        ("s=/no/such/program {model}", "there is no program '/no/such/program'"),
        ("s=", "there is no program ''"),
        ("s=sh 'a {model}", "is not a command line"),
        ("s=sh run", "does not name {model}"),
        ("s=sh {model} {modle}", "{modle} stands for nothing; use {model}, {evidence}"),
        ("s=sh {model} {", "unmatched brace"),
    ],
)
def test_a_description_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_solver(text, 30.0)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PR\n", "nothing follows PR"),
        ("PR\nmuch\n", "'much' is where a number should be"),
        ("PR\n-inf (0.0)\nSTATUS\nfalse: Inconsistent evidence\n", "the solver says 'false: Inc"),
        ('{"value": 1, "marginals": [{"variable": 0}]}', "lacks its variable or probabilities"),
        (
            '{"value": 1, "marginals": [{"variable": 1, "probabilities": [0.5, 0.5]}]}',
            "its marginals skip a variable",
        ),
        ("{", "it is not JSON"),
        ('{"marginals": [{"variable": 0, "probabilities": [nan, 1]}]}', "a number should be"),
    ],
)
def test_damaged_output_is_told(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_outputs([], text)
    assert message in str(caught.value)


@pytest.mark.slow
def test_the_command_measures_a_solver(folder: Path) -> None:
    (folder / "small.uai").write_text(
        "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.25 0.75\n4\n0.9 0.1 0.2 0.8\n"
    )
    # An error of 0.01 in the reference is what must be shown; its log10 Z of 0 is right.
    (folder / "small.uai.MAR").write_text("MAR\n2 2 0.25 0.75 2 0.365 0.635\n")
    (folder / "small.uai.PR").write_text("PR\n0.0\n")
    result = invoke(
        *("bench", "small.uai", "--algorithm", "exact", "--rounds", "1", "--out", "out"),
        *("--solver", command("competition", kind=":upper")),
        *("--solver", command("crash").replace("other", "broken", 1)),
    )
    assert "small: a UAI file; 2 variables" in result.stdout
    assert "broken: failed: broken ended with code 3: out of luck" in result.stdout
    (row,) = [line for line in result.stdout.splitlines() if line.startswith("other ")]
    assert "1e-02" in row
    assert (folder / "out" / "bench.json").exists()
