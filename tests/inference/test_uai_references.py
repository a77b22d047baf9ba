"""`exact` against the reference answers of the UAI 2014 competition, which nobody here wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from factormodels.io.networks.uai import read_uai
from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from inference import Posterior, infer
from tests.inference.answers import given

pytestmark = pytest.mark.slow

MEMORY = 2**32
"""4 GiB: grids of 20 by 20, whose tables take 8 to 11 GiB, are clamped and summed."""

Answer = Callable[[Path], Posterior]


@pytest.fixture(scope="module")
def answer() -> Answer:
    """The posterior of a network under its evidence.

    The networks of the two tasks are the same, byte for byte: each is answered once.
    """
    known: dict[tuple[bytes, bytes], Posterior] = {}

    def of_file(path: Path) -> Posterior:
        evidence = Path(f"{path}.evid")
        key = (path.read_bytes(), evidence.read_bytes())
        if key not in known:
            graph = read_uai(path).with_evidence(read_evidence(evidence))
            known[key] = infer(graph, "exact", memory_limit=MEMORY)
        return known[key]

    return of_file


def answered(folder: Path, answer: Answer) -> Iterator[tuple[Path, Posterior]]:
    """Every network of a folder with its answer."""
    for path in sorted(folder.glob("*.uai")):
        yield path, answer(path)


@pytest.mark.longest
def test_partition_functions(shared_data: Path, answer: Answer) -> None:
    for path, posterior in answered(shared_data / "uai2014" / "PR", answer):
        reference = read_log10_partition(Path(f"{path}.PR"))
        # The references are printed with 6 significant digits.
        assert given(posterior) / np.log(10.0) == pytest.approx(reference, rel=1e-4), path.name


def test_marginals(shared_data: Path, answer: Answer) -> None:
    for path, posterior in answered(shared_data / "uai2014" / "MAR", answer):
        reference = np.concatenate(read_marginals(Path(f"{path}.MAR")))
        # The references are printed with 6 digits; 1e-5 leaves room for their own rounding.
        np.testing.assert_allclose(
            posterior.marginals.flat, reference, atol=1e-5, err_msg=path.name
        )
