"""FaStfact's first step: a call extracts claims and settles some of them without a search."""

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
"""Text shown to the extracting model besides the question: the chunk alone, as in the paper's
template, or the whole response too."""

STAGES: Mapping[str, ModelStage[ClaimLines]] = MappingProxyType(
    {"chunk": table.PRE_VERIFICATION, "response": table.PRE_VERIFICATION_IN_RESPONSE}
)
"""The stage by the shown text."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of one pass over a response.

    Attributes:
        claims: the claims, in the order of their sentences.
        sentences: number N of sentences.
        chunks: number of chunks, N/w rounded up; chunks that were split because of a cut-off answer
            count as two.
        calls: number of questions, including those about chunks that were then split, and repeated
            ones about partly parsed answers.
        failures: (first sentence of the chunk, reason) of chunks without a parsable answer: their
            claims are missing, which differs from having none.
        unread: (first sentence of the chunk, line) of lines of answers that seem to state a claim
            and could not be parsed in the second answer either.
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
    """Extract the claims of a response with the model's own verdict on each.

    Args:
        response: the response.
        model: the language model, which must report log-probabilities for a claim to skip search.
        query: the question that was asked.
        stride: sentences per call; None takes the whole response at once.
        context: part of the response shown to the model: the sentences of the call, or all of it.
        language: as in `split_sentences`.

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
        # One repetition only, since the parsed claims are kept.
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
    """Return a sort key of how much of an answer was parsed: claims, then unparsed lines."""
    return len(lines.claims), -len(lines.unread)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold on confidence, and its error rate.

    Attributes:
        value: theta; claims with a definite label above it skip the search. At 1, none skips.
        skipped: number of labeled claims that would skip.
        error: share of these whose label is wrong; NaN if none would skip.
        upper: upper confidence bound of that share.
    """

    value: float
    skipped: int
    error: float
    upper: float


_LEVEL, _CANDIDATES = 0.95, 20
"""Confidence level of the bound on the error, and the number of candidate thresholds."""


def choose_threshold(
    confidence: Sequence[float],
    correct: Sequence[bool],
    target_error: float,
) -> Threshold:
    """Return the lowest threshold whose error, with 95% confidence, is at most the target.

    The bound is Clopper and Pearson's, with a level per candidate such that it holds with 95%
    confidence for the chosen one. Candidates are 20 quantiles of the confidences. Claims are
    assumed to be independent, which claims of the same response are not; give claims of many
    responses, few of each.

    Args:
        confidence: confidences of the definite labels of claims with known truth.
        correct: whether each label is right.
        target_error: maximum share of wrong labels among skipped claims, in (0, 1).

    Raises:
        InputError: if lengths differ, a number is out of range, or there are no claims.
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
    # Just below a quantile, so that claims with exactly that confidence skip.
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
