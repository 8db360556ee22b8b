"""What a user may write, only type-checked (pyright strict, mypy strict); never run.

A change here that makes a line fail is a change that makes somebody's program fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, assert_never, assert_type

from streamnorm import (
    BrokenToolCall,
    Citation,
    Event,
    Failed,
    Finish,
    Media,
    Normalizer,
    Provenance,
    ProviderToolResult,
    ReasoningDelta,
    RecorderFailed,
    Request,
    StreamStart,
    TextDelta,
    Tool,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    Unrecognized,
    Usage,
    event_from_dict,
    event_to_dict,
    event_to_json,
    provider,
    read_request,
)
from streamnorm.captures import read_take
from streamnorm.errors import ProviderError, StreamnormError, WireError
from streamnorm.takes.format import Take


def no_async_at_all(chunks: Iterable[bytes]) -> list[Event]:
    pipe = Normalizer("openai_chat")
    events = [event for chunk in chunks for event in pipe.feed(chunk)]
    events += pipe.feed_payload({"choices": []})
    events += pipe.close()
    assert_type(pipe.notes, Counter[str])
    return events


def every_kind_is_handled(event: Event) -> str:
    match event:
        case StreamStart(provider=provider, model=model):
            assert_type(model, str | None)
            return provider
        case TextDelta(text=text) | ReasoningDelta(text=text):
            return text
        case Media(mime_type=mime_type, data=data):
            assert_type(data, bytes | None)
            return mime_type
        case ToolCallStart(id=id, name=name):
            return id + name
        case ToolCallDelta(call=call, text=text):
            assert_type(call, int)
            return text
        case ToolCall(name=name, arguments=arguments):
            assert_type(arguments, dict[str, Any])
            return name
        case BrokenToolCall(reason=reason, raw=raw):
            return reason + raw
        case ToolProgress(status=status):
            return status
        case ProviderToolResult(id=id, is_error=is_error):
            assert_type(is_error, bool)
            return id
        case ToolStarted(checksum=checksum):
            return checksum
        case ToolEnded(outcome=outcome, seconds=seconds):
            assert_type(seconds, float)
            return outcome
        case Citation(part=part):
            return str(part)
        case Usage(input=tokens):
            assert_type(tokens, int | None)
            return str(tokens)
        case Finish(reason=reason):
            return reason
        case Failed(reason=reason, retryable=retryable):
            assert_type(retryable, bool)
            return reason
        case RecorderFailed(path=path, error=error):
            return path + error
        case Unrecognized(wire_kind=kind):
            return kind
        case _:
            assert_never(event)


def told_apart_by_kind(event: Event) -> str:
    # `kind` is for other programs; in Python the class tells.
    kind: str = event.kind
    return event.checksum if isinstance(event, ToolCall) else kind


def where_a_call_came_from(call: ToolCall) -> str:
    where: Provenance = call.provenance
    if where.id_source == "synthetic":
        return "minted"
    return where.wire_field or ""


def an_event_does_not_change(call: ToolCall) -> None:
    call.id = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def plain_values(event: Event) -> Event:
    assert_type(event_to_json(event), bytes)
    plain = event_to_dict(event)
    assert_type(plain, dict[str, Any])
    return event_from_dict(plain)


def errors_say_whose_fault(error: StreamnormError) -> bool:
    if isinstance(error, ProviderError):
        return error.retryable
    return isinstance(error, WireError) and bool(error.excerpt)


def from_a_take(path: str) -> list[Event]:
    take = read_take(path)
    assert_type(take, Take)
    pipe = Normalizer(take.provider or "auto", seed=take.seed)
    return [event for _, chunk in take.chunks for event in pipe.feed(chunk)] + pipe.close()


def a_request_of_another(body: dict[str, Any]) -> dict[str, Any]:
    request = read_request("auto", body)
    assert_type(request, Request)
    assert_type(request.tools, tuple[Tool, ...])
    assert_type(request.options.max_tokens, int | None)
    prepared = request.prepare(provider("gemini"), model="m", thinking="any", reasoning="text")
    assert_type([row.why for row in prepared.dropped], list[str])
    return prepared.body
