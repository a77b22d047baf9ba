"""The scenario `kept` of tests/endurance in part: reasons for code beside a library still hold."""

from __future__ import annotations

import pytest

from tests.endurance import kept


def test_a_packed_response_is_a_tenth_of_an_object() -> None:
    (row,) = kept.packed(responses=500)
    assert 10 * float(str(row["kept"])) < float(str(row["simpler"]))


@pytest.mark.kill
def test_a_dead_worker_ends_the_tasks_of_both_executors() -> None:
    (row,) = kept.dead_worker()
    # Besides the task that ends its process, others fail.
    assert int(str(row["simpler"])) > 1
    assert int(str(row["kept"])) > 1


def test_averaged_maps_score_claims_that_trained_them() -> None:
    for row in kept.calibrators([("factcheck-bench", "FR1")]):
        assert float(str(row["simpler"])) < float(str(row["kept"]))


@pytest.mark.slow
def test_a_continued_study_repeats_nothing_that_it_prepared() -> None:
    for row in kept.prepared(("FR1", "FR2"), folds=2):
        assert float(str(row["kept"])) < float(str(row["simpler"]))
