"""A provider of a language model on loopback, quick enough for many calls, calm or hostile.

It answers every stage of an assessment deterministically, by OpenAI's protocol, and notes when each
call began, when it ended and whether it was answered well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.factormodels.extraction.questions import claim_of, sentences_of

LABELS = ("entailment", "contradiction", "neutral")

_CORRECTION = "An earlier answer to this could not be used"
"""How a question begins that is asked again, since an answer to it could not be read."""

FAULTS = ("429", "500", "reset", "malformed", "no choices", "drip")
"""What a hostile provider does in place of an answer, or while it answers (drip)."""


@dataclass
class Call:
    """A question, when it came, when its reply was handed over, and whether that was good."""

    question: str
    began: float
    ended: float | None = None
    answered: bool = False


@dataclass(frozen=True)
class Hostility:
    """How bad a day is.

    Attributes:
        share: of the questions that meet faults before they are answered.
        most: faults of one question, at most.
        drip_seconds: for how long headers drip.
        pause_after: good answers after which the provider pauses, once; 0 for never.
        pause_seconds: for how long.
    """

    share: float = 0.35
    most: int = 3
    drip_seconds: float = 3.0
    pause_after: int = 0
    pause_seconds: float = 20.0


@dataclass
class Provider:
    """A provider, used as a context: it serves in a thread of its own.

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
    _held: list[tuple[str, asyncio.Future[None]]] = field(default_factory=list)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        started: threading.Event = threading.Event()

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
            port = server.sockets[0].getsockname()[1]
            self.url = f"http://127.0.0.1:{port}/v1"
            started.set()
            async with server:
                await self._stop.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(re.search(rb"(?i)content-length: *(\d+)", head)[1])  # type: ignore[index]
                request = json.loads(await reader.readexactly(length))
                if not await self._reply(request, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            # The last when the day ends: a stream's own callback would print it.
            pass
        finally:
            writer.close()

    async def _reply(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """Answer a request; False if the connection is no more."""
        question = request["messages"][-1]["content"]
        if question.startswith(_CORRECTION):
            question = question.partition("\n\n")[2]
        call = Call(question, time.monotonic())
        self.calls.append(call)
        fault = self._fault(question)
        await (asyncio.sleep(self.latency) if self.gate is None else self._hold(question))
        if (left := self._paused_until - time.monotonic()) > 0:
            await asyncio.sleep(left)
        if fault == "reset":
            call.ended = time.monotonic()
            writer.transport.abort()
            return False
        status, body, headers = self._body(question, fault)
        head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n{headers}"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        if fault == "drip":
            assert self.hostility is not None
            for byte in head.encode():
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(self.hostility.drip_seconds / len(head))
        else:
            writer.write(head.encode())
        writer.write(body)
        await writer.drain()
        call.ended = time.monotonic()
        call.answered = fault in ("", "drip")
        return True

    async def _hold(self, question: str) -> None:
        """Wait until the gate opens."""
        assert self.gate is not None
        opened = asyncio.get_running_loop().create_future()
        self._held.append((question, opened))
        if self.gate([held for held, _ in self._held]):
            self.rounds += 1
            waiting, self._held = self._held, []
            for _, one in waiting:
                one.set_result(None)
        await opened

    def _fault(self, question: str) -> str:
        """What goes wrong with this attempt at a question; empty if nothing."""
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

    def _body(self, question: str, fault: str) -> tuple[int, bytes, str]:
        """Status, body and further headers of a reply."""
        if fault == "429":
            return 429, _error("slow down"), "Retry-After: 0\r\n"
        if fault == "500":
            return 500, _error("something broke"), ""
        text, listed = answer(question)
        if fault == "malformed":
            text = "I am afraid that I cannot say: [{"
            # Whoever gives log-probabilities gives them of every text.
            token = {"token": text, "logprob": -0.1}
            listed = [{**token, "top_logprobs": [token]}] if listed else []
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": {"content": listed} if listed else None,
        }
        reply = {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [] if fault == "no choices" else [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        return 200, json.dumps(reply).encode(), ""


def answer(question: str) -> tuple[str, list[dict[str, Any]]]:
    """The one good answer to a question of any stage, with log-probabilities of its tokens."""
    if "<sentences>" in question:
        listed = sentences_of(question)
        return json.dumps([{"sentence": n, "claim": text} for n, text in listed]), []
    if "<claim>" in question and "<premise>" not in question:
        return json.dumps({"claim": claim_of(question)}), []
    byte = hashlib.sha256(question.encode()).digest()[0]
    label, share = LABELS[byte % 3], 0.5 + byte / 600
    others = {other: (1 - share) / 2 for other in LABELS if other != label}
    alternatives = [
        {"token": token, "logprob": math.log(value)}
        for token, value in {label: share, **others}.items()
    ]
    return label, [{"token": label, "logprob": math.log(share), "top_logprobs": alternatives}]


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "scripted"}}).encode()
