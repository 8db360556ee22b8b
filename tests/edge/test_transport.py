"""Around other people's clients: the official SDKs, sync and async, over a transport that guards them."""

from __future__ import annotations

import gzip
import importlib
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

import streamnorm
from streamnorm import Normalizer, read_take
from streamnorm.errors import FrameError, ProviderError, StreamTruncated, UsageError
from tests.conftest import RECORDINGS, Messages, bytewise, calls_of, rechunked, said, sse
from tests.edge.servers import Answer, Provider

KEY = "sk-a-secret-key-123456"
USER = [{"role": "user", "content": "hi"}]
LIBRARIES = ("httpx", "httpx2")


def library(name: str) -> Any:
    return pytest.importorskip(name)


def wire(name: str) -> bytes:
    return read_take(RECORDINGS / f"{name}.sse").wire


def clients(name: str, transport: Any) -> tuple[Any, Any]:
    made = library(name)
    return made.Client(transport=transport), made.AsyncClient(transport=transport)


# --- the SDKs: what each hears, as plain values -------------------------------------------------------


async def by_anthropic(url: str, now: Any, later: Any) -> tuple[Callable[[], Any], Any]:
    sdk = pytest.importorskip("anthropic")
    options = {"api_key": KEY, "base_url": url, "max_retries": 0}
    asked: Any = {"model": "m", "max_tokens": 9, "messages": USER, "stream": True}

    def sync() -> list[Any]:
        stream = sdk.Anthropic(http_client=now, **options).messages.create(**asked)
        return [event.to_dict() for event in stream]

    async def asynchronous() -> list[Any]:
        stream = await sdk.AsyncAnthropic(http_client=later, **options).messages.create(**asked)
        return [event.to_dict() async for event in stream]

    return sync, asynchronous


async def by_openai(url: str, now: Any, later: Any, api: str) -> tuple[Callable[[], Any], Any]:
    sdk = pytest.importorskip("openai")
    options = {"api_key": KEY, "base_url": url + "/v1", "max_retries": 0}
    asked: Any = {"model": "m", "stream": True}
    asked |= {"messages": USER} if api == "chat.completions" else {"input": "hi"}

    def of(client: Any) -> Any:
        for step in api.split("."):
            client = getattr(client, step)
        return client

    def sync() -> list[Any]:
        stream = of(sdk.OpenAI(http_client=now, **options)).create(**asked)
        return [event.to_dict() for event in stream]

    async def asynchronous() -> list[Any]:
        stream = await of(sdk.AsyncOpenAI(http_client=later, **options)).create(**asked)
        return [event.to_dict() async for event in stream]

    return sync, asynchronous


async def by_chat(url: str, now: Any, later: Any) -> tuple[Callable[[], Any], Any]:
    return await by_openai(url, now, later, "chat.completions")


async def by_responses(url: str, now: Any, later: Any) -> tuple[Callable[[], Any], Any]:
    return await by_openai(url, now, later, "responses")


async def by_genai(url: str, now: Any, later: Any) -> tuple[Callable[[], Any], Any]:
    genai = pytest.importorskip("google.genai")
    options = {"base_url": url, "httpx_client": now, "httpx_async_client": later}
    client = genai.Client(api_key=KEY, http_options=options)
    asked: Any = {"model": "gemini-x", "contents": "hi"}

    def plain(chunk: Any) -> Any:
        return chunk.model_dump(mode="json", exclude_none=True, exclude={"sdk_http_response"})

    def sync() -> list[Any]:
        return [plain(chunk) for chunk in client.models.generate_content_stream(**asked)]

    async def asynchronous() -> list[Any]:
        stream = await client.aio.models.generate_content_stream(**asked)
        return [plain(chunk) async for chunk in stream]

    return sync, asynchronous


SDKS: dict[str, Any] = {
    "anthropic": by_anthropic,
    "openai_chat": by_chat,
    "openai_responses": by_responses,
    "gemini": by_genai,
}
# Whose clients it takes; each SDK says so itself.
CASES = [(sdk, name) for sdk in SDKS for name in LIBRARIES if (sdk, name) != ("anthropic", "httpx")]


async def heard(provider: str, name: str, answer: Answer, make: Callable[[], Any]) -> list[Any]:
    """What the SDK hears, sync and then async: its events, or what it raises."""
    both: list[Any] = []
    with Provider(answer) as server:
        now, later = clients(name, make())
        sync, asynchronous = await SDKS[provider](server.url, now, later)
        try:
            both.append(sync())
        except Exception as error:  # noqa: BLE001  compared below
            both.append(error)
        try:
            both.append(await asynchronous())
        except Exception as error:  # noqa: BLE001
            both.append(error)
        now.close()
        await later.aclose()
        server.wait_closed(5)
    return both


def nothing() -> None:
    """Its library's own transport."""


@pytest.mark.parts
@pytest.mark.parametrize(("provider", "name"), CASES)
async def test_an_sdk_hears_a_whole_stream_as_without_it(provider: str, name: str):
    for take in ("parallel_calls", "text_only"):
        answer = Answer(rechunked(wire(f"{provider}/{take}"), (700,)))
        alone = await heard(provider, name, answer, nothing)
        guarded = await heard(provider, name, answer, streamnorm.transport)
        assert guarded == alone
        assert all(isinstance(events, list) and events for events in guarded)


@pytest.mark.parts
@pytest.mark.parametrize(("provider", "name"), CASES)
async def test_an_sdk_raises_where_a_stream_is_cut_and_has_not_heard_its_call_closed(
    provider: str, name: str
):
    """Behind the closing mark of the first call, or before the word for the end where nothing closes
    calls; and then a proper end of the body."""
    body = wire(f"{provider}/parallel_calls")
    answer = Answer(rechunked(body[: _behind_first_call(provider, body)], (700,)))
    for error in await heard(provider, name, answer, streamnorm.transport):
        told = error.__cause__ if provider.startswith("openai") else error
        assert isinstance(told, StreamTruncated)
        assert isinstance(told, library(name).RemoteProtocolError)
        if told is not error:
            assert isinstance(error, importlib.import_module("openai").APIConnectionError)


def _behind_first_call(provider: str, body: bytes) -> int:
    """Where the first call is over and the turn is not."""
    if provider == "openai_chat":
        return body.rindex(b"data: ", 0, body.index(b'"finish_reason":"tool_calls"'))
    pipe = Normalizer(provider)
    for at in range(len(body)):
        if calls_of(pipe.feed(body[at : at + 1])):
            assert not pipe.ended
            return at + 1
    pytest.fail("no call")


@pytest.mark.parts
async def test_without_it_the_same_cut_ends_in_silence():
    """The reason why it is there."""
    body = wire("anthropic/parallel_calls")
    cut = body[: _behind_first_call("anthropic", body)]
    for events in await heard("anthropic", "httpx2", Answer([cut]), nothing):
        assert events[-1]["type"] == "content_block_stop"


OVERLOADED = sse({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error")


@pytest.mark.parts
@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("anthropic", Messages.START + OVERLOADED),
        ("openai_chat", wire("openai_chat/error_after_200")),
        ("openai_responses", wire("openai_responses/response_failed")),
    ],
)
async def test_an_error_that_the_provider_reports_is_heard_as_the_sdk_hears_it(
    provider: str, body: bytes
):
    alone = await heard(provider, "httpx2", Answer([body]), nothing)
    guarded = await heard(provider, "httpx2", Answer([body]), streamnorm.transport)
    assert list(map(repr, guarded)) == list(map(repr, alone))


# --- any client of httpx and httpx2 ---------------------------------------------------------------------

URL = "https://api.anthropic.com/v1/messages"
TEXT = Messages.START + Messages.text("Hi")
CALL = TEXT + Messages.open(1, "toolu_1", "shell") + Messages.args(1, '{"cmd":"ls"}')
WHOLE = CALL + Messages.close(1) + Messages.end()


def answering(
    made: Any,
    chunks: Iterable[bytes],
    kind: str = "text/event-stream",
    status: int = 200,
    **more: str,
) -> Any:
    """An inner transport that answers so, for both kinds of clients, and counts what is closed."""

    class Body(made.SyncByteStream, made.AsyncByteStream):  # type: ignore[misc, name-defined]
        closed = 0

        def __iter__(self) -> Any:
            yield from chunks

        async def __aiter__(self) -> Any:
            for chunk in chunks:
                yield chunk

        def close(self) -> None:
            self.closed += 1

        async def aclose(self) -> None:
            self.closed += 1

    def answer(request: Any) -> Any:
        body = Body()
        bodies.append(body)
        return made.Response(status, headers={"content-type": kind, **more}, stream=body)

    bodies: list[Any] = []
    inner = made.MockTransport(answer)
    inner.bodies = bodies
    return inner


async def read(name: str, transport: Any, url: str = URL) -> list[Any]:
    """The body as a client reads it, sync and async, or what it raises."""
    now, later = clients(name, transport)
    both: list[Any] = []
    with now:
        try:
            both.append(now.post(url, headers={"x-api-key": KEY}).content)
        except Exception as error:  # noqa: BLE001
            both.append(error)
    async with later:
        try:
            both.append((await later.post(url, headers={"x-api-key": KEY})).content)
        except Exception as error:  # noqa: BLE001
            both.append(error)
    return both


@pytest.mark.parametrize("name", LIBRARIES)
async def test_bytes_are_the_same_and_a_cut_raises_an_error_of_ours_and_of_the_library(name: str):
    made = library(name)
    for chunks in ([WHOLE], bytewise(WHOLE)):
        assert await read(name, streamnorm.transport(answering(made, chunks))) == [WHOLE, WHOLE]
    for error in await read(
        name, streamnorm.transport(answering(made, [CALL + Messages.close(1)]))
    ):
        assert isinstance(error, made.RemoteProtocolError)
        assert isinstance(error, StreamTruncated)
        assert error.provider == "anthropic"
        assert str(error.request.url) == URL
        assert "before its end mark" in str(error)


def test_what_may_be_heard_is_handed_on_before_the_error():
    inner = answering(httpx, [CALL + Messages.close(1), Messages.text("more")])
    given: list[bytes] = []
    with (
        httpx.Client(transport=streamnorm.transport(inner)) as client,
        client.stream("POST", URL) as response,
        pytest.raises(StreamTruncated),
    ):
        given.extend(response.iter_raw())
    assert b"".join(given) == CALL


async def test_a_turn_that_ends_at_its_limit_inside_a_call_is_an_error_with_its_word():
    body = CALL + Messages.close(1) + Messages.end("max_tokens")
    for error in await read("httpx", streamnorm.transport(answering(httpx, [body]))):
        assert isinstance(error, ProviderError)
        assert error.code == "length"


def test_bytes_that_cannot_be_read_are_an_error_at_once():
    def chunks() -> Any:
        yield TEXT + b"data: {oops\n\n"
        pytest.fail("nobody needs what follows")

    inner = answering(httpx, chunks())  # type: ignore[arg-type]
    with (
        httpx.Client(transport=streamnorm.transport(inner)) as client,
        pytest.raises(FrameError, match="not JSON"),
    ):
        client.post(URL)


def test_eager_hands_calls_on_at_once():
    inner = answering(httpx, [CALL + Messages.close(1)])
    given: list[bytes] = []
    with (
        httpx.Client(transport=streamnorm.transport(inner, eager=True)) as client,
        client.stream("POST", URL) as response,
        pytest.raises(StreamTruncated),
    ):
        given.extend(response.iter_raw())
    assert b"".join(given) == CALL + Messages.close(1)


@pytest.mark.parametrize("name", LIBRARIES)
async def test_packed_bodies_are_unpacked_and_guarded(name: str):
    made = library(name)
    for body, whole in ((WHOLE, True), (CALL + Messages.close(1), False)):
        packed = gzip.compress(body)
        inner = answering(
            made, rechunked(packed, (50,)), **{"content-encoding": "gzip", "content-length": "9"}
        )
        for got in await read(name, streamnorm.transport(inner)):
            assert got == WHOLE if whole else isinstance(got, made.RemoteProtocolError)
        with (
            made.Client(transport=streamnorm.transport(inner)) as client,
            client.stream("POST", URL) as response,
        ):
            assert "content-encoding" not in response.headers
            assert "content-length" not in response.headers


@pytest.mark.parametrize(
    ("url", "kind", "body"),
    [
        (URL, "application/json", b'{"type":"message"}'),
        ("https://example.org/", "text/html", b"<html>"),
        ("https://example.org/events", "text/event-stream", b'data: {"tick":1}\n\ndata: {"ti'),
        ("https://example.org/events", "text/event-stream", b"data: tick\n\n"),
        ("https://example.org/events", "text/event-stream", b": hello\n\n"),
        ("https://example.org/lines", "application/x-ndjson", b'{"tick":1}\n{"tick":2}\n'),
        (
            "https://x.googleapis.com/v1beta/models/m:generateContent",
            "application/json",
            b'{"a":1}',
        ),
        (URL, "text/plain", b"ok"),
        (URL, "text/event-stream", b'event: tick\ndata: {"type":"tick","n":1}\n\n'),
        (  # one that a program prints begins so, too
            "https://api.openai.com/v1/threads/runs",
            "text/event-stream",
            b'event: thread.run.created\ndata: {"object":"thread.run"}\n\nevent: done\ndata: [DONE]\n\n',
        ),
        (
            "https://example.org/feed",
            "text/event-stream",
            b'data: {"error":"none today"}\n\ndata: {"n":1}\n\n',
        ),
    ],
)
async def test_what_is_no_stream_of_a_wire_is_handed_on_as_it_is(url: str, kind: str, body: bytes):
    told: list[Any] = []
    for chunks in ([body], bytewise(body)):
        inner = answering(httpx, chunks, kind)
        made = streamnorm.transport(inner, on_summary=told.append)
        assert await read("httpx", made, url) == [body, body]


def test_a_response_that_is_none_is_not_even_looked_at():
    inner = answering(httpx, [b"{}"], "application/json")
    made = streamnorm.transport(inner)
    response = made.handle_request(httpx.Request("POST", URL))
    assert response.stream is inner.bodies[0]
    inner = answering(httpx, [WHOLE[:20]], status=529)
    made = streamnorm.transport(inner)
    assert made.handle_request(httpx.Request("POST", URL)).stream is inner.bodies[0]


async def test_a_wire_is_known_by_its_first_payload_where_the_address_does_not_tell():
    url = "https://example.org/my/relay"
    for chunks in ([WHOLE], bytewise(WHOLE)):
        assert (
            await read("httpx", streamnorm.transport(answering(httpx, chunks)), url) == [WHOLE] * 2
        )
    cut = bytewise(CALL + Messages.close(1))
    for error in await read("httpx", streamnorm.transport(answering(httpx, cut)), url):
        assert isinstance(error, StreamTruncated)


async def test_an_array_of_chunks_that_is_called_json_is_a_stream():
    url = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent"
    call = '{"functionCall":{"name":"shell","args":{"cmd":"ls"}}}'
    first = f'{{"candidates":[{{"content":{{"parts":[{call}]}}}}]}}'
    last = '{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}'
    whole = f"[{first}\n,{last}]"
    for chunks in ([whole.encode()], bytewise(whole.encode())):
        inner = answering(httpx, chunks, "application/json; charset=UTF-8")
        assert await read("httpx", streamnorm.transport(inner), url) == [whole.encode()] * 2
    cut = whole.partition("\n,")[0].encode()
    for error in await read(
        "httpx", streamnorm.transport(answering(httpx, [cut], "application/json")), url
    ):
        assert isinstance(error, StreamTruncated)


GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "bom"])
@pytest.mark.parametrize("body", [b'{"error": {}}', b"<html>", b""], ids=["object", "page", "none"])
async def test_blanks_before_a_body_do_not_make_it_a_stream(mark: bytes, body: bytes):
    whole = mark + b" \r\n" * 3000 + body
    inner = answering(httpx, bytewise(whole), "application/json")
    assert await read("httpx", streamnorm.transport(inner), GEMINI) == [whole] * 2


def test_blanks_without_end_are_not_held_without_end():
    """No answer begins so, and while it may be anybody's, nobody would count what is held."""
    read = []

    def blanks() -> Iterator[bytes]:
        for _ in range(1000):
            read.append(b" " * 65_536)
            yield read[-1]

    with (
        httpx.Client(
            transport=streamnorm.transport(answering(httpx, blanks(), "application/json"))
        ) as client,
        pytest.raises(FrameError, match="frame_bytes"),
    ):
        client.post(GEMINI)
    assert sum(map(len, read)) < 17_000_000


def paths_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# --- takes and summaries --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIBRARIES)
async def test_each_stream_becomes_a_take_without_keys_that_replays_to_the_same_calls(
    name: str, tmp_path: Path
):
    told: list[dict[str, Any]] = []
    echo = Messages.text(f"your key is {KEY}")
    body = TEXT + echo + WHOLE[len(TEXT) :]
    inner = answering(library(name), rechunked(body, (300,)))
    made = streamnorm.transport(inner, record=tmp_path, on_summary=told.append)
    assert await read(name, made) == [body, body]
    takes = [read_take(path) for path in paths_in(tmp_path)]
    assert [take.provider for take in takes] == ["anthropic", "anthropic"]
    for path, take in zip(paths_in(tmp_path), takes, strict=True):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert KEY.encode() not in path.read_bytes()
        assert take.finished
        pipe = Normalizer("anthropic", seed=take.seed)
        assert said(pipe.feed(take.wire) + pipe.close()) == [("toolu_1", "shell", {"cmd": "ls"})]
    assert {summary["recording"]["path"] for summary in told} == set(map(str, paths_in(tmp_path)))


def test_a_take_of_a_cut_stream_has_all_that_came_also_what_was_not_handed_on(tmp_path: Path):
    cut = CALL + Messages.close(1)
    inner = answering(httpx, bytewise(cut))
    with (
        httpx.Client(transport=streamnorm.transport(inner, record=tmp_path)) as client,
        pytest.raises(StreamTruncated),
    ):
        client.post("https://example.org/relay")
    (path,) = paths_in(tmp_path)
    assert read_take(path).wire == cut
    assert read_take(path).provider == "anthropic"


def test_a_summary_says_what_the_stream_was_and_why_it_failed():
    told: list[dict[str, Any]] = []
    for body in (WHOLE, CALL + Messages.close(1)):
        inner = answering(httpx, [body])
        with (
            httpx.Client(transport=streamnorm.transport(inner, on_summary=told.append)) as client,
            client.stream("POST", URL) as response,
        ):
            try:
                response.read()
            except httpx.RemoteProtocolError:
                continue
    whole, cut = told
    assert (whole["provider"], whole["end"], whole["reason"]) == (
        "anthropic",
        "finish",
        "tool_calls",
    )
    assert [call["id"] for call in whole["calls"]] == ["toolu_1"]
    assert (whole["failure"], whole["handed_on"], whole["bytes"]) == (None, len(WHOLE), len(WHOLE))
    assert (cut["end"], cut["failure"]["reason"]) == ("failed", "truncated")
    assert cut["handed_on"] == len(CALL)


def _leave(client: httpx.Client) -> None:
    with client, client.stream("POST", URL) as response:
        next(response.iter_bytes())


async def test_a_client_that_leaves_closes_what_is_below_and_its_take_is_not_finished(
    tmp_path: Path,
):
    told: list[dict[str, Any]] = []
    inner = answering(httpx, bytewise(WHOLE))
    made = streamnorm.transport(inner, record=tmp_path, on_summary=told.append)
    _leave(httpx.Client(transport=made))
    async with httpx.AsyncClient(transport=made) as client, client.stream("POST", URL) as response:
        await anext(response.aiter_bytes())
    assert [body.closed for body in inner.bodies] == [1, 1]
    assert [summary["failure"]["reason"] for summary in told] == ["cancelled", "cancelled"]
    assert [read_take(path).finished for path in paths_in(tmp_path)] == [False, False]


async def test_a_connection_that_breaks_is_heard_as_the_library_says_it():
    told: list[dict[str, Any]] = []
    with Provider(Answer([CALL, Messages.close(1)], then="cut")) as server:
        made = streamnorm.transport(on_summary=told.append)
        for error in await read("httpx", made, server.url + "/v1/messages"):
            assert type(error) is httpx.RemoteProtocolError
    assert [summary["failure"]["reason"] for summary in told] == ["transport", "transport"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_read_that_is_cancelled_closes_its_connection(backend: str):
    pytest.importorskip(backend)
    told: list[dict[str, Any]] = []

    async def read_on() -> None:
        made = streamnorm.transport(on_summary=told.append)
        async with httpx.AsyncClient(transport=made) as client:
            with anyio.CancelScope() as scope:
                async with client.stream("POST", server.url + "/v1/messages") as response:
                    async for _ in response.aiter_bytes():
                        scope.cancel()
            assert scope.cancelled_caught

    with Provider(Answer([CALL], then="hang")) as server:
        anyio.run(read_on, backend=backend)
        server.wait_closed(5)
    assert [summary["failure"]["reason"] for summary in told] == ["cancelled"]


def test_connections_are_used_again_and_closed_with_the_client():
    with Provider(Answer([WHOLE])) as server:
        url = server.url + "/v1/messages"
        with httpx.Client(transport=streamnorm.transport()) as client:
            assert [client.post(url).content for _ in range(3)] == [WHOLE] * 3
            assert server.accepted == 1
        server.wait_closed(5)


def test_a_folder_that_is_not_there_is_told_before_anything_is_asked(tmp_path: Path):
    with pytest.raises(UsageError, match=r"make .+nowhere first"):
        streamnorm.transport(record=tmp_path / "nowhere")


async def test_a_take_that_cannot_be_written_is_not_the_clients_trouble(tmp_path: Path):
    folder = tmp_path / "takes"
    folder.mkdir()
    made = streamnorm.transport(answering(httpx, [WHOLE]), record=folder)
    folder.rmdir()
    assert await read("httpx", made) == [WHOLE, WHOLE]


def test_an_inner_transport_of_the_other_kind_is_told():
    with (
        httpx.Client(transport=streamnorm.transport(httpx.AsyncHTTPTransport())) as client,
        pytest.raises(UsageError, match="a Client needs a sync transport"),
    ):
        client.get(URL)
