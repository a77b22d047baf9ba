"""What a relation call costs on top of litellm: run with a server's address and a number of calls.

Prints JSON: milliseconds of processor time per call of a bare litellm loop and of the relation
model with cache and ledger, and how far memory grew over the second half of the calls.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from factormodels.extraction.accounting import Ledger, MeteredModel
from factormodels.extraction.cache import AnswerCache, CachedModel
from factormodels.extraction.concurrency import each
from factormodels.extraction.litellm_model import LitellmModel, LitellmSettings, quiet_litellm
from factormodels.extraction.relation_models.base import Judgement, TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel

CONCURRENCY = 64


def measure(url: str, calls: int) -> dict[str, float]:
    """Return milliseconds per call, bare and ours, in turn, and growth of memory in MiB."""
    litellm = quiet_litellm()
    settings = LitellmSettings("openai/test", api_base=url, concurrency=CONCURRENCY)
    with tempfile.TemporaryDirectory() as folder:
        cache = AnswerCache(Path(folder) / "cache.db")
        counted = MeteredModel(CachedModel(LitellmModel(settings), cache), Ledger())
        model = PromptedRelationModel(counted, concurrency=CONCURRENCY)
        prompt = [
            {"role": one.role, "content": one.content}
            for one in model._request(TextPair("A passage.", "A claim."), "logprobs").messages
        ]

        async def bare(_: int) -> None:
            await litellm.acompletion(
                model="openai/test", messages=prompt, api_base=url, max_retries=0, num_retries=0,
                temperature=0.0, max_tokens=16, logprobs=True, top_logprobs=5, timeout=60.0,
            )  # fmt: skip

        def ours(first: int, last: int) -> None:
            pairs = [TextPair(f"A passage {n}.", "A claim.") for n in range(first, last)]
            answers = model.judge(pairs)
            if not all(isinstance(answer, Judgement) for answer in answers):
                raise RuntimeError("a call failed")

        # Each batch has a loop and a connection of its own, so that both pay equally for these.
        batch = calls // 4
        asyncio.run(each(bare, range(200), CONCURRENCY))
        ours(0, 200)
        spent = {"bare": 0.0, "ours": 0.0}
        middle = 0
        for part in range(4):
            if part % 2 == 0:
                start = time.process_time()
                asyncio.run(each(bare, range(batch), CONCURRENCY))
                spent["bare"] += time.process_time() - start
            if part == 2:
                middle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start = time.process_time()
            ours(1000 + part * batch, 1000 + (part + 1) * batch)
            spent["ours"] += time.process_time() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - middle) / 1024
    return {
        "bare": 1e3 * spent["bare"] / (2 * batch),
        "ours": 1e3 * spent["ours"] / (4 * batch),
        "grown": grown,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
