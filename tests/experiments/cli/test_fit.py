"""`factormodels fit`: from labelled responses to learned priors and a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.learned_priors import ClassProbability, Free, Specification, Temperature, fit
from experiments.run.learning import specification
from factormodels import read_many, write_many
from factormodels.errors import InputError
from factormodels.synthetic import labelled_responses
from tests.experiments.conftest import Invoke


@pytest.fixture
def responses(folder: Path) -> Path:
    path = folder / "responses.jsonl"
    write_many(labelled_responses(12, n_atoms=3, contexts_per_atom=1, seed=0), path)
    return path


def test_the_command_learns_compares_and_writes(
    invoke: Invoke, responses: Path, folder: Path
) -> None:
    out = folder / "learned.jsonl"
    result = invoke("fit", responses, "--encoding", "conditional", "--out", out, "--folds", 3)
    assert result.exit_code == 0, result.stderr
    graphs = read_many(responses)
    learned = fit(graphs, Specification(encoding="conditional"))
    values = learned.values
    assert f"{values['atom_prior']:.3f}" in result.stdout
    assert f"{values['temperature']:.3f}" in result.stdout
    assert (
        "36 labelled atoms in 12 responses; encoding conditional, likelihood by exact"
        in result.stdout
    )
    assert "Held-out responses, 3 folds" in result.stdout
    written = read_many(out)
    assert written[0].atoms[0].prior == pytest.approx(values["atom_prior"], rel=1e-9)
    assert [g.id for g in written] == [g.id for g in graphs]


def test_without_folds_there_is_no_comparison(invoke: Invoke, responses: Path) -> None:
    result = invoke("fit", responses, "--folds", 0, "--relations", "keep")
    assert result.exit_code == 0, result.stderr
    assert "Held-out" not in result.stdout
    assert "temperature" not in result.stdout


def test_options_name_what_is_learned() -> None:
    found = specification("0.4", "learn", "temperature", "kind", "implication")
    assert found == Specification(0.4, Free(), Temperature("kind"))
    found = specification("keep", "keep", "probability", None, "conditional")
    assert found == Specification(None, None, ClassProbability("kind"), "conditional")
    named = specification("learn", "keep", "probability", "stance", "conditional").relations
    assert isinstance(named, ClassProbability)
    assert callable(named.by)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "mood"), "--by is 'mood'; use kind or stance"),
        (("--relations", "mood"), "--relations is 'mood'; use temperature, probability or keep"),
        (("--atom-prior", "high"), "--atom-prior is 'high'; use learn, keep, or a number"),
        (("--context-prior", "7"), "context_prior: the probability 7"),
        (("--objective", "ece"), "choose one of likelihood, log_loss, brier"),
        (("--folds", "13"), "folds of 12 responses"),
    ],
)
def test_bad_options_are_refused(
    invoke: Invoke, responses: Path, options: tuple[str, ...], words: str
) -> None:
    result = invoke("fit", responses, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_unlabelled_responses_are_refused(invoke: Invoke, folder: Path) -> None:
    path = folder / "bare.jsonl"
    write_many(labelled_responses(2, n_atoms=2, contexts_per_atom=1, unlabelled=1.0, seed=0), path)
    result = invoke("fit", path)
    assert result.exit_code == 2
    assert f"{path}: no atom has a human label" in result.stderr


def test_a_specification_needs_known_words() -> None:
    with pytest.raises(InputError, match="use learn, keep, or a number"):
        specification("yes", "keep", "keep", None, "implication")


@pytest.mark.usefixtures("folder")
def test_more_folds_than_responses_are_named(invoke: Invoke, tmp_path: Path) -> None:
    from factormodels import datasets, write

    write(datasets.load("demonstration").graphs[0], tmp_path / "one.json")
    result = invoke("fit", tmp_path / "one.json")
    assert result.exit_code == 2
    assert "5 folds of 1 response: responses are never split; give 0 for none" in result.output
