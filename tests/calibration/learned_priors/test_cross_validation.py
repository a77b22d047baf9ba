"""Cross-validation: no response is split, and the comparison with the default is that of scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from calibration import brier, log_loss
from calibration.learned_priors import (
    CrossValidation,
    FitStatus,
    Specification,
    Temperature,
    cross_fitting,
    cross_validate,
    fit,
)
from calibration.recalibration import PlattRecalibrator, cross_fit
from factormodels import Atom, FactGraph, InputError, Relation, RelationKind, datasets
from factormodels.variants import variant
from inference import infer
from inference.tasks import log_probability
from tests.calibration.learned_priors.data import GENERATOR, generated, overconfident
from tests.refusals import refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> list[FactGraph]:
    # The last response has no label.
    return generated(40, 4)[:39]


@pytest.fixture(scope="module")
def validated(data: list[FactGraph]) -> CrossValidation:
    return cross_validate(data, GENERATOR, n_folds=3, n_bootstrap=200)


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


def test_scores_are_those_of_the_posteriors(validated: CrossValidation) -> None:
    for name, score in (("brier", brier), ("log_loss", log_loss)):
        learned, default = validated.score(name)
        assert learned == pytest.approx(score(validated.p, validated.labels), rel=1e-12)
        assert default == pytest.approx(score(validated.default, validated.labels), rel=1e-12)
        assert validated.comparisons[name].value == pytest.approx(learned - default, abs=1e-12)
    gain = (validated.default_log_likelihood - validated.log_likelihood).mean()
    assert validated.comparisons["log_likelihood"].value == pytest.approx(gain, abs=1e-12)


def test_rivals_learn_without_a_graph_from_the_same_folds(validated: CrossValidation) -> None:
    own = {name: int(fold) for name, fold in zip(validated.ids, validated.fold, strict=True)}
    fold = np.array([own[name] for name in validated.responses])
    for number in range(3):
        others = validated.labels[fold != number]
        rate = (others.sum() + 1) / (len(others) + 2)
        np.testing.assert_allclose(validated.rivals["base_rate"][fold == number], rate, rtol=1e-12)
    platt = cross_fit(
        PlattRecalibrator(), validated.default, validated.labels, validated.responses, n_folds=3
    )
    np.testing.assert_allclose(validated.rivals["platt"], platt.p, atol=1e-9)
    for rival, tests in validated.rival_comparisons.items():
        for name, test in tests.items():
            gain = validated.score(name)[0] - validated.rival_score(rival, name)
            assert test.value == pytest.approx(gain, abs=1e-12)
            assert test.lower <= test.value <= test.upper


def test_of_stars_with_certain_contexts_a_prior_and_temperature_are_platt_scaling() -> None:
    # docs/theory.md: log odds are affine in those of the default, and so are their best values.
    graphs = [
        replace(variant(graph, "FR1").with_priors(contexts=1.0), id=f"{at}")
        for at, graph in enumerate(generated(60, 3))
    ]
    learned = fit(graphs, Specification(encoding="implication"))
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
    found = cross_validate(graphs, GENERATOR, n_bootstrap=500)
    for name in ("brier", "log_loss", "log_likelihood"):
        assert found.comparisons[name].upper < 0.0


def test_factcheck_bench_does_not_tell_learned_priors_from_the_default() -> None:
    # 92 responses with labels: what they teach is too little to be told from the default mapping.
    # The prior of atoms alone does best; with reliabilities the log loss is above the default's.
    graphs = datasets.load("factcheck-bench").graphs
    found = cross_validate(graphs, Specification(relations=None), n_folds=10)
    assert found.labels.size == 631
    assert found.score("brier") == pytest.approx((0.0959, 0.0967), abs=5e-5)
    assert found.score("log_loss") == pytest.approx((0.3023, 0.3037), abs=5e-5)
    for test in found.comparisons.values():
        assert test.value < 0.0 < test.upper


def test_a_parameter_that_other_folds_do_not_hold_stays_at_its_start(data: list[FactGraph]) -> None:
    odd = data[0]
    relation = Relation("c1", "c2", RelationKind.EQUIVALENCE, 0.8)
    graphs = [replace(odd, relations=(*odd.relations, relation)), *data[1:8]]
    found = cross_validate(
        graphs, Specification(relations=Temperature("kind")), n_folds=8, n_bootstrap=50
    )
    number = int(found.fold[0])
    assert found.fits[number].values["temperature[equivalence]"] == pytest.approx(1.0)
    assert found.fits[number].untouched == ("temperature[equivalence]",)
    assert all(math.isfinite(x) for x in found.p)


def test_a_fold_that_does_not_converge_is_counted(data: list[FactGraph]) -> None:
    found = cross_validate(data[:10], GENERATOR, n_folds=2, max_iterations=1, n_bootstrap=50)
    assert found.not_converged == (0, 1)
    assert {part.status for part in found.fits} == {FitStatus.NOT_CONVERGED}


def test_bad_input_is_refused(data: list[FactGraph]) -> None:
    unlabelled = FactGraph("empty", (Atom("a"),))
    found = cross_validate([*data[:6], unlabelled], n_folds=6, n_bootstrap=50)
    assert "empty" not in found.ids
    with pytest.raises(InputError, match="n_folds is 7, but there are 6 responses"):
        cross_validate([*data[:6], unlabelled], n_folds=7)
    refused("no atom of any response has a label", cross_validate, [unlabelled])


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
    chosen = Specification(relations=Temperature("kind"))
    crossing = cross_fitting(kept, chosen, n_folds=2)
    alone, together = crossing.whole(), crossing.whole(unseen)
    refused("nothing was learned", alone.apply, unseen[0])
    assert together.values["temperature[contradiction]"] == 1.0
    assert together.untouched == ("temperature[contradiction]",)
    # What labels bear on ends where it does without the rest, up to where the search stops.
    for name, value in alone.values.items():
        assert together.values[name] == pytest.approx(value, rel=1e-6)
    together.apply(unseen[0])
