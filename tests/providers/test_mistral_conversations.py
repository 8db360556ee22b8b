"""Mistral conversations: calls that only the end closes, connectors, agents, and the SDK's own objects."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from streamnorm import Conversation, Normalizer, ToolResult, from_messages, normalize, provider
from streamnorm.captures import read_take
from streamnorm.events import BrokenToolCall, Failed, Finish, ProviderToolResult, ToolCall, Usage
from tests.conftest import RECORDINGS, load, run

HERE = "mistral_conversations"
FOLDER = RECORDINGS / HERE
DONE: dict[str, Any] = {"type": "conversation.response.done", "usage": {}}


def heard(take: str) -> list[Any]:
    return run(HERE, [load(FOLDER / f"{take}.sse")[1]])


def piece(text: str, **fields: Any) -> dict[str, Any]:
    same = {"id": "fc_1", "tool_call_id": "abcdefghi", "name": "tides"}
    return {"type": "function.call.delta", **same, "arguments": text, **fields}


def unsigned(text: str) -> dict[str, Any]:
    """A piece that says a name and no id."""
    return {"type": "function.call.delta", "name": "tides", "arguments": text}


OTHER = piece("{}", id="fc_2", tool_call_id="jklmnopqr")


def told(*payloads: dict[str, Any]) -> list[Any]:
    pipe = Normalizer(HERE, seed="tests")
    events = [event for payload in payloads for event in pipe.feed_payload(payload)]
    return events + pipe.close()


def ends(events: list[Any]) -> list[Any]:
    return [e for e in events if isinstance(e, ToolCall | BrokenToolCall)]


# --- when a call is whole -------------------------------------------------------------------------


def test_only_the_end_of_the_response_makes_a_call_whole():
    (broken,) = ends(told(piece('{"a": 1}')))
    assert (broken.kind, broken.reason) == ("broken_tool_call", "truncated")
    (call,) = ends(told(piece('{"a": 1}'), DONE))
    assert call.arguments == {"a": 1}


def test_an_error_breaks_what_was_open_and_says_its_code():
    error = {"type": "conversation.response.error", "message": "Later.", "code": 429}
    events = told(piece('{"a": 1}'), error)
    assert ends(events)[0].reason == "provider_error"
    assert events[-1] == Failed("provider_error", "Later.", True, "429")


def test_a_refusal_in_the_words_of_the_chat_wire_is_one_here_too():
    said = {"object": "error", "message": "No such model.", "type": "invalid_model", "code": "1500"}
    assert told(said)[-1] == Failed("provider_error", "No such model.", False, "1500")


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([piece('{"a"'), piece(": 1}")], [{"a": 1}]),
        ([piece('{"a"'), piece(": 1}", tool_call_id="null")], [{"a": 1}]),  # found by its entry
        ([piece('{"a"'), piece(": 1}", id="fc_2")], [{"a": 1}]),  # its id stands for itself
        (
            [piece("{}"), piece('{"b": 2}', tool_call_id="jklmnopqr")],
            [None],
        ),  # one entry, two texts
        ([piece(""), piece('{"b": 2}', tool_call_id="jklmnopqr")], [{"b": 2}]),  # its id changed
        ([piece("", tool_call_id=""), piece('{"a": 1}')], [{"a": 1}]),  # its id came late
        ([piece("", tool_call_id=None), piece('{"a": 1}')], [{"a": 1}]),
        ([unsigned(""), piece('{"a": 1}')], [{"a": 1}]),  # all its ids came late
        ([piece("{}"), unsigned(""), OTHER], [{}, {}]),
        ([unsigned(""), piece('{"a": 1}', name="winds")], [{}, {"a": 1}]),
        ([unsigned(""), piece(""), OTHER], [{}, {}]),
        ([piece('{"a": 1}', confirmation_status=5)], [None]),  # who runs it?
        ([piece('{"a": "'), piece({}), piece('"}')], [None]),  # type: ignore[arg-type]
        ([piece({"a": 1}), piece({"b": 2})], [{"a": 1, "b": 2}]),  # type: ignore[arg-type]
        ([piece('{"a": 1'), unsigned(', "b": 2'), piece("}")], [None, None]),
        ([piece('{"a": '), unsigned('{"b": 2}'), piece("}")], [None, None]),
        ([piece(""), unsigned('{"b": 2}')], [None, None]),
        ([piece('{"a": 1}'), unsigned(', "b": 2}')], [None, None]),
        ([piece('{"a": 1}'), unsigned('{"b": 2}')], [{"a": 1}, {"b": 2}]),
        ([piece('{"a": 1}'), unsigned(""), unsigned('{"b": 2}')], [None, None, None]),
        ([piece('{"a"'), OTHER, piece(": 1}", id="fc_2")], [None, None]),  # two calls' ids
        ([piece("{}"), piece('{"b": 2}', tool_call_id="jklmnopqr", id="fc_2")], [{}, {"b": 2}]),
        ([piece({"a": 1})], [{"a": 1}]),  # type: ignore[arg-type]
        ([piece('{"a": 1}', name="tides"), piece("", name="winds")], [None]),  # two names
        ([piece('{"a": 1}'), piece(None)], [{"a": 1}]),  # type: ignore[arg-type]
        ([piece('{"a": 1}'), piece(7)], [None]),  # type: ignore[arg-type]
        ([piece('{"a": 1}'), {"type": "function.call.delta", "arguments": "x"}], [None]),
    ],
)
def test_which_call_a_piece_belongs_to(pieces: list[Any], whole: list[Any]):
    calls = ends(told(*pieces, DONE))
    assert [c.arguments if isinstance(c, ToolCall) else None for c in calls] == whole


def test_the_last_of_the_ids_of_an_entry_is_that_of_its_call():
    pipe = Normalizer(HERE, seed="tests")
    pieces = (piece("", tool_call_id="first"), piece("{}", tool_call_id="last"), DONE)
    (call,) = ends([event for payload in pieces for event in pipe.feed_payload(payload)])
    assert (call.id, call.provenance.id_source) == ("last", "natural")
    assert pipe.notes["call.id_changed"] == 1


# --- what the provider runs -----------------------------------------------------------------------


def test_what_the_provider_runs_is_whole_and_answered_when_it_is_done():
    events = heard("code_interpreter")
    kinds = [event.kind for event in events]
    assert kinds.index("tool_call") + 1 == kinds.index("tool_result") < kinds.index("text_delta")
    assert events[-1] == Finish("stop")


def started(**fields: Any) -> dict[str, Any]:
    return {"type": "tool.execution.started", "id": "x", "name": "web_search", **fields}


EXECUTED = {"type": "tool.execution.done", "id": "x", "name": "web_search", "info": {}}


@pytest.mark.parametrize("arguments", [None, "", "{}", "{ }", '{"q"', '{"q": {}'])
def test_what_the_provider_runs_and_never_closes_is_broken(arguments: Any):
    (broken,) = ends(told(started(arguments=arguments), DONE))
    assert (broken.kind, broken.reason) == ("broken_tool_call", "truncated")


@pytest.mark.parametrize("arguments", ['{"q": {}}', {"q": {}}])
def test_what_is_never_closed_and_cannot_go_on_is_told_with_a_note(arguments: Any):
    pipe = Normalizer(HERE, seed="tests")
    (call,) = ends(
        pipe.feed_payload(started(arguments=arguments)) + pipe.feed_payload(DONE) + pipe.close()
    )
    assert call.arguments == {"q": {}}
    assert pipe.notes["call.unclosed"] == 1


@pytest.mark.parametrize("empty", [{}, {"arguments": ""}, {"arguments": None}])
@pytest.mark.parametrize("given", ['{"q": 1}', {"q": 1}])
def test_arguments_under_another_name_are_a_loss_and_not_nothing(given: Any, empty: Any):
    (broken,) = ends(told(started(input=given, **empty), EXECUTED, DONE))
    assert (broken.kind, broken.reason) == ("broken_tool_call", "conflict")


def test_what_is_doubtful_and_never_closed_is_broken_for_its_doubt():
    (broken,) = ends(told(started(input='{"q": 1}'), DONE))
    assert (broken.kind, broken.reason) == ("broken_tool_call", "conflict")


def test_an_object_between_fragments_breaks_what_the_provider_runs():
    delta = {"type": "tool.execution.delta", "id": "x", "name": "web_search"}
    between = {**delta, "arguments": {}}
    said = [started(arguments='{"q": "'), between, {**delta, "arguments": '"}'}, EXECUTED, DONE]
    (broken,) = ends(told(*said))
    assert (broken.kind, broken.reason) == ("broken_tool_call", "conflict")


def test_a_result_without_its_call_is_told_with_its_family():
    done = {"type": "tool.execution.done", "id": "x", "name": "web_search", "info": {"n": 1}}
    (result,) = [e for e in told(done, DONE) if isinstance(e, ProviderToolResult)]
    assert (result.call, result.output, result.family) == (None, {"n": 1}, "web-search")


def test_an_execution_that_is_begun_again_and_never_done_is_broken():
    delta = {"type": "tool.execution.delta", "id": "x", "name": "web_search"}
    said = [started(arguments='{"'), {**delta, "arguments": 'q": 1, "'}, started(arguments='{"')]
    calls = ends(told(*said, {**delta, "arguments": 'r": 2}'}, DONE))
    assert [c.kind for c in calls] == ["broken_tool_call"] * 2


def test_an_execution_that_is_said_twice_is_one_call_and_one_result():
    said = [started(arguments='{"q": 1}'), EXECUTED, EXECUTED]
    for lines in (said, [*said[:2], *said[:2]]):
        events = told(*lines, DONE)
        assert [c.arguments for c in ends(events)] == [{"q": 1}]
        assert sum(isinstance(e, ProviderToolResult) for e in events) == 1


def test_tokens_of_connectors_are_read_by_the_model():
    usage = next(e for e in heard("connectors") if isinstance(e, Usage))
    assert (usage.input, usage.output, usage.raw["connector_tokens"]) == (7230, 31, 7112)


def test_a_connector_that_waits_for_a_yes_is_no_call_for_the_client():
    events = heard("confirmation")
    (call,) = ends(events)
    assert (call.runs_on, call.echo["confirmation_status"]) == ("provider", "pending")
    assert events[-1] == Finish("stop")


# --- who speaks -----------------------------------------------------------------------------------


def test_who_speaks_is_told_with_text_and_calls_and_follows_a_handoff():
    events = heard("handoff")
    voices = [(e.kind, e.agent) for e in events if getattr(e, "agent", None)]
    assert voices == [
        *[("text_delta", "ag_0192a1")] * 2,
        ("tool_call_start", "ag_0192a1"), ("tool_call_delta", "ag_0192a1"), ("tool_call", "ag_0192a1"),
        *[("text_delta", "ag_0192b2")] * 4,  # the last two do not say it themselves
        ("tool_call_start", "ag_0192b2"), *[("tool_call_delta", "ag_0192b2")] * 3,
        ("tool_call", "ag_0192b2"),
    ]  # fmt: skip


def leaving(**fields: Any) -> dict[str, Any]:
    said = {"id": "h", "previous_agent_id": "a", "previous_agent_name": "A", **fields}
    return {"type": "agent.handoff.started", **said}


def entering(**fields: Any) -> dict[str, Any]:
    said = {"id": "h", "next_agent_id": "b", "next_agent_name": "B", **fields}
    return {"type": "agent.handoff.done", **said}


LEFT = {"previous_agent_id": "a", "previous_agent_name": "A"}
ENTERED = {"next_agent_id": "b", "next_agent_name": "B"}


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        ([leaving(), entering()], [LEFT | ENTERED]),
        ([leaving(), leaving(), entering()], [LEFT | ENTERED]),
        ([leaving(), entering(), entering()], [LEFT | ENTERED]),
        ([leaving(), entering(), leaving(), entering()], [LEFT | ENTERED]),
        ([leaving(), leaving(previous_agent_id="c"), entering()], [None]),
        ([entering()], [None]),  # half of it never came
        ([entering(), entering()], [None]),
        ([entering(), leaving()], [None]),
        ([leaving(), entering(next_agent_id=5)], [None]),
        ([leaving(), entering(next_agent_id=5), entering()], [None]),
        ([leaving(previous_agent_name=["A"]), entering()], [None]),
        ([leaving()], [LEFT]),  # the client is to make it
        ([leaving(), entering(id="other")], [None, None]),  # an end that may be its own
        ([leaving(), {"type": "agent.handoff.don", "id": "h"}], [None]),
        ([leaving(id=None), entering(id=None)] * 2, [LEFT | ENTERED] * 2),
    ],
)
def test_a_handoff_is_one_call_and_has_both_its_halves(said: list[Any], whole: list[Any]):
    calls = ends(told(*said, DONE))
    assert [c.arguments if isinstance(c, ToolCall) else None for c in calls] == whole
    assert {c.id for c in calls if c.id[:4] != "syn_"} <= {"h", "other"}
    assert (calls[0].id == "h") is bool(said[0]["id"])


def test_a_handoff_that_is_said_again_is_no_doubt_for_others():
    handoff, call = ends(told(leaving(), entering(), piece('{"a": 1}'), entering(), DONE))
    assert (handoff.arguments, call.arguments) == (LEFT | ENTERED, {"a": 1})


def chunk(**content: Any) -> dict[str, Any]:
    return {"type": "message.output.delta", "content": content}


def test_pictures_and_files_are_media_with_numbers_of_their_own_and_their_exact_bytes():
    made = {"type": "tool_file", "file_id": "f", "file_type": "wav", "file_name": "a"}
    other = made | {"file_id": "g"}
    address = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    media = [
        e for e in told(*(chunk(**c) for c in (made, other, address)), DONE) if e.kind == "media"
    ]
    assert [(m.part, m.mime_type, m.data, m.echo) for m in media] == [
        (0, "audio/x-wav", None, made), (1, "audio/x-wav", None, other),
        (2, "image/png", b"hi", address),
    ]  # fmt: skip


def test_an_address_that_cannot_be_read_is_passed_on_whole():
    events = told(chunk(type="image_url", image_url=5), DONE)
    assert [e.kind for e in events if e.kind in ("media", "unrecognized")] == ["unrecognized"]


# --- the way back ---------------------------------------------------------------------------------


def test_an_answer_goes_back_entry_by_entry():
    events = heard("handoff")
    tides = ends(events)[-1]
    talk = Conversation().user("When?").assistant(events)
    talk = talk.results([ToolResult.for_call(tides, "low")])
    body = provider(HERE).request(talk, model="m", max_tokens=9)
    assert body["completion_args"] == {"max_tokens": 9}
    assert [entry["type"] for entry in body["inputs"]] == [
        "message.input", "message.output", "agent.handoff", "message.output", "message.output",
        "function.call", "function.result",
    ]  # fmt: skip
    assert body["inputs"][2]["next_agent_name"] == "pilot"
    assert body["inputs"][5]["tool_call_id"] == body["inputs"][6]["tool_call_id"] == tides.id
    assert body["inputs"][5]["agent_id"] == "ag_0192b2"


def test_what_a_connector_gave_stands_in_the_entry_of_its_call():
    talk = Conversation().user("6 * 7?").assistant(heard("code_interpreter")).user("Sure?")
    (entry,) = [e for e in provider(HERE).request(talk)["inputs"] if e["type"] == "tool.execution"]
    assert entry["info"] == {"code": "print(6 * 7)", "code_output": "42\n"}
    again = from_messages(HERE, provider(HERE).request(talk)).conversation
    assert provider(HERE).request(again) == provider(HERE).request(talk)


# --- the SDK --------------------------------------------------------------------------------------


def answering(wire: bytes) -> Any:
    """The SDK's client, at its own address, with this body for an answer."""
    client = pytest.importorskip("mistralai.client")
    headers = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, content=iter([wire]), headers=headers)
    )
    return client.Mistral(api_key="k", client=httpx.Client(transport=transport))


TAKES = sorted(FOLDER.glob("*.sse"))


@pytest.mark.parts
@pytest.mark.parametrize("path", TAKES, ids=lambda path: path.stem)
def test_a_stream_of_the_sdk_gives_the_events_of_the_wire(path: Any):
    take = read_take(path)
    stream = answering(take.wire).beta.conversations.start_stream(inputs="Hi", model="m")
    with normalize(stream, seed="tests") as events:
        assert events.provider == HERE
        assert list(events) == run(HERE, [take.wire])


@pytest.mark.parts
def test_objects_of_the_sdk_give_the_calls_and_texts_of_the_wire():
    wire = load(FOLDER / "handoff.sse")[1]
    with answering(wire).beta.conversations.start_stream(inputs="Hi", model="m") as stream:
        objects = list(stream)
    with normalize(objects, seed="tests", provider=HERE) as named:
        events = list(named)
    assert events == heard("handoff")
    assert [e.kind for e in normalize(objects)] == [e.kind for e in events]


@pytest.mark.parts
def test_responses_of_the_same_server_are_read_as_responses():
    path = RECORDINGS / "openai_responses" / "parallel_calls.sse"
    wire = load(path)[1]
    stream = answering(wire).responses.create(input="Hi", model="m", stream=True)
    with normalize(stream, seed="tests") as events:
        assert events.provider == "openai_responses"
        assert list(events) == run("openai_responses", [wire])


@pytest.mark.parts
def test_chat_of_the_same_server_stays_its_chat():
    wire = load(RECORDINGS / "mistral" / "parallel_calls.sse")[1]
    stream = answering(wire).chat.stream(messages=[{"role": "user", "content": "Hi"}], model="m")
    with normalize(stream, seed="tests") as events:
        assert events.provider == "mistral"
        assert list(events) == run("mistral", [wire])
