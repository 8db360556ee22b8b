"""The patches: a promise and the protection that is taken away from it, in the file's very text.

Rule: each promise of ``tests/promises/rows.py`` has one patch at least, and each text stands in its file
exactly once (``test_sabotage.py``). A text that has changed is found by that, and put right here.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PATCHES", "Patch"]


class Patch(NamedTuple):
    """``without`` which protection; ``tests``: of those of the promise, the ones that are asked. All if
    none is named."""

    promise: str
    without: str
    file: str
    text: str
    instead: str
    tests: str = ""

    @property
    def name(self) -> str:
        return f"{self.promise} without {self.without}"


_CALLS, _NORMALIZER = "streamnorm/core/calls.py", "streamnorm/normalizer.py"
_SSE, _STREAM = "streamnorm/framing/sse.py", "streamnorm/edge/stream.py"
_EXACT, _SQL = "streamnorm/text/exact.py", "streamnorm/history/sql.py"
_SQLITE, _LOG = "streamnorm/history/sqlite.py", "streamnorm/ui/log/base.py"
_MEMORY, _RECORDER = "streamnorm/ui/log/memory.py", "streamnorm/takes/recorder.py"
_REDACT, _ANTHROPIC = "streamnorm/takes/redact.py", "streamnorm/providers/anthropic/parser.py"
_WRITTEN, _PREVIEW = "streamnorm/text/written.py", "streamnorm/ui/preview.py"

PATCHES = (
    # --- framing
    Patch(
        "A1", "the blank line that a chunk border cut in two", _SSE,
        '        if held and chunk[:1] == b"\\n" == held[-1][-1:]:', "        if False:",
    ),
    Patch(
        "A2", "dropping the byte order mark", _SSE,
        "        return start.removeprefix(_BOM)", "        return start",
    ),
    Patch(
        "A3", "catching bytes that are no UTF-8", "streamnorm/core/parser.py",
        "UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
        "UNREADABLE = (msgspec.DecodeError, RecursionError)",
    ),
    Patch(
        "A4", "the count of comments", _NORMALIZER,
        '            self._scribe.note("wire.keepalive")', "            pass",
    ),
    Patch(
        "A4", "the event for a payload that nobody knows", "streamnorm/core/parser.py",
        "        self.unknown(payload, why, out)\n\n    def _says_arguments",
        "\n    def _says_arguments",
    ),
    # --- truncation and completion
    Patch(
        "B1", "failing a stream that was cut", _NORMALIZER,
        "        self._fail(out, self._why_truncated())", "        self._finish(out)",
    ),
    Patch(
        "B1", "asking for the closing mark of a call", _CALLS,
        "        closed = call.state is CLOSED\n", "        closed = True\n",
    ),
    Patch(
        "B2", "the end being told once", _NORMALIZER,
        "        self._ended = True\n        self._calls.marks.quiet = False",
        "        self._calls.marks.quiet = False",
    ),
    Patch(
        "B3", "the provider's code, and whether to try again", _NORMALIZER,
        "out, Failed(failure.reason, failure.message, failure.retryable, failure.code), since",
        "out, Failed(failure.reason, failure.message), since",
    ),
    Patch(
        "B4", "a normal end before empty text becomes no arguments", _CALLS,
        'return None if reason in NORMAL else _cut(reason, f"no end of it came, {_how(reason)}")',
        "return None",
    ),
    Patch(
        "B5", "failing at an event that is no JSON", _NORMALIZER,
        "        if not self._skip_bad:\n            raise StreamFailed(",
        "        if False:\n            raise StreamFailed(",
        "tests/pipe/test_bad_input.py::test_an_event_that_is_not_json_fails_the_stream_and_keeps_what_was_heard",
    ),
    Patch(
        "B5", "the doubt that a skipped event leaves", _NORMALIZER,
        '        self._calls.taint_open("an event that was not JSON was skipped")\n', "",
        "tests/pipe/test_bad_input.py::test_a_bad_event_can_be_skipped_and_breaks_the_calls_that_were_open",
    ),
    Patch(
        "B6", "doubt of a call of which something may be missing", _CALLS,
        "        if taint := call.taint or self.lossy:", "        if taint := self.lossy:",
    ),
    Patch(
        "B7", "refusing what is no whole call", "streamnorm/tools.py",
        "    if isinstance(call, ToolCall):\n        return call\n    if isinstance",
        "    if not isinstance(call, BrokenToolCall):\n        return call\n    if isinstance",
    ),
    Patch(
        "B7", "refusing to copy a preview", _PREVIEW,
        "    def __copy__(self) -> NoReturn:\n        _refuse()",
        "    def __copy__(self) -> Any:\n        return self",
    ),
    # --- stitching and ids
    Patch(
        "C1", "whose a fragment is by its index", _ANTHROPIC,
        "            call = self._blocks.get(p.index)\n            text = delta.partial_json",
        "            call = next(reversed(self._blocks.values()), None)\n"
        "            text = delta.partial_json",
    ),
    Patch(
        "C2", "a new id in a used place being another call", "streamnorm/providers/openai_chat/entries.py",
        "        return None if it.name or (_starts_object(it.text) and self._calls.is_whole(held)) else held",
        "        return held",
    ),
    Patch(
        "C3", "a repeated id becoming another one", _CALLS,
        "        elif known not in (None, call):\n            call.wire_id",
        "        elif False:\n            call.wire_id",
    ),
    Patch(
        "C4", "the doubt that late text leaves", _CALLS,
        '            self.taint_open("arguments came for a call that was closed", call.choice)\n', "",
    ),
    Patch(
        "C5", "the system's generator", "streamnorm/core/mint.py",
        "    secret = os.urandom(32)", "    secret = bytes(32)",
    ),
    Patch(
        "C6", "refusing a result of no call", "streamnorm/encoding/mending.py",
        "        for result, why in self._strays.items():\n            call, where",
        "        for result, why in ():\n            call, where",
    ),
    Patch(
        "C7", "rewriting what the wire does not take", "streamnorm/encoding/ids.py",
        "        return call.id if free and self._grammar.takes(call.id) else None",
        "        return call.id if free else None",
    ),
    # --- values of arguments
    Patch(
        "D1", "the spaces of the wire's text", _CALLS,
        "                call.raw,\n                kind.family,",
        '                "".join(call.raw.split()),\n                kind.family,',
    ),
    Patch(
        "D2", "refusing a key that stands twice", _EXACT,
        "    if len(whole) != len(pairs):", "    if False:",
    ),
    Patch(
        "D2", "refusing numbers beyond a double", _EXACT,
        "    if math.isinf(number):", "    if False:",
    ),
    Patch(
        "D3", "joining halves of a character", "streamnorm/text/halves.py",
        '    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")',
        "    return text",
    ),
    # --- limits
    Patch(
        "E1", "the limit of a call's arguments", _CALLS,
        "        if size > limits.arguments:\n            raise", "        if False:\n            raise",
    ),
    Patch(
        "E1", "the limit of a frame", _SSE,
        "            if len(block) > self._limit:\n", "            if False:\n",
    ),
    Patch(
        "E2", "letting go of an endless line", _SSE,
        "        return self._size - line_end > self._limit", "        return False",
    ),
    Patch(
        "E3", "counting each fragment once", _CALLS,
        "        since, size = call.counted\n", "        since, size = 0, 0\n",
    ),
    Patch(
        "E4", "the bound of what is unpacked", "streamnorm/framing/inflate.py",
        "        if self.given > RATIO_AFTER and self.given > self._times * received:",
        "        if False:",
    ),
    Patch(
        "E4", "refusing what is packed twice", "streamnorm/framing/inflate.py",
        '    if "," in word:\n', "    if False:\n",
        "tests/framing/test_inflate.py::test_a_body_that_is_packed_twice_is_refused",
    ),
    # --- life
    Patch(
        "F1", "closing what is wrapped", _STREAM,
        "            await self._source.aclose()", "            pass",
    ),
    Patch(
        "F2", "closing what was dropped", _STREAM,
        "            spawn(source.aclose)", "            pass",
    ),
    Patch(
        "F3", "keeping the recorder's errors from the stream", _RECORDER,
        "                self._give_up(error)\n            except BaseException:",
        "                raise\n            except BaseException:",
        "tests/takes/test_recorder.py::test_a_full_disk_ends_the_recording_and_not_the_stream",
    ),
    Patch(
        "F4", "counting the time that keep-alives take", "streamnorm/edge/timer.py",
        "            self.waited += now - since", "            self.waited = 0.0",
    ),
    Patch(
        "F5", "interrupting the read of another task", _STREAM,
        "            if self._watch is not None:\n                self._watch.interrupt()\n", "",
    ),
    Patch(
        "F6", "the way to read what the standard library gives", "streamnorm/edge/sources.py",
        '    return lambda: iter(lambda: response.read1(PART), b""), None', "    return None, None",
    ),
    # --- history
    Patch(
        "G1", "one transaction for all turns of a commit", _SQL,
        '            at("turn")\n',
        '            db.execute("COMMIT")\n            db.execute("BEGIN")\n            at("turn")\n',
    ),
    Patch(
        "G2", "storing an answer before its end is heard", "streamnorm/agent/persist.py",
        "        if isinstance(event, Finish):", "        if False:",
    ),
    Patch(
        "G3", "the neutral answer for a call without a result", "streamnorm/encoding/pairs.py",
        'ORPHANS: Orphans = "error"', 'ORPHANS: Orphans = "drop"',
    ),
    Patch(
        "G4", "knowing a commit that is sent again", _SQL,
        "        if (before := self._before(db, key)) is not None:\n            return before\n", "",
    ),
    Patch(
        "G5", "text with halves of characters as bytes", "streamnorm/history/rows.py",
        'in_base64(text.encode("utf-8", "surrogatepass"))', 'in_base64(text.encode("utf-8", "replace"))',
    ),
    Patch(
        "G6", "taking the lock before reading", _SQLITE,
        '        db.execute("BEGIN IMMEDIATE" if write else "BEGIN")', '        db.execute("BEGIN")',
    ),
    Patch(
        "G7", "the digest of each turn", _SQL,
        "            if seq != len(turns) or _digest(body) != _bytes(digest):",
        "            if seq != len(turns):",
    ),
    Patch(
        "G8", "waiting for the disk", _SQLITE,
        '"PRAGMA synchronous = FULL"', '"PRAGMA synchronous = NORMAL"',
    ),
    # --- streams for pages
    Patch(
        "H1", "the position of a reader", _LOG,
        "        return Reader(self, stream, owner, after)", "        return Reader(self, stream, owner, 0)",
    ),
    Patch(
        "H2", "telling a position that is not kept", _LOG,
        "        if self.after + 1 < page.first or self.after > page.last:", "        if False:",
    ),
    Patch(
        "H3", "telling that the producer is dead", _LOG,
        "            elif not self.log._lives(page):\n                raise ProducerLost\n", "",
    ),
    Patch(
        "H4", "asking whose a stream is", _MEMORY,
        "kept is None or kept.owner != owner or self", "kept is None or self",
        "tests/ui/test_event_log.py::test_somebody_elses_stream_is_as_gone_as_none",
    ),
    Patch(
        "H4", "ids that nobody can guess", _LOG,
        "        stream = secrets.token_hex(32)", '        stream = f"{secrets.randbelow(99):064}"',
        "tests/ui/test_event_log.py::test_stream_ids_cannot_be_guessed",
    ),
    Patch(
        "H5", "knowing what was appended before", _MEMORY,
        "        again = max(0, min(len(payloads), kept.last + 1 - first))", "        again = 0",
    ),
    # --- recorder
    Patch(
        "I1", "the secrets of the request", _RECORDER,
        "        known = {*secrets, *secrets_in_headers(request_headers), *secrets_in_url(url)}",
        "        known = {*secrets}",
    ),
    Patch(
        "I2", "the list of headers that may be kept", _REDACT,
        "        if name in names or name.startswith(families):", "        if True:",
    ),
    Patch(
        "I3", "leaving line ends where they are", _REDACT,
        '_VISIBLE = re.compile(rb"[^\\r\\n]")', '_VISIBLE = re.compile(rb"(?s).")',
    ),
    Patch(
        "I4", "making a new file", "streamnorm/private.py",
        "    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE)",
        "    file = os.open(path, flags | os.O_CREAT, FILE)",
        "tests/takes/test_recorder.py::test_a_file_is_never_overwritten",
    ),
    Patch(
        "I4", "the mode of the file", "streamnorm/private.py",
        "FILE, FOLDER = 0o600, 0o700", "FILE, FOLDER = 0o644, 0o700",
        "tests/takes/test_recorder.py::test_the_file_is_private_whatever_the_umask",
    ),
    Patch(
        "I5", "refusing a label that leads elsewhere", _RECORDER,
        "    if label is not None and not LABEL.fullmatch(label):", "    if False:",
    ),
    # --- what is shown
    Patch(
        "J1", "cleaning what goes to a log", "streamnorm/notes.py",
        "        return clean(value[:256])", "        return value[:256]",
    ),
    Patch(
        "J2", "sizes instead of values", _CALLS,
        "                size=len(call.raw),\n", "                size=call.raw,\n",
    ),
    Patch(
        "J3", "saying that a name is none", "streamnorm/events.py",
        "    return _tool_name(name) is not None", "    return True",
    ),
    Patch(
        "J4", "escapes for what a page would take for its own", _WRITTEN,
        'line.replace(b"<", rb"\\u003c")', "line",
        "tests/text/test_written.py::test_each_character_that_a_page_would_take_for_its_own_is_escaped_alone",
    ),
    Patch(
        "J4", "the header against guessing types", "streamnorm/page/answers.py",
        '    "x-content-type-options": "nosniff",\n', "",
        "tests/page/test_page_app.py::test_every_answer_says_how_it_may_be_used",
    ),
)  # fmt: skip
