"""What a run keeps in its folder beside its results, as far as its manifest vouches for it."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.findings.markup import csv_text
from experiments.study.data import StudyData
from experiments.study.learned_priors import (
    CrossFittedPriors,
    PriorRequest,
    kept_fits,
    priors_table,
)
from experiments.study.resumption import PRIORS, TEXTS, read_kept
from experiments.study.text_models import RELATIONS, TextAnswers, content_hashes
from factormodels.errors import InputError

logger = logging.getLogger(__name__)


def with_kept_relations(
    data: Sequence[StudyData], folder: Path, manifest: Mapping[str, Any]
) -> tuple[StudyData, ...]:
    """The data of a run with the relations that it found, where these are still there.

    Relations that are not those of the manifest, as after a run that was begun anew and died, are
    left out.

    Args:
        data: its datasets.
        folder: the folder of its results.
        manifest: its manifest.
    """
    answers = TextAnswers.of(_read(folder, TEXTS).items())
    # The manifest was written with the rows, the store may have changed since: only answers whose
    # hash is in the manifest belong to these rows.
    own = content_hashes(answers)
    judged = {
        (dataset, model, variant)
        for dataset, facts in manifest["data"].items()
        for model, by_variant in facts.get("relations", {}).items()
        for variant, digest in by_variant.items()
        if own.get(dataset, {}).get(model, {}).get(variant) == digest
    }
    vouched = {
        request: answer
        for request, answer in answers.by_request.items()
        if request.key == RELATIONS and (request.dataset, request.title, request.variant) in judged
    }
    return TextAnswers(vouched).related(data)


def kept_priors(
    asked: Sequence[PriorRequest],
    data: Sequence[StudyData],
    seed: int,
    folder: Path,
    manifest: Mapping[str, Any],
) -> tuple[CrossFittedPriors, ...]:
    """What a run learned, if that is still there; nothing if it is not what its file says.

    Args:
        asked: which priors.
        data: its datasets.
        seed: seed of the folds.
        folder: the folder of its results.
        manifest: its manifest.
    """
    if not asked:
        return ()
    fits = kept_fits(asked, data, seed, _read(folder, PRIORS))
    # priors.csv is a function of the fits, so its hash in the manifest vouches for them.
    text = csv_text(priors_table(fits))
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return fits if digest == manifest["files"].get("priors.csv") else ()


def _read(folder: Path, kind: str) -> dict[str, Any]:
    try:
        return read_kept(folder, kind)
    except InputError as error:
        # What was kept has no part in the results: without it the pages say less.
        logger.warning("%s", error)
        return {}
