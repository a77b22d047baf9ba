"""LearnedPotentials: the fitted weights, how well they are known, and graphs that hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

import numpy as np

from calibration.intervals import student_quantile
from calibration.learned_potentials.design import design
from calibration.learned_potentials.objectives import Objective
from calibration.learned_potentials.terms import Parameters, Potentials
from calibration.tabular import TableOf
from calibration.validation import Floats
from factormodels.claims import LEAST_PROBABILITY, evidence_or_neutral
from factormodels.evidence_source import EvidenceSource
from factormodels.fact_graph import FactGraph


class FitStatus(StrEnum):
    """How a search ended."""

    CONVERGED = "converged"
    NOT_CONVERGED = "not_converged"
    """The gradient is not 0 yet, or the backend does not vouch for its answer at the end."""
    BOUNDARY = "boundary"
    """A parameter stands at the end of its range: the labels push it to 0, 1 or infinity."""
    ONE_LABEL = "one_label"
    """All labels are alike, so that nothing but the range stops the search."""


class ValueStatus(StrEnum):
    """Whether the labels determine a parameter."""

    OK = "ok"
    BOUNDARY = "boundary"
    UNTOUCHED = "untouched"
    """No label bears on it; it stays where it started."""
    CONFOUNDED = "confounded"
    """It moves together with others without the objective noticing."""


@dataclass(frozen=True)
class LearnedValue:
    """One learned number: a probability, or the weight of a column.

    Attributes:
        name: what it is.
        estimate: its value.
        lower: lower end of its interval; nan without one.
        upper: upper end.
        standard_error: clustered by response, by the delta method; nan without one.
        start: where the search started.
        unbounded: the value on the scale of the search, the logit of a probability.
        unbounded_error: its standard error on that scale.
        status: whether the labels determine it.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    standard_error: float
    start: float
    unbounded: float
    unbounded_error: float
    status: ValueStatus


@dataclass(frozen=True, eq=False)
class LearnedPotentials:
    """Priors and strengths of relations learned from labels.

    Attributes:
        potentials: what was learned.
        parameters: the weights, in order.
        theta: float64 (k,), their values.
        covariance: float64 (k, k), clustered by response; nan where unknown.
        objective: what was minimised.
        backend: name of the inference backend; of ``auto`` what it chose, ``exact`` or ``lbp``.
        value: the objective at the end, without the penalty.
        n_responses: number of responses with a label.
        n_labelled: number of labelled atoms.
        iterations: iterations of the search.
        gradient: largest entry of the gradient at the end, bounds aside, per labelled atom.
        status: how the search ended.
        boundary: names of parameters at the end of their range.
        untouched: names of parameters on which no label bears.
        confounded: names of parameters that the labels cannot tell apart, group by group.
        penalty: standard deviation of the penalty, or None.
        sources: what made the evidence that it was learned from, as far as the graphs say.
    """

    potentials: Potentials
    parameters: Parameters
    theta: Floats
    covariance: Floats
    objective: Objective
    backend: str
    value: float
    n_responses: int
    n_labelled: int
    iterations: int
    gradient: float
    status: FitStatus
    boundary: tuple[str, ...]
    untouched: tuple[str, ...]
    confounded: tuple[tuple[str, ...], ...]
    penalty: float | None
    sources: tuple[EvidenceSource, ...]

    @property
    def values(self) -> dict[str, float]:
        """The learned probabilities and weights by name."""
        return {
            item.name: item.natural(float(value))
            for item, value in zip(self.parameters, self.theta, strict=True)
        }

    def table(self, level: float = 0.95) -> TableOf[LearnedValue]:
        """Learned numbers with their errors and intervals.

        Intervals are Student's with one degree of freedom less than there are responses, of a
        probability on the logit scale.

        Args:
            level: nominal coverage of the intervals.
        """
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(np.diag(self.covariance)).tolist()
        quantile = float(student_quantile(level, self.n_responses - 1))
        statuses = {
            **dict.fromkeys(chain(*self.confounded), ValueStatus.CONFOUNDED),
            **dict.fromkeys(self.untouched, ValueStatus.UNTOUCHED),
            **dict.fromkeys(self.boundary, ValueStatus.BOUNDARY),
        }
        rows = []
        for item, value, error in zip(self.parameters, self.theta.tolist(), errors, strict=True):
            known = item.natural(value)
            rows.append(
                LearnedValue(
                    name=item.name,
                    estimate=known,
                    lower=item.natural(value - quantile * error),
                    upper=item.natural(value + quantile * error),
                    standard_error=error * (known * (1.0 - known) if item.is_level else 1.0),
                    start=item.natural(item.start),
                    unbounded=value,
                    unbounded_error=error,
                    status=statuses.get(item.name, ValueStatus.OK),
                )
            )
        return TableOf(rows)

    def apply(self, graph: FactGraph) -> FactGraph:
        """Response with the learned priors and relation probabilities.

        Its posteriors are those of the model that was fitted if it is encoded as
        `potentials.encoding`.

        Raises:
            InputError: if it holds a column for which nothing was learned.
        """
        return apply(graph, self.potentials, self.parameters, self.theta)


def apply(
    graph: FactGraph, potentials: Potentials, parameters: Parameters, theta: Floats
) -> FactGraph:
    """Response as potentials read it, with the priors and relation probabilities at parameters."""
    made = design([graph], potentials, parameters)
    graph = potentials.read(graph)
    priors = made.prior_values(theta).tolist()
    numbers = made.facts.relation_numbers.tolist()
    values = dict(zip(numbers, made.relation_values(theta).tolist(), strict=True))
    if min(values.values(), default=1.0) < LEAST_PROBABILITY:
        # Learned strengths keep their factors; what had none when they were learned stays without.
        stated = tuple(
            one if number in values else evidence_or_neutral(one)
            for number, one in enumerate(graph.relations)
        )
        graph = replace(graph, relations=stated).with_parameters()
    relations = tuple(
        replace(relation, probability=values[number]) if number in values else relation
        for number, relation in enumerate(graph.relations)
    )
    n_atoms = len(graph.atoms)
    return replace(graph, relations=relations).with_priors(
        atoms=dict(zip(graph.atom_ids, priors[:n_atoms], strict=True)),
        contexts=dict(zip(graph.context_ids, priors[n_atoms:], strict=True)),
    )
