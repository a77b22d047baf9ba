"""`exact` against the reference answers of the UAI 2014 competition, which nobody here wrote."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from factormodels.io.uai import read_evidence, read_uai
from factormodels.io.uai_results import read_log10_partition, read_marginals
from inference import Posterior, TooLargeError, infer
<<<<<<< HEAD
from tests.inference.answers import given
=======

pytestmark = pytest.mark.slow
>>>>>>> hi

MEMORY = 2**32
"""4 GiB; `factormodels references` with 12 GiB answers the files that do not fit as well."""

TOO_LARGE = {f"Grids_{number}.uai" for number in (15, 16, 17, 18)}
"""Grids of 20 by 20, whose tables take 8 to 11 GiB."""


<<<<<<< HEAD
def _answered(folder: Path) -> Iterator[tuple[Path, Posterior]]:
    """Answer every network of a folder but those too large, which must be the known ones."""
    refused = set()
    for path in sorted(folder.glob("*.uai")):
        graph = read_uai(path).with_evidence(read_evidence(Path(f"{path}.evid")))
        try:
            yield path, infer(graph, "exact", memory_limit=MEMORY)
        except TooLargeError:
=======
Answer = Callable[[Path], Posterior | None]


@pytest.fixture(scope="module")
def answer() -> Answer:
    """The posterior of a network under its evidence; None where its tables do not fit.

    The networks of the two tasks are the same, byte for byte: each is answered once.
    """
    known: dict[tuple[bytes, bytes], Posterior | None] = {}

    def of_file(path: Path) -> Posterior | None:
        evidence = Path(f"{path}.evid")
        key = (path.read_bytes(), evidence.read_bytes())
        if key not in known:
            graph = read_uai(path).with_evidence(read_evidence(evidence))
            try:
                known[key] = infer(graph, "exact", memory_limit=MEMORY)
            except TooLargeError:
                known[key] = None
        return known[key]

    return of_file


def test_partition_functions(shared_data: Path, answer: Answer) -> None:
    refused = set()
    for path in sorted((shared_data / "uai2014" / "PR").glob("*.uai")):
        posterior = answer(path)
        if posterior is None:
>>>>>>> hi
            refused.add(path.name)
    assert refused == TOO_LARGE


<<<<<<< HEAD
def test_partition_functions(shared_data: Path) -> None:
    for path, posterior in _answered(shared_data / "uai2014" / "PR"):
        reference = read_log10_partition(Path(f"{path}.PR"))
        # The references are printed with 6 significant digits.
        assert given(posterior) / np.log(10.0) == pytest.approx(reference, rel=1e-4), path.name


def test_marginals(shared_data: Path) -> None:
    for path, posterior in _answered(shared_data / "uai2014" / "MAR"):
=======
def test_marginals(shared_data: Path, answer: Answer) -> None:
    refused = set()
    for path in sorted((shared_data / "uai2014" / "MAR").glob("*.uai")):
        posterior = answer(path)
        if posterior is None:
            refused.add(path.name)
            continue
>>>>>>> hi
        reference = np.concatenate(read_marginals(Path(f"{path}.MAR")))
        # The references are printed with 6 digits; 1e-5 leaves room for their own rounding.
        np.testing.assert_allclose(
            posterior.marginals.flat, reference, atol=1e-5, err_msg=path.name
        )
