"""Registry of scores: facts of each score, and its direction."""

from __future__ import annotations

import pkgutil
from pathlib import Path

import numpy as np
import pytest

import calibration.scores.families as families
from calibration.scores import MEASURES, REGISTRY, USUAL_SCORES
from calibration.scores.registry import DEFAULT_MEASURES, SAMPLE_SCORES
from calibration.significance.comparison import MEANS_OVER_RESPONSES
from tests.calibration.coverage_simulation import draw
from tests.calibration.scored import scored
from tests.processes import run_python

P, Y, RESPONSES = draw(np.random.default_rng(7), 40)


def test_every_file_of_scores_is_in_the_registry() -> None:
    names = {score.name for score in REGISTRY.values()}
    for file in pkgutil.iter_modules(families.__path__):
        family = __import__(f"{families.__name__}.{file.name}", fromlist=["FAMILY"]).FAMILY
        assert {score.name for score in family} <= names, file.name
    assert {*SAMPLE_SCORES, *MEASURES} <= names == set(REGISTRY)
    assert set(DEFAULT_MEASURES) <= set(MEASURES)
    assert not set(SAMPLE_SCORES) & set(MEASURES)
    titles = [score.title for score in REGISTRY.values()]
    assert len(set(titles)) == len(titles)


NEW_SCORE = """
import numpy as np
from calibration.scores.definition import ScoreDefinition, per_claim

FAMILY = (
    ScoreDefinition(
        name="absolute_error",
        title="Absolute error",
        meaning="Mean of |p - y|.",
        higher_is_better=False,
        ratio=per_claim(lambda judged: np.abs(judged.p - judged.y)),
        usual=99,
    ),
)
"""

USES = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

# The folder of scores has one more file, before anything of the package is imported.
folder, real = Path("FOLDER"), Path("calibration/scores/families").resolve()
spec = spec_from_file_location(
    "calibration.scores.families",
    real / "__init__.py",
    submodule_search_locations=[str(real), str(folder)],
)
sys.modules[spec.name] = module_from_spec(spec)

from calibration import score
from experiments import run
from tests.calibration.coverage_simulation import BY_RESPONSE

print(score([0.9, 0.4, 0.7], [1, 0, 0], ["a", "a", "b"])["absolute_error"].value)
study = {
    "study": "new",
    "datasets": ["demonstration"],
    "backends": ["exact"],
    "measures": ["absolute_error"],
    "outputs": [],
}
found = run(study, out=folder / "results")
(row,) = found["summary"].to_dict("records")
rows = found["rows"]
print(row["absolute_error"], (rows["p"] - rows["label"]).abs().mean())
print(row["absolute_error_lower"] < row["absolute_error"] < row["absolute_error_upper"])
print("Absolute error" in str(found))
print("absolute_error" in BY_RESPONSE)
"""


def test_one_file_is_all_that_a_score_takes(tmp_path: Path) -> None:
    (tmp_path / "absolute.py").write_text(NEW_SCORE)
    value, in_study, *output = run_python(USES.replace("FOLDER", str(tmp_path)))[0].splitlines()
    assert float(value) == pytest.approx((0.1 + 0.4 + 0.7) / 3)
    by_summary, by_rows = map(float, in_study.split())
    assert by_summary == pytest.approx(by_rows, rel=1e-12)
    # An interval, a column of the table, and a place in the simulation of what intervals cover.
    assert output == ["True"] * 3


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
    first, other = (scored(p, Y, RESPONSES, scores=[name])[name].value for p in (good, 1 - good))
    assert (first > other) == score.higher_is_better
