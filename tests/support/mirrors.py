"""Loopback servers that stand in for the mirrors of datasets."""

import http.server
import re
import threading

import pytest

from burnbook.data.dataset.source import transfer


class Mirror(http.server.ThreadingHTTPServer):
    """A loopback server whose answer to every path is one function."""

    daemon_threads = True

    def __init__(self, answer):
        self.asked = []
        super().__init__(("127.0.0.1", 0), self.handler(answer))
        self.thread = threading.Thread(
            target=lambda: self.serve_forever(poll_interval=0.01), daemon=True
        )
        self.thread.start()

    def handler(self, answer):
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                answer(self)

            def log_message(self, *_):
                pass

        return Handler

    def handle_error(self, request, client_address):
        """A client that has lost its patience is no news."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/data"


def send(request, content, length=None):
    request.send_response(200)
    request.send_header("Content-Length", str(length or len(content)))
    request.end_headers()
    request.wfile.write(content)


def send_rest(request, content, tag='"v1"', stop=None):
    """Answer like a server that knows ranges; `stop` cuts after so many bytes."""
    span = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
    start = 0
    if span and request.headers.get("If-Range") == tag:
        start = int(span[1])
        if start >= len(content):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(content)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
    request.send_response(206 if start else 200)
    request.send_header("ETag", tag)
    request.send_header("Content-Length", str(len(content) - start))
    if start:
        last = len(content) - 1
        request.send_header("Content-Range", f"bytes {start}-{last}/{len(content)}")
    request.end_headers()
    request.wfile.write(content[start:][:stop])


def not_found(request):
    request.send_error(404)


@pytest.fixture
def mirror():
    open_mirrors = []

    def start(answer):
        if isinstance(answer, bytes):
            content = answer
            answer = lambda request: send(request, content)  # noqa: E731 (short)
        open_mirrors.append(Mirror(answer))
        return open_mirrors[-1]

    yield start
    for one in open_mirrors:
        one.shutdown()
        one.server_close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(transfer, "TIMEOUT", 0.5)
    monkeypatch.setattr(transfer, "PAUSE", 0)
