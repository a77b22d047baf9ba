"""What one may change about a response, what follows from it, and the files that reproduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from experiments.findings.drawing import draw_to
from experiments.study.units import strengthened
from factormodels.errors import InputError
from factormodels.fact_graph import FactGraph
from factormodels.factor_graph import FactorGraph
from factormodels.io.fact_graph_json import write_fact_graph
from factormodels.io.files import write_text
from factormodels.io.networks.uai_results import write_evidence
from factormodels.variants import variant
from inference import Posterior, infer


@dataclass(frozen=True)
class Exploration:
    """A response, with what was changed about it.

    Attributes:
        graph: the response as it was given.
        variant: view of the graph.
        encoding: encoding of relations as factors.
        backend: name of the algorithm.
        strength: what the log odds of every relation's probability are multiplied by.
        priors: other priors of atoms and contexts, by id.
        probabilities: other probabilities of relations, by (source, target).
        left_out: ids of the contexts that are left out.
        observed: ids of the claims that are taken to be true, or false.
    """

    graph: FactGraph
    variant: str = "given"
    encoding: str = "implication"
    backend: str = "auto"
    strength: float = 1.0
    priors: Mapping[str, float] = field(default_factory=dict)
    probabilities: Mapping[tuple[str, str], float] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    observed: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Explored:
    """What follows from an exploration.

    Attributes:
        view: the fact graph that was asked about.
        posterior: the answer.
        claims: P(true) by id of atom.
    """

    view: FactGraph
    posterior: Posterior
    claims: Mapping[str, float]


def changed_graph(asked: Exploration) -> FactGraph:
    """The response with every change but the observations, under no variant yet."""
    graph, left_out = asked.graph, asked.left_out
    contexts = tuple(one for one in graph.contexts if one.id not in left_out)
    relations = [
        replace(one, probability=asked.probabilities.get((one.source, one.target), one.probability))
        for one in graph.relations
        if not {one.source, one.target} & left_out
    ]
    scaled = strengthened(np.array([one.probability for one in relations]), asked.strength)
    changed = replace(
        graph,
        contexts=contexts,
        relations=tuple(
            replace(one, probability=float(p)) for one, p in zip(relations, scaled, strict=True)
        ),
    )
    kept = {one.id for one in contexts}
    return changed.with_priors(
        atoms={name: p for name, p in asked.priors.items() if name in set(graph.atom_ids)},
        contexts={name: p for name, p in asked.priors.items() if name in kept},
    )


def _factor_graph(asked: Exploration) -> tuple[FactGraph, FactorGraph]:
    view = variant(changed_graph(asked), asked.variant)
    states = {name: int(value) for name, value in asked.observed.items()}
    return view, view.to_factor_graph(asked.encoding).with_evidence(states)


def explored(asked: Exploration) -> Explored:
    """The posteriors of a response with what was changed about it.

    Raises:
        FactormodelsError: if the backend cannot answer, or a change is out of range.
    """
    view, graph = _factor_graph(asked)
    posterior = infer(graph, asked.backend)
    claims = {atom.id: float(posterior.marginals[atom.id][1]) for atom in view.atoms}
    return Explored(view, posterior, claims)


_SEEN = 5e-4
"""The least change of a probability that is told."""


def moved(before: Explored, now: Explored) -> list[tuple[str, float]]:
    """The claims whose probability changed by at least `_SEEN`, the largest change first."""
    changes = {
        name: now.claims[name] - p for name, p in before.claims.items() if name in now.claims
    }
    told = [(name, change) for name, change in changes.items() if abs(change) >= _SEEN]
    return sorted(told, key=lambda one: -abs(one[1]))


def save(asked: Exploration, folder: Path) -> list[Path]:
    """Write the graph, the figure and the study that reproduce an exploration.

    Observations are in observed.evid, since a study has none; study.yaml says the command.

    Raises:
        InputError: if the folder cannot be written.
    """
    from factormodels.io.plain_yaml import parse_yaml

    found = explored(asked)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{folder}: the folder cannot be made ({error.strerror}); give another with --out"
        ) from None
    graph, figure, study = (folder / name for name in ("graph.json", "graph.pdf", "study.yaml"))
    # Strengths are in the probabilities of the relations already.
    write_fact_graph(changed_graph(asked), graph)
    draw_to(figure, found.view, found.posterior)
    paths = [graph, figure, study]
    said = ""
    if asked.observed:
        position = {name: at for at, name in enumerate(_factor_graph(asked)[1].names)}
        paths.append(folder / "observed.evid")
        states = {position[name]: int(value) for name, value in asked.observed.items()}
        write_evidence(states, paths[-1])
        said = (
            "# Claims were observed, which a study cannot say; this command answers as the page "
            f"did:\n# factormodels infer graph.json --variant {asked.variant},encoding="
            f"{asked.encoding} --backend {asked.backend} --evidence observed.evid\n"
        )
    lines = (
        f"{said}study: explored\ndatasets:\n  - path: graph.json\nvariants: [{asked.variant}]\n"
        f"encodings: [{asked.encoding}]\nbackends: [{asked.backend}]\n"
    )
    parse_yaml(lines, str(study))
    write_text(study, lines)
    return paths
