"""The design of a study: its algorithms and their cells."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from experiments.columns.cell_names import CELL
from experiments.settings.backend_settings import build_backend, setting_types
from experiments.study.cells import NO_VIEW, GraphView, StudyAlgorithm, StudyCell
from experiments.study.config import BackendChoice, Priors, Study, allows
from experiments.study.reading import LoadedStudy
from factormodels.errors import MissingDependencyError
from inference import Backend
from inference.registry import backend_class


def algorithms(loaded: LoadedStudy) -> tuple[StudyAlgorithm, ...]:
    """The algorithms of a study in its order, one for each setting and seed, not yet warmed up.

    The assessors come last.

    Raises:
        InputError: for an unknown or invalid setting of a backend.
    """
    study = loaded.study
    inferring = inference_algorithms(study.backends, study.backend_seeds, loaded.blame)
    judging = [
        StudyAlgorithm(
            choice=position,
            title=choice.title,
            name=choice.assessor,
            seed=0,
            setting=_as_setting(choice.setting(study.language_model)),
            backend=None,
            assessor=True,
        )
        for position, choice in enumerate(study.assessors)
    ]
    return (*inferring, *judging)


def inference_algorithms(
    choices: Sequence[BackendChoice], all_seeds: Sequence[int], blame: Callable[[str], str]
) -> list[StudyAlgorithm]:
    """The algorithms of a list of backends, in order, one for each setting and seed.

    Args:
        choices: the backends.
        all_seeds: the seeds of the study.
        blame: returns the beginning of an error at a key of the study.

    Raises:
        InputError: for an unknown or invalid setting of a backend.
    """
    return [
        algorithm
        for position, choice in enumerate(choices)
        for title, settings in choice.settings_of_each()
        for algorithm in _of_each_seed(
            StudyAlgorithm(position, title, choice.backend, 0, "", None),
            (choice, settings),
            [seed for seed in all_seeds if allows(choice, "seeds", seed)],
            blame(f"backends[{position}]"),
        )
    ]


def cells(study: Study, chosen: Sequence[StudyAlgorithm]) -> tuple[StudyCell, ...]:
    """The cells of a study in its order, with the algorithms of the same question adjacent.

    A dataset's cells end with a cell for each assessor.
    """
    views = [
        GraphView(variant, encoding, prior, strength, relation_model, study.declared.graph)
        for variant, relation_model, encoding, prior, strength in itertools.product(
            study.variants,
            study.relation_titles,
            study.encodings,
            study.prior_settings,
            study.strengths,
        )
    ]
    judging = [algorithm for algorithm in chosen if algorithm.assessor]
    inferring = [algorithm for algorithm in chosen if not algorithm.assessor]
    return tuple(
        cell
        for dataset in study.datasets
        for cell in (
            *(
                StudyCell(dataset.title, view, algorithm)
                for view in views
                if dataset.variants is None or view.variant in dataset.variants
                for algorithm in inferring
                if _takes_part(study, StudyCell(dataset.title, view, algorithm))
            ),
            *(StudyCell(dataset.title, NO_VIEW, assessor) for assessor in judging),
        )
    )


def _takes_part(study: Study, cell: StudyCell) -> bool:
    choice = study.backends[cell.algorithm.choice]
    # Its algorithms determine the seeds.
    asked = {name: value for name, value in cell.key().items() if name in CELL[:6]}
    return all(allows(choice, f"{name}s", value) for name, value in asked.items())


def _of_each_seed(
    blank: StudyAlgorithm,
    chosen: tuple[BackendChoice, Mapping[str, Any]],
    seeds: Sequence[int],
    where: str,
) -> list[StudyAlgorithm]:
    """An algorithm for each seed; a single one if seeds have no effect.

    Args:
        blank: the algorithm without seed, settings and backend.
        chosen: the entry of the study, and a combination of its settings.
        seeds: the seeds that it allows.
        where: the path of the entry, for errors.
    """
    choice, settings = chosen
    if not seeds:
        return []
    blank = replace(blank, seed=seeds[0])
    blame_setting = partial(choice.place_of, where)
    try:
        types = setting_types(backend_class(choice.backend))
    except MissingDependencyError as error:
        # Not an error yet: the study runs without it, and its cells record the missing library.
        return [replace(blank, setting=_as_setting(settings), error=str(error))]
    # Without a seed to vary, further cells would repeat the first.
    if "seed" not in types or "seed" in settings:
        seeds = seeds[:1]
    result = []
    for study_seed in seeds:
        backend_settings = {"seed": study_seed, **settings} if "seed" in types else dict(settings)
        backend = build_backend(choice.backend, backend_settings, blame_setting)
        seed = backend_settings.get("seed", study_seed)
        result.append(replace(blank, seed=seed, setting=_settings_of(backend), backend=backend))
    return result


def cell_of(dataset: str, variant: str, encoding: str, backend: Backend) -> StudyCell:
    """Cell of a backend on unchanged data, with their priors and relations."""
    (data_priors,) = Priors().settings()
    view = GraphView(variant, encoding, data_priors, 1.0)
    name, seed = backend.name, getattr(backend, "seed", 0)
    algorithm = StudyAlgorithm(0, name, name, seed, _settings_of(backend), backend)
    return StudyCell(dataset, view, algorithm)


def _settings_of(backend: Backend) -> str:
    return _as_setting({field.name: getattr(backend, field.name) for field in fields(backend)})


def _as_setting(settings: Mapping[str, Any]) -> str:
    # Sort the keys, since runs compare settings as text.
    return json.dumps(settings, sort_keys=True, default=str)
