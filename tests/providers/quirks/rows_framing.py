"""Server-sent events: lines, bytes, fields."""

from __future__ import annotations

import gzip

from .row import TIDES, WEATHER, Case, Quirk, chat, sse

UTF8 = "Höfn 🌊 日"

FRAMING = (
    Quirk(
        104,
        "U+2028, U+2029 and U+0085 inside a line",
        "only CR, LF and CRLF end a line",
        (
            Case(
                "openai_chat",
                take="line_separators",
                text="one\u2028two\u2029three\x85four",
                end="finish stop",
            ),
        ),
    ),
    Quirk(
        105,
        "an HTTP client reads a body without a charset as ISO-8859-1",
        "bytes come in, and are UTF-8 whatever a header says",
        (
            Case(
                "openai_chat", chat({"content": UTF8}, finish="stop"), text=UTF8, end="finish stop"
            ),
        ),
    ),
    Quirk(
        106,
        "a character is cut by a chunk border",
        "bytes wait until their event is whole",
        (
            Case(
                "openai_chat",
                take="utf8_split",
                text=UTF8,
                calls=(("call_yE1IePLELqh0wjpE0yeWLZDn", *TIDES),),
            ),
        ),
    ),
    Quirk(
        107,
        "CRLF, cut between CR and LF; CR alone",
        "all three end a line, in any chunking",
        (
            Case("openai_chat", take="crlf", calls=(("call_FFrZStzRJxv3jqODNuvaqJrs", *TIDES),)),
            Case(
                "openai_chat",
                take="crlf_split",
                text=UTF8,
                calls=(("call_m9NQThUazFL8gyiuvYb6XWrY", *TIDES),),
            ),
            Case(
                "openai_chat",
                take="lone_cr",
                text=UTF8,
                calls=(("call_SBvyLnkK8O3jj2PRKhop6i2Y", *TIDES),),
            ),
        ),
    ),
    Quirk(
        108,
        "a byte order mark before the first event",
        "dropped, once",
        (
            Case(
                "openai_chat",
                take="bom",
                text=UTF8,
                calls=(("call_jAoZz1YIW8krp7cbRWnEVO59", *TIDES),),
            ),
        ),
    ),
    Quirk(
        109,
        "`data:` without a space",
        "at most one space is dropped",
        (
            Case(
                "openai_chat",
                take="data_without_space",
                calls=(("call_y7dOt70UMrvT3MK7JO1xOak0", *TIDES),),
            ),
        ),
    ),
    Quirk(
        110,
        "one payload over several `data:` lines",
        "joined by line feeds",
        (
            Case(
                "openai_chat",
                take="multi_line_data",
                calls=(("call_edlpaZ0VAl4wmtZ7rXN2FgSI", *TIDES),),
            ),
        ),
    ),
    Quirk(
        111,
        "comments, such as `: OPENROUTER PROCESSING`",
        "counted as keep-alives; never an event",
        (
            Case(
                "openai_chat",
                take="keep_alives",
                notes=("wire.keepalive",),
                calls=(("call_xatHw5W2iz62Wb3moS5SsO8P", *TIDES),),
            ),
            Case(
                "openai_chat",
                b": OPENROUTER PROCESSING\n\n" + chat({"content": "Hi"}, finish="stop"),
                text="Hi",
                end="finish stop",
                notes=("wire.keepalive",),
            ),
        ),
    ),
    Quirk(
        112,
        "the last blank line is missing",
        "the last event counts if it is whole",
        (
            Case(
                "openai_chat",
                take="last_blank_line_missing",
                calls=(("call_5n6Pa67sMPZQ7k9RspOLHX8R", *TIDES),),
            ),
        ),
        otherwise="The SSE standard says to drop it. Streams of models end so, and half a payload is no JSON.",
    ),
    Quirk(
        113,
        "the bytes are still gzip",
        "the stream fails at once, with a sentence that says what to feed",
        (
            Case(
                "openai_chat",
                gzip.compress(sse("[DONE]"), mtime=0),
                end="failed protocol",
                has=({"kind": "failed"},),
            ),
        ),
    ),
    Quirk(
        114,
        "`id:` and `retry:` fields",
        "allowed, and not kept",
        (
            Case(
                "openai_chat",
                take="other_fields",
                calls=(("call_UnZ73euibi8lIp73ScNI4OTW", *TIDES),),
            ),
        ),
        otherwise="Keeping the last id is for streams that can be resumed; no provider here resumes by it.",
    ),
    Quirk(
        115,
        "the event's name is missing, or disagrees with `type`",
        "`type` in the data decides; the name stands in where it is missing",
        (
            Case(
                "anthropic",
                take="event_name_missing",
                calls=(("toolu_01DqgMDwvnmUiX5NB7A24frl", *WEATHER),),
            ),
            Case(
                "anthropic",
                b'event: ping\ndata: {"type":"message_start","message":{"id":"m","model":"m"}}\n\n'
                b'event: content_block_delta\ndata: {"index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n'
                b'event: message_stop\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
                b"event: message_stop\ndata: {}\n\n",
                text="Hi",
                end="finish stop",
            ),
        ),
    ),
)
