"""Posteriors of labelled atoms as flat arrays: what studies of calibration compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.grouping import Grouping, group_by_response
from calibration.validation import Floats, Integers
from experiments.findings.interval_values import N_BOOTSTRAP as CHANGE_BOOTSTRAP
from experiments.findings.interval_values import Value
from experiments.findings.table import named
from experiments.settings.backend_settings import build_backend
from experiments.study.config import BackendChoice
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from inference import Backend, infer_batch


@dataclass(frozen=True, eq=False)
class LabelledAtoms:
    """The labelled atoms of responses, in order.

    Attributes:
        labels: float64 (n,), 1 for true, 0 for false.
        responses: response id of each, (n,).
        kept: which of all atoms they are, bool (all,).
    """

    labels: Floats
    responses: NDArray[Any]
    kept: NDArray[np.bool_]

    @property
    def grouping(self) -> Grouping:
        """The responses that the atoms belong to."""
        return group_by_response(self.responses)


N_BOOTSTRAP = 500
"""Replicates of scores that are fitted anew in each."""

LEAST = 1e-6
"""Log losses are of probabilities from here to one less this."""


def labelled_atoms(graphs: Sequence[FactGraph], where: str) -> LabelledAtoms:
    """The labelled atoms of responses.

    Raises:
        InputError: if there is none; `where` says of what.
    """
    atoms = [(graph.id, atom.label) for graph in graphs for atom in graph.atoms]
    kept = np.array([label is not None for _, label in atoms], dtype=np.bool_)
    if not kept.any():
        raise InputError(f"{where}: no atom has a human label; give labelled data")
    labels = np.array([label is True for _, label in atoms], dtype=np.float64)
    responses = np.array([response for response, _ in atoms])
    return LabelledAtoms(labels[kept], responses[kept], kept)


def context_posteriors(graphs: Sequence[FactGraph], encoding: str) -> Floats:
    """The exact P(true) of every context of responses, in order, (n_contexts,)."""
    answers = infer_batch([graph.to_factor_graph(encoding) for graph in graphs])
    parts = [
        answer.marginals.flat[1 + 2 * len(graph.atoms) :: 2]
        for graph, answer in zip(graphs, answers, strict=True)
    ]
    return np.concatenate(parts)


def scores_with_intervals(
    p: Floats,
    atoms: LabelledAtoms,
    names: Sequence[str],
    seed: int,
    folds: Integers | None = None,
    least: float = LEAST,
) -> dict[str, float]:
    """Scores of `calibration.scores.REGISTRY`, each with its one interval over responses.

    A certain and wrong claim costs the log loss as much as one that is a millionth off, lest one
    claim make it infinite.

    Args:
        p: posterior of each labelled atom, (n,).
        atoms: the atoms.
        names: names of the scores.
        seed: seed of the bootstrap.
        folds: fold of each atom, (n,), if `p` is cross-fitted: AUROC is within folds.
        least: log losses are of probabilities from here to one less this; 0: of `p` as it is.

    Returns:
        NAME, NAME_lower and NAME_upper of each, "calibration_" left out.
    """
    from calibration.intervals import IntervalSettings
    from calibration.scoring import score

    settings = IntervalSettings(n_bootstrap=N_BOOTSTRAP, seed=seed)
    row: dict[str, float] = {}
    for name in names:
        inside = np.clip(p, least, 1 - least) if name == "log_loss" else p
        judged = inside, atoms.labels, atoms.responses
        scored = score(*judged, scores=[name], folds=folds, intervals=settings)[name]
        ends = (scored.value, scored.lower, scored.upper)
        row |= named(name.removeprefix("calibration_"), ends)
    return row


def score_change(
    score: str,
    p: Floats,
    other: Floats,
    atoms: LabelledAtoms,
    seed: int,
    folds: Integers | None = None,
) -> Value:
    """A score of some posteriors less that of others, (n,) each, paired over responses.

    Arguments are those of `scores_with_intervals`.
    """
    from calibration.significance import score_difference

    if score == "log_loss":
        p, other = (np.clip(each, LEAST, 1 - LEAST) for each in (p, other))
    difference = score_difference(
        *(score, p, other, atoms.labels, atoms.responses),
        folds=folds,
        n_bootstrap=CHANGE_BOOTSTRAP,
        seed=seed,
    )
    return difference.value, difference.lower, difference.upper


def with_drawn_labels(graphs: Sequence[FactGraph], encoding: str, seed: int) -> list[FactGraph]:
    """Responses whose labels are one draw from the joint distribution of each.

    Posteriors under this encoding are then calibrated, whatever the relations are.

    Args:
        graphs: the responses.
        encoding: the encoding of the joint distribution.
        seed: seed of the draws.
    """
    from inference.tasks import sample

    # The responses may have been generated from this seed: the draws have a stream of their own.
    seeds = np.random.default_rng((seed, 1)).integers(0, 2**31, len(graphs)).tolist()
    drawn = []
    for graph, graph_seed in zip(graphs, seeds, strict=True):
        states = sample(graph.to_factor_graph(encoding), 1, graph_seed)[0].tolist()
        labelled = zip(graph.atoms, states[: len(graph.atoms)], strict=True)
        atoms = tuple(replace(atom, label=bool(state)) for atom, state in labelled)
        drawn.append(replace(graph, atoms=atoms))
    return drawn


def built_backends(choices: Iterable[BackendChoice], place: str) -> list[tuple[str, Backend]]:
    """Backends with what tables call them, in order.

    Args:
        choices: the backends.
        place: where the study lists them, as errors begin.

    Raises:
        InputError: for a setting that a backend does not have or take, or two of one label.
        MissingDependencyError: if a library that a backend needs is not installed.
    """
    built = [
        (label, build_backend(choice.backend, settings, partial(choice.place_of, where)))
        for where, choice in ((f"{place}[{at}]", choice) for at, choice in enumerate(choices))
        for label, settings in choice.settings_of_each()
    ]
    labels = [label for label, _ in built]
    if len(set(labels)) < len(labels):
        raise InputError(
            f"{place}: two backends have the same label among {', '.join(labels)}; name them apart"
        )
    return built
