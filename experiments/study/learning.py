"""Priors learned from a file of labelled responses, held against the graphs as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibration.learned_priors import (
    ClassProbability,
    CrossValidation,
    Free,
    LearnedPriors,
    Specification,
    Temperature,
    cross_validate,
    fit,
    stance_class,
)
from calibration.learned_priors.specification import KindOrClass
from experiments.findings.text import counted
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph

LEARN, KEEP = "learn", "keep"


@dataclass(frozen=True)
class LearningSettings:
    """How it is learned.

    Attributes:
        objective: what is made small.
        backend: the inference backend.
        penalty: standard deviation of the penalty, or None.
        folds: number of folds of the cross-validation; 0: there is none.
        seed: seed of the folds and of the bootstrap.
    """

    objective: str = "likelihood"
    backend: str = "auto"
    penalty: float | None = None
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Learning:
    """What was learned, and whether it helps.

    Attributes:
        learned: the fit of all responses.
        validated: the cross-validation; None where none was asked for.
    """

    learned: LearnedPriors
    validated: CrossValidation | None


def specification(
    atom_prior: str, context_prior: str, relations: str, by: str | None, encoding: str
) -> Specification:
    """The specification that options of the command line describe.

    Raises:
        InputError: for words that are none of the options'.
    """
    if by not in (None, "kind", "stance"):
        raise InputError(f"--by is {by!r}; use kind or stance, or leave it out")
    classes: KindOrClass | None = None
    if by is not None:
        classes = stance_class() if by == "stance" else "kind"
    chosen: Temperature | ClassProbability | None
    if relations == "temperature":
        chosen = Temperature(classes)
    elif relations == "probability":
        chosen = ClassProbability(classes or "kind")
    elif relations == KEEP:
        chosen = None
    else:
        raise InputError(f"--relations is {relations!r}; use temperature, probability or keep")
    return Specification(
        _prior(atom_prior, "--atom-prior"),
        _prior(context_prior, "--context-prior"),
        chosen,
        encoding,
    )


def analyse(
    graphs: Sequence[FactGraph], specification: Specification, settings: LearningSettings
) -> Learning:
    """What the labels teach, and the cross-validated comparison.

    Raises:
        InputError: as `calibration.learned_priors.fit` does, or for more folds than responses.
    """
    if settings.folds > len(graphs):
        most = f"at most {len(graphs)}, or 0 for none" if len(graphs) > 1 else "0 for none"
        raise InputError(
            f"{settings.folds} folds of {counted(len(graphs), 'response')}: responses are never "
            f"split; give {most} (--folds)"
        )
    learned = fit(
        graphs,
        specification,
        objective=settings.objective,
        backend=settings.backend,
        penalty=settings.penalty,
    )
    validated = None
    if settings.folds:
        validated = cross_validate(
            graphs,
            specification,
            n_folds=settings.folds,
            seed=settings.seed,
            objective=settings.objective,
            backend=settings.backend,
            penalty=settings.penalty,
        )
    return Learning(learned, validated)


def _prior(text: str, option: str) -> Free | float | None:
    if text == LEARN:
        return Free()
    if text == KEEP:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} is {text!r}; use learn, keep, or a number") from None
