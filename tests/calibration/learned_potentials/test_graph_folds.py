"""Cross-validation: no response is split, and the default is compared as in scores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calibration import brier, log_loss
from calibration.learned_potentials.graph_fitting import WHOLE, CrossFitting, cross_fitting
from calibration.learned_potentials.graph_fitting import fit_potentials as fit
from calibration.learned_potentials.graph_potentials import Potentials
from calibration.recalibration import PlattRecalibrator
from factormodels import Atom, FactGraph, InputError, Relation, RelationKind, datasets
from factormodels.variants import variant
from inference import infer
from inference.batch import claim_posteriors
from inference.tasks import log_probability
from tests.calibration.learned_potentials.data import GENERATOR, generated, overconfident
from tests.refusals import refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> list[FactGraph]:
    # The last response has no label.
    return generated(40, 4)[:39]


def test_each_response_is_judged_by_the_others(data: list[FactGraph]) -> None:
    bare = replace(data[0], id="bare", atoms=tuple(replace(a, label=None) for a in data[0].atoms))
    data = [*data, bare]
    crossing = cross_fitting(data, GENERATOR, n_folds=3)
    assert np.flatnonzero(crossing.fold == WHOLE).tolist() == [len(data) - 1]
    fits, applied = crossing.learned()
    assert [graph.id for graph in applied] == [graph.id for graph in data]
    for number in (0, 1, 2, WHOLE):
        rest = [
            graph
            for graph, fold in zip(data, crossing.fold, strict=True)
            if fold not in (number, WHOLE)
        ]
        learned = fit(rest, GENERATOR)
        np.testing.assert_allclose(learned.theta, fits[number].theta, atol=1e-6)
        for position in np.flatnonzero(crossing.fold == number):
            expected, learned_posterior = (
                infer(graph.to_factor_graph("conditional")).marginals.flat
                for graph in (learned.apply(data[position]), applied[position])
            )
            np.testing.assert_allclose(learned_posterior, expected, atol=1e-6)


def test_prior_and_temperature_on_stars_with_certain_contexts_are_platt_scaling() -> None:
    # docs/appendix/derivations.md: log odds are affine in those of the default, and so are their
    # best values.
    graphs = [
        replace(variant(graph, "FR1").with_priors(contexts=1.0), id=f"{at}")
        for at, graph in enumerate(generated(60, 3))
    ]
    learned = fit(graphs, Potentials(encoding="implication"))
    default, labels, posterior = [], [], []
    for graph in graphs:
        given = infer(graph.to_factor_graph("implication")).marginals
        after = infer(learned.apply(graph).to_factor_graph("implication")).marginals
        for atom in graph.atoms:
            if atom.label is not None:
                default.append(given[atom.id][1])
                posterior.append(after[atom.id][1])
                labels.append(atom.label)
    platt = PlattRecalibrator(smooth=False).fit(default, labels)
    np.testing.assert_allclose(platt.predict(default), posterior, atol=1e-5)
    assert platt.slope_ == pytest.approx(learned.values["temperature"], abs=1e-4)


def held_out(crossing: CrossFitting) -> dict[str, tuple[Any, ...]]:
    """Brier score, log loss and mean log probability of labels, by name of the graphs."""
    totals, encoding = {}, crossing.potentials.encoding
    for name, graphs in (("learned", crossing.learned()[1]), ("default", crossing.graphs)):
        labels = {(g.id, a.id): a.label for g in graphs for a in g.atoms}
        known = np.array([label is not None for label in labels.values()])
        truth = np.array(list(labels.values()))[known].astype(int)
        p = claim_posteriors(graphs, encoding)[known]
        joint = [
            log_probability(graph.to_factor_graph(encoding), label_of).value
            for graph in graphs
            if (label_of := {a.id: int(a.label) for a in graph.atoms if a.label is not None})
        ]
        totals[name] = brier(p, truth), log_loss(p, truth), float(np.sum(joint)), len(p)
    return totals


def test_parameters_that_differ_from_the_stated_are_learned() -> None:
    # Relations state far too much, and contexts are less reliable than stated.
    graphs = [overconfident(graph, 0.6) for graph in generated(150, 8)]
    unseen = held_out(cross_fitting(graphs, GENERATOR, with_errors=False))
    for learned, default in zip(unseen["learned"][:2], unseen["default"][:2], strict=True):
        assert learned < default - 0.005
    assert unseen["learned"][2] > unseen["default"][2] + 10


def test_factcheck_bench_hardly_teaches_a_prior() -> None:
    # 92 responses with labels: a prior of claims alone does a little better than the default.
    graphs = datasets.load("factcheck-bench").graphs
    crossing = cross_fitting(graphs, Potentials(("atom_prior",)), n_folds=10, with_errors=False)
    unseen = held_out(crossing)
    assert unseen["learned"][3] == 631
    scores = unseen["learned"][0], unseen["default"][0]
    assert scores == pytest.approx((0.0959, 0.0967), abs=5e-5)


def test_a_parameter_that_other_folds_do_not_hold_stays_at_its_start(data: list[FactGraph]) -> None:
    odd = data[0]
    relation = Relation("c1", "c2", RelationKind.EQUIVALENCE, 0.8)
    graphs = [replace(odd, relations=(*odd.relations, relation)), *data[1:4]]
    chosen = Potentials(by="kind")
    crossing = cross_fitting(graphs, chosen, n_folds=4)
    fits, applied = crossing.learned()
    number = int(crossing.fold[0])
    assert fits[number].values["temperature[equivalence]"] == pytest.approx(1.0)
    assert fits[number].untouched == ("temperature[equivalence]",)
    assert np.isfinite(claim_posteriors(applied)).all()


def test_bad_input_is_refused(data: list[FactGraph]) -> None:
    unlabeled = FactGraph("empty", (Atom("a"),))
    crossing = cross_fitting([*data[:6], unlabeled], GENERATOR, n_folds=6)
    assert sorted(crossing.fold) == [WHOLE, *range(6)]
    with pytest.raises(InputError, match="n_folds is 7, but there are 6 responses"):
        cross_fitting([*data[:6], unlabeled], GENERATOR, n_folds=7)
    refused("no atom of any response has a label", cross_fitting, [unlabeled], GENERATOR)


def test_all_labeled_responses_teach_what_a_fit_to_them_does(data: list[FactGraph]) -> None:
    whole, fitted = cross_fitting(data, GENERATOR, n_folds=3).without(WHOLE), fit(data, GENERATOR)
    assert np.array_equal(whole.theta, fitted.theta)
    assert np.array_equal(whole.covariance, fitted.covariance)


def test_unseen_responses_add_what_they_alone_hold(data: list[FactGraph]) -> None:
    kept = [
        replace(g, relations=tuple(r for r in g.relations if r.kind is RelationKind.ENTAILMENT))
        for g in data[:12]
    ]
    unseen = [replace(data[20], atoms=tuple(replace(a, label=None) for a in data[20].atoms))]
    assert {r.kind for r in unseen[0].relations} == {
        RelationKind.ENTAILMENT,
        RelationKind.CONTRADICTION,
    }
    chosen = Potentials(by="kind")
    alone, together = (
        cross_fitting(graphs, chosen, n_folds=2).without(WHOLE) for graphs in (kept, kept + unseen)
    )
    refused("nothing was learned", alone.apply, unseen[0])
    assert together.values["temperature[contradiction]"] == 1.0
    assert together.untouched == ("temperature[contradiction]",)
    # What labels bear on ends where it does without the rest, up to where the search stops.
    for name, value in alone.values.items():
        assert together.values[name] == pytest.approx(value, rel=1e-6)
    together.apply(unseen[0])
