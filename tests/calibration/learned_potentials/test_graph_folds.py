"""Cross-validation: no response is split, and the comparison with the default is that of scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration import brier, log_loss
from calibration.learned_potentials.graph_fitting import fit_potentials as fit
from calibration.learned_potentials.graph_folds import (
    CrossValidation,
    cross_fitting,
    cross_validate,
)
from calibration.learned_potentials.terms import Potentials, temperature
from calibration.recalibration import PlattRecalibrator
from factormodels import Atom, FactGraph, InputError, Relation, RelationKind, datasets
from factormodels.variants import variant
from inference import infer
from inference.tasks import log_probability
from tests.calibration.learned_potentials.data import GENERATOR, generated, overconfident
from tests.refusals import refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> list[FactGraph]:
    # The last response has no label.
    return generated(40, 4)[:39]


@pytest.fixture(scope="module")
def validated(data: list[FactGraph]) -> CrossValidation:
    return cross_validate(cross_fitting(data, GENERATOR, n_folds=3))


def test_each_response_is_judged_by_the_others(
    data: list[FactGraph], validated: CrossValidation
) -> None:
    assert validated.ids == tuple(graph.id for graph in data)
    position = {name: at for at, name in enumerate(validated.ids)}
    for fold in range(3):
        rest = [g for g in data if validated.fold[position[g.id]] != fold]
        learned = fit(rest, GENERATOR)
        np.testing.assert_allclose(learned.theta, validated.fits[fold].theta, atol=1e-6)
        for graph in data:
            if validated.fold[position[graph.id]] != fold:
                continue
            model = learned.apply(graph).to_factor_graph("conditional")
            marginals = infer(model).marginals
            mine = [at for at, name in enumerate(validated.responses) if name == graph.id]
            expected = [marginals[validated.atoms[at]][1] for at in mine]
            np.testing.assert_allclose(validated.p[mine], expected, atol=1e-6)
            labels = {a.id: int(a.label) for a in graph.atoms if a.label is not None}
            found = validated.log_likelihood[position[graph.id]]
            assert found == pytest.approx(log_probability(model, labels).value, abs=1e-6)
            as_given = graph.to_factor_graph("conditional")
            found = validated.default_log_likelihood[position[graph.id]]
            assert found == pytest.approx(log_probability(as_given, labels).value, abs=1e-9)


def test_of_stars_with_certain_contexts_a_prior_and_temperature_are_platt_scaling() -> None:
    # docs/theory.md: log odds are affine in those of the default, and so are their best values.
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


def test_what_was_generated_otherwise_than_stated_is_learned() -> None:
    # Relations state far too much, and contexts are less reliable than stated.
    graphs = [overconfident(graph, 0.6) for graph in generated(150, 8)]
    found = cross_validate(cross_fitting(graphs, GENERATOR, with_errors=False))
    for score in (brier, log_loss):
        assert score(found.p, found.labels) < score(found.default, found.labels) - 0.005
    assert found.log_likelihood.sum() > found.default_log_likelihood.sum() + 10


def test_factcheck_bench_hardly_teaches_a_prior() -> None:
    # 92 responses with labels: a prior of claims alone does a little better than the default.
    graphs = datasets.load("factcheck-bench").graphs
    crossing = cross_fitting(graphs, Potentials(relations=None), n_folds=10, with_errors=False)
    found = cross_validate(crossing)
    assert found.labels.size == 631
    scores = brier(found.p, found.labels), brier(found.default, found.labels)
    assert scores == pytest.approx((0.0959, 0.0967), abs=5e-5)


def test_a_parameter_that_other_folds_do_not_hold_stays_at_its_start(data: list[FactGraph]) -> None:
    odd = data[0]
    relation = Relation("c1", "c2", RelationKind.EQUIVALENCE, 0.8)
    graphs = [replace(odd, relations=(*odd.relations, relation)), *data[1:4]]
    chosen = Potentials(relations=temperature("kind"))
    found = cross_validate(cross_fitting(graphs, chosen, n_folds=4))
    number = int(found.fold[0])
    assert found.fits[number].values["temperature[equivalence]"] == pytest.approx(1.0)
    assert found.fits[number].untouched == ("temperature[equivalence]",)
    assert all(math.isfinite(x) for x in found.p)


def test_bad_input_is_refused(data: list[FactGraph]) -> None:
    unlabelled = FactGraph("empty", (Atom("a"),))
    crossing = cross_fitting([*data[:6], unlabelled], GENERATOR, n_folds=6)
    assert "empty" not in {graph.id for graph in crossing.graphs}
    with pytest.raises(InputError, match="n_folds is 7, but there are 6 responses"):
        cross_fitting([*data[:6], unlabelled], GENERATOR, n_folds=7)
    refused("no atom of any response has a label", cross_fitting, [unlabelled], GENERATOR)


def test_crossing_fits_what_the_validation_does_fold_by_fold(
    data: list[FactGraph], validated: CrossValidation
) -> None:
    crossing = cross_fitting(data, GENERATOR, n_folds=3)
    assert crossing.n_folds == 3
    assert np.array_equal(crossing.fold, validated.fold)
    assert np.array_equal(crossing.without(1).theta, validated.fits[1].theta)
    whole, fitted = crossing.whole(), fit(data, GENERATOR)
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
    chosen = Potentials(relations=temperature("kind"))
    crossing = cross_fitting(kept, chosen, n_folds=2)
    alone, together = crossing.whole(), crossing.whole(unseen)
    refused("nothing was learned", alone.apply, unseen[0])
    assert together.values["temperature[contradiction]"] == 1.0
    assert together.untouched == ("temperature[contradiction]",)
    # What labels bear on ends where it does without the rest, up to where the search stops.
    for name, value in alone.values.items():
        assert together.values[name] == pytest.approx(value, rel=1e-6)
    together.apply(unseen[0])
