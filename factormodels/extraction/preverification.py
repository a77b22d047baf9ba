"""FaStfact's first step: one call extracts claims and says which of them need no search."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from factormodels.errors import InputError, unknown_name
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Token,
)
from factormodels.extraction.language_model.answers import plain_claim, says_none
from factormodels.extraction.prompts import PromptTemplate
from factormodels.extraction.prompts.replaced import prompts_of
from factormodels.extraction.sentences import Chunk, split_chunks, split_sentences
from factormodels.extraction.stages.asking import CUT_OFF, ask_chunks

STAGE = "pre-verification"

ShownContext = Literal["chunk", "response"]
"""What the extracting model is shown beside the question: the chunk alone, as in the paper's
template, or the whole response with it."""

PROMPTS: Mapping[str, str] = MappingProxyType(
    {"chunk": "preverify", "response": "preverify_in_response"}
)
"""The prompt by what is shown."""

_TOP_LOGPROBS = 5
_TOKENS_PER_SENTENCE = 400
_MOST_TOKENS = 8000


class PreLabel(StrEnum):
    """What the extracting model says of a claim by what it knows (FaStfact, section 4.1)."""

    SUPPORTED = "supported"
    NON_SUPPORTED = "non-supported"
    IRRELEVANT = "irrelevant"
    LIKELY_SUPPORTED = "likely supported"
    LIKELY_NON_SUPPORTED = "likely non-supported"
    UNSURE = "unsure"

    @property
    def definite(self) -> bool:
        """Whether the label may spare a claim the search."""
        return self in (PreLabel.SUPPORTED, PreLabel.NON_SUPPORTED, PreLabel.IRRELEVANT)


@dataclass(frozen=True, slots=True)
class PreVerified:
    """A claim with what the extracting model says of it.

    Attributes:
        claim: the claim.
        sentence: 1-based index of its sentence.
        label: the model's label.
        confidence: probability of the label given all that stands before it, the product over its
            tokens (FaStfact, equation 1); None where the answer has no log-probabilities.
    """

    claim: str
    sentence: int
    label: PreLabel
    confidence: float | None

    def skips(self, threshold: float) -> bool:
        """Whether the claim needs no search: a definite label above the threshold."""
        return self.label.definite and self.confidence is not None and self.confidence > threshold


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one pass over a response extracts.

    Attributes:
        claims: the claims, in the order of their sentences.
        sentences: number N of sentences.
        chunks: number of chunks, N/w rounded up; those that were cut in two, since the answer was
            longer than it may be, count as two.
        calls: number of questions, also about chunks that were then cut in two.
        failures: (first sentence of the chunk, reason) of chunks without a readable answer: their
            claims are missing, which is not the same as having none.
    """

    claims: tuple[PreVerified, ...]
    sentences: int
    chunks: int
    calls: int
    failures: tuple[tuple[int, str], ...] = ()


def extract(
    response: str,
    model: LanguageModel,
    *,
    query: str = "",
    stride: int | None = None,
    context: ShownContext = "chunk",
    language: str = "en",
) -> Extraction:
    """Claims of a response with the model's own verdict on each.

    Args:
        response: the response.
        model: the language model, which must report log-probabilities for a claim to skip search.
        query: what was asked.
        stride: sentences per call; None takes the whole response at once.
        context: what the model is shown of the response: the sentences of the call, or all of it.
        language: two letters, as pysbd names languages.

    Raises:
        InputError: if the context is unknown, the stride is not a whole number from 1, or pysbd
            does not know the language.

    Source: FaStfact, section 4.1.
    """
    if context not in PROMPTS:
        raise InputError(unknown_name(f"the context {context!r}", context, PROMPTS))
    prompt = prompts_of(model)[PROMPTS[context]]
    sentences = split_sentences(response, language)
    chunks = split_chunks(sentences, stride)

    async def ask(chunk: Chunk) -> list[PreVerified] | Failure:
        answer = await model.complete(_request(prompt, chunk, query, response))
        return answer if isinstance(answer, Failure) else read_claims(answer, chunk)

    claims: list[PreVerified] = []
    failures: list[tuple[int, str]] = []
    found, calls = ask_chunks(chunks, lambda some: run_until_done(each(ask, some)))
    for chunk, one in found:
        if isinstance(one, Failure):
            failures.append((chunk.first, one.reason))
        else:
            claims += one
    return Extraction(tuple(claims), len(sentences), len(found), calls, tuple(failures))


def read_claims(answer: Completion, chunk: Chunk) -> list[PreVerified] | Failure:
    """Claims that an answer lists; a failure if any line is not of the form asked for.

    Args:
        answer: lines "SENTENCE | CLAIM | VERDICT".
        chunk: the sentences that were asked about.
    """
    if answer.finish == "length":
        return Failure(f"the answer was {CUT_OFF}: claims may be missing")
    if "|" not in answer.text and says_none(answer.text):
        return []
    labels = "|".join(re.escape(label) for label in sorted(PreLabel, key=len, reverse=True))
    line = re.compile(
        # Before it a bullet or number; bars at both ends, as of a table.
        r"[ \t]*(?:(?:[-*•]|\d+[.)])[ \t]+)?\|?[ \t]*"
        rf"(\d+)[ \t]*\|[ \t]*(\S[^\n]*?)[ \t]*\|[ \t]*[*_`\"]*({labels})[*_`\".]*[ \t]*\|?[ \t]*",
        re.IGNORECASE,
    )
    last = chunk.first + len(chunk.sentences) - 1
    claims: list[PreVerified] = []
    start = 0
    for text in answer.text.splitlines(keepends=True):
        introduces = not claims and re.search(r":[*_\s]*$|^\s*#", text)
        if text.strip() and not text.strip().startswith("```") and not introduces:
            match = line.fullmatch(text.rstrip("\r\n"))
            if match is None or not chunk.first <= int(match.group(1)) <= last:
                return Failure(f"a line does not have the requested form: {text.strip()[:60]!r}")
            begin, end = (start + place for place in match.span(3))
            label = PreLabel(" ".join(match.group(3).lower().split()))
            confidence = _probability(answer.tokens, begin, end)
            claim = plain_claim(match.group(2), chunk.text)
            claims.append(PreVerified(claim, int(match.group(1)), label, confidence))
        start += len(text)
    if not claims:
        return Failure("the answer lists no claim and does not say that there is none")
    return sorted(claims, key=lambda claim: claim.sentence)


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


def choose_threshold(
    confidence: Sequence[float],
    correct: Sequence[bool],
    target_error: float,
    *,
    level: float = 0.95,
    candidates: int = 20,
) -> Threshold:
    """Lowest threshold at which few of the skipped claims are wrong, for certain enough.

    The bound is Clopper and Pearson's at level 1 - (1 - level) / candidates for each candidate, so
    that it holds for the one that is chosen. Candidates are quantiles of the confidences. Claims
    are taken to be right or wrong independently of each other: claims of one response are not, so
    give claims of many responses, few of each.

    Args:
        confidence: of the definite labels of claims whose truth is known.
        correct: whether each label is right.
        target_error: largest share of wrong labels among skipped claims, in (0, 1).
        level: confidence that the share is not above the target.
        candidates: how many thresholds are tried.

    Raises:
        InputError: if lengths differ, a number is out of range, or there is nothing to learn from.
    """
    if len(confidence) != len(correct) or not len(confidence):
        raise InputError(
            f"{len(confidence)} confidences and {len(correct)} labels were given; give as many of "
            "each, and at least one"
        )
    for name, value in (("target_error", target_error), ("level", level)):
        if not 0.0 < value < 1.0:
            raise InputError(f"{name} is {value}; give a number between 0 and 1")
    if candidates < 1:
        raise InputError(f"{candidates} candidates were requested; give 1 or more")
    for value in confidence:
        if not 0.0 <= value <= 1.0:
            raise InputError(f"the confidence {value} is not between 0 and 1; correct it")
    from scipy.stats import beta

    ranked = sorted(confidence)
    places = (math.ceil(len(ranked) * part / candidates) for part in range(candidates))
    # Just below a quantile, so that claims with that very confidence skip.
    tried = sorted({math.nextafter(ranked[place], -1.0) for place in places if place < len(ranked)})
    for value in tried:
        skipped = [right for c, right in zip(confidence, correct, strict=True) if c > value]
        wrong = len(skipped) - sum(skipped)
        share = 1.0 - (1.0 - level) / len(tried)
        upper = (
            float(beta.ppf(share, wrong + 1, len(skipped) - wrong)) if wrong < len(skipped) else 1.0
        )
        if upper <= target_error:
            return Threshold(max(value, 0.0), len(skipped), wrong / len(skipped), upper)
    return Threshold(1.0, 0, math.nan, math.nan)


def _request(prompt: PromptTemplate, chunk: Chunk, query: str, response: str) -> Request:
    listed = "\n".join(
        f"{number}: {sentence}" for number, sentence in enumerate(chunk.sentences, chunk.first)
    )
    texts = {"question": query, "response": response, "sentences": listed}
    return Request(
        messages=prompt.render(**{name: texts[name] for name in prompt.slots}),
        prompt=prompt.identity,
        stage=STAGE,
        max_tokens=min(_MOST_TOKENS, _TOKENS_PER_SENTENCE * len(chunk.sentences)),
        top_logprobs=_TOP_LOGPROBS,
        seed=0,
        fault=lambda answer: _fault(answer, chunk),
    )


def _fault(answer: Completion, chunk: Chunk) -> str:
    found = read_claims(answer, chunk)
    return found.reason if isinstance(found, Failure) else ""


def _probability(tokens: Sequence[Token], begin: int, end: int) -> float | None:
    """Probability of the characters from `begin` to `end`, or None."""
    at = 0
    total = None
    for token in tokens:
        after = at + len(token.text)
        if after > begin and at < end:
            total = (total or 0.0) + token.log_probability
        at = after
    return None if total is None or at < end else math.exp(min(0.0, total))
