"""A response that is no stream comes in; a ``ProviderError`` with the provider's own words goes out.

Rule: what is held back to be looked at is bounded, and a stream passes untouched whatever its
headers call it. No I/O here: the reader feeds chunks and hears whether they may pass.
"""

from __future__ import annotations

from .. import refusals as refused
from ..errors import ProviderError
from ..providers import PROVIDERS
from ..refusals import BODY, object_in, retry_after, words_in
from ..takes.redact import bare_url
from .sources import Facts

__all__ = ["BODY", "Gate", "refusal", "retry_after"]

WHOLE = 1024 * 1024  # bytes of a JSON body that are held to see whether it is one single object
_NO_STREAM = 'the answer is one JSON object and no stream; ask for a stream ("stream": true)'


class Gate:
    """Between the response and the pipe, until the first bytes have shown what the body is."""

    def __init__(self, facts: Facts, provider: str) -> None:
        self._facts = facts
        self._provider = provider
        row = PROVIDERS.get(provider)
        self._lines = row is not None and row.lines  # such a stream does begin with a JSON object
        self._held: list[bytes] = []
        self._size = 0
        self._blank = False  # nothing but white space yet
        self._line: bool | None = None  # is the first line an object of its own?
        self.refused = facts.status is not None and not 200 <= facts.status < 300
        kind = facts.headers.get("content-type", "").lower()
        self._html = kind.startswith("text/html")
        self._json = "json" in kind and "ndjson" not in kind and "jsonl" not in kind
        self.open = not (self.refused or self._html or self._json)

    def let_in(self, chunk: bytes) -> bytes:
        """What may pass now; an empty chunk while it is being looked at."""
        if self.open:
            return chunk
        self._held.append(chunk)
        self._size += len(chunk)
        if self.refused or self._html:
            if self._size >= BODY:
                raise self.error()
            return b""
        return self._look_at_json()

    def at_end(self) -> bytes:
        """The body ended: what may still pass."""
        if self.refused or self._html:
            raise self.error()
        body, self._held, self.open = b"".join(self._held), [], True
        if (said := object_in(body)) is not None and words_in(said):
            raise self.error(body)
        return body

    def no_stream(self) -> ProviderError:
        """For a body that was one JSON object, and nothing that the pipe could read."""
        return ProviderError(_NO_STREAM, status=self._facts.status, provider=self._provider)

    def error(self, body: bytes | None = None) -> ProviderError:
        """The refusal, from as much of the body as was read."""
        body = b"".join(self._held) if body is None else body
        return refusal(self._facts, body, provider=self._provider)

    def _look_at_json(self) -> bytes:
        """Hold an object that may be the whole body; anything else was a stream after all."""
        chunk = self._held[-1]
        if self._line is None and (self._size == len(chunk) or b"\n" in chunk or self._blank):
            self._look_at_line(b"".join(self._held))
        elif self._line and chunk.strip():
            self.open = True  # a whole object on the first line, and more behind it
        if not self.open and self._size <= WHOLE:
            return b""
        body, self._held, self.open = b"".join(self._held), [], True
        return body

    def _look_at_line(self, head: bytes) -> None:
        start = head.lstrip()
        self._blank = not start
        if self._blank:
            self._held.clear()  # white space before JSON says nothing
        if start and (start[:1] != b"{" or self._lines):
            self.open = True  # an array is a stream, and text was never JSON
        line, ended, more = start.partition(b"\n")
        if ended:
            self._line = object_in(line) is not None
            self.open |= self._line and bool(more.strip())


def refusal(facts: Facts, body: bytes, *, provider: str = "") -> ProviderError:
    """What a server said instead of streaming, without a secret of the request."""
    body = facts.redacted_body(body)  # before anything is cut: half a key is no key to a redactor
    headers = facts.headers
    if location := headers.get("location"):  # whose query may be a key to what is there
        headers = {**headers, "location": bare_url(location)}
    return refused.refusal(
        body, status=facts.status, headers=headers, provider=provider, redacted=facts.redacted
    )
