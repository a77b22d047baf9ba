"""Measure what a server's prefix cache saves, by the order of the questions about one biography.

    python -m tests.real_model.prefix_cache smollm2-135m-instruct ../shared/data/factscore_chatgpt

The folder has `ChatGPT.jsonl` and `passages_bm25.jsonl.gz`. Each claim is asked about with each
passage: passage by passage, as the commands do, and claim by claim. The server has one slot, and a
prefix cache in both.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from factormodels import read_many
from factormodels.errors import InputError
from factormodels.extraction.asking.table import RELATION, RELATION_PROMPTS
from factormodels.extraction.language_model.accounting import Ledger, MeteredModel
from factormodels.extraction.language_model.litellm_model import LitellmModel, LitellmSettings
from factormodels.extraction.relation_models.base import TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.extraction.stages.relations import relation_pairs
from factormodels.io.formats.factscore_passages import with_passages
from tests.real_model.record import processor_seconds
from tests.real_model.serve import QWEN, SMOLLM2
from tests.real_model.server import RealModel, served

_CONTEXT = 2048
_LONGEST = 1200.0
_NICE = 10


def main() -> None:
    """Print tokens and seconds of each order."""
    parser = argparse.ArgumentParser(prog="prefix_cache", description=__doc__)
    parser.add_argument("model", help=f"{SMOLLM2} or {QWEN}")
    parser.add_argument("folder", type=Path, help="folder of the biographies and their passages")
    parser.add_argument("--claims", type=int, default=30)
    parser.add_argument("--passages", type=int, default=20)
    parser.add_argument("--prompt", choices=RELATION_PROMPTS, default=RELATION.prompt)
    parser.add_argument("--server", type=Path, help="llama-server compiled for this processor")
    given = parser.parse_args()
    # Whatever ends this process ends the server too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    pairs = pairs_of(given.folder, given.claims, given.passages)
    orders = {
        "passage by passage": pairs,
        "claim by claim": sorted(pairs, key=lambda pair: pair.target),
    }
    for order, ordered in orders.items():
        # A server of its own for each, so that neither finds the other's cache.
        with served(given.model, given.server, slots=1, context=_CONTEXT) as real:
            sys.stdout.write(f"{order}: {measured(real, ordered, given.prompt)}\n")
            sys.stdout.flush()


def pairs_of(folder: Path, claims: int, passages: int) -> list[TextPair]:
    """Return all pairs of the first claims and passages of the first biography that has as many.

    Args:
        folder: folder with `ChatGPT.jsonl` and `passages_bm25.jsonl.gz`.
        claims: number of claims.
        passages: number of passages.

    Raises:
        InputError: if a file cannot be read, or no biography has as many.
    """
    graphs = with_passages(read_many(folder / "ChatGPT.jsonl"), folder / "passages_bm25.jsonl.gz")
    for graph in graphs:
        if len(graph.atoms) >= claims and len(graph.contexts) >= passages:
            targets = {atom.id for atom in graph.atoms[:claims]}
            sources = {context.id for context in graph.contexts[:passages]}
            return [
                pair
                for pair in relation_pairs(graph, "FR2")
                if pair.source in sources and pair.target in targets
            ]
    raise InputError(f"{folder}: no biography has {claims:,} claims and {passages:,} passages")


def measured(real: RealModel, pairs: list[TextPair], prompt: str) -> str:
    """Ask about pairs one by one, and return calls, tokens and seconds in words."""
    os.setpriority(os.PRIO_PROCESS, real.pid, _NICE)
    ledger = Ledger()
    settings = LitellmSettings(real.name, real.api_base, timeout=_LONGEST)
    judge = PromptedRelationModel(
        MeteredModel(LitellmModel(settings), ledger), "logprobs", fallback=None, prompt=prompt
    )
    started, began = processor_seconds(real.pid), time.monotonic()
    for pair in pairs:
        judge.judge([pair])
    taken, passed = processor_seconds(real.pid) - started, time.monotonic() - began
    usage = ledger.total
    read = usage.prompt_tokens - usage.prefix_tokens
    return (
        f"{usage.calls:,} calls, {read:,} of {usage.prompt_tokens:,} tokens read, "
        f"{taken:.0f} s of processor time, {passed:.0f} s passed"
    )


if __name__ == "__main__":
    main()
