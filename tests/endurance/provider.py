"""A provider of a language model on loopback, quick enough for many calls, calm or hostile.

It answers every stage of an assessment deterministically, by OpenAI's protocol, and notes each call
and whether it was answered well.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

from tests.factormodels.extraction.questions import claim_of, sentences_of
from tests.factormodels.extraction.server import Reply, body_of, label_reply
from tests.factormodels.extraction.web_server import Answer, Asked, web_server

LABELS = ("entailment", "contradiction", "neutral")

_CORRECTION = "An earlier answer to this could not be used"
"""How a question begins that is asked again, since an answer to it could not be read."""

FAULTS = ("429", "500", "broken off", "malformed", "no choices", "late")
"""What a hostile provider does in place of an answer, or before it answers (late)."""


@dataclass
class Call:
    """A question, and whether it was answered well."""

    question: str
    answered: bool = False


@dataclass(frozen=True)
class Hostility:
    """Severity of a day.

    Attributes:
        share: of the questions that meet faults before they are answered.
        most: faults of one question, at most.
        late_seconds: how late an answer is.
        pause_after: good answers after which the provider pauses, once; 0 for never.
        pause_seconds: for how long.
    """

    share: float = 0.35
    most: int = 3
    late_seconds: float = 3.0
    pause_after: int = 0
    pause_seconds: float = 20.0


@dataclass
class Provider:
    """A provider, used as a context.

    Attributes:
        latency: seconds before each answer.
        hostility: None on a calm day.
        gate: instead of a latency: given the questions under way at every new one, whether they are
            answered now, all at once; None for the latency.
        rounds: how often such questions were answered.
        calls: all calls so far.
        faults: how often each fault was dealt out.
    """

    latency: float = 0.0
    hostility: Hostility | None = None
    gate: Callable[[Sequence[str]], bool] | None = None
    rounds: int = 0
    calls: list[Call] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    url: str = ""
    _met: Counter[str] = field(default_factory=Counter)
    _paused_until: float = 0.0
    _held: list[tuple[str, threading.Event]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        self.url = f"{self._running.enter_context(web_server(self._answer)).url}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def _answer(self, asked: Asked, _: int) -> Answer:
        request = json.loads(asked.body)
        question = request["messages"][-1]["content"]
        if question.startswith(_CORRECTION):
            question = question.partition("\n\n")[2]
        call = Call(question)
        with self._lock:
            self.calls.append(call)
            fault = self._fault(question)
        self._wait(question, fault)
        call.answered = fault in ("", "late")
        reply = answer(question)
        match fault:
            case "429":
                reply = Reply("slow down", status=429, headers={"Retry-After": "0"})
            case "500":
                reply = Reply("something broke", status=500)
            case "malformed":
                text = "I am afraid that I cannot say: [{"
                # Whoever gives log-probabilities gives them of every text.
                reply = Reply(text, [(text, {text: 0.9})] if reply.tokens else ())
        body = body_of(reply, request)
        if fault == "no choices":
            body = json.dumps(json.loads(body) | {"choices": []}).encode()
        headers = {"Content-Type": "application/json", **reply.headers}
        return Answer(body, reply.status, headers, cut=5 if fault == "broken off" else None)

    def _wait(self, question: str, fault: str) -> None:
        """Let time pass, or wait until the gate opens."""
        if self.gate is None:
            late = self.hostility.late_seconds if self.hostility and fault == "late" else 0.0
            time.sleep(self.latency + late)
            time.sleep(max(self._paused_until - time.monotonic(), 0.0))
            return
        opened = threading.Event()
        with self._lock:
            self._held.append((question, opened))
            if self.gate([moment for moment, _ in self._held]):
                self.rounds += 1
                for _, waiting in self._held:
                    waiting.set()
                self._held = []
        opened.wait()

    def _fault(self, question: str) -> str:
        """Fault of this attempt at a question; empty if none."""
        day = self.hostility
        if day is None:
            return ""
        awaits_pause = day.pause_after > 0 and not self._paused_until
        if awaits_pause and sum(call.answered for call in self.calls) >= day.pause_after:
            self._paused_until = time.monotonic() + day.pause_seconds
            self.faults["pause"] += 1
        digest = hashlib.sha256(question.encode()).digest()
        number = self._met[question]
        self._met[question] += 1
        if digest[1] >= 256 * day.share or number >= 1 + digest[2] % day.most:
            return ""
        fault = FAULTS[digest[3 + number] % len(FAULTS)]
        self.faults[fault] += 1
        return fault


def answer(question: str) -> Reply:
    """The one good answer to a question of any stage, with log-probabilities of labels."""
    if "<sentences>" in question:
        listed = sentences_of(question)
        return Reply(json.dumps([{"sentence": n, "claim": text} for n, text in listed]))
    if "<claim>" in question and "<premise>" not in question:
        return Reply(json.dumps({"claim": claim_of(question)}))
    byte = hashlib.sha256(question.encode()).digest()[0]
    label, share = LABELS[byte % 3], 0.5 + byte / 600
    others = {other: (1 - share) / 2 for other in LABELS if other != label}
    return label_reply(label, share, others)
