"""A scripted server that speaks OpenAI's protocol on the loopback interface."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server sends back.

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


class ScriptedServer:
    """A server that answers by a script and remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def url(self) -> str:
        """The base address that a client is given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: dict[str, Any], headers: dict[str, str]) -> Reply:
        """Return the script's reply to a request, and remember the request."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self.script(request, number)
            time.sleep(reply.delay)
        finally:
            with self._lock:
                self._at_once -= 1
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Small answers are sent at once: the wait for more would be forty milliseconds.
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                request = json.loads(self.rfile.read(length))
                reply = server.answer(
                    request, {name.lower(): value for name, value in self.headers.items()}
                )
                body = reply.raw if reply.raw is not None else _body(reply, request)
                try:
                    self.send_response(reply.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(body)))
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _body(reply: Reply, request: dict[str, Any]) -> bytes:
    if reply.status != 200:
        return json.dumps({"error": {"message": reply.text, "type": "scripted"}}).encode()
    listed = [
        {
            "token": token,
            "logprob": math.log(alternatives.get(token, 1.0)),
            "top_logprobs": [
                {"token": other, "logprob": math.log(value)}
                for other, value in alternatives.items()
            ],
        }
        for token, alternatives in reply.tokens
    ]
    message: dict[str, Any] = {"role": "assistant"}
    if reply.text is not None:
        message["content"] = reply.text
    question, answer = reply.usage
    return json.dumps(
        {
            "id": "scripted",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "finish_reason": reply.finish,
                    "logprobs": {"content": listed} if listed and request.get("logprobs") else None,
                }
            ],
            "usage": {
                "prompt_tokens": question,
                "completion_tokens": answer,
                "total_tokens": question + answer,
            },
        }
    ).encode()
