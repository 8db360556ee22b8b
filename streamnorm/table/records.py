"""The bytes of one file come in; the rows that its streams become go out, as plain dicts.

    for row in records("answer.sse", data):
        print(row["kind"], row["session"], row.get("outcome"))

Rule: pure, and it raises nothing for what is in a file: what holds no stream is a row of kind
``session`` as well, whose outcome is ``unreadable``. A row has the columns of its kind
(``table.columns``), all of them and in their order, and its session's row comes before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ..captures import Found, Left, streams_of
from ..errors import StreamnormError
from ..events import ToolCall
from ..survey import CallFacts, ResultFacts, Survey, survey, utf8_size
from ..text.canonical import sealed
from ..text.written import json_text
from .columns import COLUMNS

__all__ = ["Record", "records", "records_of", "unreadable"]

Record = dict[str, Any]


def records(name: str, data: bytes, *, provider: str | None = None) -> Iterator[Record]:
    """The rows of one file.

    >>> rows = list(records("a.sse", b'data: {"choices":[{"delta":{"content":"Hi"}}]}\\n\\n'))
    >>> [(row["kind"], row["outcome"], row["reason"]) for row in rows]
    [('session', 'failed', 'truncated')]
    """
    seen: Counter[str] = Counter()
    for found in streams_of(data, name=name, provider=provider):
        if not isinstance(found, Left):
            seen[found.name] += 1
            yield from records_of(name, found, provider=provider)
        elif not found.aside:  # what stands beside streams, as pages and pictures do in a HAR
            seen[found.name] += 1
            again = f" ({seen[found.name]})" if seen[found.name] > 1 else ""
            yield unreadable(name, found.name + again, found.why, size=len(data))


def records_of(file: str, found: Found, *, provider: str | None = None) -> list[Record]:
    """The rows of one stream."""
    take, name = found.take, _session_name(file, found.name)
    try:
        facts = survey(take, provider)
    except StreamnormError as error:
        size = sum(len(chunk) for _, chunk in take.chunks)
        return [unreadable(file, name, str(error), size=size)]
    rows = [_session(file, name, found, facts)]
    rows += [_call(name, call) for call in facts.calls]
    rows += [_result(name, result) for result in facts.results]
    rows += [_note(name, note, count) for note, count in facts.notes.items()]
    return rows


def unreadable(file: str, session: str, why: str, *, size: int | None = None) -> Record:
    """The row of what holds no stream."""
    return _BLANK | {"session": _session_name(file, session), "input": file, "outcome": "unreadable", "detail": why,
                     "bytes": size}  # fmt: skip


def _session_name(file: str, stream: str) -> str:
    """``a.har#1`` is the first stream of ``a.har``; so the only one of a file that is called so is
    ``a.har#1#1``."""
    return f"{file}#1" if stream == file and _NUMBERED.search(file) else stream


_NUMBERED = re.compile(r".#[0-9]+\Z", re.DOTALL)

_BLANK: Record = {
    "kind": "session",
    **dict.fromkeys(["session", *(column.name for column in COLUMNS["session"])]),
}


def _session(file: str, name: str, found: Found, facts: Survey) -> Record:
    whole = len([call for call in facts.calls if type(call.told) is ToolCall])
    used, ending = facts.usage, facts.ending
    return {
        "kind": "session",
        "session": name,
        "input": file,
        "form": found.form,
        "provider": facts.provider,
        "model": facts.model,
        "response_id": facts.response_id,
        "host": _host(facts.header.get("url")),
        "captured": facts.captured,
        "status": _status(facts.header.get("status")),
        "recorded": facts.recorded,
        "outcome": facts.end,
        "reason": facts.reason,
        "detail": facts.detail,
        "retryable": getattr(ending, "retryable", None),
        "bytes": facts.bytes,
        "chunks": facts.chunks,
        "frames": facts.frames,
        "events": sum(facts.events.values()),
        "text_chars": facts.text_chars,
        "reasoning_chars": facts.reasoning_chars,
        "calls": whole,
        "broken": len(facts.calls) - whole,
        "results": len(facts.results),
        "notes": sum(facts.notes.values()),
        "tokens_input": used and used.input,
        "tokens_output": used and used.output,
        "tokens_cached": used and used.cached_input,
        "tokens_cache_write": used and used.cache_write,
        "tokens_reasoning": used and used.reasoning,
        "seconds": facts.seconds,
        "first_event": facts.first_event,
        "first_token": facts.first_token,
        "first_call": facts.first_call,
    }


def _call(session: str, call: CallFacts) -> Record:
    told, origin = call.told, call.told.provenance
    arguments = checksum = reason = detail = None
    if isinstance(told, ToolCall):
        arguments, checksum = sealed(told.name, told.arguments)
    else:
        reason, detail = told.reason, told.detail
    return {
        "kind": "call",
        "session": session,
        "ordinal": told.call,
        "id": told.id,
        "id_source": origin.id_source,
        "wire_id": origin.wire_id,
        "wire_field": origin.wire_field,
        "boundary": origin.boundary,
        "name": told.name,
        "family": told.family,
        "raw": told.raw,
        "arguments": arguments,
        "checksum": checksum,
        "outcome": "broken" if reason else "whole",
        "reason": reason,
        "detail": detail,
        "runs_on": told.runs_on,
        "choice": told.choice,
        "agent": told.agent,
        "size": call.size,
        "started": call.started,
        "ended": call.ended,
    }


def _result(session: str, result: ResultFacts) -> Record:
    told = result.told
    output = told.output if isinstance(told.output, str) else json_text(told.output)
    return {
        "kind": "result",
        "session": session,
        "ordinal": told.call,
        "id": told.id,
        "family": told.family if isinstance(told.family, str) else None,
        "is_error": told.is_error,
        "output": output,
        "size": utf8_size(output),
        "ended": result.ended,
    }


def _note(session: str, name: str, count: int) -> Record:
    return {"kind": "note", "session": session, "name": name, "count": count}


def _host(url: Any) -> str | None:
    try:
        return urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None


def _status(status: Any) -> int | None:
    return status if isinstance(status, int) and not isinstance(status, bool) else None
