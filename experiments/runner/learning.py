"""Priors learned from a file of labelled responses, held against the graphs as they are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from calibration.learned_priors import (
    AdaptedPrior,
    ClassProbability,
    CrossValidation,
    Free,
    LearnedPriors,
    Specification,
    Temperature,
    adapt_prior,
    cross_validate,
    fit,
    labelled_share,
    stance_class,
)
from calibration.learned_priors.specification import KindOrClass
from experiments.findings.text import counted
from experiments.study.inputs import read_graphs
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


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What was learned, on responses without labels.

    Attributes:
        graphs: the responses with what was learned; with the share that was found too, where they
            determine it.
        prior: the share of true claims among them.
        n_claims: number of their claims.
    """

    graphs: tuple[FactGraph, ...]
    prior: AdaptedPrior
    n_claims: int


def labelled_graphs(source: Path) -> Sequence[FactGraph]:
    """The responses of a file or an embedded dataset.

    Raises:
        InputError: if it cannot be read, or no atom has a label.
    """
    graphs = read_graphs(source)
    if not any(atom.label is not None for graph in graphs for atom in graph.atoms):
        raise InputError(f"{source}: no atom has a human label; give a labelled file")
    return graphs


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


def unlabelled_graphs(source: Path, specification: Specification) -> Sequence[FactGraph]:
    """The responses of a file or an embedded dataset, whose labels play no part.

    Raises:
        InputError: if it cannot be read, or what is to be learned cannot be moved to others.
    """
    if specification.encoding == "conditional":
        raise InputError(
            "--unlabelled: under the encoding conditional, the prior of atoms is in the tables of "
            "relations as well and cannot be replaced alone; give --encoding implication or "
            "mixture"
        )
    return read_graphs(source)


def check_exchangeable(labelled: Sequence[FactGraph]) -> None:
    """Check that labels are of both kinds, before anything is learned from them.

    Raises:
        InputError: if they are all true or all false.
    """
    try:
        labelled_share(labelled)
    except InputError as error:
        raise InputError(f"--unlabelled: {error}") from None


def adapt(
    learned: LearnedPriors, labelled: Sequence[FactGraph], unlabelled: Sequence[FactGraph]
) -> Adaptation:
    """What was learned from labelled responses, moved to others that lack labels.

    The strengths of relations stay. The share of true claims is estimated anew on the others, by
    `adapt_prior`; the learned prior stays where they do not determine it.

    Args:
        learned: what was learned.
        labelled: the responses that it was learned from.
        unlabelled: the others.

    Raises:
        InputError: if there are none.
    """
    kept = learned.apply_all(unlabelled)
    prior = adapt_prior(
        kept,
        learned.apply_all(labelled),
        encoding=learned.specification.encoding,
        backend=learned.backend,
    )
    n_claims = sum(len(graph.atoms) for graph in kept)
    return Adaptation(tuple(map(prior.apply, kept)), prior, n_claims)


def write_learned(graphs: Sequence[FactGraph], learned: LearnedPriors, path: Path) -> None:
    """Write responses with what was learned, as fact graphs in JSON Lines.

    `metadata["learned_from"]` lists what made the evidence that it was learned from.

    Raises:
        InputError: if the file cannot be written.
    """
    from factormodels.io import write_many

    told = {"learned_from": [asdict(source) for source in learned.sources]}
    write_many([replace(one, metadata={**one.metadata, **told}) for one in graphs], path)


def _prior(text: str, option: str) -> Free | float | None:
    if text == LEARN:
        return Free()
    if text == KEEP:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} is {text!r}; use learn, keep, or a number") from None
