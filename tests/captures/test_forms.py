"""Files that other programs wrote, each made by its own tool (``tools/captures.py``): every stream in them."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path

import brotli
import pytest
import zstandard

from streamnorm import replay
from streamnorm.captures import Found, Left, read_take, streams_of
from streamnorm.errors import ProviderError, RecordingError
from streamnorm.events import Event, Failed, TextDelta, ToolCall
from streamnorm.takes.format import Take
from streamnorm.takes.pipe import pipe_for
from streamnorm.testing import call, finish, say, script
from tests.conftest import RECORDINGS

FILES = Path(__file__).parent / "files"
WEATHER = script(say("I look it up — "), call("get_weather", city="Oslo"), finish())
ONE_LINE = b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true}\n'


def found_in(file: str | bytes, name: str = "a") -> list[Found]:
    data = file if isinstance(file, bytes) else (FILES / file).read_bytes()
    return [one for one in streams_of(data, name=name) if isinstance(one, Found)]


def left_in(file: str | bytes, name: str = "a") -> list[Left]:
    data = file if isinstance(file, bytes) else (FILES / file).read_bytes()
    return [one for one in streams_of(data, name=name) if isinstance(one, Left)]


def events_of(take: Take) -> list[Event]:
    pipe = pipe_for(take)
    return [event for _, chunk in take.chunks for event in pipe.feed(chunk)] + pipe.close()


def told(take: Take) -> tuple[str, str, list[str]]:
    """Who said what: the provider, the text, the calls; of a failure the reason and its words."""
    pipe = pipe_for(take)
    events = events_of(take)
    for _, chunk in take.chunks:
        pipe.feed(chunk)
    if isinstance(events[-1], Failed):
        return pipe.provider, events[-1].error, [events[-1].reason]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return pipe.provider, text, [event.name for event in events if isinstance(event, ToolCall)]


SAID = "I look it up — "
CHAT = ("openai_chat", SAID, ["get_weather"])
ANTHROPIC = ("anthropic", SAID, ["get_weather"])
REFUSED = ("openai_responses", "Slow down", ["provider_error"])
OLLAMA = ("ollama", SAID, ["get_weather"])
BEDROCK = ("bedrock", SAID, ["get_weather"])
ALL = [CHAT, ANTHROPIC, REFUSED, OLLAMA, BEDROCK]
NAMELESS = ("auto", "Slow down", ["provider_error"])  # curl does not say whom it asked
RESPONSES = ("openai_responses", SAID, ["get_weather"])

HELD = {
    "vcrpy.yaml": ALL,
    "vcrpy.json": [CHAT, REFUSED, OLLAMA],
    "betamax.json": ALL,
    "ruby_vcr.yaml": ALL,
    "ruby_vcr_base64.yaml": ALL,
    "mitmproxy.har": ALL,
    "browser.har": [*ALL, RESPONSES, ("openai_responses", "7 degrees.", [])],
    "curl.txt": [CHAT],
    "curl_raw.txt": [CHAT],
    "curl_redirect.txt": [CHAT],
    "curl_continue.txt": [CHAT],
    "curl_error.txt": [NAMELESS],
    "curl_gzip.txt": [ANTHROPIC],
    "curl_ndjson.txt": [OLLAMA],
    "curl_aws.txt": [BEDROCK],
    "curl_several.txt": [CHAT, ANTHROPIC, NAMELESS, OLLAMA, BEDROCK],
    "curl_several.txt.gz": [CHAT, ANTHROPIC, NAMELESS, OLLAMA, BEDROCK],
    "body.sse": [CHAT],
    "body.ndjson": [OLLAMA],
    "body.aws": [BEDROCK],
}


def test_every_file_of_a_tool_is_looked_at():
    assert {path.name for path in FILES.iterdir()} == set(HELD)


@pytest.mark.parametrize("file", HELD)
def test_every_stream_of_a_capture_is_read_and_says_what_was_said(file):
    assert [told(one.take) for one in found_in(file)] == HELD[file]


@pytest.mark.parametrize("file", HELD)
def test_a_capture_gives_the_events_of_the_body_itself(file):
    for one in found_in(file):
        provider = pipe_for(one.take).provider if one.take.provider is None else one.take.provider
        if one.take.header.get("status") == 429 or "ws://" in str(one.take.header.get("url")):
            continue
        wanted = WEATHER.bytes(provider if provider != "auto" else told(one.take)[0])
        assert one.take.wire == wanted


@pytest.mark.parametrize("file", HELD)
def test_streams_are_numbered_where_there_are_several(file):
    names = [one.name for one in found_in(file, file)]
    many = [f"{file}#{n}" for n in range(1, len(names) + 1)]
    assert names == (many if len(many) > 1 else [file])


@pytest.mark.parametrize("file", HELD)
def test_no_key_of_a_request_and_no_cookie_is_in_a_take(file):
    kept = b"".join(one.take.wire + json.dumps(one.take.header).encode() for one in found_in(file))
    assert b"0123456789abcdefghijklmnop" not in kept
    assert b"The weather?" not in kept  # nor is the request


@pytest.mark.parametrize(
    ("file", "origin"),
    [
        ("vcrpy.yaml", "cassette of VCR"),
        ("betamax.json", r"cassette of betamax/0\.9\.0"),
        ("ruby_vcr.yaml", r"cassette of VCR 5\.0\.0"),
        ("browser.har", r"HAR of Playwright [0-9.]+, its text read as Latin and put back"),
        ("mitmproxy.har", r"HAR of mitmproxy [0-9.]+, its text read as Latin and put back"),
        ("curl.txt", "curl -i"),
    ],
)
def test_a_take_says_what_it_was_made_from(file, origin):
    header = found_in(file)[0].take.header
    assert header["made"] == "imported by streamnorm"
    assert re.fullmatch(origin, header["from"])
    assert header["status"] == 200
    assert header["headers"]["content-type"].startswith("text/event-stream")
    assert header["other_headers"]["set-cookie"] > 30  # its length, and not its value


def test_the_address_and_the_time_are_told_where_the_capture_has_them():
    header = found_in("ruby_vcr.yaml")[0].take.header
    assert header["url"] == "http://127.0.0.1:8080/v1/chat/completions"
    assert re.fullmatch(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", header["captured"])


def test_messages_of_a_websocket_have_their_times():
    first = next(one for one in found_in("browser.har") if "ws://" in one.take.header["url"])
    times = [at for at, _ in first.take.chunks]
    assert first.take.timed
    assert times == sorted(times)
    assert len(times) > 3


def test_exchanges_that_are_no_streams_are_counted_in_one_sentence():
    assert left_in("browser.har", "b.har") == [
        Left("b.har", "has 2 exchanges more, which are no streams.", aside=True)
    ]


@pytest.mark.parametrize(
    "file", ["vcrpy.yaml", "browser.har", "curl_several.txt", "body.aws", "body.sse"]
)
@pytest.mark.parametrize(
    "pack", [gzip.compress, zlib.compress, zstandard.ZstdCompressor().compress]
)
def test_each_form_may_be_packed(file, pack):
    data = (FILES / file).read_bytes()
    assert [one.take for one in found_in(pack(data))] == [one.take for one in found_in(data)]


def test_a_packed_file_that_is_cut_gives_what_is_there_and_says_so():
    packed = gzip.compress((FILES / "body.sse").read_bytes(), 0)
    (found,) = found_in(packed[:-300])
    assert found.take.torn
    assert [left.why for left in left_in(packed[:-300])] == [
        "is cut or damaged: what is in the gzip was read as far as it goes."
    ]


def test_members_of_gzip_follow_each_other():
    body = (FILES / "body.sse").read_bytes()
    (found,) = found_in(gzip.compress(body[:700]) + gzip.compress(body[700:]) + b"\0" * 512)
    assert found.take.wire == body


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("br", brotli.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("deflate", zlib.compress),
    ],
)
def test_bodies_are_unpacked_as_their_headers_say(coding, pack):
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Type: text/event-stream\r\n\r\n"
    )
    (found,) = found_in(head.encode() + pack(CHAT_BODY.encode()))
    assert told(found.take) == CHAT
    (left,) = left_in(head.replace(coding, "lzma").encode() + b"\xfa\xfb\xfc\xfd" * 20)
    assert "(content-encoding: lzma)" in left.why


# --- a HAR ----------------------------------------------------------------------------------------


def har(*entries: dict, **log: object) -> bytes:
    return json.dumps({"log": {"version": "1.2", **log, "entries": list(entries)}}).encode()


def entry(text: str | None, mime: str = "text/event-stream", **more: object) -> dict:
    content: dict = {"size": 1, "mimeType": mime}
    if text is not None:
        content["text"] = text
    content |= more.pop("content", {})  # type: ignore[call-overload]
    request = {
        "method": "POST",
        "url": "https://api.example.com/v1/chat/completions",
        "headers": [],
    }
    response = {"status": 200, "headers": [], "content": content}
    return {
        "startedDateTime": "2026-11-19T08:00:00.000Z",
        "request": request | more.pop("request", {}),  # type: ignore[call-overload]
        "response": response | more.pop("response", {}),
        **more,
    }  # type: ignore[call-overload]


CHAT_BODY = WEATHER.bytes("openai_chat").decode()


def test_a_body_that_the_browser_dropped_is_named_with_what_to_do():
    (left,) = left_in(har(entry(None)), "d.har")
    assert left.name == "d.har, entry 1 (https://api.example.com/v1/chat/completions)"
    assert left.why.startswith("has no body: browsers drop what streamed")
    assert not left.aside


def test_a_har_without_streams_says_what_is_in_it():
    (left,) = left_in(har(entry("<html>", "text/html", request={"url": "https://example.com/"})))
    assert left.why.startswith("is a HAR with one exchange, which is an HTML")
    (left,) = left_in(har())
    assert left.why == "is a HAR without an exchange in it."


def test_one_odd_entry_spares_the_others():
    data = har(
        entry(CHAT_BODY), {"request": 7}, entry(CHAT_BODY, content={"text": 7}), entry(CHAT_BODY)
    )
    assert [one.name for one in found_in(data)] == ["a#1", "a#2"]
    assert [left.name for left in left_in(data)] == ["a, entry 2", "a, entry 3"]


def test_a_text_in_base64_is_read():
    import base64

    text = base64.b64encode(CHAT_BODY.encode()).decode()
    (found,) = found_in(har(entry(text, content={"encoding": "base64"})))
    assert found.take.wire.decode() == CHAT_BODY
    (left,) = left_in(har(entry("***", content={"encoding": "base64"})))
    assert "not the base64" in left.why


def test_a_byte_order_mark_before_a_har_is_none_of_it():
    assert len(found_in(b"\xef\xbb\xbf" + har(entry(CHAT_BODY)))) == 1


def test_text_that_names_its_charset_stays_what_it_is():
    said = CHAT_BODY.replace("—", "â\x80\x94")
    plain = found_in(har(entry(said)))[0].take
    named = found_in(har(entry(said, "text/event-stream; charset=utf-8")))[0].take
    assert told(plain)[1] == "I look it up — "
    assert told(named)[1] == "I look it up â\x80\x94 "


def test_a_key_that_comes_back_in_an_answer_is_overwritten():
    body = CHAT_BODY.replace("I ", "Key hunter2-hunter2 ")
    cookies = [{"name": "c", "value": "cookie-value-1"}]
    headers = [{"name": "X-Api-Key", "value": "hunter2-hunter2"}]
    one = entry(
        body.replace("Key", "cookie-value-1"), request={"headers": headers, "cookies": cookies}
    )
    (found,) = found_in(har(one))
    assert b"hunter2" not in found.take.wire
    assert b"cookie-value" not in found.take.wire
    assert b"xxxxxxxxxxxxxxx" in found.take.wire


def test_what_a_key_in_the_address_was_is_not_kept():
    url = "https://me:pass-word-1@api.example.com/v1/chat/completions?key=abcdefgh1"
    (found,) = found_in(har(entry(CHAT_BODY, request={"url": url})))
    assert found.take.header["url"] == "https://api.example.com/v1/chat/completions"


def test_an_answer_with_another_status_is_a_refusal_whatever_its_body():
    one = entry(
        "<html>bad gateway</html>",
        "text/html",
        response={
            "status": 502,
            "content": {"mimeType": "text/html", "text": "<html>bad gateway</html>"},
        },
    )
    (found,) = found_in(har(one))
    (end,) = events_of(found.take)
    assert (end.reason, end.retryable) == ("provider_error", True)
    assert end.error == "HTTP 502 Bad Gateway: <html>bad gateway</html>"


def test_a_refusal_is_replayed_as_it_was_heard():
    found = found_in("mitmproxy.har")[2]
    assert found.take.header["status"] == 429
    (alone,) = events_of(found.take)
    with pytest.raises(ProviderError) as live:
        list(replay(found.take))
    assert (alone.error, alone.retryable, alone.code) == ("Slow down", True, "rate_limit")
    error = live.value
    assert (error.message, error.retryable, error.code) == ("Slow down", True, "rate_limit")
    assert (error.status, error.retry_after) == (429, 7.0)


# --- cassettes ------------------------------------------------------------------------------------


def cassette(response: str) -> bytes:
    lines = "".join(f"    {line}\n" for line in response.splitlines())
    return f"""interactions:
- request:
    uri: https://api.example.com/v1/chat/completions
    headers: {{Authorization: [Bearer secret-key-1]}}
  response:
{lines}version: 1
""".encode()


BODY = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}'


@pytest.mark.parametrize(
    "response",
    [
        f"status: {{code: 200}}\nbody:\n  string: '{BODY}\n\n\n    '",
        f"status_code: 200\ncontent: '{BODY}\n\n\n    '",
        f"status: {{code: '200'}}\nbody: '{BODY}\n\n\n    '",
        f"body: {{string: !!python/unicode '{BODY}\n\n\n    '}}",
        "body: {string: !binary ZGF0YTogeyJjaG9pY2VzIjpbeyJkZWx0YSI6eyJjb250ZW50IjoiSGkifSwiZmluaXNoX3JlYXNv"
        "biI6InN0b3AifV19Cgo=}",
    ],
)
def test_bodies_are_written_in_many_ways(response):
    (found,) = found_in(cassette(response))
    assert told(found.take) == ("openai_chat", "Hi", [])


def test_an_object_of_a_program_in_a_cassette_is_not_made():
    data = cassette("body: {string: !!python/object/apply:os.system ['exit 7']}")
    assert found_in(data) == []
    assert [left.why for left in left_in(data)] == ["is not written as a cassette wants it."]


def test_a_cassette_that_is_cut_says_where():
    data = (FILES / "vcrpy.yaml").read_bytes()
    lefts = left_in(data[: len(data) // 2])
    assert re.match(r"begins like a cassette of VCR, and is cut", lefts[-1].why)
    assert len(found_in(data[: len(data) // 2])) >= 1  # those before are read


# --- what curl prints -----------------------------------------------------------------------------


def test_a_proxy_and_a_question_for_a_key_are_on_the_way():
    answer = (FILES / "curl.txt").read_bytes()
    before = b"HTTP/1.1 200 Connection established\r\n\r\n"
    asked = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest\r\nContent-Length: 0\r\n\r\n"
    (found,) = found_in(before + asked + answer)
    assert told(found.take) == CHAT


def test_the_heads_of_http_2_have_no_words():
    (found,) = found_in(
        b"HTTP/2 200 \r\ncontent-type: text/event-stream\r\n\r\n" + CHAT_BODY.encode()
    )
    assert told(found.take) == CHAT


def test_a_length_says_where_the_next_answer_begins():
    body = b'{"error":{"message":"HTTP/1.1 200 OK\\r\\n","type":"t"}}'
    one = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    assert [told(found.take)[1] for found in found_in(one + one)] == ["HTTP/1.1 200 OK\r\n"] * 2


def test_chunks_that_are_cut_are_torn():
    raw = (FILES / "curl_raw.txt").read_bytes()
    (found,) = found_in(raw[:-40])
    assert found.take.torn
    assert found_in(raw)[0].take.torn is False


# --- sessions -------------------------------------------------------------------------------------


def saved(name: str) -> bytes:
    from tests.providers.test_programs import lines

    return b"".join(line + b"\n" for line in lines(name))


def test_each_answer_of_a_saved_session_is_a_stream():
    found = found_in(saved("codex/rollout_two_questions"), "s.jsonl")
    assert [(one.name, one.form, one.take.provider) for one in found] == [
        ("s.jsonl#1", "session", "codex"), ("s.jsonl#2", "session", "codex"),
    ]  # fmt: skip
    assert [events_of(one.take)[-1].kind for one in found] == ["finish", "finish"]


def test_a_take_of_a_session_is_divided_and_what_it_is_divided_into_is_not():
    data = (RECORDINGS / "claude_code" / "sub_agent.sse").read_bytes()
    found = found_in(data)
    assert [one.take.header["stream"] for one in found] == [1, 2, 3]
    assert [len(events_of(one.take)) > 3 for one in found] == [True] * 3


# --- one stream of a file -------------------------------------------------------------------------


def test_a_capture_of_one_stream_is_read_like_a_take(tmp_path):
    file = tmp_path / "a.har"
    file.write_bytes(har(entry(CHAT_BODY)))
    assert read_take(file) == found_in(har(entry(CHAT_BODY)))[0].take


def test_of_several_streams_one_must_be_named():
    with pytest.raises(RecordingError) as refused:
        read_take(FILES / "ruby_vcr.yaml")
    said = str(refused.value)
    assert "has 5 streams. Name one: " in said
    assert f"{FILES}/ruby_vcr.yaml#2 (http://127.0.0.1:8080/v1/messages)" in said
    assert told(read_take(f"{FILES}/ruby_vcr.yaml#2")) == ANTHROPIC
    with pytest.raises(RecordingError, match="has 5 streams"):
        read_take(f"{FILES}/ruby_vcr.yaml#6")


def test_a_file_whose_name_ends_so_is_that_file(tmp_path):
    file = tmp_path / "a#2"
    file.write_bytes(ONE_LINE)
    assert told(read_take(file)) == ("ollama", "Hi", [])


def test_a_replay_reads_captures():
    assert "".join(replay(f"{FILES}/mitmproxy.har#1").text()) == SAID


@pytest.mark.parametrize("name", ["curl_continue.txt", "curl_redirect.txt"])
def test_an_answer_on_the_way_to_another_one_is_no_exchange_of_its_own(name):
    assert left_in(name) == []
