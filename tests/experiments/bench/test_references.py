"""`factormodels references`: what it finds, computes, refuses and writes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from experiments.bench.references import compare, find_networks, groups, within
from experiments.run.processes import REFUSED, TIMED_OUT
from inference import Backend, get_backend
from tests.experiments.conftest import invoke
from tests.experiments.strange import Slow
from tests.refusals import refused

NETWORK = "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.25 0.75\n4\n0.9 0.1 0.2 0.8\n"
# By hand: Z = 1, P(second = 0) = 0.25 * 0.9 + 0.75 * 0.2 = 0.375.
MARGINALS = "MAR\n2 2 0.25 0.75 2 0.375 0.625\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.uai").write_text(NETWORK)
    (tmp_path / "small.uai.MAR").write_text(MARGINALS)
    (tmp_path / "small.uai.PR").write_text("PR\n0.0\n")
    (tmp_path / "alone.uai").write_text(NETWORK)
    return tmp_path


def test_networks_without_an_answer_are_left_out(folder: Path) -> None:
    assert [path.name for path in find_networks(folder)] == ["small.uai"]


def test_a_folder_without_answers_is_an_error(tmp_path: Path) -> None:
    refused(r"there is no NAME\.uai with", find_networks, tmp_path)


def test_errors_are_those_of_the_answers(folder: Path) -> None:
    marginal, _ = compare(folder / "small.uai", get_backend("exact"))
    assert marginal.task == "MAR"
    assert marginal.error < 1e-12
    (folder / "small.uai.MAR").write_text(MARGINALS.replace("0.375 0.625", "0.365 0.635"))
    marginal, _ = compare(folder / "small.uai", get_backend("exact"))
    assert marginal.error == pytest.approx(0.01, abs=1e-12)


def test_evidence_beside_the_network_is_read(folder: Path) -> None:
    (folder / "small.uai.evid").write_text("1 1 0\n")
    (folder / "small.uai.MAR").write_text("MAR\n2 2 0.6 0.4 2 1 0\n")  # 0.225 : 0.15
    (folder / "small.uai.PR").write_text("PR\n-0.4259687\n")  # log10 0.375
    marginal, partition = compare(folder / "small.uai", get_backend("exact"))
    assert marginal.error < 1e-12
    assert partition.error < 1e-6


def test_a_refusal_is_a_row(folder: Path) -> None:
    rows = compare(folder / "small.uai", get_backend("exact", memory_limit=8))
    assert [row.status for row in rows] == [REFUSED, REFUSED]
    assert "memory_limit" in rows[0].remark


def test_bounds_keep_their_kind_and_sign(folder: Path) -> None:
    (folder / "small.uai.PR").write_text("PR\n-1.0\n")
    marginal, partition = compare(folder / "small.uai", get_backend("cavi"))
    assert (marginal.log_z_kind, partition.log_z_kind) == ("elbo", "elbo")
    # The reference is 1 in log10; the true value is 0, and the bound lies below it.
    assert partition.log_z_error < math.log(10.0)
    assert partition.log_z_error > 0.9 * math.log(10.0)
    assert 0.0 < marginal.mean_error < marginal.error


def nothing(_backend: Backend) -> None:
    """Prepare nothing."""


@pytest.mark.slow
def test_a_backend_that_takes_too_long_is_a_row_and_the_rest_goes_on(folder: Path) -> None:
    # A busy machine must not make the quick one late too.
    slow = Slow(seconds_each=3600.0)
    quick = get_backend("exact")
    with within(10.0, [slow, quick], nothing) as infer:
        late = compare(folder / "small.uai", slow, infer)
        answered = compare(folder / "small.uai", quick, infer)
    assert [row.status for row in late] == [TIMED_OUT, TIMED_OUT]
    assert late[0].remark == "no answer within 10 s"
    assert [row.status for row in answered] == ["exact", "exact"]
    assert list(groups([*late, *answered])) == [
        ("small", "MAR", "slow"),
        ("small", "MAR", "exact"),
        ("small", "PR", "slow"),
        ("small", "PR", "exact"),
    ]


def test_settings_reach_one_backend_or_all(folder: Path) -> None:
    words = ["references", folder, "--backend", "exact,wmb", "--set", "seed=1"]
    invoke(*words, "--set", "wmb.i_bound=1")
    result = invoke(*words, "--set", "lbp.damping=0.5", code=2)
    assert "the backend 'lbp' takes no part; it is one of exact, wmb" in result.output


def test_the_command_shows_and_writes(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "errors.json"
    result = invoke("references", folder, "--backend", "exact", "--backend", "lbp", "--out", out)
    assert "by set" in result.output
    (line,) = [line for line in result.output.splitlines() if line.startswith("small  MAR   exact")]
    assert "1 of 1" in line
    rows = json.loads(out.read_text())["comparisons"]
    assert [(row["task"], row["backend"]) for row in rows] == [
        ("MAR", "exact"),
        ("PR", "exact"),
        ("MAR", "lbp"),
        ("PR", "lbp"),
    ]


def test_the_competition_s_small_networks(shared_data: Path) -> None:
    small = [
        path
        for path in find_networks(shared_data / "uai2014")
        if path.name in {"Promedus_24.uai", "Promedus_30.uai", "Segmentation_12.uai"}
    ]
    rows = [row for path in small for row in compare(path, get_backend("exact"))]
    assert len(rows) == 6
    # The references are printed with six digits.
    assert all(row.error < (1e-5 if row.task == "MAR" else 1e-4) for row in rows)
