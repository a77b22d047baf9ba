"""Record what a model on this machine says of the relations of a dataset, pair by pair.

    python -m tests.real_model.record qwen2.5-coder-1.5b-instruct factcheck-bench \
        ../shared/data/factcheck_bench/factcheck-GPT-benchmark.jsonl --out FILE

An interrupted run goes on where it ended. The server runs with low priority, and the seconds of an
answer are those of its processor time. These nearly double while another process runs on the other
thread of its core. The datasets that are embedded have no texts: their files are those of their
owners.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path

from experiments.asking.relation_models import content_hash
from experiments.columns.labeled_relations import judged_responses
from experiments.evaluators.relation_quality import fit_lexical, labeled_pairs
from factormodels import datasets, read_many
from factormodels.errors import FactormodelsError, InputError
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.prompts import load_prompt
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.fact_graph import FactGraph
from factormodels.io.formats.factcheck_bench import passage_key
from factormodels.io.formats.factscore_passages import read as read_passages
from factormodels.io.formats.factscore_passages import with_passages
from factormodels.io.json import read_json_lines
from factormodels.io.relation_record import (
    ORDERS,
    RecordedAnswer,
    RecordOrigin,
    record_text,
)
from factormodels.io.source.files import write_text
from tests.real_model.recording import (
    ALTERNATIVES,
    PairOfResponse,
    drawn_responses,
    record_relations,
)
from tests.real_model.serve import QUANTIZATION, QWEN, SMOLLM2, model_file
from tests.real_model.server import MODEL_ENVIRONMENT, served

BENCH, BIOGRAPHIES = "factcheck-bench", "factscore"

LEXICAL = "lexical"
"""The lexical model, which asks nobody; its record is written at once."""

_CONTEXT = 2048
_LONGEST = 1200.0
_NICE = 10


def main() -> int:
    """Record what the command line asks for; 2 if it cannot be done."""
    parser = argparse.ArgumentParser(prog="record", description=__doc__)
    parser.add_argument("model", help=f"{SMOLLM2}, {QWEN}, or {LEXICAL} of Factcheck-Bench")
    parser.add_argument("dataset", choices=(BENCH, BIOGRAPHIES))
    parser.add_argument("texts", type=Path, help="the dataset's file, with texts")
    parser.add_argument("--passages", type=Path, help="passages of the biographies")
    parser.add_argument("--out", type=Path, required=True, help="file of recorded answers")
    parser.add_argument("--prompts", default=RELATION.prompt, help=", ".join(RELATION_PROMPTS))
    parser.add_argument("--only", help="those of --prompts to ask now; the others stay as they are")
    parser.add_argument("--order", choices=ORDERS, default=ORDERS[0])
    parser.add_argument("--responses", type=int, help="number of responses, drawn at random")
    parser.add_argument("--most", type=int, help="largest number of pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--server", type=Path, help="llama-server compiled for this processor")
    parser.add_argument("--threads", type=int, default=1, help="threads of the server")
    given = parser.parse_args()
    # Whatever ends this process ends the server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if given.model == LEXICAL:
            write_text(given.out, lexical_record(given.texts))
            return 0
        pairs = pairs_of(given.dataset, given.texts, given.passages)
        if given.responses is not None:
            pairs = drawn_responses(pairs, given.responses, given.seed)
        return _record(given, pairs)
    except (FactormodelsError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def pairs_of(dataset: str, texts: Path, passages: Path | None = None) -> list[PairOfResponse]:
    """Return the pairs of a dataset, with texts from its owner's file.

    Of Factcheck-Bench these are the pairs with a human stance, of the biographies those of each
    claim with a human label and the passages that were retrieved for it.

    Args:
        dataset: name of the embedded dataset.
        texts: file with the responses.
        passages: file with passages of the biographies.

    Raises:
        InputError: if a file cannot be read, or is not the dataset's.
    """
    embedded = {graph.id: graph for graph in datasets.load(dataset).graphs}
    if dataset == BENCH:
        pairs = [
            PairOfResponse(each.response, each.pair)
            for each in labeled_pairs(judged_responses(texts))
        ]
    else:
        if passages is None:
            raise InputError(f"{texts}: its passages are in a file beside it; give --passages")
        graphs = with_passages(read_many(texts), passages)
        ranks = passage_ranks(passages)
        pairs = [
            PairOfResponse(
                graph.id,
                replace(pair, source=names.get(pair.source, "")),
                ranks[graph.topic, pair.hypothesis, passage_key(pair.premise)],
            )
            for graph in graphs
            if graph.id in embedded
            for names in [_embedded_names(graph, embedded[graph.id])]
            for labeled in [{atom.id for atom in graph.atoms if atom.label is not None}]
            for pair in relation_pairs(graph, "FR1")
            if pair.target in labeled
        ]
    for each in pairs:
        graph = embedded.get(each.response)
        ids = () if graph is None else {*graph.context_ids, *graph.atom_ids}
        if each.pair.source not in ids or each.pair.target not in ids:
            raise InputError(f"{texts}: this is not the file that {dataset} was made from")
    return pairs


def passage_ranks(passages: Path) -> dict[tuple[str, str, str | None], int]:
    """Return the rank of each passage among the distinct ones of a claim, from 1.

    Args:
        passages: file with passages of the biographies, the best first.

    Returns:
        The ranks, by topic, text of the claim and key of the passage.

    Raises:
        InputError: if the file cannot be read, or a line is malformed.
    """
    keys: dict[tuple[str, str], dict[str | None, None]] = {}
    for line, value in read_json_lines(passages):
        claim = read_passages(value, passages, line)
        of_claim = keys.setdefault((claim.topic, claim.atom), {})
        of_claim.update(dict.fromkeys(passage_key(text) for _, text in claim.passages))
    return {
        (*claim, key): rank
        for claim, of_claim in keys.items()
        for rank, key in enumerate(of_claim, start=1)
    }


def _embedded_names(graph: FactGraph, embedded: FactGraph) -> dict[str, str]:
    """Return the ids that an embedded response has for the passages of a graph, by their ids."""
    by_key = {context.key: context.id for context in embedded.contexts}
    keys = {context.id: passage_key(context.text) for context in graph.contexts}
    return {name: by_key[key] for name, key in keys.items() if key in by_key}


def lexical_record(texts: Path) -> str:
    """Return a record of the lexical model on Factcheck-Bench, of fits to other responses.

    Args:
        texts: file of Factcheck-Bench.

    Raises:
        InputError: as `judged_responses` and `fit_lexical`.
    """
    labeled = labeled_pairs(judged_responses(texts))
    shares = fit_lexical(labeled).cross_validated
    origin = RecordOrigin(BENCH, LEXICAL, len(labeled), method="fits to other responses")
    return record_text(
        origin,
        (
            RecordedAnswer(
                *(each.response, each.pair.source, each.pair.target, LEXICAL),
                (math.log(row[0]), math.log(row[1]), math.log(row[2])),
            )
            for each, row in zip(labeled, shares.tolist(), strict=True)
        ),
    )


def _record(given: argparse.Namespace, pairs: list[PairOfResponse]) -> int:
    prompts = tuple(load_prompt(name).identity for name in given.prompts.split(","))
    origin = RecordOrigin(
        given.dataset,
        Path(given.model).name.removesuffix(".gguf"),
        len(pairs),
        content_hash(model_file(given.model, MODEL_ENVIRONMENT)),
        QUANTIZATION.get(given.model, ""),
        _server_version(given.server),
        prompts,
        alternatives=ALTERNATIVES,
        order=given.order,
        seed=given.seed,
        clock="processor time of the server",
    )
    asked_now = given.prompts if given.only is None else given.only
    only = frozenset(asked_now.split(","))
    with served(
        given.model,
        given.server,
        slots=len(only),
        context=_CONTEXT,
        threads=given.threads,
        in_turn=True,
    ) as real:
        os.setpriority(os.PRIO_PROCESS, real.pid, _NICE)
        model = LitellmModel(LitellmSettings(real.name, real.api_base, timeout=_LONGEST))
        asked = record_relations(
            *(given.out, origin, pairs, model),
            most=given.most,
            prompts=only,
            clock=lambda: processor_seconds(real.pid),
        )
    sys.stdout.write(f"{asked:,} questions asked\n")
    return 0


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, from Linux's /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    user, system = map(int, fields[11:13])
    return (user + system) / os.sysconf("SC_CLK_TCK")


def _server_version(executable: Path | None) -> str:
    """Return the name and version of the server, which can change the last digits of answers."""
    if executable is not None:
        stated = subprocess.run(
            [executable, "--version"], capture_output=True, text=True, check=True
        )
        version = next(
            line for line in f"{stated.stderr}\n{stated.stdout}".splitlines() if "version:" in line
        )
        return f"llama.cpp {version.partition('version:')[2].strip()}, compiled for its processor"
    packages = next((MODEL_ENVIRONMENT / "lib").glob("python*/site-packages"))
    installed = distributions(name="xllamacpp", path=[str(packages)])
    return f"xllamacpp {next(iter(installed)).version}"


if __name__ == "__main__":
    sys.exit(main())
