"""Pictures and sounds that a model made: exact bytes in, and back where they came from."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest

from streamnorm import Conversation, Finish, Limits, Made, Media, Normalizer, Text, ToolCall, Turn
from streamnorm.core.media import Gallery, Shown
from streamnorm.notes import Scribe
from streamnorm.wire import provider
from tests.conftest import RECORDINGS, Chat, load, run, sse
from tests.providers.streams import Responses, heard, payloads

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
SOUND = b"\0\0\1\0\xff\xff\2\0\xfe\xff\3\0"


def events_of(take: str) -> list[Any]:
    recorded, wire = load(RECORDINGS / f"{take}.sse")
    return run(recorded.provider or take.partition("/")[0], [wire])


def media(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(e.part, e.mime_type, e.data, e.url) for e in events if isinstance(e, Media)]


RATE = "audio/L16;codec=pcm;rate=24000"


@pytest.mark.parametrize(
    ("take", "told"),
    [
        (
            "gemini/pictures_with_signatures",
            [
                (0, "image/png", PNG, None),
                (1, "image/png", PNG, None),
                (2, "image/gif", GIF, None),
            ],
        ),
        ("gemini/sound_in_pieces", [(0, RATE, SOUND[:6], None), (0, RATE, SOUND[6:], None)]),
        (
            "openai_chat/pictures",
            [
                (0, "image/png", PNG, None),
                (1, "image/gif", GIF, None),
                (2, "application/octet-stream", None, "https://example.org/harbour.webp"),
            ],
        ),
        ("bedrock/picture_in_pieces", [(0, "image/gif", GIF, None)]),
        ("ollama/pictures", [(0, "image/png", PNG, None), (1, "image/gif", GIF, None)]),
        (
            "gemini_interactions/pictures_and_sound",
            [
                (0, "image/png", PNG, None),
                (1, "image/gif", GIF, None),
                (2, "audio/l16", SOUND[:6], None),
                (2, "audio/l16", SOUND[6:], None),
                (3, "video/mp4", None, "https://example.org/v1beta/files/abc123"),
            ],
        ),
        ("openai_responses/type_image_generation_call", [(0, "image/gif", GIF, None)]),
        ("azure_foundry/type_image_generation_call", [(0, "image/gif", GIF, None)]),
        (
            "openai_responses/audio",
            [(0, "audio/pcm", b"RIFF", None), (0, "audio/pcm", b"\0" * 4, None)],
        ),
    ],
)
def test_media_are_told_with_their_exact_bytes(take: str, told: list[Any]):
    assert media(events_of(take)) == told


def test_a_voice_of_chat_is_one_part_and_its_words_stand_beside_it():
    told = [e for e in events_of("openai_chat/voice") if isinstance(e, Media)]
    assert {(e.part, e.mime_type) for e in told} == {(0, "audio/pcm")}
    assert b"".join(e.data or b"" for e in told) == SOUND
    words = "".join(e.echo["audio"].get("transcript", "") for e in told)
    assert words == "Good evening."


def test_a_piece_of_sound_that_begins_like_another_format_is_still_the_same_sound():
    body = b"".join(
        Responses.say("audio.delta", delta=base64.b64encode(piece).decode())
        for piece in (b"\0\0\1\0", b"\xff\xfb\1\0")
    )
    events, _ = heard("openai_responses", Responses.CREATED + body)
    assert [(e.part, e.mime_type) for e in events if isinstance(e, Media)] == [(0, "audio/pcm")] * 2


def test_nothing_is_joined_over_a_piece_that_cannot_be_read():
    body = b"".join(Chat.delta({"audio": {"data": data}}) for data in ("AAAA", "A?", "AAAA"))
    events, notes = heard("openai_chat", body + Chat.end("stop"))
    assert [e.part for e in events if isinstance(e, Media)] == [0, 1]
    assert notes["wire.media_unreadable"] == 1


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "a?"}},
        {"inlineData": {"mimeType": "image/png"}},
        {"inlineData": "x"},
        {"fileData": {"mimeType": "image/png"}},
        {"fileData": {"fileUri": "data:image/png;base64,a?"}},
    ],
)
def test_what_cannot_be_read_is_passed_on_whole(part: dict[str, Any]):
    chunk = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    events = payloads("gemini", chunk)
    assert [e.payload for e in events if e.kind == "unrecognized"] == [part]
    assert not media(events)


def test_an_address_is_told_as_it_came_whatever_it_is():
    part = {"fileData": {"mimeType": "image/png", "fileUri": "javascript:alert(1)"}}
    chunk = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    assert media(payloads("gemini", chunk)) == [(0, "image/png", None, "javascript:alert(1)")]


@pytest.mark.parametrize("provider", ["openai_chat", "bedrock"])
def test_a_picture_or_a_sound_that_is_too_long_ends_the_stream(provider: str):
    piece = base64.b64encode(b"\0" * 300).decode()
    if provider == "openai_chat":
        body = [Chat.delta({"audio": {"data": piece}})] * 5
    else:
        _, wire = load(RECORDINGS / "bedrock/picture_in_pieces.sse")
        body = [wire]
    limits = Limits(media=1000 if provider == "openai_chat" else 20)
    last = run(provider, body, limits=limits)[-1]
    assert (last.kind, last.reason, last.code) == ("failed", "limit", "media")


def test_pieces_of_a_picture_that_never_ends_are_bounded():
    pipe = Normalizer("bedrock", limits=Limits(media=1000))
    image = {"source": {"bytes": base64.b64encode(b"\0" * 300).decode()}}
    delta = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"image": image}}}
    events = [event for _ in range(5) for event in pipe.feed_payload(delta)]
    assert (events[-1].kind, events[-1].code) == ("failed", "media")


def test_a_picture_whose_block_is_cut_off_is_passed_on_and_never_told_as_one():
    _, wire = load(RECORDINGS / "bedrock/picture_in_pieces.sse")
    whole = run("bedrock", [wire])
    assert [e.kind for e in whole].count("media") == 1
    for size in range(0, len(wire), 37):
        cut = run("bedrock", [wire[:size]])
        assert not [e for e in cut if isinstance(e, Media) and e.data != GIF]
    frames = wire[: wire.rindex(b"contentBlockStop") - 40]
    assert [e.kind for e in run("bedrock", [frames])][-2:] == ["unrecognized", "failed"]


def test_a_result_that_is_no_picture_is_told_as_a_result_and_noted():
    item = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "a?"}
    events, notes = heard("openai_responses", Responses.CREATED + Responses.done(item))
    kinds = [e.kind for e in events]
    assert ("tool_result" in kinds, "media" in kinds, "unrecognized" in kinds) == (
        True,
        False,
        False,
    )
    assert notes["wire.media_unreadable"] == 1


def test_sounds_at_many_places_are_held_for_some_of_them_only():
    gallery, out = Gallery(Scribe("test"), 10**6), []
    for _ in range(2):
        for place in range(1000):
            gallery.tell(out, Shown("x", None, b"ab", type="audio/pcm"), place=place)
    assert len(gallery._growing) <= 64
    assert len({event.part for event in out}) == 2000


# --- turns ----------------------------------------------------------------------------------------


def made(take: str) -> list[Made]:
    return [p for p in Turn.from_events(events_of(take)).parts if isinstance(p, Made)]


def test_a_turn_has_pictures_where_they_came_and_a_voice_as_one():
    parts = Turn.from_events(events_of("gemini/pictures_with_signatures")).parts
    kinds = [type(part).__name__ for part in parts]
    assert kinds == ["Text", "Made", "Made", "Text", "Made"]
    (voice,) = made("gemini/sound_in_pieces")
    assert (voice.data, voice.type) == (SOUND, RATE)


def test_a_turn_with_media_survives_json():
    talk = Conversation().add(Turn.from_events(events_of("openai_chat/pictures")))
    assert Conversation.from_json(talk.to_json()) == talk


# --- the way back ---------------------------------------------------------------------------------


def sent(take: str, to: str, *then: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    talk = Conversation().user("Draw.").add(Turn.from_events(events_of(take)))
    talk = talk.user(*then) if then else talk
    prepared = provider(to).prepare(talk)
    return prepared.body, [(row.what, row.why) for row in prepared.dropped]


def test_gemini_hears_its_pictures_again_exactly_with_their_signatures():
    body, dropped = sent("gemini/pictures_with_signatures", "gemini", "Another.")
    _, wire = load(RECORDINGS / "gemini/pictures_with_signatures.sse")
    came = [
        part
        for line in wire.decode().splitlines() if line.startswith("data: {")
        for part in json.loads(line[6:])["candidates"][0]["content"]["parts"]
        if part.get("text") != ""
    ]  # fmt: skip
    assert body["contents"][1]["parts"] == came
    assert dropped == []


def test_interactions_hear_their_media_again_as_they_came():
    body, dropped = sent("gemini_interactions/pictures_and_sound", "gemini_interactions")
    said = [step["content"][0] for step in body["input"][1:]]
    assert [content["type"] for content in said] == ["text", "image", "image", "audio", "video"]
    assert said[1] == {
        "type": "image",
        "mime_type": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }
    assert base64.b64decode(said[3]["data"]) == SOUND
    assert said[4] == {
        "type": "video", "uri": "https://example.org/v1beta/files/abc123", "mime_type": "video/mp4",
    }  # fmt: skip
    assert dropped == []


def test_chat_hears_pictures_beside_the_content_and_a_voice_by_its_id():
    body, dropped = sent("openai_chat/pictures", "openai_chat")
    said = body["messages"][1]
    assert said["content"] == "Here:"
    assert [image["index"] for image in said["images"]] == [0, 1, 2]
    assert said["images"][0]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert said["images"][2]["image_url"]["url"] == "https://example.org/harbour.webp"
    voiced, _ = sent("openai_chat/voice", "openai_chat")
    assert voiced["messages"][1]["audio"]["id"].startswith("audio_")
    assert dropped == []


def test_ollama_hears_its_pictures_again():
    body, dropped = sent("ollama/pictures", "ollama")
    assert [base64.b64decode(image) for image in body["messages"][1]["images"]] == [PNG, GIF]
    assert dropped == []


def test_a_picture_of_responses_goes_back_with_its_item_and_not_twice():
    body, dropped = sent("openai_responses/type_image_generation_call", "openai_responses", "Hm.")
    assert json.dumps(body).count(base64.b64encode(GIF).decode()) == 1
    assert dropped == []


@pytest.mark.parametrize(
    ("to", "where"),
    [
        ("anthropic", lambda body: body["messages"][-1]["content"][0]["source"]["data"]),
        ("openai_chat", lambda body: body["messages"][-1]["content"][0]["image_url"]["url"]),
        ("openai_responses", lambda body: body["input"][-1]["content"][0]["image_url"]),
        ("mistral", lambda body: body["messages"][-1]["content"][0]["image_url"]),
    ],
)
def test_on_other_wires_a_picture_is_shown_with_what_the_user_says_next(to: str, where: Any):
    body, dropped = sent("gemini/inline_image", to, "Make it bigger.")
    assert base64.b64encode(b"GIF89a").decode() in str(where(body))
    assert ("place", "a model's picture is shown in the next user's turn") in dropped


@pytest.mark.parametrize("to", ["anthropic", "openai_chat", "openai_responses", "cohere", "tgi"])
def test_what_has_no_place_on_a_wire_is_left_out_and_reported(to: str):
    body, dropped = sent("gemini/sound_in_pieces", to, "Louder.")
    assert base64.b64encode(SOUND).decode() not in json.dumps(body)
    assert [what for what, _ in dropped] == [RATE]
    _, alone = sent("gemini/inline_image", "anthropic")
    assert alone == [("image/gif", "a model's picture needs a user's turn after it")]


def test_a_type_of_picture_that_a_wire_does_not_take_is_left_out():
    talk = (
        Conversation().user("Draw.").add(Turn("assistant", (Made("image/tiff", b"II*"),), "gemini"))
    )
    prepared = provider("anthropic").prepare(talk.user("More."))
    assert [(row.what, row.why) for row in prepared.dropped] == [
        ("image/tiff", "this wire takes no pictures of this type")
    ]
    assert prepared.body["messages"][-1]["content"][-1]["text"] == "More."


def test_other_pictures_stand_in_the_turn_of_a_model_whose_wire_can_say_so():
    body, _ = sent("openai_chat/pictures", "gemini", "Bigger.")
    parts = body["contents"][1]["parts"]
    assert [list(part) for part in parts] == [["text"], ["inlineData"], ["inlineData"]]


# --- served ---------------------------------------------------------------------------------------


def served(take: str, to: str) -> list[Any]:
    return run(to, list(provider(to).serve(events_of(take))))


@pytest.mark.parametrize("to", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("take", ["gemini/pictures_with_signatures", "ollama/pictures"])
def test_pictures_are_served_with_their_bytes(take: str, to: str):
    told = [(type, data) for _, type, data, _ in media(events_of(take))]
    heard_again = [(type, data) for _, type, data, _ in media(served(take, to))]
    assert heard_again == told


@pytest.mark.parametrize("to", ["openai_chat", "openai_responses"])
def test_a_voice_is_served_with_its_bytes(to: str):
    for take in ("openai_chat/voice", "gemini/sound_in_pieces"):
        pieces = [data for _, _, data, _ in media(served(take, to))]
        assert b"".join(piece or b"" for piece in pieces) == SOUND


def test_its_own_picture_is_served_once_with_its_item():
    take = "openai_responses/type_image_generation_call"
    again = served(take, "openai_responses")
    assert media(again) == media(events_of(take))
    assert len([e for e in again if isinstance(e, ToolCall)]) == 1


def test_a_wire_without_a_word_for_pictures_says_so_in_the_log(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "streamnorm")
    told = served("gemini/inline_image", "anthropic")
    assert [e.kind for e in told if e.kind in ("media", "text_delta")] == ["text_delta"]
    assert isinstance(told[-1], Finish)
    assert "serve.media_left_out" in caplog.text


def test_a_transcript_with_media_is_read_back():
    from streamnorm.history.transcript import from_messages, to_messages

    for wire, take in (("gemini", "gemini/inline_image"), ("openai_chat", "openai_chat/pictures")):
        talk = Conversation().user("Draw.").add(Turn.from_events(events_of(take))).user("Again.")
        read = from_messages(wire, to_messages(wire, talk)).conversation
        before = [p.data for p in talk.turns[1].parts if isinstance(p, Made)]
        assert [p.data for p in read.turns[1].parts if isinstance(p, Made)] == before
        assert [p for p in read.turns[1].parts if isinstance(p, Text)]


def test_sse_of_a_gateway_with_a_data_url_in_the_content_is_a_picture():
    part = {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}}
    body = sse({"choices": [{"index": 0, "delta": {"content": [part]}, "finish_reason": "stop"}]})
    events, _ = heard("mistral", body + b"data: [DONE]\n\n")
    assert media(events) == [(0, "image/gif", b"GIF89a", None)]
