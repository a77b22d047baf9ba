"""`factormodels fit`: from labelled responses to learned priors and a comparison."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibration.learned_priors import (
    ClassProbability,
    Free,
    Specification,
    Temperature,
    adapt_prior,
    fit,
)
from experiments.runner.learning import specification
from factormodels import read_many, write_many
from factormodels.errors import InputError
from factormodels.evidence_source import EvidenceSource
from factormodels.synthetic import Uniform, labelled_responses
from tests.experiments.conftest import invoke


@pytest.fixture
def responses(folder: Path) -> Path:
    path = folder / "responses.jsonl"
    write_many(labelled_responses(12, n_atoms=3, contexts_per_atom=1, seed=0), path)
    return path


def test_the_command_learns_compares_and_writes(responses: Path, folder: Path) -> None:
    out = folder / "learned.jsonl"
    result = invoke("fit", responses, "--encoding", "conditional", "--out", out, "--folds", 3)
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


def test_without_folds_there_is_no_comparison(responses: Path) -> None:
    result = invoke("fit", responses, "--folds", 0, "--relations", "keep")
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


def test_the_share_of_true_claims_is_found_without_labels(folder: Path) -> None:
    known, new = (
        labelled_responses(
            30,
            n_atoms=(6, 12),
            contexts_per_atom=2,
            strength=Uniform(0.6, 0.95),
            truth_rate=rate,
            reliability=0.99,
            seed=seed,
        )
        for rate, seed in ((0.5, 5), (0.2, 6))
    )
    write_many(known, folder / "known.jsonl")
    without = [
        replace(graph, atoms=tuple(replace(atom, label=None) for atom in graph.atoms))
        for graph in new
    ]
    write_many(without, folder / "new.jsonl")
    options = ("--penalty", 3, "--folds", 0, "--unlabelled", folder / "new.jsonl")
    result = invoke("fit", folder / "known.jsonl", *options, "--out", folder / "adapted.jsonl")
    learned = fit(known, penalty=3.0)
    labels = [atom.label is True for graph in known for atom in graph.atoms]
    found = adapt_prior(learned.apply_all(without), learned.apply_all(known))
    n_claims = sum(len(graph.atoms) for graph in new)
    assert f"{n_claims} claims of 30 responses, whose labels play no part" in result.stdout
    row = rf"^here +{found.share:.3f} +{found.lower:.3f} to {found.upper:.3f}$"
    assert re.search(row, result.stdout, re.M)
    # Closer to what is true there than what was learned is.
    truth = np.mean([atom.label is True for graph in new for atom in graph.atoms])
    assert found.lower < truth < found.upper < np.mean(labels)
    written = read_many(folder / "adapted.jsonl")
    assert [graph.id for graph in written] == [graph.id for graph in new]
    expected = found.apply(learned.apply_all(without)[0]).atoms[0].prior
    assert written[0].atoms[0].prior == pytest.approx(expected, rel=1e-9)


def test_where_evidence_says_nothing_the_learned_prior_stays(responses: Path, folder: Path) -> None:
    silent = [replace(graph, relations=()) for graph in read_many(responses)]
    write_many(silent, folder / "silent.jsonl")
    options = ("--folds", 0, "--unlabelled", folder / "silent.jsonl", "--out", folder / "out.jsonl")
    result = invoke("fit", responses, *options)
    assert "is not distributed as among the labelled claims" in result.stdout
    assert "or label some of these responses: the learned prior stays." in result.stdout
    assert re.search("^here +-- +--$", result.stdout, re.M)
    learned = fit(read_many(responses)).values["atom_prior"]
    assert read_many(folder / "out.jsonl")[0].atoms[0].prior == pytest.approx(learned)


def test_evidence_made_otherwise_is_said(responses: Path, folder: Path) -> None:
    def made(name: str, top_k: int) -> Path:
        told = {
            "relations": {"model": "lexical", "least": 0.5},
            "retrieval": {"retriever": "local", "top_k": top_k},
        }
        graphs = [replace(graph, metadata=told) for graph in read_many(responses)]
        write_many(graphs, folder / name)
        return folder / name

    known, alike, other = made("known.jsonl", 3), made("alike.jsonl", 3), made("other.jsonl", 5)
    options = ("--folds", 0, "--out", folder / "out.jsonl", "--unlabelled")
    assert "made otherwise" not in invoke("fit", known, *options, alike).stderr
    told = " ".join(invoke("fit", known, *options, other).stderr.split())
    assert "the evidence here was made otherwise" in told
    assert "passages per query 5" in told
    assert "passages per query 3" in told
    source = {"relation_model": "lexical", "least": 0.5, "retriever": "local", "top_k": 3}
    written = read_many(folder / "out.jsonl")[0]
    assert [dict(one) for one in written.metadata["learned_from"]] == [source]
    assert fit(read_many(known)).sources == (EvidenceSource("lexical", 0.5, "local", 3),)


def test_labels_of_one_kind_cannot_be_moved(responses: Path, folder: Path) -> None:
    true = [
        replace(graph, atoms=tuple(replace(atom, label=True) for atom in graph.atoms))
        for graph in read_many(responses)
    ]
    write_many(true, folder / "true.jsonl")
    options = ("--folds", 0, "--unlabelled", responses, "--out", folder / "out.jsonl")
    result = invoke("fit", folder / "true.jsonl", *options, code=2)
    assert "all 36 labels are true" in result.stderr
    assert result.stdout == "", "it is refused before anything is learned"
    assert not (folder / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unlabelled", "factscore", "--encoding", "conditional"), "cannot be replaced alone"),
        (("--by", "mood"), "--by is 'mood'; use kind or stance"),
        (("--relations", "mood"), "--relations is 'mood'; use temperature, probability or keep"),
        (("--atom-prior", "high"), "--atom-prior is 'high'; use learn, keep, or a number"),
        (("--context-prior", "7"), "context_prior: the probability 7"),
        (("--objective", "ece"), "choose one of likelihood, log_loss, brier"),
        (("--folds", "13"), "folds of 12 responses"),
    ],
)
def test_bad_options_are_refused(responses: Path, options: tuple[str, ...], words: str) -> None:
    result = invoke("fit", responses, *options, code=2)
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_unlabelled_responses_are_refused(folder: Path) -> None:
    path = folder / "bare.jsonl"
    write_many(labelled_responses(2, n_atoms=2, contexts_per_atom=1, unlabelled=1.0, seed=0), path)
    assert f"{path}: no atom has a human label" in invoke("fit", path, code=2).stderr


def test_a_specification_needs_known_words() -> None:
    with pytest.raises(InputError, match="use learn, keep, or a number"):
        specification("yes", "keep", "keep", None, "implication")


@pytest.mark.usefixtures("folder")
def test_more_folds_than_responses_are_named(tmp_path: Path) -> None:
    from factormodels import datasets, write

    write(datasets.load("demonstration").graphs[0], tmp_path / "one.json")
    result = invoke("fit", tmp_path / "one.json", code=2)
    assert "5 folds of 1 response: responses are never split; give 0 for none" in result.output


@pytest.mark.parametrize("kind", ["CSV", "JSON Lines"])
def test_fit_learns_the_same_from_a_table_as_from_its_graphs(folder: Path, kind: str) -> None:
    labels = {("r1", "a1"): 1, ("r1", "a2"): 0, ("r2", "a1"): 0, ("r2", "a2"): 1, ("r3", "a1"): 1}
    rows: list[dict[str, Any]] = [
        {"response": r, "claim": a, "passage": "c1", "relation": "entailment", "label": label}
        for (r, a), label in labels.items()
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    if kind == "CSV":
        text = "\n".join([",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)])
    path = folder / "relations.txt"
    path.write_text(text, encoding="utf-8")
    graphs = read_many(path)
    specification = Specification(Free(), None, ClassProbability("kind"), "implication")
    expected = fit(graphs, specification).table()
    write_many(graphs, folder / "graphs.jsonl")
    arguments = ("--relations", "probability", "--folds", 0)
    of_table = invoke("fit", "relations.txt", *arguments).stdout
    assert of_table == invoke("fit", "graphs.jsonl", *arguments).stdout
    # Three of five claims that a passage entails are true, and nothing else is known of them.
    assert f"{expected[0].estimate:.3f}" in of_table
    scaled = invoke("fit", "relations.txt", "--folds", 0, code=2)
    assert "learn a probability for each class" in " ".join(scaled.stderr.split())
