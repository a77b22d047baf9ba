"""`exact` against the reference answers of the UAI 2014 competition, which nobody here wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from factormodels.io.networks.uai_results import read_evidence, read_log10_partition, read_marginals
from inference import infer
from tests.factormodels.graphs import read_network
from tests.inference.answers import given

MEMORY = 2**32
"""4 GiB: grids of 20 by 20, whose tables take 8 to 11 GiB, are clamped and summed."""

EMBEDDED = Path(__file__).parent / "uai2014"


def check(name: str, sums: Path, marginals: Path) -> None:
    """Compare log Z and marginals of a network with files of references in two folders."""
    graph = read_network(sums / name).with_evidence(read_evidence(sums / f"{name}.evid"))
    posterior = infer(graph, "exact", memory_limit=MEMORY)
    # The references are printed with 6 significant digits.
    partition = read_log10_partition(sums / f"{name}.PR")
    assert given(posterior) / np.log(10.0) == pytest.approx(partition, rel=1e-4), name
    # And these with 6 digits; 1e-5 leaves room for their own rounding.
    reference = np.concatenate(read_marginals(marginals / f"{name}.MAR"))
    np.testing.assert_allclose(posterior.marginals.flat, reference, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["CSP_12.uai", "Grids_12.uai", "Promedus_24.uai"])
def test_three_embedded_networks(name: str) -> None:
    check(name, EMBEDDED, EMBEDDED)


@pytest.mark.slow
@pytest.mark.longest
def test_partition_functions_and_marginals(shared_data: Path) -> None:
    """The networks of the two tasks are the same, byte for byte: each is answered once."""
    sums, marginals = (shared_data / "uai2014" / task for task in ("PR", "MAR"))
    networks = sorted(path.name for path in sums.glob("*.uai"))
    assert networks == sorted(path.name for path in marginals.glob("*.uai")) != []
    for name in networks:
        for file in (name, f"{name}.evid"):
            assert (sums / file).read_bytes() == (marginals / file).read_bytes(), file
        check(name, sums, marginals)
