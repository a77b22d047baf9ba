"""Learned potentials of graphs and tables: small data on which the answer is known otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.learned_potentials.columns import FAMILIES, RESPONSE, SENTENCE
from calibration.learned_potentials.graph_fitting import fit_potentials
from calibration.learned_potentials.graphs import (
    EDGES,
    FINE_EDGES,
    PENALTY,
    classes,
    linear_potentials,
)
from calibration.learned_potentials.methods import METHODS, cross_fit_task, taught_classes
from calibration.learned_potentials.terms import Potentials, binned, items_of, probability
from experiments.analyses.ours.shared import cross_fit_rows
from experiments.analyses.ours.shared.fifths import mean_by_fifth
from experiments.analyses.ours.shared.known_posteriors import error_row, known_posteriors
from experiments.analyses.ours.shared.scored_views import case_rows, learned_rows
from experiments.analyses.posteriors import labelled_atoms
from factormodels import Atom, Context, FactGraph, Relation, RelationKind, write_many
from factormodels.encodings import ENCODINGS
from factormodels.variants import variant
from inference import infer
from inference.batch import claim_posteriors
from tests.experiments.conftest import invoke
from tests.oracle import oracle

pytestmark = pytest.mark.slow

BOTH = (SENTENCE, RESPONSE)


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

    graphs = biographies(60, 0)
    learned = fit_potentials(graphs, classes(), with_errors=False)
    names = [name.removeprefix("probability[").rstrip("]") for name in learned.values][1:]
    counts, labels, posteriors = [], [], []
    for graph in graphs:
        found = infer(learned.apply(graph).to_factor_graph("implication")).marginals
        rows = binned(EDGES).columns(classes().read(graph))
        named = {r.source: next(iter(row)) for r, row in zip(graph.relations, rows, strict=True)}
        for atom in graph.atoms:
            own = [named[r.source] for r in graph.relations if r.target == atom.id]
            counts.append([own.count(name) for name in names])
            labels.append(atom.label)
            posteriors.append(found[atom.id][1])
    # Each atom has two relations: the intercept and the counts hold one direction too many.
    model = LogisticRegression(C=1e6, max_iter=2000, tol=1e-10).fit(counts, labels)
    np.testing.assert_allclose(model.predict_proba(counts)[:, 1], posteriors, atol=2e-3)


def test_causes_join_atoms_in_a_tree_and_even_ones_change_nothing() -> None:
    bare = biographies(1, 1)[0]
    plain, tree = classes().read(bare), classes(causes=BOTH).read(bare)
    n = len(tree.atoms) + len(tree.contexts)
    assert len(tree.relations) == n - 1
    after = infer(tree.to_factor_graph("implication")).marginals
    truth = oracle(tree.to_factor_graph("implication")).marginals
    before = infer(plain.to_factor_graph("implication")).marginals
    even = replace(
        tree,
        relations=tuple(
            replace(r, probability=0.5) if r.kind is RelationKind.EQUIVALENCE else r
            for r in tree.relations
        ),
    )
    alone = infer(even.to_factor_graph("implication")).marginals
    for atom in tree.atoms:
        assert after[atom.id][1] == pytest.approx(truth[atom.id][1], abs=1e-12)
        assert alone[atom.id][1] == pytest.approx(before[atom.id][1], abs=1e-12)
        assert after[atom.id][1] != pytest.approx(before[atom.id][1], abs=1e-3)


def test_a_cause_is_no_passage() -> None:
    graph = biographies(1, 1)[0]
    alone, joined = (
        items_of(classes(strongest=FINE_EDGES, causes=causes), graph)[1] for causes in ((), BOTH)
    )
    names = [next(iter(row)) for row, _ in alone[2]]
    # Four claims of two passages each: one of the two is the strongest, whatever joins claims.
    assert sum(name.startswith("first") for name in names) == 4
    assert joined[:1] == alone[:1]
    assert joined[2] == alone[2]
    assert [row for row, _ in joined[3]] == [{SENTENCE: 1.0}] * 4 + [{RESPONSE: 1.0}] * 2
    # Causes are even whatever contexts are set to.
    priors = items_of(classes(causes=BOTH), graph.with_priors(contexts=0.9))[1][1]
    assert [p for _, p in priors] == [0.9] * 8 + [0.5] * 3


def test_relations_of_contexts_are_read_by_their_support() -> None:
    claims = Atom("a"), Atom("b")
    told = Relation("c", "a", RelationKind.CONTRADICTION, 0.7, (0.2, 0.7, 0.05, 0.05))
    weak = Relation("c", "b", RelationKind.NEUTRAL, 0.9, (0.05, 0.05, 0.0, 0.9))
    between = Relation("a", "b", RelationKind.CONTRADICTION, 0.8)
    graph = FactGraph("r", claims, (Context("c"),), (told, weak, between))
    read = Potentials(support=0.1).read(graph)
    assert read.relations == (Relation("c", "a", RelationKind.ENTAILMENT, 0.25), between)
    assert Potentials().read(graph) == graph


def test_equally_strong_passages_are_first_whatever_their_order() -> None:
    claims = tuple(Atom(f"a{at}", label=bool(at % 2)) for at in range(3))
    shares = (0.6, 0.1, 0.0, 0.3)
    contexts = (
        Context("wide", retrieved_for=("a0", "a1")),
        *(Context(f"c{at}", retrieved_for=("a0", "a2")) for at in range(2)),
        Context("narrow", retrieved_for=("a1",)),
    )
    relations = tuple(
        Relation(context.id, claim, RelationKind.ENTAILMENT, 0.6, shares)
        for context in contexts
        for claim in context.retrieved_for
    )
    joined = Relation("wide", "narrow", RelationKind.NEUTRAL, 0.9, (0.1, 0.0, 0.0, 0.9))
    found = []
    for step in (1, -1):
        graph = FactGraph("r", claims, contexts[::step], (*relations, joined)[::step])
        task = cross_fit_task([replace(graph, id=name) for name in ("r", "s")], 2, 0)
        terms = linear_potentials(task.graphs, task.table.of(FAMILIES["position"], ()))
        whole, items = items_of(terms, variant(task.graphs[0], "FR3"))
        own = whole.relations[: len(items[2])]
        found.append({(r.source, r.target): row for r, (row, _) in zip(own, items[2], strict=True)})
    assert found[0] == found[1]
    first = {place: row.get("own first", 0.0) for place, row in found[0].items()}
    assert first["wide", "a1"] == 1.0  # The wider of two.
    assert first["narrow", "a1"] == 0.0
    # Three, of which all serve two claims: a third each.
    assert [first[name, "a0"] for name in ("wide", "c0", "c1")] == pytest.approx([1 / 3] * 3)
    assert set(found[0]["wide", "narrow"]) == {"between", "between support"}


def test_every_method_judges_each_fold_by_the_others() -> None:
    graphs = biographies(12, 2)
    task = cross_fit_task(graphs, 3, 0)
    rate = METHODS["base rate"](task)
    for number in range(3):
        others = task.table.labels[task.fold != number]
        np.testing.assert_allclose(rate[task.fold == number], others.mean())
    found = {name: METHODS[name](task) for name in ("default", "base rate", "six classes")}
    flipped = [
        replace(g, atoms=tuple(replace(a, label=not a.label) for a in g.atoms)) if fold == 0 else g
        for g, fold in zip(graphs, task.fold[::4].tolist(), strict=True)
    ]
    other = cross_fit_task(flipped, 3, 0)
    again = METHODS["six classes"](other)
    # What a fold's own labels are has no part in how it is judged.
    np.testing.assert_allclose(
        again[task.fold == 0], found["six classes"][task.fold == 0], atol=1e-6
    )
    rows = {row["method"]: row for row in cross_fit_rows.score_rows(found, task, 0)}
    expected = ((found["six classes"] - task.table.labels) ** 2).mean()
    assert rows["six classes"]["brier"] == pytest.approx(expected, rel=1e-12)
    pairs = cross_fit_rows.difference_rows(found, ["six classes"], task, 0)
    assert len(pairs) == 2
    first = next(r for r in pairs if (r["method"], r["other"]) == ("default", "six classes"))
    gain = rows["default"]["brier"] - rows["six classes"]["brier"]
    assert first["brier"] == pytest.approx(gain, abs=1e-12)


def test_the_study_in_small(folder: Path) -> None:
    for name, seed in (("one", 2), ("two", 3)):
        write_many(biographies(12, seed), folder / f"{name}.jsonl")
    invoke(
        "run", "ours/learned-potentials", "--out", "out",
        "settings.datasets=[{path: one.jsonl}, {path: two.jsonl}]",
        "settings.methods=[default, Platt, 'boosted trees, neighbours', 'linear, neighbours']",
        "settings.curve=[Platt]", "settings.sizes=[3, 8]", "settings.folds=3",
    )  # fmt: skip
    tables = {path.stem: pd.read_csv(path) for path in (folder / "out").glob("*.csv")}
    scores = tables["scores"].set_index(["data", "method"])
    assert len(scores) == 8
    # Twelve responses of each, and a model that sees two passages of each claim.
    assert (scores.brier.xs("Platt", level=1) < 0.25).all()
    less = tables["differences"].set_index(["data", "method", "other"]).brier
    gain = scores.brier["one", "Platt"] - scores.brier["one", "default"]
    assert less["one", "Platt", "default"] == pytest.approx(gain, abs=1e-9)
    # Of twelve responses in three folds eight teach: the curve ends where the whole does.
    last = tables["curve"].set_index("labelled").brier[8]
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
    found = taught_classes(task, "FR2", "implication")
    kinds = Potentials(relations=probability("kind"))
    for number in range(3):
        own = [at for at, f in enumerate(task.fold[::4].tolist()) if f == number]
        rest = [variant(g, "FR2") for at, g in enumerate(bare) if at not in own]
        # Forests: belief propagation learns what exact inference does.
        taught = fit_potentials(rest, kinds, penalty=PENALTY)
        for at in own:
            wanted = taught.apply(variant(bare[at], "FR2"))
            assert [r.probability for r in found[at].relations] == pytest.approx(
                [r.probability for r in wanted.relations], abs=1e-3
            )


def test_positions_weigh_sentences_alike() -> None:
    graphs = biographies(5, 5)
    atoms = labelled_atoms(graphs, "data")
    values = {"true": atoms.labels, "FR1, implication": atoms.labels * 0.5}
    found = mean_by_fifth(graphs, values, atoms, 0).set_index("of")
    first = np.mean([a.label for g in graphs for a in g.atoms if a.sentence == 1])
    assert found["40-60 %"]["true"] == pytest.approx(first)
    assert found["40-60 %"]["FR1, implication"] == pytest.approx(first / 2)
    assert np.isnan(found["0-20 %"]["true"])


def test_what_approximations_move_is_held_to_enumeration() -> None:
    graphs = [replace(g, contexts=tuple(replace(c, prior=0.8) for c in g.contexts))
              for g in biographies(3, 6)]  # fmt: skip
    atoms = labelled_atoms(graphs, "data")
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
    found = {("FR1", "mixture", "exact"): true, ("FR1", "mixture", "other"): 1 - true}
    first, second = case_rows(found, atoms, 0)
    assert first["auroc"] == pytest.approx(1 - second["auroc"])
    assert second["brier_change"] == pytest.approx(second["brier"] - first["brier"], abs=1e-12)


def test_stars_learn_the_same_under_every_encoding() -> None:
    graphs, p = biographies(60, 7), {}
    for name in ENCODINGS:
        learned = fit_potentials(graphs, classes(encoding=name))
        p[name] = claim_posteriors([learned.apply(graph) for graph in graphs], name)
    # Of a certain source one row of a table counts, and each atom has two relations, so that a
    # prior makes up for what mixture cannot say: every encoding is the same logistic regression.
    for name in ENCODINGS:
        np.testing.assert_allclose(p[name], p["implication"], atol=1e-3)


def test_what_is_learned_belongs_to_its_encoding() -> None:
    graphs = [replace(g, contexts=tuple(replace(c, prior=0.7) for c in g.contexts))
              for g in biographies(40, 8)]  # fmt: skip
    task = cross_fit_task(graphs, 3, 0)
    for name in ENCODINGS:
        learned = taught_classes(task, "FR1", name)
        least = min(
            ((claim_posteriors(learned, other) - task.table.labels) ** 2).mean()
            for other in ENCODINGS
        )
        own = ((claim_posteriors(learned, name) - task.table.labels) ** 2).mean()
        assert own == pytest.approx(least, abs=1e-3), name


def test_learned_views_are_compared_with_the_right_ones() -> None:
    atoms = labelled_atoms(biographies(20, 9), "data")
    rng = np.random.default_rng(0)
    names = ("implication", "mixture", "implication, learned", "mixture, learned")
    found = {
        (view, name, "exact"): np.clip(0.6 * atoms.labels + rng.random(len(atoms.labels)), 0, 1)
        for view in ("FR1", "FR2")
        for name in names
    }
    found["FR2", "mixture, learned", "cavi"] = 1 - atoms.labels
    made = learned_rows(found, atoms, 0)
    rows = {(row["variant"], row["encoding"]): row for row in made}
    assert len(made) == len(rows)
    assert set(rows) == {(view, name) for view in ("FR1", "FR2") for name in names[2:]}
    brier = {
        key[:2]: np.mean((p - atoms.labels) ** 2) for key, p in found.items() if key[2] == "exact"
    }
    row = rows["FR2", "mixture, learned"]
    own = brier["FR2", "mixture, learned"]
    assert row["brier"] == pytest.approx(own, abs=1e-8)
    for name, other in (
        ("stated", ("FR2", "mixture")),
        ("implication", ("FR2", "implication, learned")),
        ("stars", ("FR1", "mixture, learned")),
    ):
        assert row[name] == pytest.approx(own - brier[other], abs=1e-8)
    assert rows["FR1", "implication, learned"]["stars"] == 0.0
    # Where posteriors are not known, every approximation is compared with itself.
    for name in ("implication, learned", "mixture, learned"):
        p = found.pop(("FR2", name, "exact"))
        found["FR2", name, "lbp"], found["FR2", name, "cavi"] = p, (p + 1) / 2
    made = learned_rows(found, atoms, 0)
    backends = {row["backend"]: row for row in made if row["encoding"] == "mixture, learned"}
    assert set(backends) == {"exact", "lbp", "cavi"}
    scores = [
        np.mean((found["FR2", name, "cavi"] - atoms.labels) ** 2) for name in (names[3], names[2])
    ]
    assert backends["cavi"]["implication"] == pytest.approx(scores[0] - scores[1], abs=1e-8)
