"""One vocabulary of scores: what is known of each, and that its direction is right."""

from __future__ import annotations

import pkgutil

import numpy as np
import pytest

import calibration.scores.families as families
from calibration.scores import MEASURES, REGISTRY, USUAL_SCORES
from calibration.scores.registry import DEFAULT_MEASURES, SAMPLE_SCORES
from calibration.significance.comparison import MEANS_OVER_RESPONSES
from tests.calibration.coverage_simulation import draw
from tests.calibration.scored import scored

P, Y, RESPONSES = draw(np.random.default_rng(7), 40)


def test_every_file_of_scores_is_in_the_registry() -> None:
    names = {score.name for score in REGISTRY.values()}
    for file in pkgutil.iter_modules(families.__path__):
        family = __import__(f"{families.__name__}.{file.name}", fromlist=["FAMILY"]).FAMILY
        assert {score.name for score in family} <= names, file.name
    assert {*SAMPLE_SCORES, *MEASURES} == names == set(REGISTRY)
    assert set(DEFAULT_MEASURES) <= set(MEASURES)
    assert not set(SAMPLE_SCORES) & set(MEASURES)
    titles = [score.title for score in REGISTRY.values()]
    assert len(set(titles)) == len(titles)


def test_the_usual_scores_have_places_of_their_own() -> None:
    places = [REGISTRY[name].usual for name in USUAL_SCORES]
    assert places == sorted(set(places))


@pytest.mark.parametrize("name", REGISTRY)
def test_a_score_is_computed_in_one_way_and_is_better_in_the_way_it_says(name: str) -> None:
    score = REGISTRY[name]
    assert (score.ratio is None) == (score.of_sample is not None)
    assert (name in MEANS_OVER_RESPONSES) <= (score.ratio is not None)
    if score.higher_is_better is None or not score.needs_labels:
        return
    good = np.where(Y, 0.9, 0.1)
    one, other = (scored(p, Y, RESPONSES, scores=[name])[name].value for p in (good, 1 - good))
    assert (one > other) == score.higher_is_better
