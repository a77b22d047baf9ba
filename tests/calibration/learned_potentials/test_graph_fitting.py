"""Fitting: recovery of known parameters, errors, identifiability, statuses and bad input."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from calibration.learned_potentials.graph_fitting import FitStatus, LearnedPotentials, ValueStatus
from calibration.learned_potentials.graph_fitting import fit_potentials as fit
from calibration.learned_potentials.graph_potentials import Potentials, kind_class, stance_class
from factormodels import Atom, Context, FactGraph, InputError, Relation, RelationKind, datasets
from factormodels.claims import ContextKind
from factormodels.io.formats.stances import DEFAULT_STANCES
from tests.calibration.learned_potentials.data import GENERATOR, TRUTH, generated, relabeled
from tests.oracle import oracle
from tests.refusals import refused

pytestmark = pytest.mark.slow

ENTAILMENT = RelationKind.ENTAILMENT
PRIOR = Potentials(("atom_prior",))
OF_CONTEXTS = Potentials(("context_prior", "temperature"))
OF_KINDS = Potentials(("atom_prior", "probability"))


@pytest.fixture(scope="module")
def learned() -> LearnedPotentials:
    return fit(generated(300, 0), GENERATOR)


def test_parameters_of_the_generator_are_recovered(learned: LearnedPotentials) -> None:
    assert learned.status is FitStatus.CONVERGED
    assert not learned.confounded
    errors = np.sqrt(np.diag(learned.covariance))
    for value, error in zip(learned.table(), errors, strict=True):
        truth = TRUTH[value.name]
        logit = truth if value.name == "temperature" else math.log(truth / (1 - truth))
        # Two standard errors; coverage over many data sets is `recovery_simulation`'s to show.
        assert abs(learned.by_name[value.name] - logit) <= 2.0 * error
        assert error < 0.6
        assert value.lower < value.estimate < value.upper
        assert value.status is ValueStatus.OK


def test_classes_and_groups_are_recovered_from_labels_of_the_model_itself() -> None:
    potentials = Potentials(
        ("atom_prior", "probability"),
        lambda graph, relation: f"{graph.topic} {relation.kind}",
        "implication",
    )
    graphs = [
        replace(graph, topic="science" if number % 2 else "arts").with_priors(contexts=0.9)
        for number, graph in enumerate(generated(300, 5))
    ]
    started = fit(graphs, potentials, max_iterations=1)
    truth = {
        "atom_prior": 0.4,
        "probability[arts contradiction]": 0.75,
        "probability[arts entailment]": 0.85,
        "probability[science contradiction]": 0.9,
        "probability[science entailment]": 0.7,
    }
    assert tuple(weight.name for weight in started.weights) == tuple(truth)
    logits = {name: math.log(p / (1 - p)) for name, p in truth.items()}
    model = replace(started, theta=np.array(list(logits.values())))
    fitted = fit(relabeled(graphs, model, seed=4), potentials)
    for (name, value), error in zip(
        fitted.by_name.items(), np.sqrt(np.diag(fitted.covariance)), strict=True
    ):
        assert abs(value - logits[name]) <= 2.0 * error
        assert error < 0.6


def labeled(name: str, labels: Sequence[bool]) -> FactGraph:
    """Return a response of lone claims."""
    return FactGraph(name, tuple(Atom(f"a{i}", label=label) for i, label in enumerate(labels)))


def test_a_fit_by_hand() -> None:
    # Seven of ten lone atoms are true, so the prior is 7/10. The variance of the mean is that of
    # responses, each residual divided by the root of 1 minus the share of its response (CR2).
    rows = [[True] * 4, [True] * 3, [False] * 2, [False]]
    graphs = [labeled(f"r{n}", row) for n, row in enumerate(rows)]
    fitted = fit(graphs, PRIOR)
    assert fitted.values == {"atom_prior": pytest.approx(0.7, abs=1e-7)}
    residuals = [(sum(row) - 0.7 * len(row)) / math.sqrt(1 - len(row) / 10) / 10 for row in rows]
    variance = sum(r**2 for r in residuals)
    (value,) = fitted.table()
    # The curvature is found by differences of the gradient, right to 1e-8 of itself.
    assert value.standard_error == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert fitted.value == pytest.approx(-7 * math.log(0.7) - 3 * math.log(0.3), abs=1e-9)
    # Student's quantile: a response has a share of the curvature like its number of claims. By the
    # residuals there are more degrees of freedom.
    effective = 10**2 / (4**2 + 3**2 + 2**2 + 1**2)
    assert value.effective == pytest.approx(effective, rel=1e-6)
    freedom = effective - 1
    assert freedom < 3 * variance**2 / sum(r**4 for r in residuals) - 2
    quantile = stats.t.ppf(0.975, freedom)
    logit, reach = math.log(0.7 / 0.3), quantile * math.sqrt(fitted.covariance[0, 0])
    assert fitted.freedom[0] == pytest.approx(freedom, rel=1e-6)
    assert value.lower == pytest.approx(1 / (1 + math.exp(reach - logit)), rel=1e-6)


@pytest.mark.parametrize("objective", ["likelihood", "log_loss"])
def test_labels_that_agree_by_chance_leave_the_variance_of_independent_ones(objective: str) -> None:
    # The share of true claims is the same in every response, so that residuals are 0.
    graphs = [labeled(f"r{n}", [True, True, False]) for n in range(6)]
    (value,) = fit(graphs, PRIOR, objective=objective).table()
    assert value.standard_error == pytest.approx(math.sqrt(2 / 3 * 1 / 3 / 18), rel=1e-6)


def test_few_long_responses_leave_few_degrees_of_freedom() -> None:
    sizes = [30, *[1] * 10]
    rng = np.random.default_rng(0)
    graphs = [
        FactGraph(f"r{n}", tuple(Atom(f"a{i}", label=bool(rng.random() < 0.7)) for i in range(m)))
        for n, m in enumerate(sizes)
    ]
    fitted = fit(graphs, PRIOR)
    assert fitted.effective[0] == pytest.approx(40**2 / (30**2 + 10), rel=1e-6)
    assert fitted.freedom[0] <= fitted.effective[0] - 1
    # Equal responses of which few hold false claims: these have the variance.
    rows = [[True] * 4] * 38 + [[False] * 4] * 2
    even = fit([labeled(f"r{n}", row) for n, row in enumerate(rows)], PRIOR)
    assert even.effective[0] == pytest.approx(40, rel=1e-6)
    squares = np.array([0.05**2] * 38 + [0.95**2] * 2)
    expected = 3 * squares.sum() ** 2 / (squares @ squares) - 2
    assert even.freedom[0] == pytest.approx(expected, rel=1e-5)
    # Nothing but one response decides the second weight, which therefore has no interval.
    cited = FactGraph(
        "cited",
        tuple(Atom(f"a{i}", label=i != 1) for i in range(6)),
        tuple(Context(f"c{i}") for i in range(6)),
        tuple(Relation(f"c{i}", f"a{i}", ENTAILMENT, 0.9) for i in range(6)),
    )
    values = {each.name: each for each in fit([*graphs, cited], OF_KINDS, penalty=3.0).table()}
    assert values["atom_prior"].lower < values["atom_prior"].upper
    assert math.isnan(values["probability[entailment]"].lower)


@pytest.mark.parametrize("objective", ["log_loss", "brier"])
def test_single_atoms_have_the_same_best_prior_under_every_objective(objective: str) -> None:
    atoms = tuple(Atom(f"a{i}", label=i % 4 > 0) for i in range(8))
    fitted = fit([FactGraph("r", atoms)], PRIOR, objective=objective)
    assert fitted.values["atom_prior"] == pytest.approx(0.75, abs=1e-6)
    assert math.isnan(fitted.table()[0].standard_error)


def test_learned_parameters_are_applied(learned: LearnedPotentials) -> None:
    graph = generated(3, 9)[2]
    neutral = Relation("c1", graph.atoms[-1].id, RelationKind.NEUTRAL, 0.4)
    taken = {(r.source, r.target) for r in graph.relations}
    if (neutral.source, neutral.target) not in taken:
        graph = replace(graph, relations=(neutral, *graph.relations))
    applied = learned.apply(graph)
    values = learned.values
    assert {a.prior for a in applied.atoms} == {values["atom_prior"]}
    assert {c.prior for c in applied.contexts} == {values["context_prior"]}
    for before, after in zip(graph.relations, applied.relations, strict=True):
        p = before.probability
        moved = 1 / (1 + ((1 - p) / p) ** values["temperature"])
        expected = p if before.kind is RelationKind.NEUTRAL else moved
        assert after.probability == pytest.approx(expected, rel=1e-12)


def one_relation_each(n: int, p: float) -> list[FactGraph]:
    """Return responses of one atom that one context entails with probability p."""
    return [
        FactGraph(
            f"r{i}",
            (Atom("a", label=i % 5 > 0),),
            (Context("c"),),
            (Relation("c", "a", ENTAILMENT, p),),
        )
        for i in range(n)
    ]


def test_effects_that_labels_cannot_separate_are_named(caplog: pytest.LogCaptureFixture) -> None:
    # Each atom hears of its context and relation through one number, and of its prior through it.
    with caplog.at_level(logging.WARNING):
        graphs = [graph.with_priors(contexts=0.8) for graph in one_relation_each(50, 0.7)]
        fitted = fit(graphs, OF_CONTEXTS)
    assert fitted.confounded == (("context_prior", "temperature"),)
    assert {value.status for value in fitted.table()} == {ValueStatus.CONFOUNDED}
    assert all(math.isnan(value.lower) for value in fitted.table())
    assert "cannot distinguish context_prior and temperature" in caplog.text


def test_a_parameter_that_no_label_bears_on_is_named(caplog: pytest.LogCaptureFixture) -> None:
    graphs = one_relation_each(20, 0.7)
    alone = FactGraph("lone", (Atom("a", label=True), Atom("b")), (Context("c"),), ())
    related = replace(
        alone, relations=(Relation("c", "b", RelationKind.CONTRADICTION, 0.9),), id="other"
    )
    with caplog.at_level(logging.WARNING):
        fitted = fit([*graphs, alone, related], Potentials(by="kind"))
    assert fitted.untouched == ("temperature[contradiction]",)
    assert fitted.values["temperature[contradiction]"] == pytest.approx(1.0)
    assert "no label depends on temperature[contradiction]" in caplog.text


def test_a_penalty_determines_what_labels_do_not() -> None:
    graphs = [graph.with_priors(contexts=0.8) for graph in one_relation_each(50, 0.7)]
    fitted = fit(graphs, OF_CONTEXTS, penalty=1.0)
    assert fitted.status is FitStatus.CONVERGED
    assert all(value.standard_error > 0 for value in fitted.table())
    tight = fit(graphs, OF_CONTEXTS, penalty=1e-3)
    assert tight.values["context_prior"] == pytest.approx(0.8, abs=1e-4)


def test_labels_that_are_all_alike_are_a_status() -> None:
    graphs = [replace(g, atoms=(Atom("a", label=True),)) for g in one_relation_each(10, 0.7)]
    fitted = fit(graphs, PRIOR)
    assert fitted.status is FitStatus.ONE_LABEL
    assert fitted.boundary == ("atom_prior",)
    assert math.isnan(fitted.table()[0].standard_error)


def test_a_weight_that_moved_to_where_labels_say_no_more_is_not_called_untouched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    graphs = [replace(g, atoms=(Atom("a", label=True),)) for g in one_relation_each(10, 0.7)]
    with caplog.at_level(logging.WARNING):
        fitted = fit(graphs, PRIOR, objective="brier")
    assert fitted.theta[0] > 5
    assert not fitted.untouched
    assert fitted.table()[0].status in (ValueStatus.CONFOUNDED, ValueStatus.BOUNDARY)
    assert "keeps its initial value" not in caplog.text


def test_a_search_cut_short_is_a_status() -> None:
    graphs = generated(30, 0)
    cut, fitted = fit(graphs, GENERATOR, max_iterations=1), fit(graphs, GENERATOR)
    assert cut.status is FitStatus.NOT_CONVERGED
    assert fitted.value < cut.value
    # Where a prior is next to 1, the Brier score has no gradient to speak of.
    certain = [
        FactGraph(f"g{n}", tuple(Atom(f"a{k}", prior=1.0, label=k < 1) for k in range(4)))
        for n in range(5)
    ]
    cut = fit(certain, PRIOR, objective="brier", max_iterations=1)
    assert cut.status is FitStatus.NOT_CONVERGED
    assert fit(certain, PRIOR, objective="brier").values["atom_prior"] == pytest.approx(0.25)


def test_a_parameter_pushed_to_its_end_is_a_status() -> None:
    graphs = [
        replace(g, atoms=(Atom("a", label=True), Atom("b", label=n % 2 == 0)))
        for n, g in enumerate(one_relation_each(20, 0.7))
    ]
    fitted = fit(graphs, OF_KINDS)
    assert fitted.status is FitStatus.BOUNDARY
    assert fitted.boundary == ("probability[entailment]",)
    assert fitted.table()[0].standard_error > 0


def test_stances_are_classes() -> None:
    graphs = datasets.load("factcheck-bench").graphs
    fitted = fit(graphs, Potentials(("atom_prior", "probability"), stance_class()))
    assert tuple(fitted.values) == (
        "atom_prior",
        "probability[completely-support]",
        "probability[partially-support]",
        "probability[refute]",
    )
    assert fitted.values["probability[completely-support]"] > 0.85
    assert fitted.status is FitStatus.CONVERGED


def test_relations_of_samples_have_strengths_of_their_own() -> None:
    """By hand: under certain contexts the strength of a class is the share of its true claims."""
    graphs = []
    for number in range(10):
        atoms = Atom("a1", label=number < 9), Atom("a2", label=number < 6)
        contexts = Context("c1", prior=1.0), Context("s1", prior=1.0, kind=ContextKind.SAMPLE)
        relations = Relation("c1", "a1", ENTAILMENT, 0.8), Relation("s1", "a2", ENTAILMENT, 0.8)
        graphs.append(FactGraph(f"r{number}", atoms, contexts, relations))
    learned = fit(graphs, Potentials(("probability",), by=kind_class))
    assert learned.values == {
        "probability[passage entailment]": pytest.approx(0.9, abs=1e-4),
        "probability[sample entailment]": pytest.approx(0.6, abs=1e-4),
    }


def test_stances_that_are_one_relation_are_refused() -> None:
    twice = {**DEFAULT_STANCES, "partially-support": ("entailment", 0.9)}
    refused(r"'completely-support' and 'partially-support' are both", stance_class, twice)
    with pytest.raises(InputError, match=r"comes from no stance"):
        fit(one_relation_each(5, 0.77), Potentials(("atom_prior", "probability"), stance_class()))


def test_bad_input_is_refused() -> None:
    graphs = one_relation_each(6, 0.7)
    unlabeled = [replace(g, atoms=(Atom("a"),)) for g in graphs]
    certain = one_relation_each(6, 1.0)
    impossible = [g.with_priors(atoms=0.0) for g in graphs]
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: fit(unlabeled), "no atom of any response has a label"),
        (lambda: fit([]), "contain nothing that the potentials learn"),
        (lambda: fit(certain), "probability 1.0, which no temperature moves"),
        (
            lambda: fit(impossible, Potentials(("context_prior",))),
            "the labels of response 'r1' are impossible",
        ),
        (
            lambda: fit(impossible, Potentials(("context_prior",)), objective="log_loss"),
            "the label of atom 'r1/a' has probability 0",
        ),
        (lambda: fit([graphs[0], graphs[0]]), "two responses have the id 'r0'"),
        (lambda: fit(graphs, objective="ece"), "choose one of likelihood, log_loss, brier"),
        (lambda: fit(graphs, penalty=0.0), "penalty is 0.0; give a standard deviation above 0"),
        (lambda: fit(graphs, max_iterations=0), "max_iterations is 0"),
        (lambda: fit(graphs, backend="magic"), "the backend 'magic' is unknown"),
        (lambda: fit(graphs, Potentials(())), "nothing that the potentials learn"),
        (lambda: Potentials(encoding="magic"), "the encoding 'magic' is unknown"),
        (lambda: Potentials(by="mood"), "use 'kind' or a function"),  # type: ignore[arg-type]
        (lambda: Potentials(("prior",)), "the parameter 'prior' is unknown"),
        (lambda: Potentials(("temperature", "probability")), "learn one of the two"),
        (lambda: fit(graphs, backend="wmb"), "'wmb' has no beliefs that are the derivative"),
        (
            lambda: fit(graphs, Potentials(("probability",), lambda graph, _: graph.topic)),
            "'' is not a name of a class",
        ),
    ]
    for call, words in cases:
        refused(words, call)


def test_a_class_that_was_never_seen_is_refused() -> None:
    graphs = one_relation_each(10, 0.7)
    fitted = fit(graphs, OF_KINDS)
    other = replace(
        graphs[0], relations=(Relation("c", "a", RelationKind.CONTRADICTION, 0.9),), id="new"
    )
    refused(
        r"'new' holds 'probability.contradiction.', for which nothing was learned",
        fitted.apply,
        other,
    )


def test_lbp_fits_forests_as_exact_does() -> None:
    graphs = one_relation_each(40, 0.7)
    exact = fit(graphs, penalty=1.0)
    other = fit(graphs, backend="lbp", penalty=1.0)
    assert other.backend == "lbp"
    assert other.status is exact.status
    # One relation is a forest.
    np.testing.assert_allclose(other.theta, exact.theta, atol=1e-4)
    np.testing.assert_allclose(other.covariance, exact.covariance, rtol=1e-2)


def test_neutral_relations_that_mixture_reads_are_learned_and_applied() -> None:
    rng = np.random.default_rng(1)
    kinds = (RelationKind.ENTAILMENT, RelationKind.NEUTRAL, RelationKind.NEUTRAL)
    graphs = []
    for number in range(12):
        relations = tuple(
            Relation(f"c{at}", "a", kind, p, _shares(kind, p))
            for at, (kind, p) in enumerate(zip(kinds, rng.uniform(0.5, 0.8, 3), strict=True))
        )
        contexts = tuple(Context(f"c{at}") for at in range(3))
        atom = Atom("a", label=bool(number % 3))
        graphs.append(FactGraph(f"r{number}", (atom,), contexts, relations))
    chosen = Potentials(by="kind", encoding="mixture")
    learned = fit(graphs, chosen, penalty=1.0)
    assert set(learned.values) == {"atom_prior", "temperature[entailment]", "temperature[neutral]"}
    value = 0.0
    for graph in map(learned.apply, graphs):
        assert {r.probability for r in graph.relations} != {0.5}
        truth = oracle(graph.to_factor_graph("mixture"))
        value -= np.log(truth.marginals["a"][int(graph.atoms[0].label is True)])
    assert learned.value == pytest.approx(value, abs=1e-9)
    # Under the other encodings neutral relations stay what they are.
    other = fit(graphs, replace(chosen, encoding="implication"), penalty=1.0)
    assert set(other.values) == {"atom_prior", "temperature[entailment]"}
    assert other.apply(graphs[0]).relations[1] == graphs[0].relations[1]


def _shares(kind: RelationKind, p: float) -> tuple[float, ...]:
    """Return a distribution: the rest is contradicted or of the other kind."""
    if kind is RelationKind.ENTAILMENT:
        return (p, 0.1, 0.0, 0.9 - p)
    return (0.9 - p, 0.1, 0.0, p)
