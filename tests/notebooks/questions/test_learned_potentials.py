"""Learned potentials of graphs and tables: small data on which the answer is known otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.graph_potentials import Potentials
from calibration.learned_potentials.methods import (
    METHODS,
    PENALTY,
    as_support,
    cross_fit_task,
    six_classes,
    taught_classes,
)
from experiments.findings.claim_scores import difference_rows, labeled_atoms, score_rows
from experiments.findings.figures.positions import mean_by_fifth
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, write_many
from factormodels.encodings import ENCODINGS
from factormodels.variants import variant
from inference import infer
from inference.batch import claim_posteriors
from notebooks.questions.learned_potentials import learned_potentials
from notebooks.questions.real_graphs import case_rows, error_row, known_posteriors, learned_rows
from tests.oracle import oracle

pytestmark = pytest.mark.slow

CLASSES = Potentials(("atom_prior", "probability"), six_classes)


def biographies(n: int, seed: int, share: float = 0.6) -> list[FactGraph]:
    """Return responses of four atoms in two sentences, with two passages each."""
    rng = np.random.default_rng(seed)
    graphs = []
    for number in range(n):
        labels = rng.random(4) < share
        atoms, contexts, relations = [], [], []
        for at, label in enumerate(labels.tolist()):
            atoms.append(Atom(f"a{at}", label=label, sentence=1 + at // 2))
            for passage in range(2):
                name = f"c{at}{passage}"
                contexts.append(Context(name, prior=1.0, retrieved_for=(f"a{at}",)))
                p = float(np.clip(rng.normal(0.55 if label else 0.25, 0.15), 0.02, 0.9))
                kind = RelationKind.ENTAILMENT if p > 0.5 else RelationKind.NEUTRAL
                shares = (p, 0.05, 0.0, 0.95 - p)
                stated = p if p > 0.5 else 0.95 - p
                relations.append(Relation(name, f"a{at}", kind, stated, shares))
        graphs.append(
            FactGraph(f"r{number}", tuple(atoms), tuple(contexts), tuple(relations),
                      metadata={"sentences": 2})
        )  # fmt: skip
    return graphs


def test_class_strengths_on_stars_are_a_logistic_regression_on_counts() -> None:
    from sklearn.linear_model import LogisticRegression

    graphs = [as_support(graph) for graph in biographies(60, 0)]
    learned = fit_potentials(graphs, CLASSES, with_errors=False)
    names = [name.removeprefix("probability[").rstrip("]") for name in learned.values][1:]
    counts, labels, posteriors = [], [], []
    for graph in graphs:
        posterior = infer(learned.apply(graph).to_factor_graph("implication")).marginals
        for atom in graph.atoms:
            classes = [six_classes(graph, r) for r in graph.relations if r.target == atom.id]
            counts.append([classes.count(name) for name in names])
            labels.append(atom.label)
            posteriors.append(posterior[atom.id][1])
    # Each atom has two relations: the intercept and the counts hold one direction too many.
    model = LogisticRegression(C=1e6, max_iter=2000, tol=1e-10).fit(counts, labels)
    np.testing.assert_allclose(model.predict_proba(counts)[:, 1], posteriors, atol=2e-3)


def test_relations_of_contexts_are_read_by_their_support() -> None:
    claims = Atom("a"), Atom("b")
    relation = Relation("c", "a", RelationKind.CONTRADICTION, 0.7, (0.2, 0.7, 0.05, 0.05))
    weak = Relation("c", "b", RelationKind.NEUTRAL, 0.9, (0.05, 0.05, 0.0, 0.9))
    between = Relation("a", "b", RelationKind.CONTRADICTION, 0.8)
    graph = FactGraph("r", claims, (Context("c"),), (relation, weak, between))
    read = as_support(graph, 0.1)
    assert read.relations == (Relation("c", "a", RelationKind.ENTAILMENT, 0.25), between)
    assert six_classes(read, read.relations[0]) == "p1"


def test_every_method_judges_each_fold_by_the_others() -> None:
    graphs = biographies(12, 2)
    task = cross_fit_task(graphs, 3, 0)
    rate = METHODS["base rate"](task)
    for number in range(3):
        others = task.table.labels[task.fold != number]
        np.testing.assert_allclose(rate[task.fold == number], others.mean())
    p_by_method = {name: METHODS[name](task) for name in ("default", "base rate", "six classes")}
    flipped = [
        replace(g, atoms=tuple(replace(a, label=not a.label) for a in g.atoms)) if fold == 0 else g
        for g, fold in zip(graphs, task.fold[::4].tolist(), strict=True)
    ]
    other = cross_fit_task(flipped, 3, 0)
    again = METHODS["six classes"](other)
    # What a fold's own labels are has no part in how it is judged.
    np.testing.assert_allclose(
        again[task.fold == 0], p_by_method["six classes"][task.fold == 0], atol=1e-6
    )
    atoms = labeled_atoms(graphs, "biographies")
    rows = {row["method"]: row for row in score_rows(p_by_method, atoms, task.fold, 0)}
    expected = ((p_by_method["six classes"] - task.table.labels) ** 2).mean()
    assert rows["six classes"]["brier"] == pytest.approx(expected, rel=1e-12)
    pairs = difference_rows(p_by_method, ["six classes"], atoms, task.fold, 0)
    assert len(pairs) == 2
    first = next(r for r in pairs if (r["method"], r["other"]) == ("default", "six classes"))
    gain = rows["default"]["brier"] - rows["six classes"]["brier"]
    assert first["brier"] == pytest.approx(gain, abs=1e-12)


def test_the_answer_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Trees search no settings; their search has tests of its own.
    monkeypatch.setattr("calibration.learned_potentials.methods._INNER_FOLDS", 1)
    for name, seed in (("one", 2), ("two", 3)):
        write_many(biographies(12, seed), tmp_path / f"{name}.jsonl")
    made = learned_potentials(
        data=(tmp_path / "one.jsonl", tmp_path / "two.jsonl"),
        methods=("default", "Platt", "boosted trees, neighbors", "linear, neighbors"),
        curve=("Platt",),
        sizes=(3, 8),
        folds=3,
    )
    tables = {name: table.frame for name, table in made.tables.items()}
    tables["biography"] = made.figures["biography"].data
    scores = tables["scores"].set_index(["data", "method"])
    assert len(scores) == 8
    # Twelve responses of each, and a model that sees two passages of each claim.
    assert (scores.brier.xs("Platt", level=1) < 0.25).all()
    less = tables["differences"].set_index(["data", "method", "other"]).brier
    gain = scores.brier["one", "Platt"] - scores.brier["one", "default"]
    assert less["one", "Platt", "default"] == pytest.approx(gain, abs=1e-9)
    # Of twelve responses in three folds eight teach: the curve ends where the whole does.
    last = tables["curve"].set_index("labeled").brier[8]
    assert last == pytest.approx(scores.brier["one", "Platt"], abs=1e-9)
    assert set(tables["across"]["where"]) == {"one to two", "two to one"}
    assert "cause of the sentence" in set(tables["ablations"].left_out)
    moved = tables["biography"]
    parts = moved[["evidence", "position", "causes"]].to_numpy()
    assert np.isfinite(parts).all()
    assert np.abs(parts).max() > 0.05


def test_without_distributions_kinds_are_learned() -> None:
    bare = [
        replace(g, relations=tuple(replace(r, distribution=None) for r in g.relations))
        for g in biographies(12, 2)
    ]
    task = cross_fit_task(bare, 3, 0)
    learned = taught_classes(task, "FR2", "implication")
    kinds = Potentials(("atom_prior", "probability"))
    for number in range(3):
        positions = [at for at, f in enumerate(task.fold[::4].tolist()) if f == number]
        rest = [variant(g, "FR2") for at, g in enumerate(bare) if at not in positions]
        # Forests: belief propagation learns what exact inference does.
        taught = fit_potentials(rest, kinds, penalty=PENALTY)
        for at in positions:
            wanted = taught.apply(variant(bare[at], "FR2"))
            assert [r.probability for r in learned[at].relations] == pytest.approx(
                [r.probability for r in wanted.relations], abs=1e-3
            )


def test_positions_weigh_sentences_alike() -> None:
    graphs = biographies(5, 5)
    atoms = labeled_atoms(graphs, "data")
    values = {"true": atoms.labels, "FR1, implication": atoms.labels * 0.5}
    means = mean_by_fifth(graphs, values, atoms, 0).set_index("of")
    first = np.mean([a.label for g in graphs for a in g.atoms if a.sentence == 1])
    assert means["40-60%"]["true"] == pytest.approx(first)
    assert means["40-60%"]["FR1, implication"] == pytest.approx(first / 2)
    assert np.isnan(means["0-20%"]["true"])


def test_changes_by_approximations_agree_with_enumeration() -> None:
    graphs = [replace(g, contexts=tuple(replace(c, prior=0.8) for c in g.contexts))
              for g in biographies(3, 6)]  # fmt: skip
    atoms = labeled_atoms(graphs, "data")
    true = np.array([oracle(g.to_factor_graph("mixture")).marginals[a.id][1]
                     for g in graphs for a in g.atoms])  # fmt: skip
    exact = known_posteriors(graphs, "mixture", atoms)
    np.testing.assert_allclose(exact.p, true, atol=1e-12)
    assert exact.shape["certified"] == 0
    bounded = known_posteriors(graphs, "mixture", atoms, exact_seconds=0.0)
    assert bounded.shape["certified"] == 3
    assert ((bounded.lower <= true) & (true <= bounded.upper)).all()
    row = error_row(true + 0.01, exact, atoms, 0)
    assert row["error"] == pytest.approx(0.01)
    moved = np.mean((true + 0.01 - atoms.labels) ** 2) - np.mean((true - atoms.labels) ** 2)
    assert row["moved"] == pytest.approx(moved, abs=1e-12)
    p_by_view = {("FR1", "mixture", "exact"): true, ("FR1", "mixture", "other"): 1 - true}
    first, second = case_rows(p_by_view, atoms, 0)
    assert first["auroc"] == pytest.approx(1 - second["auroc"])
    assert second["brier_change"] == pytest.approx(second["brier"] - first["brier"], abs=1e-12)


def test_stars_learn_the_same_under_every_encoding() -> None:
    graphs, p = [as_support(graph) for graph in biographies(60, 7)], {}
    for name in ENCODINGS:
        learned = fit_potentials(graphs, replace(CLASSES, encoding=name))
        p[name] = claim_posteriors([learned.apply(graph) for graph in graphs], name)
    # Of a certain source one row of a table counts, and each atom has two relations, so that a
    # prior makes up for what mixture cannot say: every encoding is the same logistic regression.
    for name in ENCODINGS:
        np.testing.assert_allclose(p[name], p["implication"], atol=1e-3)


def test_learned_parameters_belong_to_their_encoding() -> None:
    graphs = [replace(g, contexts=tuple(replace(c, prior=0.7) for c in g.contexts))
              for g in biographies(40, 8)]  # fmt: skip
    task = cross_fit_task(graphs, 3, 0)
    for name in ENCODINGS:
        learned = taught_classes(task, "FR1", name)
        least = min(
            ((claim_posteriors(learned, other) - task.table.labels) ** 2).mean()
            for other in ENCODINGS
        )
        brier = ((claim_posteriors(learned, name) - task.table.labels) ** 2).mean()
        assert brier == pytest.approx(least, abs=1e-3), name


def test_learned_views_are_compared_with_the_right_ones() -> None:
    atoms = labeled_atoms(biographies(20, 9), "data")
    rng = np.random.default_rng(0)
    names = ("implication", "mixture", "implication, learned", "mixture, learned")
    p_by_view = {
        (view, name, "exact"): np.clip(0.6 * atoms.labels + rng.random(len(atoms.labels)), 0, 1)
        for view in ("FR1", "FR2")
        for name in names
    }
    p_by_view["FR2", "mixture, learned", "cavi"] = 1 - atoms.labels
    made = learned_rows(p_by_view, atoms, 0)
    rows = {(row["variant"], row["encoding"]): row for row in made}
    assert len(made) == len(rows)
    assert set(rows) == {(view, name) for view in ("FR1", "FR2") for name in names[2:]}
    brier = {
        key[:2]: np.mean((p - atoms.labels) ** 2)
        for key, p in p_by_view.items()
        if key[2] == "exact"
    }
    row = rows["FR2", "mixture, learned"]
    brier_of = brier["FR2", "mixture, learned"]
    assert row["brier"] == pytest.approx(brier_of, abs=1e-8)
    for name, other in (
        ("stated", ("FR2", "mixture")),
        ("implication", ("FR2", "implication, learned")),
        ("stars", ("FR1", "mixture, learned")),
    ):
        assert row[name] == pytest.approx(brier_of - brier[other], abs=1e-8)
    assert rows["FR1", "implication, learned"]["stars"] == 0.0
    # Where posteriors are not known, every approximation is compared with itself.
    for name in ("implication, learned", "mixture, learned"):
        p = p_by_view.pop(("FR2", name, "exact"))
        p_by_view["FR2", name, "lbp"], p_by_view["FR2", name, "cavi"] = p, (p + 1) / 2
    made = learned_rows(p_by_view, atoms, 0)
    backends = {row["backend"]: row for row in made if row["encoding"] == "mixture, learned"}
    assert set(backends) == {"exact", "lbp", "cavi"}
    scores = [
        np.mean((p_by_view["FR2", name, "cavi"] - atoms.labels) ** 2)
        for name in (names[3], names[2])
    ]
    assert backends["cavi"]["implication"] == pytest.approx(scores[0] - scores[1], abs=1e-8)
