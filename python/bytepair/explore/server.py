"""The HTTP server: the page, its files, and the answers to its requests.

The server of the standard library suffices for one user on one machine. Each request has a thread.
Other web pages are kept out in these ways:

1. it listens on the loopback address by default;
2. the `Host` of a request must be loopback, an IP address, or the host that it listens on, so a
   foreign name that resolves to this machine is refused (DNS rebinding);
3. a request from another origin, according to the browser, is refused, unless it follows a link to
   the page;
4. the page may load only from this server, and run only the scripts that are files here.

A client cannot occupy the server: a request must arrive within a minute, and at most
`MOST_CONNECTIONS` are open at once.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

from bytepair import _core
from bytepair.errors import ArgumentError, BytepairError, PortError
from bytepair.explore.answers import Answers
from bytepair.tokenizer import Tokenizer

#: Larger requests are refused.
MOST_REQUEST_BYTES: Final = 64 << 20

#: A request that has not arrived after this many seconds is given up.
MOST_REQUEST_SECONDS: Final = 60.0

#: The number of connections at once; further ones are closed.
MOST_CONNECTIONS: Final = 64

_PAGE: Final = Path(__file__).parent / "page"
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class RefusedError(Exception):
    """A refused request: its status, and the reason."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "bytepair", ""
    timeout = MOST_REQUEST_SECONDS

    def handle_one_request(self) -> None:
        """Read and answer a request; a client that sends it byte by byte is cut off."""
        self._arrival = threading.Timer(MOST_REQUEST_SECONDS, self._give_up)
        self._arrival.daemon = True
        self._arrival.start()
        try:
            super().handle_one_request()
        except ConnectionError:  # the client has gone
            self.close_connection = True
        finally:
            self._arrival.cancel()

    def _give_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Answer a request, or say why not."""
        try:
            self._check()
            body = self._body() if self.command == "POST" else b""
            self._arrival.cancel()
            self._send(HTTPStatus.OK, *self._answer(body))
        except RefusedError as error:
            self.close_connection = True  # the rest of the request may be unread
            self._error(*error.args)
        except (BytepairError, ValueError, TypeError, LookupError) as error:
            self._error(HTTPStatus.BAD_REQUEST, str(error))

    def do_POST(self) -> None:
        """Answer a request that has a body."""
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing; the page shows what happens."""

    def _check(self) -> None:
        host = self.headers.get("Host", "")
        if not _is_ours(host, self.server.host):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"this is not the server of {host!r}")
        origin = self.headers.get("Origin")
        foreign = self.headers.get("Sec-Fetch-Site", "none") not in {"same-origin", "none"}
        followed = self.command == "GET" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        if (foreign and not followed) or (origin is not None and urlsplit(origin).netloc != host):
            raise RefusedError(HTTPStatus.FORBIDDEN, "requests from other pages are refused")

    def _answer(self, body: bytes) -> tuple[str, str | bytes]:
        """A file of the page, or the answer to a question; links change nothing."""
        url, reads, changes = urlsplit(self.path), _core.View.reads, _core.View.changes
        name = url.path.removeprefix("/") or "index.html"
        files = {file.name: file for file in _PAGE.iterdir() if file.suffix in _KINDS}
        if self.command == "GET" and name in files:
            return _KINDS[files[name].suffix], files[name].read_bytes()
        what = url.path.removeprefix("/api/")
        if what not in (reads if self.command == "GET" else reads | changes):
            raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {url.path}")
        answer = self.server.answers.answer(
            {"t": "0", **dict(parse_qsl(url.query)), "what": what}, body
        )
        return "application/json" if isinstance(answer, str) else "application/octet-stream", answer

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,20}", length):
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        if int(length) > MOST_REQUEST_BYTES:
            limit = f"a request has at most {MOST_REQUEST_BYTES >> 20} MB"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the request is incomplete")
        return body

    def _error(self, status: HTTPStatus, reason: str) -> None:
        self._send(status, "application/json", json.dumps({"error": reason}))

    def _send(self, status: HTTPStatus, kind: str, body: str | bytes) -> None:
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(data)), **_HEADERS}
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _is_ours(host: str, own: str) -> bool:
    """Whether a `Host` is a name of this server."""
    with suppress(ValueError):  # raised if the host is not an address
        name = urlsplit(f"//{host}").hostname or ""
        if name in {"localhost", own.lower()}:
            return True
        # If other machines may connect, any IP address may be this server's. A foreign host name
        # (DNS rebinding) is no address.
        return ipaddress.ip_address(name).is_loopback or not _is_loopback(own)
    return False


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


class Server(ThreadingTCPServer):
    """Serves the page on a port: in a thread, inside a `with` block, or by `serve_forever()`.

    Args:
        tokenizers: the tokenizers, by name.
        host: the address or name to listen on; only loopback cannot be reached by other machines.
        port: the port; 0 means any free port.
        missing: why other tokenizers are not among them; the page says so.

    Raises:
        ValueError: if there is no tokenizer.
        OSError: if the port is in use.
    """

    daemon_threads = True
    #: On Windows, two servers would share a port; elsewhere, it frees the port of an ended server.
    allow_reuse_address = sys.platform != "win32"

    def __init__(
        self,
        tokenizers: Mapping[str, Tokenizer],
        host: str = "127.0.0.1",
        port: int = 0,
        missing: Sequence[str] = (),
    ) -> None:
        if not tokenizers:
            raise ArgumentError("there is no tokenizer to explore", hint="name one")
        self.answers, self.host = Answers(tokenizers, missing), host
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise PortError(
                f"cannot listen on port {port} of {host}: {error.strerror}",
                hint="pass another port, or 0 for any free port",
            ) from None

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a connection is answered, in a thread: not if too many are open."""
        return self._connections.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection, and count it no more."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write the traceback of a defect of this server, but nothing about clients that went."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_address[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
