"""A small real HTTP server that answers as it is told, one behaviour a request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What to send back."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: bool = False
    """Promise more than is sent, then hang up."""


Behaviour = Callable[[dict[str, Any], int], Answer]
"""From what was posted and the number of the request, beginning with 0."""


def said(text: str, **usage: int) -> Answer:
    body = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    return Answer(body=json.dumps({**body, "usage": {"prompt_tokens": 7, "completion_tokens": 3, **usage}}).encode())


class Server:
    """Remembers what it was asked."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.posted: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.url = ""


@contextmanager
def server(behave: Behaviour) -> Iterator[Server]:
    """A running server, until the block ends."""
    state = Server(behave)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with state.lock:
                number = len(state.posted)
                state.posted.append(posted)
                state.headers.append(dict(self.headers))
                state.paths.append(self.path)
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)
            answer = state.behave(posted, number)
            time.sleep(answer.wait)
            with state.lock:
                state.at_once -= 1
            try:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body) + (100 if answer.cut else 0)))
                self.end_headers()
                self.wfile.write(answer.body)
            except OSError:
                pass  # whoever asked is gone

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    state.url = f"http://127.0.0.1:{running.server_address[1]}/v1"
    thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        running.shutdown()
        running.server_close()
