"""Recording of a language model's answers about the relations of a dataset, pair by pair."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from factormodels.errors import InputError
from factormodels.extraction.language_model import (
    Completion,
    Failure,
    LanguageModel,
    Request,
    Usage,
    WrappedModel,
)
from factormodels.extraction.probe.questions import CONTENT_FREE
from factormodels.extraction.prompts.replaced import WithPrompts, prompts_of
from factormodels.extraction.relation_models.base import Judgment, Missing, TextPair
from factormodels.extraction.relation_models.prompted import PromptedRelationModel
from factormodels.io.relation_record import (
    ORDERS,
    RecordedAnswer,
    RecordOrigin,
    answer_line,
    origin_line,
    parse_relation_record,
)
from factormodels.io.source.files import read_text, write_text
from factormodels.io.source.opening import exists

ALTERNATIVES = 20
"""Requested number of alternatives per token, the most that servers return."""


@dataclass(frozen=True, slots=True)
class PairOfResponse:
    """A pair of texts to be recorded.

    Attributes:
        response: id of its response.
        pair: the texts, with the ids of passage and claim.
        rank: rank of the passage among those retrieved for the claim, from 1.
    """

    response: str
    pair: TextPair
    rank: int = 1


def drawn_responses(
    pairs: Sequence[PairOfResponse], number: int, seed: int
) -> list[PairOfResponse]:
    """Return the pairs of a random sample of responses, in their order.

    Args:
        pairs: the pairs.
        number: number of responses; all if there are fewer.
        seed: seed of the draw.
    """
    drawn = set(_shuffled_responses(pairs, np.random.default_rng(seed))[:number])
    return [each for each in pairs if each.response in drawn]


def _shuffled_responses(
    pairs: Sequence[PairOfResponse], generator: np.random.Generator
) -> list[str]:
    names = sorted({each.response for each in pairs})
    return [names[at] for at in generator.permutation(len(names))]


def recording_order(pairs: Sequence[PairOfResponse], order: str, seed: int) -> list[PairOfResponse]:
    """Return pairs in an order in which any initial part of the recording is useful.

    "responses" puts whole responses in random order, with the pairs of a passage adjacent, which a
    server's prefix cache makes cheap. "pairs" takes a random pair from each response in turn, so
    that every part has pairs of all responses. "ranks" puts the best-ranked passages of all claims
    first, then the second-ranked, with the pairs of a passage adjacent within a rank.

    Args:
        pairs: the pairs.
        order: one of `ORDERS`.
        seed: seed of the order.

    Raises:
        InputError: for another order.
    """
    if order not in ORDERS:
        raise InputError(f"the order {order!r} is unknown; use one of {', '.join(ORDERS)}")
    generator = np.random.default_rng(seed)
    by_response: dict[str, list[PairOfResponse]] = {}
    for each in pairs:
        by_response.setdefault(each.response, []).append(each)
    names = _shuffled_responses(pairs, generator)
    if order == "ranks":
        position = {name: at for at, name in enumerate(names)}
        return sorted(
            pairs,
            key=lambda each: (each.rank, position[each.response], _number(each.pair.source)),
        )
    if order == "responses":
        return [
            each
            for name in names
            for each in sorted(by_response[name], key=lambda each: _number(each.pair.source))
        ]
    drawn = {
        name: [by_response[name][at] for at in generator.permutation(len(by_response[name]))]
        for name in names
    }
    longest = max(map(len, drawn.values()), default=0)
    return [drawn[name][at] for at in range(longest) for name in names if at < len(drawn[name])]


def _number(name: str) -> tuple[int, str]:
    digits = name.lstrip("ac")
    return (int(digits), name) if digits.isdecimal() else (0, name)


def record_relations(
    path: str | os.PathLike[str],
    origin: RecordOrigin,
    pairs: Sequence[PairOfResponse],
    model: LanguageModel,
    *,
    most: int | None = None,
    prompts: Collection[str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Ask a language model about pairs, and append each answer to a file.

    An existing file is continued: recorded questions are not asked again, and an incomplete last
    line is removed. Content-free pairs are asked first, because the correction "probe" needs them.

    Args:
        path: the file.
        origin: origin of the answers; its order and seed determine the order of `pairs`.
        pairs: the pairs.
        model: the language model, which must return log-probabilities.
        most: maximum number of pairs; None for all.
        prompts: names of the prompts to ask; None for all of the origin.
        clock: returns seconds; differences are recorded.

    Returns:
        Number of questions that were asked.

    Raises:
        InputError: if the file is of another origin, or cannot be read.
        OSError: if it cannot be written.
    """
    target = Path(path)
    known = _continued(target, origin)
    counted = _Counted(model)
    asked_model = WithPrompts(counted, prompts_of(model))
    judges = {
        prompt.name: PromptedRelationModel(
            asked_model, "logprobs", fallback=None, top_logprobs=ALTERNATIVES, prompt=prompt.name
        )
        for prompt in origin.prompts
        if prompts is None or prompt.name in prompts
    }
    order = recording_order(pairs, origin.order, origin.seed)[:most]
    empty = [PairOfResponse("", TextPair(text, text, text, text)) for text in CONTENT_FREE]
    questions = [(each, name) for each in (*empty, *order) for name in judges]
    asked = 0
    with target.open("a", encoding="utf-8") as file:
        for each, name in questions:
            if (each.response, each.pair.source, each.pair.target, name) in known:
                continue
            counted.usage, began = Usage(), clock()
            (answer,) = judges[name].judge([each.pair])
            usage, seconds = counted.usage, clock() - began
            file.write(
                answer_line(
                    RecordedAnswer(
                        *(each.response, each.pair.source, each.pair.target, name),
                        *_log_p(answer),
                        (usage.prompt_tokens, usage.prefix_tokens, usage.completion_tokens),
                        max(0.0, seconds),
                    )
                )
            )
            file.flush()
            asked += 1
    return asked


class _Counted(WrappedModel):
    """A language model without retries that adds up the usage of its calls.

    Unreadable answers are not requested again, so that servers with rotating slots keep the
    beginning of each prompt in its slot.
    """

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.usage = Usage()

    async def complete(self, request: Request) -> Completion | Failure:
        """Return the model's answer."""
        answer = await super().complete(replace(request, fault=None))
        self.usage += answer.usage
        return answer


def _log_p(answer: Judgment | Missing) -> tuple[tuple[float, float, float] | None, str]:
    """Return the log-probabilities of an answer, and the reason if it has none."""
    if isinstance(answer, Missing):
        return None, answer.reason
    if answer.distribution is None:
        return None, "it has the probability of only one relation"
    entails, contradicts, neutral = map(math.log, answer.distribution)
    return (entails, contradicts, neutral), ""


def _continued(path: Path, origin: RecordOrigin) -> frozenset[tuple[str, str, str, str]]:
    """Create a file, or check one and cut off an unfinished line; return its answers."""
    text = read_text(path) if exists(path) and path.stat().st_size else ""
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        write_text(path, origin_line(origin))
        return frozenset()
    record = parse_relation_record(whole, path)
    if record.origin != origin:
        names = [
            name
            for name in RecordOrigin.__dataclass_fields__
            if getattr(record.origin, name) != getattr(origin, name)
        ]
        raise InputError(
            f"{path}: the file was recorded with another {' and '.join(names)}; name another "
            "file, or use the same settings"
        )
    if whole != text:
        write_text(path, whole)
    return frozenset(answer.key for answer in record.answers)
