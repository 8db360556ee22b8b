"""Other wires inside of Bedrock's frames and SageMaker's, and what agents leave to the client."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamnorm import Limits, Normalizer, normalize, replay
from streamnorm.events import Failed, Finish
from streamnorm.framing.aws import write_frame
from streamnorm.providers.detect import by_address
from streamnorm.testing import call, cut, finish, say, script, think, usage
from tests.conftest import broken_of, calls_of, rechunked, text_of, tr

TALK = script(
    think("Hm."), say("Höfn 🌊."), call("get_tides", harbour="Höfn", days=3), usage(9, 4), finish()
)
INNER = ("anthropic", "openai_chat", "cohere")


def frame(kind: str, payload: Any, message_type: str = "event") -> bytes:
    key = ":event-type" if message_type == "event" else ":exception-type"
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    kind_of = "octet-stream" if isinstance(payload, bytes) else "json"
    headers = {key: kind, ":content-type": f"application/{kind_of}", ":message-type": message_type}
    return write_frame(headers, data)


def chunk(inner: bytes | dict[str, Any], **more: Any) -> bytes:
    data = inner if isinstance(inner, bytes) else json.dumps(inner).encode()
    return frame("chunk", {"bytes": base64.b64encode(data).decode(), "p": "abc"} | more)


def payloads(body: bytes) -> list[bytes]:
    lines = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")]
    return [line for line in lines if line.endswith(b"}")]  # one that was cut is not sent


def spoken(script_: Any, wire: str) -> Any:
    """Cohere has no reasoning in scripts of ours for every step; what it can say is said."""
    return script_ if wire != "cohere" else script(*script_.steps[1:])


@pytest.mark.parametrize("wire", INNER)
def test_a_wire_in_the_envelope_is_told_as_it_is_alone(wire):
    body = spoken(TALK, wire).bytes(wire)
    alone = Normalizer(wire, seed="tests")
    expected = alone.feed(body) + alone.close()
    assert tr("bedrock", b"".join(map(chunk, payloads(body)))) == expected
    assert tr("auto", b"".join(map(chunk, payloads(body)))) == expected
    assert tr(wire, b"".join(map(chunk, payloads(body)))) == expected  # named, it is found inside
    assert expected[0].provider == wire


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "tgi"])
def test_stretches_of_a_body_are_told_as_it_is_alone(wire):
    talk = script(say("Höfn 🌊."), finish()) if wire == "tgi" else TALK
    talk = talk if wire != "openai_chat" else script(*talk.steps[1:])
    body = talk.bytes(wire)
    alone = Normalizer(wire, seed="tests")
    expected = alone.feed(body) + alone.close()
    for sizes in ((1,), (7, 3, 61), (1000,)):
        parts = [frame("PayloadPart", piece) for piece in rechunked(body, sizes)]
        assert tr("bedrock", b"".join(parts)) == expected


@pytest.mark.parametrize("provider", ["bedrock", "openai_chat"])
def test_a_call_that_may_go_on_is_not_whole_where_stretches_of_a_body_end(provider):
    asked = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    said = {"index": 0, "delta": {"tool_calls": [asked]}, "finish_reason": "tool_calls"}
    line = b"data: " + json.dumps({"choices": [said]}).encode() + b"\n\n"
    events = tr(provider, frame("PayloadPart", line))
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["truncated"]


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
def test_an_exception_behind_stretches_is_one(wire):
    body = script(say("Hi."), call("f", a="a" * 40), cut(inside="call")).bytes(wire)
    parts = [frame("PayloadPart", piece) for piece in rechunked(body, (100,))]
    failed = frame("throttlingException", {"message": "no"}, "exception")
    events = tr("bedrock", b"".join(parts) + failed)
    assert events[-1] == Failed("provider_error", "no", True, "throttlingException")
    assert [b.reason for b in broken_of(events)] == ["provider_error"]


def test_an_exception_is_one_though_it_is_named_as_a_chunk_too():
    headers = {":message-type": "exception", ":exception-type": "throttlingException"}
    both = write_frame({**headers, ":event-type": "chunk"}, b'{"message":"no"}')
    body = b"".join(map(chunk, payloads(TALK.bytes("anthropic"))[:3]))
    for provider in ("bedrock", "anthropic"):
        events = tr(provider, body + both)
        assert events[-1] == Failed("provider_error", "no", True, "throttlingException")


def test_an_event_between_payloads_of_another_wire_makes_them_no_text():
    body = [chunk(data) for data in payloads(TALK.bytes("anthropic"))]
    events = tr("bedrock", b"".join([*body[:2], frame("news", {"of": 1}), *body[2:]]))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"news": {"of": 1}}]
    assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]


def test_an_event_without_its_blank_line_is_not_the_last_where_a_stretch_was_cut():
    body = script(say("Hi."), finish()).bytes("tgi").rstrip(b"\n")
    parts = b"".join(frame("PayloadPart", piece) for piece in rechunked(body, (50,)))
    events = tr("bedrock", parts + frame("PayloadPart", b"\n\n")[:20])
    assert (events[-1].kind, events[-1].reason) == ("failed", "truncated")


@pytest.mark.parametrize("cut_at", [40, 4000])
def test_an_event_beyond_the_limit_in_stretches_ends_the_stream(cut_at):
    line = b"data: " + b"x" * 2000
    parts = [frame("PayloadPart", piece) for piece in rechunked(line, (cut_at,))]
    events = tr("bedrock", b"".join(parts), limits=Limits(frame_bytes=1000))
    assert (events[-1].kind, events[-1].code) == ("failed", "frame_bytes")


def test_a_frame_beyond_the_limit_behind_stretches_ends_the_stream():
    first = frame("PayloadPart", script(say("Hi."), finish()).bytes("tgi")[:100])
    events = tr("bedrock", first + chunk(b"x" * 2000), limits=Limits(frame_bytes=1000))
    assert (events[-1].kind, events[-1].code) == ("failed", "frame_bytes")


def test_what_cites_is_text_though_it_is_a_payload_of_a_wire_that_we_know():
    said = payloads(TALK.bytes("anthropic"))[0]
    events = tr("bedrock", chunk(said, attribution={"citations": []}) + chunk(said))
    assert text_of(events) == said.decode() * 2


def test_chunks_without_bytes_before_the_first_payload_say_nothing():
    body = payloads(TALK.bytes("anthropic"))
    alone = tr("bedrock", b"".join(map(chunk, body)))
    assert tr("bedrock", b"".join(map(chunk, [b"", b"", *body]))) == alone


def test_a_stretch_behind_events_of_its_own_is_an_event():
    body = frame("messageStart", {"role": "assistant"}) + frame("PayloadPart", {"a": 1})
    events = tr("bedrock", body + frame("messageStop", {"stopReason": "end_turn"}))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"PayloadPart": {"a": 1}}]
    assert events[-1] == Finish("stop", "end_turn")


@pytest.mark.parametrize("odd", [{}, {"attribution": {"citations": []}}])
def test_text_between_payloads_of_another_wire_is_passed_on(odd):
    body = payloads(TALK.bytes("anthropic"))
    said = body[3] if odd else b"plain"  # a payload does not cite
    frames = [*map(chunk, body[:2]), chunk(said, **odd), *map(chunk, body[2:])]
    events = tr("bedrock", b"".join(frames))
    passed_on = {"bytes": base64.b64encode(said).decode(), "p": "abc"} | odd
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"chunk": passed_on}]
    assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]


def test_the_last_event_of_a_body_may_lack_its_blank_line():
    body = script(say("Hi."), finish()).bytes("tgi").rstrip(b"\n")
    parts = b"".join(frame("PayloadPart", piece) for piece in rechunked(body, (50,)))
    assert tr("bedrock", parts)[-1].kind == "finish"


def test_chat_in_the_words_of_the_service_is_chat():
    def said(reason: str | None, **message: Any) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "stop_reason": reason}
        return chunk({"choices": [choice]})

    asked = {"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    events = tr(
        "bedrock", said(None, content="Hi.") + said("tool_calls", content="", tool_calls=[asked])
    )
    assert (text_of(events), events[-1]) == ("Hi.", Finish("tool_calls", "tool_calls"))
    assert [(c.id, c.arguments) for c in calls_of(events)] == [("c1", {"a": 1})]


def test_completions_in_the_words_of_the_service_are_text():
    said = [("Hel", None), ("lo", "stop")]
    choices = [{"index": 0, "text": text, "stop_reason": reason} for text, reason in said]
    events = tr("bedrock", b"".join(chunk({"choices": [choice]}) for choice in choices))
    assert (text_of(events), events[-1]) == ("Hello", Finish("stop", "stop"))


def test_lines_of_json_in_stretches_are_read_as_lines():
    lines = b"".join(
        line + b"\n" for line in payloads(script(say("Hi."), finish()).bytes("openai_chat"))
    )
    parts = b"".join(frame("PayloadPart", piece) for piece in rechunked(lines, (40, 3)))
    events = tr("bedrock", parts)
    assert (text_of(events), events[-1]) == ("Hi.", Finish("stop", "stop"))


@pytest.mark.parametrize("wire", INNER)
@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("throttlingException", True),
        ("modelStreamErrorException", True),
        ("validationException", False),
    ],
)
def test_an_exception_fails_whatever_is_inside(wire, code, retryable):
    body = script(say("Hi."), call("f", a="a" * 40), cut(inside="call")).bytes(wire)
    frames = [*map(chunk, payloads(body)), frame(code, {"message": "no"}, "exception")]
    events = tr("bedrock", b"".join(frames))
    assert tr("auto", b"".join(frames)) == events
    assert events[-1] == Failed("provider_error", "no", retryable, code)
    assert calls_of(events) == []
    assert [b.reason for b in broken_of(events)] == ["provider_error"]


@pytest.mark.parametrize("wire", INNER)
def test_a_chunk_that_cannot_be_unpacked_breaks_the_call_that_is_open(wire):
    body = payloads(script(call("f", path="a" * 60), finish()).bytes(wire))
    at = next(i for i, p in enumerate(body) if b"aaa" in p)
    frames = list(map(chunk, body))
    frames[at] = frame("chunk", {"bytes": "&&&", "p": "abc"})
    events = tr("bedrock", b"".join(frames))
    assert calls_of(events) == []
    assert len(broken_of(events)) == 1


@pytest.mark.parametrize("wire", INNER)
def test_a_chunk_whose_payload_is_cut_is_a_protocol_error_as_anywhere(wire):
    body = payloads(script(say("Hi."), call("f", a=1), finish()).bytes(wire))
    frames = list(map(chunk, body))
    frames[-2] = chunk(body[-2][:-3])
    events = tr("bedrock", b"".join(frames))
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")


def test_frames_with_a_wrong_checksum_end_the_stream_whatever_is_inside():
    frames = b"".join(map(chunk, payloads(TALK.bytes("anthropic"))[:4]))
    events = tr("bedrock", frames[:-2] + b"xx")
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")


@pytest.mark.parametrize("wire", INNER)
def test_an_error_of_the_framing_fails_whatever_is_inside(wire):
    first = b"".join(map(chunk, payloads(TALK.bytes(wire))[:2]))
    headers = {":message-type": "error", ":error-code": "oops", ":error-message": "boom"}
    events = tr("bedrock", first + write_frame(headers, b""))
    assert events[-1] == Failed("provider_error", "boom", False, "oops")


def test_a_payload_inside_that_only_begins_like_a_failure_is_passed_on():
    said = payloads(TALK.bytes("anthropic"))
    events = tr("bedrock", b"".join(map(chunk, [*said[:2], {":new": 1}, *said[2:]])))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{":new": 1}]
    assert events[-1].kind == "finish"


def test_the_counts_of_the_service_are_told_where_the_wire_has_none():
    metrics = {"inputTokenCount": 7, "outputTokenCount": 2}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
           "amazon-bedrock-invocationMetrics": metrics}  # fmt: skip
    said = {"choices": [{"index": 0, "delta": {"content": "Hi."}}]}
    events = tr("bedrock", chunk(said) + chunk(end))
    assert [(e.input, e.output, e.raw) for e in events if e.kind == "usage"] == [(7, 2, metrics)]
    assert events[-1] == Finish("stop", "stop")


def test_the_text_of_an_agent_and_what_it_cites():
    cited = {"citations": [{"retrievedReferences": []}]}
    body = chunk(b"High ", attribution=cited) + chunk("wäter.".encode())
    events = tr("bedrock", body)
    assert text_of(events) == "High wäter."
    assert [e.payload for e in events if e.kind == "citation"] == cited["citations"]
    assert events[-1].kind == "finish"


def test_an_agent_that_answers_with_json_and_cites_has_said_text():
    assert (
        text_of(tr("bedrock", chunk(b'{"tide": 4}', attribution={"citations": []})))
        == '{"tide": 4}'
    )


def test_an_agent_that_says_nothing_before_an_exception_has_failed():
    failed = frame("badGatewayException", {"message": "no"}, "exception")
    events = tr("bedrock", frame("trace", {"trace": {}}) + failed)
    assert events[-1] == Failed("provider_error", "no", False, "badGatewayException")


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [("string", "3", "3"), ("integer", "3", 3), ("number", "1.5", 1.5), ("boolean", "true", True),
     ("array", '["a"]', ["a"]), ("integer", "three", "three")],
)  # fmt: skip
def test_a_parameter_is_read_by_its_type(type_, value, told):
    said = {"function": "f", "parameters": [{"name": "x", "type": type_, "value": value}]}
    control = {"invocationId": "i", "invocationInputs": [{"functionInvocationInput": said}]}
    (made,) = calls_of(tr("bedrock", frame("returnControl", control)))
    assert (made.name, made.arguments, made.runs_on) == ("f", {"x": told}, "client")
    assert made.echo == {"returnControl": {"invocationId": "i", "function": "f"}}


def given(*values: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": "object", "value": text} for name, text in values]


@pytest.mark.parametrize(
    "parameters",
    [
        "damaged",
        {"x": 1},
        ["x"],
        [{"name": 3, "type": "string", "value": "a"}],
        [{"type": "string", "value": "a"}],
        given(("x", "1"), ("x", "2")),
        given(("x", '{"a": 1, "a": 2}')),
    ],
)
@pytest.mark.parametrize("kind", ["functionInvocationInput", "apiInvocationInput"])
def test_parameters_that_are_damaged_or_ambiguous_are_no_call(kind, parameters):
    said = {"function": "f", "actionGroup": "f", "parameters": parameters}
    control = {"invocationId": "i", "invocationInputs": [{kind: said}]}
    events = tr("bedrock", frame("returnControl", control))
    assert calls_of(events) == []
    assert [(b.name, b.reason) for b in broken_of(events)] == [("f", "conflict")]


@pytest.mark.parametrize(
    "body",
    ["damaged", {"content": "damaged"}, {"content": {"application/json": {"properties": "no"}}}],
)
def test_the_body_of_a_request_that_is_damaged_is_no_call(body):
    said = {"actionGroup": "f", "requestBody": body}
    control = {"invocationId": "i", "invocationInputs": [{"apiInvocationInput": said}]}
    events = tr("bedrock", frame("returnControl", control))
    assert [(b.name, b.reason) for b in broken_of(events)] == [("f", "conflict")]
    assert calls_of(events) == []


def test_a_call_without_parameters_beside_one_in_doubt_is_whole():
    asked = [{"function": "f", "parameters": "no"}, {"function": "g"}]
    said = [{"functionInvocationInput": one} for one in asked]
    events = tr("bedrock", frame("returnControl", {"invocationId": "i", "invocationInputs": said}))
    assert [(c.name, c.arguments) for c in calls_of(events)] == [("g", {})]
    assert [b.name for b in broken_of(events)] == ["f"]


def test_invocations_that_are_no_list_are_passed_on():
    events = tr("bedrock", frame("returnControl", {"invocationInputs": "damaged"}))
    assert [e.payload for e in events if e.kind == "unrecognized"] == [{"returnControl": "damaged"}]


def test_an_error_of_an_endpoint_keeps_its_message_and_its_code():
    said = {"Message": "boom", "ErrorCode": "ModelInvocationTimeExceeded"}
    events = tr("bedrock", frame("ModelStreamError", said, "exception"))
    assert events[-1] == Failed("provider_error", "boom", True, "ModelInvocationTimeExceeded")
    events = tr("bedrock", frame("InternalStreamFailure", {"Message": "boom"}, "exception"))
    assert events[-1] == Failed("provider_error", "boom", True, "InternalStreamFailure")


@pytest.mark.parametrize("blank", [[b""], [b"\n"], [b"", b"\r\n", b" "]])
def test_blank_stretches_before_lines_of_json_say_nothing(blank):
    said = payloads(script(say("Hi."), finish()).bytes("openai_chat"))
    lines = b"".join(line + b"\n" for line in said)
    parts = b"".join(frame("PayloadPart", p) for p in [*blank, *rechunked(lines, (40,))])
    events = tr("bedrock", parts)
    assert (text_of(events), events[-1]) == ("Hi.", Finish("stop", "stop"))


@pytest.mark.parametrize(
    "url",
    [
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x/invoke-with-response-stream",
        "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/mine/invocations-response-stream",
        "https://bedrock-agent-runtime.eu-west-1.amazonaws.com/agents/A/agentAliases/B/sessions/C/text",
    ],
)
def test_the_address_of_an_envelope(url):
    assert by_address(url).name == "bedrock"


class TestDecoded:
    """Events as an SDK decoded them, one at a time: the wire inside is told as from bytes."""

    @staticmethod
    def told(provider: str, events: list[dict[str, Any]]) -> list[Any]:
        pipe = Normalizer(provider, seed="tests")
        return [e for said in events for e in pipe.feed_payload(said)] + pipe.close()

    @pytest.mark.parametrize("packed", [bytes, lambda data: base64.b64encode(data).decode()])
    @pytest.mark.parametrize("wire", INNER)
    def test_chunks(self, wire, packed):
        body = payloads(spoken(TALK, wire).bytes(wire))
        expected = tr("bedrock", b"".join(map(chunk, body)))
        events = [{"chunk": {"bytes": packed(data)}} for data in body]
        assert [c.arguments for c in calls_of(expected)] == [{"harbour": "Höfn", "days": 3}]
        for provider in ("bedrock", "auto", wire):
            assert self.told(provider, events) == expected
        for provider in ("bedrock", "auto", None, wire):
            read = list(normalize((said for said in events), provider))
            assert [c.arguments for c in calls_of(read)] == [{"harbour": "Höfn", "days": 3}]
            assert (text_of(read), read[-1]) == (text_of(expected), expected[-1])

    @pytest.mark.parametrize("packed", [bytes, lambda data: base64.b64encode(data).decode()])
    def test_stretches(self, packed):
        body = script(*TALK.steps[1:]).bytes("openai_chat")
        parts = [{"PayloadPart": {"Bytes": packed(p)}} for p in rechunked(body, (5, 40))]
        for provider in ("bedrock", "auto", "openai_chat"):
            events = self.told(provider, parts)
            assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]

    @pytest.mark.parametrize("provider", ["bedrock", None])
    def test_a_take_of_them_tells_the_same(self, provider, tmp_path):
        body = payloads(TALK.bytes("anthropic"))
        events = ({"chunk": {"bytes": data}} for data in body)
        told = list(normalize(events, provider, record=tmp_path / "take"))
        assert len(calls_of(told)) == 1
        assert list(replay(tmp_path / "take")) == told

    def test_an_exception_behind_chunks(self):
        body = payloads(TALK.bytes("anthropic"))[:4]
        events = self.told(
            "bedrock",
            [{"chunk": {"bytes": data}} for data in body]
            + [{"throttlingException": {"message": "slow down"}}],
        )
        assert events[-1] == Failed("provider_error", "slow down", True, "throttlingException")

    def test_the_text_of_an_agent(self):
        events = self.told("bedrock", [{"trace": {"trace": {}}}, {"chunk": {"bytes": b"{no"}}])
        assert (text_of(events), events[-1].kind) == ("{no", "finish")

    @pytest.mark.parametrize(
        ("event", "passed_on"),
        [
            ({"chunk": {"bytes": "&&&"}}, {"chunk": "&&&"}),
            ({"chunk": {"bytes": 5}}, {"chunk": None}),
            ({"chunk": {"bytes": None}}, {"chunk": None}),
            ({"PayloadPart": {"Bytes": "&&&"}}, {"Bytes": "&&&"}),
        ],
    )
    def test_bytes_that_are_no_base64_are_passed_on_and_say_nothing(self, event, passed_on):
        events = self.told("bedrock", [event])
        assert [e.kind for e in events] == ["stream_start", "unrecognized", "failed"]
        assert (events[1].payload, events[2].reason) == (passed_on, "protocol")

    def test_an_event_that_is_no_object_says_nothing(self):
        events = self.told("bedrock", [{"PayloadPart": 5}])
        assert [(e.kind, e.reason) for e in events] == [("failed", "truncated")]

    def test_behind_a_payload_of_its_own_no_other_wire_is_unpacked(self):
        said = [
            {"messageStart": {"role": "assistant"}},
            {"chunk": {"bytes": base64.b64encode(b"{}").decode()}},
            {"messageStop": {"stopReason": "end_turn"}},
        ]
        events = self.told("bedrock", said)
        assert (text_of(events), events[-1]) == ("{}", Finish("stop", "end_turn"))

    def test_an_event_that_holds_another_wire_has_nothing_beside_it(self):
        said = {"type": "news", "chunk": {"bytes": "e30="}}
        events = self.told("anthropic", [said])
        assert [e.payload for e in events if e.kind == "unrecognized"] == [said]


@pytest.mark.parametrize(
    "said",
    [
        [b'{"temp', b'erature": 20}'],
        [b'{"temperature": 20}'],
        [b"Sure: ", b"{", b"1}"],
        [b'{"message": "hi"}'],
        [b'{"files": []}', b'{"trace": 1}'],
        [b"Sure: ", b'{"choices": []}'],
        ["Höfn".encode()[:2], "Höfn".encode()[2:]],
        [b"", b"{", b""],
    ],
)
def test_the_text_of_an_agent_is_told_exactly_whatever_it_begins_with(said):
    body = b"".join(map(chunk, said))
    expected = tr("bedrock", body)
    assert text_of(expected) == b"".join(said).decode()
    assert expected[-1] == Finish("stop")
    assert {e.kind for e in expected} == {"stream_start", "text_delta", "finish"}
    for sizes in ((1,), (7, 61), (100,)):
        pipe = Normalizer("bedrock", seed="tests")
        events = [e for piece in rechunked(body, sizes) for e in pipe.feed(piece)] + pipe.close()
        assert events == expected


def test_what_may_be_a_payload_or_text_waits_for_63_more_and_is_text_then():
    pipe = Normalizer("bedrock", seed="tests")
    said = b'{"n": 1}'
    assert [e for _ in range(63) for e in pipe.feed(chunk(said))] == []
    assert text_of(pipe.feed(chunk(said))) == said.decode() * 64
    assert text_of(pipe.feed(chunk(said))) == said.decode()  # it is decided for all that come
    assert pipe.close() == [Finish("stop")]


def test_what_an_agent_said_before_an_exception_is_told():
    failed = frame("throttlingException", {"message": "no"}, "exception")
    events = tr("bedrock", chunk(b'{"temp') + failed)
    assert text_of(events) == '{"temp'
    assert events[-1] == Failed("provider_error", "no", True, "throttlingException")


def test_bytes_of_an_agent_that_are_no_text_are_replaced_and_noted():
    pipe = Normalizer("bedrock")
    events = pipe.feed(chunk(b"a\xc3") + chunk(b"b\xe2\x82")) + pipe.close()
    assert text_of(events) == "a\ufffdb\ufffd"
    assert pipe.notes["wire.bad_utf8"] == 2


@pytest.mark.parametrize("first", [chunk(b'{"type":"mess'), frame("chunk", {"bytes": "&&&"})])
def test_a_damaged_first_chunk_is_no_report_of_the_provider(first):
    body = payloads(TALK.bytes("anthropic"))
    events = tr("bedrock", first + b"".join(map(chunk, body)))
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
    assert calls_of(events) == []


def test_a_first_payload_that_is_new_is_passed_on_by_the_wire_that_is_told_next():
    body = [b'{"type":"news","of":1}', *payloads(TALK.bytes("anthropic"))]
    events = tr("bedrock", b"".join(map(chunk, body)))
    assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]
    passed_on = [e.payload for e in events if e.kind == "unrecognized"]
    assert passed_on == [{"type": "news", "of": 1}]


@pytest.mark.parametrize("words", [("delta", "finish_reason"), ("message", "stop_reason")])
@pytest.mark.parametrize("metrics", [{}, {"amazon-bedrock-invocationMetrics": {"latency": 1}}])
def test_a_call_without_arguments_is_whole_where_no_end_mark_exists(words, metrics):
    asked = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    said = {words[0]: {"role": "assistant", "tool_calls": [asked]}, words[1]: "tool_calls"}
    body = chunk({"choices": [{"index": 0, **said}], **metrics})
    events = tr("bedrock", body)
    assert [c.arguments for c in calls_of(events)] == [{}]
    assert events[-1] == Finish("tool_calls", "tool_calls")
    cut_short = tr("bedrock", body + chunk({"choices": []})[:20])
    assert len(calls_of(cut_short)) == bool(metrics)  # else more of it may have been cut


class TestBotocore:
    """Events as botocore hands them out: the bytes are unpacked from base64 there."""

    @staticmethod
    def stream(events: list[Any]) -> Any:
        eventstream = pytest.importorskip("botocore.eventstream")

        class Stream(eventstream.EventStream):
            def __init__(self) -> None:
                pass

            def __iter__(self) -> Any:
                for event in events:
                    if isinstance(event, Exception):
                        raise event
                    yield event

            def close(self) -> None:
                pass

        Stream.__module__ = "botocore.eventstream"
        return Stream()

    @pytest.mark.parametrize("wire", INNER)
    def test_chunks(self, wire):
        body = spoken(TALK, wire).bytes(wire)
        stream = self.stream([{"chunk": {"bytes": data}} for data in payloads(body)])
        events = list(normalize(stream))
        assert events[0].provider == wire
        assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]

    def test_stretches(self):
        body = script(*TALK.steps[1:]).bytes("openai_chat")
        parts = [{"PayloadPart": {"Bytes": piece}} for piece in rechunked(body, (5, 40))]
        events = list(normalize(self.stream(parts)))
        assert [c.arguments for c in calls_of(events)] == [{"harbour": "Höfn", "days": 3}]

    @pytest.mark.parametrize("begun", [[], ["chunk"], ["messageStart"]])
    def test_an_exception_is_told_as_from_bytes(self, begun):
        exceptions = pytest.importorskip("botocore.exceptions")
        said = {"Error": {"Code": "throttlingException", "Message": "slow down"}}
        first: dict[str, Any] = {
            "chunk": {"bytes": payloads(TALK.bytes("anthropic"))[0]},
            "messageStart": {"role": "assistant"},
        }
        raised = exceptions.EventStreamError(said, "InvokeModelWithResponseStream")
        stream = self.stream([*({name: first[name]} for name in begun), raised])
        events = list(normalize(stream))
        assert events[-1] == Failed("provider_error", "slow down", True, "throttlingException")

    def test_another_error_is_the_connections(self):
        stream = self.stream([{"messageStart": {}}, ConnectionResetError("gone")])
        assert list(normalize(stream))[-1].reason == "transport"

    def test_an_agents_text(self):
        said = [
            {"chunk": {"bytes": b"Hi.", "attribution": {"citations": []}}},
            {"chunk": {"bytes": b" You."}},
        ]
        assert text_of(list(normalize(self.stream(said)))) == "Hi. You."


# --- events of the service before an envelope -----------------------------------------------------


def converse(kind: str, **fields: Any) -> bytes:
    return frame(kind, {"contentBlockIndex": 0, **fields})


CALLED = (
    converse("contentBlockStart", start={"toolUse": {"toolUseId": "t1", "name": "pay"}}),
    converse("contentBlockDelta", delta={"toolUse": {"input": '{"a":1}'}}),
    converse("contentBlockStop"),
    frame("messageStop", {"stopReason": "tool_use"}),
    frame("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}),
)


@pytest.mark.parametrize("odd", [frame("PayloadPart", b'lta":{"'), chunk({"choices": []})])
@pytest.mark.parametrize("at", [0, 3])
def test_no_other_wire_begins_behind_events_of_this_one_in_any_chunking(odd: bytes, at: int):
    frames = [frame("messageStart", {"role": "assistant"}), *CALLED]
    body = b"".join([*frames[: at + 1], odd, *frames[at + 1 :]])
    told = []
    for size in (len(body), 1400, 1):
        pipe = Normalizer("bedrock", seed="tests")
        events = [event for piece in rechunked(body, (size,)) for event in pipe.feed(piece)]
        told.append((events + pipe.close(), dict(pipe.notes)))
    assert told[0] == told[1] == told[2]
