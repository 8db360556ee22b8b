"""Pictures, sounds and several voices in the chat protocols, on the way out and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamnorm import (
    Finish,
    Made,
    Media,
    Reasoning,
    ReasoningDelta,
    StreamStart,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
)
from streamnorm.ui import ag_ui, from_ag_ui, from_ai_sdk, plain, vercel

PICTURE = Media(0, "image/png", b"\x89PNG", echo={"signature": "s"})
SOUND = [Media(1, "audio/pcm", b"ab"), Media(1, "audio/pcm", b"cd")]
FAR = Media(2, "video/mp4", url="https://example.org/a.mp4")
SECRET = Media(3, "image/png", url="gs://bucket/a")
HOSTILE = Media(4, "image/png", url="javascript:alert(1)")


def told(encoder: Any, *events: Any, at_once: bool = False) -> list[Any]:
    batches = [events] if at_once else [(event,) for event in events]
    lines = [line for batch in batches for line in encoder.payloads(*batch)] + encoder.closing()
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def of(kind: str, chunks: list[Any]) -> list[Any]:
    return [chunk for chunk in chunks if chunk.get("type", chunk.get("kind")) == kind]


# --- media ----------------------------------------------------------------------------------------


def test_a_picture_is_a_file_of_the_ai_sdk_with_what_goes_back() -> None:
    chunks = told(vercel.Encoder(), StreamStart("gemini"), PICTURE, FAR, Finish("stop"))
    assert of("file", chunks) == [
        {
            "type": "file", "url": "data:image/png;base64,iVBORw==", "mediaType": "image/png",
            "providerMetadata": {"streamnorm": {"echoes": [{"signature": "s"}]}},
        },
        {"type": "file", "url": "https://example.org/a.mp4", "mediaType": "video/mp4"},
    ]  # fmt: skip


def test_a_sound_is_one_file_when_it_is_over_and_a_picture_stands_where_it_came() -> None:
    events = [
        StreamStart("gemini"),
        TextDelta("a"),
        *SOUND,
        TextDelta("b"),
        PICTURE,
        TextDelta("c"),
    ]
    kinds = [c["type"] for c in told(vercel.Encoder(), *events, Finish("stop"))]
    shown = [kind for kind in kinds if kind in ("text-start", "file")]
    assert shown == ["text-start", "text-start", "file", "file", "text-start"]
    (sound, _) = of("file", told(vercel.Encoder(), *events, Finish("stop")))
    assert sound["url"] == "data:audio/pcm;base64,YWJjZA=="


@pytest.mark.parametrize("medium", [SECRET, HOSTILE])
def test_an_address_that_is_none_of_the_web_reaches_no_page(medium: Media) -> None:
    events = [StreamStart("gemini"), medium, Finish("stop")]
    ai_sdk, agent = told(vercel.Encoder(), *events), told(ag_ui.Encoder(), *events)
    ours = told(plain.Encoder(), *events)
    assert [chunk["data"]["mediaType"] for chunk in of("data-media", ai_sdk)] == ["image/png"]
    assert [event["url"] for event in of("media", ours)] == [None]
    assert str(medium.url) not in json.dumps([ai_sdk, agent, ours])


PRIVATE = ["gs://private/x.png", "javascript:alert(1)", "javascript: alert(1)", "JavaScript:x",
           "file:///srv/x.png", "data:text/html,<b>", "data:odd", "/srv/x.png"]  # fmt: skip


def kept(uri: str) -> dict[str, Any]:
    """What a wire wants back of a file that lies there."""
    return {"fileData": {"mimeType": "image/png", "fileUri": uri}, "signature": "s"}


@pytest.mark.parametrize("uri", PRIVATE)
def test_what_goes_back_does_not_tell_a_page_where_a_private_file_lies(uri: str) -> None:
    events = [StreamStart("gemini"), Media(0, "image/png", url=uri, echo=kept(uri)), Finish("stop")]
    encoders = vercel.Encoder(message_id="m"), ag_ui.Encoder(message_id="m"), plain.Encoder()
    ai_sdk, agent, ours = [
        next(line for line in encoder.payloads(*events) if b"edia" in line) for encoder in encoders
    ]
    assert ai_sdk == b'{"type":"data-media","data":{"mediaType":"image/png","part":0}}'
    assert agent == (
        b'{"type":"CUSTOM","name":"streamnorm.media",'
        b'"value":{"messageId":"m-1","part":0,"mimeType":"image/png"}}'
    )
    assert ours == (
        b'{"kind":"media","part":0,"mime_type":"image/png","data":null,"url":null,"choice":0,'
        b'"agent":null}'
    )


@pytest.mark.parametrize("uri", ["gs://private/x.png", "data:text/html;base64,PGI+"])
def test_nor_does_it_beside_bytes_that_the_page_may_have(uri: str) -> None:
    medium = Media(0, "image/png", b"\x89PNG", echo={"beside": [kept(uri)]})
    events = [StreamStart("gemini"), medium, Finish("stop")]
    ai_sdk, agent = vercel.Encoder(message_id="m"), ag_ui.Encoder(message_id="m")
    assert [line for line in ai_sdk.payloads(*events) if b"edia" in line] == [
        b'{"type":"file","url":"data:image/png;base64,iVBORw==","mediaType":"image/png"}'
    ]
    assert [line for line in agent.payloads(*events) if b"edia" in line] == [
        b'{"type":"CUSTOM","name":"streamnorm.media","value":{"messageId":"m-1","part":0,'
        b'"content":{"type":"image",'
        b'"source":{"type":"data","value":"iVBORw==","mimeType":"image/png"}}}}'
    ]


def test_what_goes_back_of_a_file_on_the_web_goes_with_it() -> None:
    uri = "https://example.org/a.png"
    beside = {**kept(uri), "prompt": "Logo: a cat", "ratio": "16:9"}
    events = [
        StreamStart("gemini"), Media(0, "image/png", url=uri, echo=beside), Finish("stop"),
    ]  # fmt: skip
    (chunk,) = of("file", told(vercel.Encoder(), *events))
    assert chunk["providerMetadata"] == {"streamnorm": {"echoes": [beside]}}


def test_a_private_sound_is_no_piece_of_the_one_before_it() -> None:
    uri = "gs://private/x.pcm"
    far = Media(1, "audio/pcm", url=uri, echo=kept(uri))
    events = [StreamStart("gemini"), SOUND[0], far, SOUND[1], Finish("stop")]
    chunks = told(vercel.Encoder(), *events)
    assert [c for c in chunks if c["type"] in ("file", "data-media")] == [
        {"type": "file", "url": "data:audio/pcm;base64,YWI=", "mediaType": "audio/pcm"},
        {"type": "data-media", "data": {"mediaType": "audio/pcm", "part": 1}},
        {"type": "file", "url": "data:audio/pcm;base64,Y2Q=", "mediaType": "audio/pcm"},
    ]


def test_what_could_act_in_a_page_is_only_bytes_to_it() -> None:
    medium = Media(0, "text/html", b"<script>alert(1)</script>")
    (chunk,) = of("file", told(vercel.Encoder(), StreamStart("gemini"), medium, Finish("stop")))
    assert chunk["url"].startswith("data:application/octet-stream;base64,")
    assert chunk["mediaType"] == "text/html"


def test_ag_ui_hears_of_media_beside_the_message_as_its_own_part() -> None:
    events = [StreamStart("gemini"), TextDelta("Here:"), PICTURE, FAR, Finish("stop")]
    custom = of("CUSTOM", told(ag_ui.Encoder(message_id="m"), *events))
    assert [event["name"] for event in custom] == ["streamnorm.media"] * 2
    assert custom[0]["value"] == {
        "messageId": "m-1", "part": 0, "echoes": [{"signature": "s"}],
        "content": {
            "type": "image",
            "source": {"type": "data", "value": "iVBORw==", "mimeType": "image/png"},
        },
    }  # fmt: skip
    assert custom[1]["value"]["content"] == {
        "type": "video",
        "source": {"type": "url", "value": "https://example.org/a.mp4", "mimeType": "video/mp4"},
    }


def test_the_plain_form_tells_media_as_they_came_without_the_echo() -> None:
    chunks = told(plain.Encoder(), StreamStart("gemini"), PICTURE, *SOUND, Finish("stop"))
    assert of("media", chunks) == [
        {
            "kind": "media", "part": part, "mime_type": type, "data": data, "url": None, "choice": 0,
            "agent": None,
        }
        for part, type, data in [
            (0, "image/png", "iVBORw=="), (1, "audio/pcm", "YWI="), (1, "audio/pcm", "Y2Q="),
        ]
    ]  # fmt: skip


def test_files_of_an_assistant_come_back_as_what_it_made() -> None:
    parts = [
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw==",
         "providerMetadata": {"streamnorm": {"echoes": [{"signature": "s"}], "agent": "main"}}},
        {"type": "file", "mediaType": "video/mp4", "url": "https://example.org/a.mp4"},
    ]  # fmt: skip
    body = {"id": "c", "messages": [{"id": "m", "role": "assistant", "parts": parts}]}
    (turn,) = from_ai_sdk(body).conversation.turns
    assert turn.parts == (
        Made("image/png", b"\x89PNG", None, ({"signature": "s"},), "main"),
        Made("video/mp4", None, "https://example.org/a.mp4"),
    )


# --- voices ---------------------------------------------------------------------------------------

CALL = ToolCall(0, "c1", "pay", {}, "{}", agent="scout")
TWO: list[Any] = [
    StreamStart("openai_responses"), TextDelta("Let me", agent="main"),
    TextDelta("High ", agent="scout"), TextDelta(" ask.", agent="main"),
    TextDelta("water.", agent="scout"), ReasoningDelta("Hm.", agent="scout"),
    ToolCallStart(0, "c1", "pay", agent="scout"), ToolCallDelta(0, "{}", "scout"), CALL,
    Finish("tool_calls"),
]  # fmt: skip


@pytest.mark.parametrize("at_once", [False, True])
def test_two_voices_are_two_texts_of_the_ai_sdk_each_with_its_name(at_once: bool) -> None:
    chunks = told(vercel.Encoder(), *TWO, at_once=at_once)
    names = {
        c["id"]: c["providerMetadata"]["streamnorm"]["agent"] for c in of("text-start", chunks)
    }
    said: dict[str, str] = {}
    for chunk in of("text-delta", chunks):
        said[names[chunk["id"]]] = said.get(names[chunk["id"]], "") + chunk["delta"]
    assert said == {"main": "Let me ask.", "scout": "High water."}
    assert len(names) == 2  # neither is cut up by the other
    (call,) = of("tool-input-available", chunks)
    assert call["toolMetadata"]["streamnorm"]["agent"] == "scout"


@pytest.mark.parametrize("at_once", [False, True])
def test_two_voices_are_two_messages_of_ag_ui_and_come_back_as_one_turn(at_once: bool) -> None:
    chunks = told(ag_ui.Encoder(message_id="m"), *TWO, at_once=at_once)
    assert [(c["messageId"], c["name"]) for c in of("TEXT_MESSAGE_START", chunks)] == [
        ("m-1-a1", "main"), ("m-1-a2", "scout"),
    ]  # fmt: skip
    assert [c["parentMessageId"] for c in of("TOOL_CALL_START", chunks)] == ["m-1-a2"]
    call = {
        "id": "c1", "type": "function", "function": {"name": "pay", "arguments": "{}"},
        "metadata": of("TOOL_CALL_END", chunks)[0]["metadata"],
    }  # fmt: skip
    messages = [
        {"id": "m-1-a1", "role": "assistant", "name": "main", "content": "Let me ask."},
        {"id": "m-1-a2", "role": "assistant", "name": "scout", "content": "High water.",
         "toolCalls": [call]},
        {"id": "m-1-r3", "role": "reasoning", "content": "Hm.",
         "metadata": {"streamnorm": {"agent": "scout"}}},
    ]  # fmt: skip
    body = {"threadId": "t", "runId": "r", "messages": messages}
    first, second = from_ag_ui(body).conversation.turns
    assert [(p.text, p.agent) for p in first.parts if isinstance(p, Text)] == [
        ("Let me ask.", "main"), ("High water.", "scout"),
    ]  # fmt: skip
    assert [c.agent for c in first.calls] == ["scout"]
    assert second.parts == (Reasoning("Hm.", agent="scout"),)


def test_answers_of_a_page_that_only_look_like_voices_stay_apart() -> None:
    messages = [{"id": f"x-a{n}", "role": "assistant", "content": str(n)} for n in (1, 2)]
    body = {"threadId": "t", "runId": "r", "messages": messages}
    assert [turn.text for turn in from_ag_ui(body).conversation.turns] == ["1", "2"]


def test_the_plain_form_joins_no_two_voices() -> None:
    chunks = told(plain.Encoder(), *TWO, at_once=True)
    assert [(c["text"], c["agent"]) for c in of("text_delta", chunks)] == [
        ("Let me", "main"), ("High ", "scout"), (" ask.", "main"), ("water.", "scout"),
    ]  # fmt: skip


def test_one_voice_says_nothing_of_agents() -> None:
    events = [
        StreamStart("gemini"),
        TextDelta("x"),
        CALL.__class__(0, "c", "f", {}, ""),
        Finish("stop"),
    ]
    for encoder in (vercel.Encoder(), ag_ui.Encoder()):
        assert '"agent"' not in json.dumps(told(encoder, *events))
