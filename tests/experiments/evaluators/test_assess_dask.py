"""Responses on a Dask cluster: the same result, whether their stages run there or here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from factormodels import read_many
from tests.experiments.conftest import cluster_here, invoke, write_batch
from tests.experiments.evaluators.test_assess_model import provider
from tests.factormodels.extraction.server import ScriptedServer

pytestmark = [pytest.mark.service, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with cluster_here(2) as address:
        yield address


@pytest.fixture
def notes(keyed: Path) -> Path:
    texts = {f"r{i}": f"Train {i} crosses the bridge. Cars do." for i in range(6)}
    # No stage can go on with the last one: an error crosses from worker to here.
    write_batch(keyed, {**texts, "dots": "..."}, {"a.txt": "Only trains cross the bridge."})
    return keyed


def test_a_cluster_gives_the_same_result(notes: Path, cluster: str) -> None:
    base = ("assess", "batch.jsonl", "--documents", "notes", "--variant", "FR1", "--variant", "FR3")
    with ScriptedServer(provider) as server:
        model = ("--model", "openai/scripted", "--api-base", server.url, "--atoms", "sentences")
        for name, options in (("local", ()), ("asked", model), ("few", (*model, "--few-calls"))):
            for out, more in ((name, ()), (f"{name}-there", ("--dask", str(cluster)))):
                result = invoke(*base, *options, *more, "--out", out, code=1)
                assert "dots failed: there is no sentence in the response" in result.stdout
            here, there = (notes / f"{name}{end}" / "graphs.jsonl" for end in ("", "-there"))
            assert len(read_many(here)) == 6
            assert here.read_bytes() == there.read_bytes()


@pytest.mark.usefixtures("notes")
def test_a_cluster_that_does_not_answer_is_named() -> None:
    result = invoke("assess", "batch.jsonl", "--documents", "notes", "--dask", "nowhere", code=2)
    assert "--dask nowhere: no Dask scheduler answers there" in result.stderr
