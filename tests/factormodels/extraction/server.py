"""A scripted server that speaks OpenAI's protocol on the loopback interface."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from factormodels.extraction.concurrency import run_until_done
from tests.factormodels.extraction.provider_servers import completion, token
from tests.factormodels.extraction.web_server import Answer, Asked, web_server


@dataclass(frozen=True)
class Reply:
    """Reply of the server.

    Attributes:
        text: the answer's text; None leaves the content out.
        tokens: (token, {alternative: probability}) in turn; empty sends no log-probabilities.
        status: HTTP status; other than 200, `text` is the error's message.
        headers: further headers.
        delay: seconds before anything is sent.
        raw: the body, byte for byte, in place of a well-formed one.
        finish: why the model stopped.
        usage: tokens of question and answer.
    """

    text: str | None = ""
    tokens: Sequence[tuple[str, Mapping[str, float]]] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: bytes | None = None
    finish: str = "stop"
    usage: tuple[int, int] = (20, 2)


Script = Callable[[dict[str, Any], int], Reply]
"""From the request's JSON and the number of requests before it to the reply."""


def label_reply(label: str, probability: float, others: Mapping[str, float] | None = None) -> Reply:
    """Return an answer of one token, the label, with alternatives."""
    return Reply(label, [(label, {label: probability, **(others or {})})])


def forget_clients(url: str) -> None:
    """Close what litellm keeps for a server that ends: it would keep two hundred of them."""
    litellm = sys.modules.get("litellm")
    if litellm is None:
        return
    clients = litellm.in_memory_llm_clients_cache.cache_dict
    for key in [key for key in clients if url in key]:
        run_until_done(clients.pop(key).close())


class ScriptedServer:
    """A server that answers by a script and remembers what it was asked; used as a context."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self.url = ""
        self._at_once = 0
        self._lock = threading.Lock()
        self._running = ExitStack()

    def __enter__(self) -> ScriptedServer:
        self.url = f"{self._running.enter_context(web_server(self._answer)).url}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        forget_clients(self.url)
        self._running.close()

    def always(self, reply: Reply) -> None:
        """Answer every request from now on alike."""
        self.script = lambda _request, _number: reply

    def _answer(self, asked: Asked, _: int) -> Answer:
        request = json.loads(asked.body)
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(asked.headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.script(request, number)
            time.sleep(reply.delay)
        finally:
            with self._lock:
                self._at_once -= 1
        body = reply.raw if reply.raw is not None else body_of(reply, request)
        return Answer(body, reply.status, {"Content-Type": "application/json", **reply.headers})


def body_of(reply: Reply, request: dict[str, Any]) -> bytes:
    """Return what is sent of a reply to a request."""
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.text, "type": "scripted"}}).encode()
    message = {} if reply.text is None else {"content": reply.text}
    tokens = [token(*pair) for pair in reply.tokens] if request.get("logprobs") else []
    return json.dumps(completion(request, message, tokens, reply.finish, reply.usage)).encode()
