"""What a run keeps in its folder beside its results, as far as its manifest vouches for it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibration.tables import csv_text
from experiments.run.cross_fits import CrossFit, priors_table
from experiments.run.folder import JOURNAL, PRIORS, TEXTS
from experiments.run.keyed_journal import read_keyed
from experiments.run.learned_priors import Question, kept_fits
from experiments.run.text_answers import TextAnswers, content_hashes
from experiments.run.text_models import RELATIONS
from experiments.study.data import StudyData
from factormodels.errors import InputError

logger = logging.getLogger(__name__)


def with_kept_relations(
    data: Sequence[StudyData], folder: Path, manifest: Mapping[str, Any]
) -> tuple[StudyData, ...]:
    """Return the data of a run with the relations that it found, where these are still there.

    Relations that are not those of the manifest, as after a run that was begun anew and died, are
    left out.

    Args:
        data: its datasets.
        folder: the folder of its results.
        manifest: its manifest.
    """
    answers = TextAnswers.of(_read(folder / JOURNAL / TEXTS))
    own = content_hashes(answers)
    judged = {
        (dataset, model, variant)
        for dataset, facts in manifest["data"].items()
        for model, by_variant in facts.get("relations", {}).items()
        for variant, digest in by_variant.items()
        if own.get(dataset, {}).get(model, {}).get(variant) == digest
    }
    vouched = {
        place: answer
        for place, answer in answers.by_place.items()
        if place.key == RELATIONS and (place.dataset, place.title, place.variant) in judged
    }
    return TextAnswers(vouched).related(data)


def kept_priors(
    asked: Sequence[Question],
    data: Sequence[StudyData],
    seed: int,
    folder: Path,
    manifest: Mapping[str, Any],
) -> tuple[CrossFit, ...]:
    """Return what a run learned, if that is still there; nothing if it is not what its file says.

    Args:
        asked: which priors.
        data: its datasets.
        seed: seed of the folds.
        folder: the folder of its results.
        manifest: its manifest.
    """
    if not asked:
        return ()
    fits = kept_fits(asked, data, seed, _read(folder / JOURNAL / PRIORS))
    text = csv_text(priors_table(fits))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return fits if digest == manifest["files"].get("priors.csv") else ()


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_keyed(path)
    except InputError as error:
        # What was kept has no part in the results: without it the pages say less.
        logger.warning("%s", error)
        return {}
