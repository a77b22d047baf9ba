"""A scripted web server on loopback: answers by path, and what was asked."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """Reply; with `cut` the connection breaks after that many bytes of the body.

    With `talk` nothing else is sent than what it sends.
    """

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    talk: Callable[[socket.socket], None] | None = None


Script = Callable[[Asked, int], Answer]
"""(request, how many came before it to the same path) -> answer."""


@dataclass
class WebServer:
    """A running server."""

    url: str
    asked: list[Asked] = field(default_factory=list)

    def paths(self) -> list[str]:
        """Return the paths that were requested, in order."""
        return [request.path for request in self.asked]


@contextmanager
def web_server(script: Script) -> Iterator[WebServer]:
    """Serve a script on a free port of loopback while the block runs."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Small answers are sent at once: the wait for more would be forty milliseconds.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            asked = Asked(
                self.command,
                parts.path,
                {key: values[0] for key, values in parse_qs(parts.query).items()},
                {key.lower(): value for key, value in self.headers.items()},
                self.rfile.read(length),
            )
            with lock:
                before = sum(request.path == asked.path for request in server.asked)
                server.asked.append(asked)
            answer = script(asked, before)
            if answer.delay:
                stopped.wait(answer.delay)
            if answer.talk:
                self.close_connection = True
                with suppress(OSError):
                    answer.talk(self.connection)
                return
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            try:
                self.send_response(answer.status)
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if answer.cut is None else body[: answer.cut])
            except OSError:
                self.close_connection = True
            if answer.cut is not None:
                self.close_connection = True

        do_GET = do_POST = _answer

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    stopped = threading.Event()

    class Server(ThreadingHTTPServer):
        # Several hundred calls may arrive at once.
        request_queue_size = 512

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Print what went wrong, but not that the one who asked was killed meanwhile."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    httpd = Server(("127.0.0.1", 0), Handler)
    server = WebServer(f"http://127.0.0.1:{httpd.server_port}")
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        stopped.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def dripping(after: bytes, connection: socket.socket) -> None:
    """Send some bytes, and then one of a header every 50 ms, until nobody listens."""
    connection.sendall(after)
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)
