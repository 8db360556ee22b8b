"""Answers, one per request, come in; a transport for httpx clients or a server on loopback goes out.

Rule: whatever the request is, the next answer answers it; the requests are kept for the test to look
at, and nobody waits. httpx is imported when a transport is asked for, and the server is the standard
library alone.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeAlias

from ..edge.clients import library_of, stream_class, transport_class
from ..errors import UsageError
from ..text.written import json_bytes
from .loopback import HOST, Loopback

__all__ = ["Answer", "Received", "Server", "Transport", "transport"]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    content: bytes

    @property
    def body(self) -> Any:
        """The JSON of the request; None if it had no body."""
        return json.loads(self.content) if self.content else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its chunks, and whether the connection breaks after them."""

    status: int
    content_type: str
    chunks: list[bytes]
    breaks: bool = False


Answering: TypeAlias = Callable[[int], Answer]  # the number of a request, from 0 -> its answer


class _Answers:
    """Which answer is next, and what was asked so far."""

    def __init__(self, answering: Answering) -> None:
        self.requests: list[Received] = []
        self._answering = answering
        self._lock = threading.Lock()

    def next(self, request: Received) -> Answer:
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        return self._answering(number)


# --- a transport for clients of httpx and httpx2 --------------------------------------------------


class Transport(Protocol):
    """What ``httpx.Client(transport=…)`` and ``httpx.AsyncClient(transport=…)`` need."""

    @property
    def requests(self) -> list[Received]:
        """What was asked so far."""

    def handle_request(self, request: Any) -> Any: ...

    async def handle_async_request(self, request: Any) -> Any: ...


def transport(answering: Answering) -> Transport:
    """A transport that answers so."""
    made: Transport = transport_class(_ScriptedTransport)(_Answers(answering))
    return made


class _ScriptedTransport:
    def __init__(self, answers: _Answers) -> None:
        self._answers = answers

    @property
    def requests(self) -> list[Received]:
        return self._answers.requests

    def handle_request(self, request: Any) -> Any:
        return self._respond(request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        return self._respond(request, await request.aread())

    def _respond(self, request: Any, content: bytes) -> Any:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.url.raw_path.decode("ascii", "replace")
        answer = self._answers.next(Received(request.method, path, headers, content))
        library = library_of(request)
        return library.Response(
            answer.status,
            headers={"content-type": answer.content_type},
            stream=stream_class(library, _ScriptedStream)(answer, library),
            request=request,
        )


class _ScriptedStream:
    def __init__(self, answer: Answer, library: Any) -> None:
        self._answer = answer
        self._library = library

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.chunks
        if self._answer.breaks:
            raise self._library.RemoteProtocolError(
                "peer closed connection without sending complete message body"
            )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""


# --- a server on the loopback address -------------------------------------------------------------


class Server(Loopback):
    """Answers every request with the next answer; ``with`` and ``async with`` both work.

    >>> from streamnorm.testing import say, script
    >>> import urllib.request
    >>> with script(say("Hello.")).server("ollama") as server:
    ...     body = urllib.request.urlopen(server.url + "/api/chat", b'{"model":"x"}').read()
    >>> server.requests[0].body, body.count(b"\\n")
    ({'model': 'x'}, 3)
    """

    SCHEME = "http://"

    def __init__(self, answering: Answering) -> None:
        super().__init__()
        self._answers = _Answers(answering)
        self._http: _Http

    @property
    def requests(self) -> list[Received]:
        """What was asked so far."""
        return self._answers.requests

    def _serve(self, port: Future[int]) -> None:
        with _Http(self._answers) as self._http:  # at its end it waits for all connections
            port.set_result(self._http.server_address[1])
            # The poll decides how long close() takes, not how soon requests are answered.
            self._http.serve_forever(0.01)

    def _stop(self) -> None:
        self._http.shutdown()
        self._http.hang_up()


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them: nothing outlives the test
    request_queue_size = 512  # clients that come at once; five, as usual, resets the others

    def __init__(self, answers: _Answers) -> None:
        self.answers = answers
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__((HOST, 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the other side was quicker

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of many tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_POST(self) -> None:
        """Any path: the next answer is the answer."""
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            answer = self.server.answers.next(Received(self.command, self.path, headers, content))
        except UsageError as error:
            said = json_bytes({"error": {"message": str(error)}})
            answer = Answer(500, "application/json", [said])
        self._send(answer)

    do_GET = do_POST
    do_PUT = do_POST

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", answer.content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in answer.chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        if answer.breaks:
            self.close_connection = True  # without the last chunk: the body is not whole
        else:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Silence."""
