"""Pairs to be recorded: read from an owner's file, with the ids of the embedded dataset."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from experiments.evaluators.recorded_relations import judged_pairs
from factormodels import datasets
from factormodels.claims import JUDGED_KINDS, RelationKind
from factormodels.io.relation_record import parse_relation_record
from tests.real_model.record import (
    BENCH,
    BIOGRAPHIES,
    lexical_record,
    pairs_of,
    processor_seconds,
)
from tests.real_model.server import serving_with
from tests.refusals import refused

BENCH_FILE = Path("factcheck_bench", "factcheck-GPT-benchmark.jsonl")


@pytest.mark.shared
def test_the_pairs_of_factcheck_bench_are_those_that_people_judged(shared_data: Path) -> None:
    stances = {"irrelevant": (RelationKind.NEUTRAL, 1.0)}
    judged = judged_pairs(datasets.load(BENCH, stances=stances).graphs)
    pairs = pairs_of(BENCH, shared_data / BENCH_FILE)
    keys = [(each.response, each.pair.source, each.pair.target) for each in pairs]
    assert len(keys) == len(set(keys)) == 3098
    assert set(keys) == set(judged)
    assert all(each.pair.premise and each.pair.hypothesis for each in pairs)


@pytest.mark.shared
def test_the_pairs_of_biographies_are_those_of_labeled_claims(shared_data: Path) -> None:
    folder = shared_data / "factscore_chatgpt"
    texts, passages = folder / "ChatGPT.jsonl", folder / "passages_bm25.jsonl.gz"
    retrieved = {
        (graph.id, context.id, claim)
        for graph in datasets.load(BIOGRAPHIES).graphs
        for labeled in [{atom.id for atom in graph.atoms if atom.label is not None}]
        for context in graph.contexts
        for claim in context.retrieved_for
        if claim in labeled
    }
    pairs = pairs_of(BIOGRAPHIES, texts, passages)
    keys = [(each.response, each.pair.source, each.pair.target) for each in pairs]
    assert len(keys) == len(retrieved) == 21_655
    assert set(keys) == retrieved
    # Ranks count the passages of each claim without gaps.
    ranks: dict[tuple[str, str], list[int]] = {}
    for each in pairs:
        ranks.setdefault((each.response, each.pair.target), []).append(each.rank)
    assert all(sorted(of) == list(range(1, len(of) + 1)) for of in ranks.values())
    refused("its passages are in a file beside it", pairs_of, BIOGRAPHIES, texts)


@pytest.mark.shared
def test_the_embedded_record_of_the_lexical_model_is_made_again(shared_data: Path) -> None:
    made = parse_relation_record(lexical_record(shared_data / BENCH_FILE), "made")
    kept = datasets.relation_record(f"{BENCH}.lexical")
    assert made.origin == kept.origin
    for answer, other in zip(made.answers, kept.answers, strict=True):
        assert answer.key == other.key
        # The optimum of scikit-learn moves by its tolerance between versions.
        assert answer.shares == pytest.approx(other.shares, abs=1e-3)
        assert len(other.shares or ()) == len(JUDGED_KINDS)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_processor_time_is_counted_and_not_time_of_the_day() -> None:
    before = processor_seconds(os.getpid())
    sum(number * number for number in range(2_000_000))
    assert 0.0 < processor_seconds(os.getpid()) - before < 60.0


_SERVER = """#!{python}
import http.server
import sys

class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, *arguments):
        pass

port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


def test_a_compiled_server_is_waited_for_and_ended(tmp_path: Path) -> None:
    server = _executable(tmp_path / "server", _SERVER.format(python=sys.executable))
    model = tmp_path / "tiny.gguf"
    with serving_with(server, model, slots=1, context=64, threads=1) as real:
        assert real.name == "openai/tiny"
        os.kill(real.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(real.pid, 0)


def test_a_compiled_server_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    server = _executable(tmp_path / "server", "#!/bin/sh\nexit 1\n")
    with (
        pytest.raises(RuntimeError, match="did not answer"),
        serving_with(server, tmp_path / "tiny.gguf", slots=1, context=64, threads=1),
    ):
        pass


def _executable(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
