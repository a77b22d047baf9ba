"""FaStfact's first step: one call extracts claims and says which of them need no search."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

from factormodels.errors import InputError, unknown_name
from factormodels.extraction.concurrency import each, run_until_done
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Token,
)
from factormodels.extraction.language_model.answers import (
    DENIAL,
    contradicts_itself,
    json_values,
    plain_claim,
    says_none,
)
from factormodels.extraction.language_model.log_probabilities import (
    Unusable,
    spelled_tokens,
    token_log_probabilities,
)
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
        sentence: 1-based index of its sentence; None where the answer does not say.
        label: the model's label.
        confidence: probability of the label given all that stands before it, the product over its
            tokens (FaStfact, equation 1); None where the log-probabilities give none.
        unusable: why there is no confidence; None where there is one.
    """

    claim: str
    sentence: int | None
    label: PreLabel
    confidence: float | None
    unusable: Unusable | None = field(default=None, compare=False)

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
    if context not in PROMPTS:
        raise InputError(unknown_name(f"the context {context!r}", context, PROMPTS))
    prompt = prompts_of(model)[PROMPTS[context]]
    sentences = split_sentences(response, language)
    chunks = split_chunks(sentences, stride)

    again = 0

    async def ask(chunk: Chunk) -> ClaimLines | Failure:
        nonlocal again
        request = _request(prompt, chunk, query, response)
        first = await _lines(model, request, chunk)
        if isinstance(first, Failure) or not first.unread:
            return first
        # Once more, whatever comes: what was clear is there already.
        again += 1
        second = await _lines(model, replace(request.corrected(first.fault), fault=None), chunk)
        return first if isinstance(second, Failure) else max(first, second, key=_clear)

    claims: list[PreVerified] = []
    failures: list[tuple[int, str]] = []
    unread: list[tuple[int, str]] = []
    found, calls = ask_chunks(chunks, lambda some: run_until_done(each(ask, some)))
    for chunk, one in found:
        if isinstance(one, Failure):
            failures.append((chunk.first, one.reason))
        else:
            claims += one.claims
            unread += [(chunk.first, line) for line in one.unread]
    return Extraction(
        tuple(claims), len(sentences), len(found), calls + again, tuple(failures), tuple(unread)
    )


async def _lines(model: LanguageModel, request: Request, chunk: Chunk) -> ClaimLines | Failure:
    answer = await model.complete(request)
    return answer if isinstance(answer, Failure) else read_claims(answer, chunk)


def _clear(lines: ClaimLines) -> tuple[int, int]:
    """How much of an answer is clear: its claims, then how few lines are not."""
    return len(lines.claims), -len(lines.unread)


@dataclass(frozen=True, slots=True)
class ClaimLines:
    """What an answer lists, line by line.

    Attributes:
        claims: the claims that are clear, in the order of their sentences if those are known.
        unread: the lines that seem to state a claim and are not clear.
    """

    claims: tuple[PreVerified, ...]
    unread: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """What is wrong with the lines that are not clear; empty where all are."""
        if not self.unread:
            return ""
        count = f"{len(self.unread)} line{'s do' if len(self.unread) > 1 else ' does'}"
        return f"{count} not have the requested form, the first: {self.unread[0][:60]!r}"


def read_claims(answer: Completion, chunk: Chunk) -> ClaimLines | Failure:
    """Claims that an answer lists, read line by line; a failure if no line can be read.

    A line gives a claim after its sentence's number, if any, and before its verdict, if what
    separates them is plain: bars, tabs, colons, dashes, brackets, or the paper's "###". Headings,
    headers and rules of tables, and prose before the first claim and after the last say nothing.

    Args:
        answer: lines "SENTENCE | CLAIM | VERDICT", or the like.
        chunk: the sentences that were asked about.
    """
    if answer.finish == "length":
        return Failure(f"the answer was {CUT_OFF}: claims may be missing")
    if contradicts_itself(answer.text):
        return Failure("a key of the answer has two values")
    answer = _plain(answer)
    if "|" not in answer.text and says_none(answer.text):
        return ClaimLines(())
    return _listed_objects(answer.text, chunk) or _listed_lines(answer, chunk)


def _plain(answer: Completion) -> Completion:
    """An answer with plain bars and without what is not seen, its tokens likewise."""
    signs = str.maketrans(dict.fromkeys("｜│┃║¦", "|") | dict.fromkeys("\u200b\u2060\ufeff", ""))
    return replace(
        answer,
        text=answer.text.translate(signs),
        tokens=tuple(replace(one, text=one.text.translate(signs)) for one in answer.tokens),
    )


_RIGHT, _CROSSED = "✅☑✔✓", "❌❎✗✘"
_WORDS: Mapping[PreLabel, str] = MappingProxyType(
    {
        PreLabel.LIKELY_NON_SUPPORTED: r"(?:likely|probably)[\s_-]*(?:non?t?[\s_-]*|un)supported",
        PreLabel.LIKELY_SUPPORTED: r"(?:likely|probably)[\s_-]*supported",
        # Table 2 of the paper counts what is refuted as N.
        PreLabel.NON_SUPPORTED: r"(?:non?t?[\s_-]*|un)supported|refuted",
        PreLabel.SUPPORTED: r"supported",
        PreLabel.IRRELEVANT: r"irrelevant|not[\s_-]*relevant",
        PreLabel.UNSURE: r"unsure|not[\s_-]*sure|uncertain",
    }
)
"""How answers write the labels, in any case; in this order, so that none is read within another."""

_SUPPORTING = (PreLabel.SUPPORTED, PreLabel.LIKELY_SUPPORTED)
_LABEL = "|".join(f"(?P<{label.name}>{words})" for label, words in _WORDS.items())
_NUMBER = (
    r"(?:sentences?\s*|s|#)?[\[(]?(?P<number>\d{1,9})(?!\d)(?:\s*(?:[-–,&]|and|to)\s*\d+)*[\])]?"
)
_END = re.compile(
    # What separates it from the claim, and perhaps says that it is the verdict.
    r"(?:[-=]+>|[|\t:;,#\[({<>→=]|\s[-–—]+\s)"
    rf"[\s*_`\"'“#\[({{<>{_RIGHT}{_CROSSED}\uFE0F]*(?:(?:verdict|label)\W+)?"
    rf"(?P<label>{_LABEL})(?!\w)"
    # A sign, then a confidence or a remark: in brackets, behind a dash or in a column of its own.
    rf"(?P<sign>[\s*_`\"'”#\])}}>.{_RIGHT}{_CROSSED}\uFE0F]*)"
    r"(?P<rest>[|,]?\s*\([^()|]*\)|\|[^|]*|,?\s*\d*\.?\d+\s*%?|(?P<reason>[-–—]+\s[^|]*))?"
    r"[\s.|]*\Z",
    re.I,
)
_CUT_VERDICT = re.compile(
    r"\W*(?:likely|probably|not?|non|un|partly|partially|mostly|verdict|label)\W*", re.I
)
"""What the last column of a claim holds where it is a part of the verdict."""
_STRANGE_NUMBER = re.compile(r"\W*\d\w*(?:\.\w+)*\W*\|")
"""A first column that is a number, but none of a sentence: "1.2 |"."""
_LONGEST_NUMBER = 10
_LONGEST_END = 300
"""Characters at the end of a line in which its verdict is looked for."""

_START = re.compile(
    # A quotation or code; a bullet, or the number of an item before that of the sentence.
    rf"[\s|]*(?:[>`]\s*(?=\d+\s*[|\t:]))?(?P<item>[-*•]\s+|\(?\d+[.)]\s+(?=\d+\s*[|\t:]))?"
    rf"(?:[*_]*{_NUMBER}[*_]*\s*(?P<after>[|\t:;,]|\s[-–—]\s|$)[\s|]*)?"
    r"(?P<text>(?P<listed>\(?\d+[.)]\s)?.*)",
    re.I | re.S,
)
_HEADER = re.compile(r"\b(?:claims?|verdicts?|labels?|sentences?|confidence)\b", re.I)
_ATTEMPT = re.compile(
    rf"[\s|*_]*(?:[-*•]\s|\(?\d+[.):]|{_NUMBER}\s*[|:])|.*(?:[|\t]|###)|.*\bsupported\W*$",
    re.I,
)


def _listed_lines(answer: Completion, chunk: Chunk) -> ClaimLines | Failure:
    tokens = spelled_tokens(answer)
    claims: list[PreVerified] = []
    unread: list[str] = []
    between: list[str] = []
    heading = chunk.first if len(chunk.sentences) == 1 else None
    read, broken, start = False, False, 0
    for line in answer.text.splitlines(keepends=True):
        text, at = line.strip(), start
        start += len(line)
        # Without a letter or a number it is empty, or a rule of a table, however that is drawn.
        if re.fullmatch(r"```\w*|[\W_]*", text):
            continue
        begin = _START.fullmatch(text)
        number, said = _numbered(begin, chunk) if begin is not None else (None, "")
        known = heading if number is None else number
        if number is not None and (not said or said == chunk.sentences[number - chunk.first]):
            # "2:", or the sentence itself: what follows is about it.
            heading, broken = number, False
            continue
        if says_none(said):
            read, broken = True, False
            continue
        # A line that goes on with one that was not clear is no claim of its own.
        found = None if broken and number is None else _claim(line, at, known, chunk, tokens)
        if found is not None:
            unread += between
            between, broken = [], False
            claims.append(found)
        elif _ATTEMPT.match(text):
            if not ("|" in text and not claims and not unread and _HEADER.search(text)):
                unread.append(text)
                broken = True
        elif claims and not re.search(r"^#|[:*_]$", text):
            # Counted if a claim follows: then it stands where one was to be.
            between.append(text)
    if not claims and not read:
        place = f": {unread[0][:60]!r}" if unread else ""
        return Failure(f"the answer lists no claim and does not say that there is none{place}")
    return ClaimLines(_in_order(claims), tuple(unread))


def _numbered(begin: re.Match[str], chunk: Chunk) -> tuple[int | None, str]:
    """The sentence that a line names, and the rest of it; all of it where it names none."""
    number = begin["number"]
    if number is None or not 0 <= int(number) - chunk.first < len(chunk.sentences):
        return None, begin["text"]
    return int(number), begin["text"].strip(" |*_")


def _claim(
    line: str, at: int, known: int | None, chunk: Chunk, tokens: Sequence[Token] | Unusable
) -> PreVerified | None:
    """The claim of a line that begins at a place of the answer; None if the line is not clear."""
    text = line.rstrip("\r\n")
    end = _END.search(text, max(0, len(text) - _LONGEST_END))
    if end is None:
        return None
    remark = end["rest"] or ""
    if re.search(_LABEL, remark, re.I) or DENIAL.search(remark):
        return None
    if end["reason"] and end[0][0] not in "|\t#":
        return None  # "The claim, supported - so they say - by many"
    label = next(one for one in _WORDS if end[one.name])
    wrong = _CROSSED if label in _SUPPORTING else _RIGHT
    if any(sign in wrong for sign in end["sign"]):
        return None
    begin = _START.fullmatch(text[: end.start()])
    _, bar, last = text[: end.start()].rpartition("|")
    if begin is None or (bar and _CUT_VERDICT.fullmatch(last)):
        return None
    claim = begin["text"]
    if _STRANGE_NUMBER.match(claim):
        return None
    number = begin["number"]
    if number is not None and not 0 <= int(number) - chunk.first < len(chunk.sentences):
        if begin["after"] in "|\t":
            return None
        # No number of a sentence, but how the claim begins: "1890: it opened".
        claim = text[: end.start()].strip(" |\t-*•")
    enclosed = re.fullmatch(r"([\"“`*_]+)(.*?)[\"”`*_]+", claim.strip(" |\t"))
    if enclosed is not None and enclosed[1] not in enclosed[2]:
        claim = enclosed[2]
    # Half of a mark is around more than the claim.
    claim = plain_claim(claim.strip(" |\t*" if claim.count("**") % 2 else " |\t"), chunk.text)
    listed = number or begin["item"] or begin["listed"] or text.lstrip()[:1] == "|"
    # Prose may end so: "my verdict: supported".
    if not any(map(str.isalpha, claim)) or not (listed or end[0][0] in "|\t#[({<"):
        return None
    place = (at + end.start("label"), at + end.end("label"))
    confidence = _probability(tokens, *place)
    if isinstance(confidence, Unusable):
        return PreVerified(claim, known, label, None, confidence)
    return PreVerified(claim, known, label, confidence)


def _listed_objects(text: str, chunk: Chunk) -> ClaimLines | None:
    """Claims of an answer that is JSON: objects with "claim", "verdict" and perhaps "sentence"."""
    found: list[Any] = []
    for value in json_values(text):
        inner = value.get("claims", value) if isinstance(value, dict) else value
        found += inner if isinstance(inner, list) else [inner]
    objects = [one for one in found if isinstance(one, dict) and "claim" in one]
    claims, unread = [], []
    for one in objects:
        said = str(one.get("verdict", one.get("label"))).strip(" #*")
        label = next((label for label in _WORDS if re.fullmatch(_WORDS[label], said, re.I)), None)
        number = one.get("sentence", chunk.first if len(chunk.sentences) == 1 else None)
        number = int(number) if isinstance(number, str) and _digits(number) else number
        inside = number is None or (
            type(number) is int and 0 <= number - chunk.first < len(chunk.sentences)
        )
        if label is None or not inside or not isinstance(one["claim"], str):
            unread.append(str(one))
        else:
            claim = plain_claim(one["claim"], chunk.text)
            claims.append(PreVerified(claim, number, label, None, Unusable.ABSENT))
    return ClaimLines(_in_order(claims), tuple(unread)) if claims else None


def _digits(text: str) -> bool:
    """Whether a text is a whole number of which no interpreter refuses to read so many digits."""
    return text.isdecimal() and len(text) < _LONGEST_NUMBER


def _in_order(claims: list[PreVerified]) -> tuple[PreVerified, ...]:
    if all(claim.sentence is not None for claim in claims):
        claims.sort(key=lambda claim: claim.sentence or 0)
    return tuple(claims)


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
    tried = sorted({math.nextafter(ranked[place], -1.0) for place in places if place < len(ranked)})
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


def _request(prompt: PromptTemplate, chunk: Chunk, query: str, response: str) -> Request:
    texts = {"question": query, "response": response, "sentences": chunk.numbered}
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


def _probability(tokens: Sequence[Token] | Unusable, begin: int, end: int) -> float | Unusable:
    """Probability of the characters from `begin` to `end`."""
    if isinstance(tokens, Unusable):
        return tokens
    values = token_log_probabilities(tokens, begin, end)
    return values if isinstance(values, Unusable) else math.exp(math.fsum(values))
