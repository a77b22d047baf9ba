"""Ratios with intervals, stored runs, and the comparison of two: numbers made up to be known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.bench.answers import BenchAnswer
from experiments.bench.compare import compare
from experiments.bench.families import Reference
from experiments.bench.frontier import points
from experiments.bench.ratios import paired_ratio, unpaired_ratio
from experiments.bench.report import ratio
from experiments.bench.results import (
    FamilyResult,
    GraphResult,
    Measurement,
    errors,
    find_reference,
)
from experiments.bench.store import StoredRun, read_run, write_run
from experiments.results.frontier import pareto
from tests.experiments.conftest import invoke
from tests.refusals import refused

pytestmark = pytest.mark.slow


def measurement(name: str, seconds: list[float], **changes: object) -> Measurement:
    base = Measurement(
        algorithm=name,
        status="exact",
        build_seconds=1e-3,
        first_seconds=0.5,
        rounds=tuple(range(len(seconds))),
        seconds=tuple(seconds),
        calls=(1,) * len(seconds),
        max_error=0.0,
        mean_error=0.0,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def family(
    *measurements: Measurement, yardstick: float = 1e-3, name: str = "f", digest: str = "d"
) -> FamilyResult:
    graph = GraphResult("seed 0", digest, 1, 4, 5, "exact", (yardstick,) * 3, measurements)
    return FamilyResult(name, "graphs", {"peer": "exact"}, (graph,))


def run(*families: FamilyResult) -> StoredRun:
    return StoredRun(Path("bench.json"), {"packages": {"numpy": "1"}}, {}, families)


def test_a_paired_ratio_is_the_mean_over_graphs_of_medians_within_rounds() -> None:
    one = ([2.0, 40.0, 3.0], [1.0, 10.0, 1.0])  # ratios 2, 4, 3
    two = ([12.0, 12.0], [1.0, 1.0])
    found = paired_ratio([one, two])
    assert found.value == pytest.approx(math.sqrt(3.0 * 12.0))
    # The second graph does not vary; the first varies between its least and largest ratio.
    assert found.lower == pytest.approx(math.sqrt(2.0 * 12.0))
    assert found.upper == pytest.approx(math.sqrt(4.0 * 12.0))
    assert (found.n_rounds, found.n_graphs) == (2, 2)


def test_a_single_round_has_no_interval() -> None:
    found = paired_ratio([([6.0], [2.0])])
    assert found.value == pytest.approx(3.0)
    assert math.isnan(found.lower)
    assert math.isnan(found.upper)


def test_intervals_cover_a_true_ratio_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(0)
    covered = {"paired": 0, "unpaired": 0}
    for _ in range(200):
        noise = generator.lognormal(0.0, 0.1, (2, 12))
        pair = (3.0 * noise[0]).tolist(), noise[1].tolist()
        for kind, found in (
            ("paired", paired_ratio([pair])),
            ("unpaired", unpaired_ratio([pair[0]], [pair[1]])),
        ):
            covered[kind] += found.lower <= 3.0 <= found.upper
    # The percentile bootstrap of a median of 12 covers 93 to 95%; four standard errors of a
    # share of 200 are 0.07.
    assert covered["paired"] / 200 > 0.86
    assert covered["unpaired"] / 200 > 0.86


def test_only_rounds_that_both_were_timed_in_count() -> None:
    exact = measurement("exact", [1.0, 1.0, 1.0])
    peer = replace(measurement("peer", [100.0, 5.0]), rounds=(7, 2))
    found = ratio(family(exact, peer), "peer")
    assert found is not None
    assert (found[0], found[1].n_rounds) == ("exact", 1)
    assert found[1].value == pytest.approx(5.0)
    assert ratio(family(exact, measurement("peer", [])), "peer") is None
    assert ratio(family(exact, peer), "exact") is None


def test_errors_are_against_the_reference_and_bounds_keep_their_sign() -> None:
    exact = BenchAnswer(np.array([0.2, 0.8, 0.5, 0.5]), 1.0, "exact", "exact")
    bound = BenchAnswer(np.array([0.3, 0.7, 0.5, 0.5]), 1.5, "upper")
    found = find_reference({"wmb": bound, "exact": exact}, None)
    assert found is not None
    assert found.source == "exact"
    assert errors(bound, found) == {
        "max_error": pytest.approx(0.1),
        "mean_error": pytest.approx(0.05),
        "log_z_error": pytest.approx(0.5),
    }
    given = Reference("file", None, 2.0)
    assert find_reference({"exact": exact}, given) is given
    assert errors(bound, given) == {
        "max_error": None,
        "mean_error": None,
        "log_z_error": pytest.approx(-0.5),
    }
    assert set(errors(bound, None).values()) == {None}
    assert find_reference({"wmb": bound}, None) is None


def test_the_frontier_holds_what_nothing_beats() -> None:
    found = {"a": (1.0, 0.5), "b": (2.0, 0.6), "c": (3.0, 0.1), "d": (3.0, 0.1), "e": (0.5, 0.9)}
    assert pareto(found) == [(0.5, 0.9), (1.0, 0.5), (3.0, 0.1)]


def test_where_nothing_is_exact_the_gap_of_bounds_is_drawn() -> None:
    unknown = {"max_error": None, "mean_error": None}
    bound = measurement("wmb", [2.0], lower=1.0, upper=4.0, status="converged", **unknown)
    estimate = measurement("lbp", [1.0], status="converged", **unknown)
    assert points(family(bound, estimate)) == ("gap of bounds (nats)", {"wmb": (2.0, 3.0)})


def test_a_stored_run_is_read_back_equal(tmp_path: Path) -> None:
    result = family(
        measurement("exact", [1.0, 2.0], log_z=1.5, log_z_kind="exact", facts={"width": 3}),
        Measurement("gone", "absent", "x is not installed"),
    )
    path = write_run([result], {"rounds": 2}, tmp_path)
    stored = read_run(tmp_path)
    assert stored.families == (result,)
    assert stored.settings == {"rounds": 2}
    assert stored.environment["cpu_count"] >= 1
    assert {"code", "packages", "python"} <= stored.environment.keys()
    assert read_run(path) == stored


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:9], "it is not JSON"),
        (lambda text: text.replace("factormodels/bench", "other"), "it holds no results"),
        (lambda text: text.replace('"version": 2,', '"version": 1,', 1), "its version is 1"),
        (lambda text: text.replace('"digest"', '"digits"'), r"families\[0\]\['graphs'\]\[0\]"),
    ],
)
def test_a_file_that_is_no_stored_run_is_refused(
    tmp_path: Path, change: object, message: str
) -> None:
    path = write_run([family(measurement("exact", [1.0]))], {}, tmp_path)
    path.write_text(change(path.read_text()))  # type: ignore[operator]
    refused(message, read_run, path)


def test_a_change_beyond_noise_is_told_from_noise() -> None:
    steady = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0, 1.03]
    old = run(family(measurement("exact", steady), measurement("lbp", steady)))
    new = run(family(measurement("exact", [s / 2 for s in steady]), measurement("lbp", steady)))
    exact, lbp = compare(old, new).changes
    assert [change.verdict for change in (exact, lbp)] == ["faster", "same"]
    assert exact.ratio.value == pytest.approx(2.0)
    assert lbp.ratio.value == pytest.approx(1.0)
    back = compare(new, old).changes
    assert [change.verdict for change in back] == ["slower", "same"]
    # Two comparisons share the 5% that may be wrong.
    assert exact.ratio.level == pytest.approx(0.975)
    noisy = run(family(measurement("exact", [0.4, 1.7, 0.7, 1.4, 0.9, 1.2, 1.1])))
    assert compare(old, noisy).changes[0].verdict == "same"
    once = run(family(measurement("exact", [0.1])))
    assert compare(old, once).changes[0].verdict == "unknown"


def test_a_machine_that_is_slower_throughout_shows_no_change() -> None:
    seconds = [1.0, 1.01, 0.99, 1.0, 1.02]
    old = run(family(measurement("exact", seconds), yardstick=1e-3))
    new = run(family(measurement("exact", [3 * s for s in seconds]), yardstick=3e-3))
    found = compare(old, new)
    assert found.changes[0].verdict == "same"
    assert found.speed == pytest.approx(1 / 3)


def test_changed_answers_graphs_and_packages_are_named() -> None:
    old = run(
        family(measurement("exact", [1.0]), measurement("lbp", [1.0], max_error=1e-6)),
        family(name="gone"),
    )
    new = run(
        family(
            measurement("exact", [], status="refused", first_seconds=None),
            measurement("lbp", [1.0], max_error=1e-3),
        )
    )
    new = replace(new, environment={"packages": {"numpy": "2"}})
    found = compare(old, new)
    assert found.answers == (
        "f, seed 0: exact was exact and is refused",
        "f, seed 0: lbp: max |Δp| was 1e-06 and is 1e-03",
    )
    assert found.left_out == ("gone: not in the new run",)
    assert found.packages == {"numpy": ("1", "2")}
    other = compare(old, run(family(measurement("exact", [1.0]), digest="e")))
    assert other.changes == ()
    assert "f, seed 0: another graph in the new run" in other.left_out


def test_the_command_compares_two_folders(folder: Path) -> None:
    for name, seconds in (("old", 1.0), ("new", 0.25)):
        (folder / name).mkdir()
        times = [seconds * f for f in (1.0, 1.01, 0.99, 1.0, 1.02)]
        write_run([family(measurement("exact", times))], {}, folder / name)
    result = invoke("bench", "--compare", "old", "new")
    assert "faster" in result.stdout
    assert "1 of 1 times changed beyond noise" in result.stdout
    document = json.loads((folder / "old" / "bench.json").read_text())
    assert document["format"] == "factormodels/bench"
    assert "there is no such file" in invoke("bench", "--compare", "old", "nowhere", code=2).stderr
