"""FaStfact's first step: one call extracts claims and says which of them need no search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from factormodels.errors import InputError, unknown_name
from factormodels.extraction.asking import table
from factormodels.extraction.asking.claim_lines import ClaimLines, PreVerified
from factormodels.extraction.asking.loop import ask_chunks, ask_one
from factormodels.extraction.asking.stage import ModelStage, Question
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import Failure, LanguageModel
from factormodels.extraction.sentences import Chunk, split_chunks, split_sentences

ShownContext = Literal["chunk", "response"]
"""What the extracting model is shown beside the question: the chunk alone, as in the paper's
template, or the whole response with it."""

STAGES: Mapping[str, ModelStage[ClaimLines]] = MappingProxyType(
    {"chunk": table.PRE_VERIFICATION, "response": table.PRE_VERIFICATION_IN_RESPONSE}
)
"""The stage by what is shown."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one pass over a response extracts.

    Attributes:
        claims: the claims, in the order of their sentences.
        sentences: number N of sentences.
        chunks: number of chunks, N/w rounded up; those that were cut in two, since the answer was
            longer than it may be, count as two.
        calls: number of questions, also about chunks that were then cut in two, or of whose
            answers some lines could not be read.
        failures: (first sentence of the chunk, reason) of chunks without a readable answer: their
            claims are missing, which is not the same as having none.
        unread: (first sentence of the chunk, line) of lines of answers that state a claim, as it
            seems, and were not clear the second time either.
    """

    claims: tuple[PreVerified, ...]
    sentences: int
    chunks: int
    calls: int
    failures: tuple[tuple[int, str], ...] = ()
    unread: tuple[tuple[int, str], ...] = ()


def extract(
    response: str,
    model: LanguageModel,
    *,
    query: str = "",
    stride: int | None = None,
    context: ShownContext = "chunk",
    language: str | None = None,
) -> Extraction:
    """Claims of a response with the model's own verdict on each.

    Args:
        response: the response.
        model: the language model, which must report log-probabilities for a claim to skip search.
        query: what was asked.
        stride: sentences per call; None takes the whole response at once.
        context: what the model is shown of the response: the sentences of the call, or all of it.
        language: as `split_sentences` takes it.

    Raises:
        InputError: if the context is unknown, the stride is not a whole number from 1, or the
            language does not have the form of a code.

    Source: FaStfact, section 4.1.
    """
    if context not in STAGES:
        raise InputError(unknown_name(f"the context {context!r}", context, STAGES))
    sentences = split_sentences(response, language)
    chunks = split_chunks(sentences, stride)
    asked = {"question": query, "response": response}

    again = 0

    async def ask(chunk: Chunk) -> ClaimLines | Failure:
        nonlocal again
        question = Question(
            STAGES[context],
            {**asked, "sentences": chunk.numbered},
            about=chunk,
            parts=len(chunk.sentences),
        )
        first = await ask_one(model, question)
        if isinstance(first, Failure) or not first.unread:
            return first
        # Once more, whatever comes: what was clear is there already.
        again += 1
        second = await ask_one(model, replace(question, mended=first.fault))
        return first if isinstance(second, Failure) else max(first, second, key=_clear)

    claims: list[PreVerified] = []
    failures: list[tuple[int, str]] = []
    unread: list[tuple[int, str]] = []
    answers, calls = ask_chunks(chunks, lambda some: run_until_done(each(ask, some)))
    for chunk, answer in answers:
        if isinstance(answer, Failure):
            failures.append((chunk.first, answer.reason))
        else:
            claims += answer.claims
            unread += [(chunk.first, line) for line in answer.unread]
    return Extraction(
        tuple(claims), len(sentences), len(answers), calls + again, tuple(failures), tuple(unread)
    )


def _clear(lines: ClaimLines) -> tuple[int, int]:
    """How much of an answer is clear: its claims, then how few lines are not."""
    return len(lines.claims), -len(lines.unread)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold on confidence, and what it costs.

    Attributes:
        value: theta; claims with a definite label above it skip the search. 1 lets none skip.
        skipped: how many of the labelled claims would skip.
        error: share of these whose label is wrong; NaN if none would.
        upper: upper confidence bound of that share.
    """

    value: float
    skipped: int
    error: float
    upper: float


_LEVEL, _CANDIDATES = 0.95, 20
"""Confidence that no more than the target is wrong, and how many thresholds are tried."""


def choose_threshold(
    confidence: Sequence[float],
    correct: Sequence[bool],
    target_error: float,
) -> Threshold:
    """Lowest threshold at which few of the skipped claims are wrong, for certain enough.

    The bound is Clopper and Pearson's, at a level for each of the candidates at which it holds with
    95 % for the one that is chosen. Candidates are 20 quantiles of the confidences. Claims
    are taken to be right or wrong independently of each other: claims of one response are not, so
    give claims of many responses, few of each.

    Args:
        confidence: of the definite labels of claims whose truth is known.
        correct: whether each label is right.
        target_error: largest share of wrong labels among skipped claims, in (0, 1).

    Raises:
        InputError: if lengths differ, a number is out of range, or there is nothing to learn from.
    """
    if len(confidence) != len(correct) or not len(confidence):
        raise InputError(
            f"{len(confidence)} confidences and {len(correct)} labels were given; give as many of "
            "each, and at least one"
        )
    if not 0.0 < target_error < 1.0:
        raise InputError(f"target_error is {target_error}; give a number between 0 and 1")
    for value in confidence:
        if not 0.0 <= value <= 1.0:
            raise InputError(f"the confidence {value} is not between 0 and 1; correct it")
    from scipy.stats import beta

    ranked = sorted(confidence)
    places = (math.ceil(len(ranked) * part / _CANDIDATES) for part in range(_CANDIDATES))
    # Just below a quantile, so that claims with that very confidence skip.
    tried = sorted({math.nextafter(ranked[rank], -1.0) for rank in places if rank < len(ranked)})
    for value in tried:
        skipped = [right for c, right in zip(confidence, correct, strict=True) if c > value]
        wrong = len(skipped) - sum(skipped)
        share = 1.0 - (1.0 - _LEVEL) / len(tried)
        upper = (
            float(beta.ppf(share, wrong + 1, len(skipped) - wrong)) if wrong < len(skipped) else 1.0
        )
        if upper <= target_error:
            return Threshold(max(value, 0.0), len(skipped), wrong / len(skipped), upper)
    return Threshold(1.0, 0, math.nan, math.nan)
