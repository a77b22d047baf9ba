"""Recorded answers of a model about the relations of a dataset: JSON Lines, appended one by one.

The first line has the origin. Every other line has an answer, as a list of the fields of
`RecordedAnswer`::

    {"format": "factormodels/relation-record", "version": 1, "dataset": "factcheck-bench",
     "model": "smollm2-135m-instruct", "file_sha256": "…", "quantization": "Q4_K_M",
     "server": "xllamacpp 2026.10", "prompts": [{"name": "relation", "version": 2, "digest": "…"}],
     "method": "logprobs", "alternatives": 20, "order": "responses", "seed": 0, "pairs": 3098,
     "clock": "processor seconds of the server"}
    ["fcb-001", "c1", "a1", "relation", [-1.2, -0.9, -1.3], "", [494, 451, 2], 2.28]

Texts are not recorded: responses, passages and claims have the ids of the embedded dataset. A pair
without content has no response, and its text replaces both ids. The three log-probabilities, of
entailment, contradiction and neutral, are normalized and not corrected; they are null if the answer
gave none, and the next field states the reason. The three numbers of tokens count the question, the
part of it that the server had in its prefix cache, and the answer.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from factormodels.claims import JUDGED_KINDS
from factormodels.errors import InputError
from factormodels.io.json import decode_lines, text_of
from factormodels.io.learned_files import Fields
from factormodels.io.source.files import read_text
from factormodels.io.source.places import location
from factormodels.metadata.prompt_identity import PromptIdentity

FORMAT = "factormodels/relation-record"
VERSION = 1

ORDERS = ("responses", "pairs", "ranks")
"""Orders of recording: whole responses, or one pair of each response in turn, both at random; or
the best-ranked passage of every claim, then the second, and so on."""

_ADVICE = "use a recorded file without changes"
_DIGITS = 5


@dataclass(frozen=True)
class RecordOrigin:
    """Origin of recorded answers.

    Attributes:
        dataset: name of the embedded dataset whose ids the record uses.
        model: name of the model.
        file_sha256: SHA-256 of the model's file; empty if it has none.
        quantization: quantization of the model's file; empty if it has none.
        server: the server and its version; empty if there was none.
        prompts: prompts that were asked.
        method: source of the probabilities.
        alternatives: number of alternatives per token that were requested.
        order: order of recording, one of `ORDERS`.
        seed: seed of the order.
        pairs: number of pairs to be recorded with each prompt.
        clock: meaning of the seconds of an answer.
    """

    dataset: str
    model: str
    pairs: int
    file_sha256: str = ""
    quantization: str = ""
    server: str = ""
    prompts: tuple[PromptIdentity, ...] = ()
    method: str = "logprobs"
    alternatives: int = 0
    order: str = ORDERS[0]
    seed: int = 0
    clock: str = ""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer about the relation of a passage to a claim.

    Attributes:
        response: id of the response; empty for a pair without content.
        passage: id of the passage.
        claim: id of the claim.
        prompt: name of the prompt.
        log_p: log-probabilities of entailment, contradiction and neutral; None if the answer gives
            none.
        missing: reason for missing probabilities; empty if none are missing.
        tokens: numbers of tokens of the question, of its part in the server's prefix cache, and of
            the answer.
        seconds: time that it took, by the clock of the record.
    """

    response: str
    passage: str
    claim: str
    prompt: str
    log_p: tuple[float, float, float] | None
    missing: str = ""
    tokens: tuple[int, int, int] = (0, 0, 0)
    seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Response, passage, claim and prompt, which identify the answer."""
        return self.response, self.passage, self.claim, self.prompt

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Probabilities of entailment, contradiction and neutral, summing to 1; None if missing."""
        if self.log_p is None:
            return None
        weights = [math.exp(value) for value in self.log_p]
        entails, contradicts, neutral = (weight / math.fsum(weights) for weight in weights)
        return entails, contradicts, neutral


@dataclass(frozen=True)
class RelationRecord:
    """Recorded answers with their origin.

    Attributes:
        origin: the origin.
        answers: the answers, in order of recording.
    """

    origin: RecordOrigin
    answers: tuple[RecordedAnswer, ...]

    def of_prompt(self, prompt: str) -> dict[tuple[str, str, str], RecordedAnswer]:
        """Return the answers to a prompt, by response, passage and claim."""
        return {
            (answer.response, answer.passage, answer.claim): answer
            for answer in self.answers
            if answer.prompt == prompt and answer.response
        }

    def content_free(self, prompt: str) -> tuple[RecordedAnswer, ...]:
        """Return the answers to a prompt about pairs without content."""
        return tuple(
            answer for answer in self.answers if answer.prompt == prompt and not answer.response
        )

    @property
    def asked_prompts(self) -> tuple[str, ...]:
        """Names of the prompts with answers, in order of first occurrence."""
        return tuple(dict.fromkeys(answer.prompt for answer in self.answers))


def read_relation_record(path: str | os.PathLike[str]) -> RelationRecord:
    """Read a file of recorded answers.

    Raises:
        InputError: if it cannot be read, or is not such a file.
    """
    return parse_relation_record(read_text(path), path)


def parse_relation_record(text: str, source: str | os.PathLike[str]) -> RelationRecord:
    """Parse the text of a file of recorded answers; `source` names it in errors.

    Raises:
        InputError: if a line is malformed, or an answer is recorded twice.
    """
    lines = list(decode_lines(text, source))
    if not lines:
        raise InputError(f"{source}: there is nothing in it; {_ADVICE}")
    first, value = lines[0]
    origin = _origin(_fields(value, location(source, first)))
    answers: dict[tuple[str, str, str, str], RecordedAnswer] = {}
    for line, value in lines[1:]:
        where = location(source, line)
        answer = _answer(value, where)
        if answer.key in answers:
            raise InputError(f"{where}: the same question was answered before; keep one")
        answers[answer.key] = answer
    return RelationRecord(origin, tuple(answers.values()))


def _fields(value: Any, where: str) -> Fields:
    if not isinstance(value, dict):
        raise InputError(f"{where}: this is not an object; {_ADVICE}")
    return Fields(value, where, _ADVICE)


def _origin(fields: Fields) -> RecordOrigin:
    if fields.value.get("format") != FORMAT or fields.value.get("version") != VERSION:
        raise InputError(f"{fields.where}: this is not version {VERSION} of {FORMAT!r}; {_ADVICE}")
    names = tuple(RecordOrigin.__dataclass_fields__)
    fields.only("format", "version", *names)
    prompts = fields.objects("prompts")
    for prompt in prompts:
        prompt.only("name", "version", "digest")
    texts = ("dataset", "model", "file_sha256", "quantization", "server", "method", "clock")
    return RecordOrigin(
        **{name: fields.text(name) for name in texts},
        order=fields.text("order", ORDERS),
        pairs=fields.whole("pairs"),
        alternatives=fields.whole("alternatives"),
        seed=fields.whole("seed"),
        prompts=tuple(
            PromptIdentity(prompt.text("name"), prompt.whole("version"), prompt.text("digest"))
            for prompt in prompts
        ),
    )


_NAMES = tuple(RecordedAnswer.__dataclass_fields__)


def _answer(value: Any, where: str) -> RecordedAnswer:
    if not isinstance(value, list) or len(value) != len(_NAMES):
        raise InputError(f"{where}: this is not a list of {', '.join(_NAMES)}; {_ADVICE}")
    fields = Fields(dict(zip(_NAMES, value, strict=True)), where, _ADVICE)
    log_p = None
    if fields.value["log_p"] is not None:
        entails, contradicts, neutral = fields.numbers("log_p", len(JUDGED_KINDS), most=0.0)
        log_p = entails, contradicts, neutral
    asked, known, answered = fields.wholes("tokens", 3, 0, 2**53)
    return RecordedAnswer(
        fields.text("response"),
        fields.text("passage"),
        fields.text("claim"),
        fields.text("prompt"),
        log_p,
        fields.text("missing"),
        (asked, known, answered),
        fields.number("seconds", 0.0),
    )


def origin_line(origin: RecordOrigin) -> str:
    """Return the first line of a file of recorded answers."""
    plain = asdict(origin) | {"prompts": [asdict(prompt) for prompt in origin.prompts]}
    return text_of({"format": FORMAT, "version": VERSION, **plain}, "the record") + "\n"


def answer_line(answer: RecordedAnswer) -> str:
    """Return the line of an answer, its log-probabilities with five digits."""
    log_p = None
    if answer.log_p is not None:
        log_p = [min(0.0, round(value, _DIGITS)) for value in answer.log_p]
    texts = [answer.response, answer.passage, answer.claim, answer.prompt]
    seconds = round(answer.seconds, 3)
    plain = [*texts, log_p, answer.missing, list(answer.tokens), seconds]
    return text_of(plain, "the answer") + "\n"


def record_text(origin: RecordOrigin, answers: Iterable[RecordedAnswer]) -> str:
    """Return the text of a file of recorded answers."""
    return origin_line(origin) + "".join(map(answer_line, answers))
