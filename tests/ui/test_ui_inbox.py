"""What chat clients post back, as a conversation: results, approvals, files, and bad bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Decision, File, Provenance, ProviderToolResult, Reasoning, Text, ToolCall
from streamnorm.ui.inbox import BadBody, from_ag_ui, from_ai_sdk, from_plain, parse_body

FACTS = {"streamnorm": {"id": "call_real", "idSource": "conflated", "wireId": "fc_1",
                        "wireField": "item.id", "provider": "openai_responses",
                        "boundary": "stated", "family": "function"}}  # fmt: skip


def ui(*messages: dict[str, Any], **body: Any) -> dict[str, Any]:
    return {"id": "c1", "messages": list(messages), **body}


def said(role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "m1", "role": role, "parts": list(parts), **more}


def tool(state: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool-pay", "toolCallId": "call_1", "state": state, "input": {"n": 1}, **more}


# --- the AI SDK -----------------------------------------------------------------------------------


def test_a_call_and_its_result_become_two_turns() -> None:
    part = tool(
        "output-available", output={"ok": 1}, toolMetadata=FACTS,
        callProviderMetadata={"streamnorm": {"echo": {"sig": "s"}}},
    )  # fmt: skip
    inbox = from_ai_sdk(
        ui(said("user", {"type": "text", "text": "Pay"}),
           said("assistant", {"type": "step-start"}, {"type": "text", "text": "Ok."}, part,
                {"type": "step-start"}, {"type": "text", "text": "Done."}))
    )  # fmt: skip
    assert [t.role for t in inbox.conversation] == ["user", "assistant", "tool", "assistant"]
    _, turn, results, last = inbox.conversation
    (call,) = turn.calls
    assert (call.id, call.name, call.arguments, call.echo) == (
        "call_real", "pay", {"n": 1}, {"sig": "s"},
    )  # fmt: skip
    assert call.provenance == Provenance(
        "conflated", "fc_1", "item.id", "stated", "openai_responses"
    )
    assert turn.provider == "openai_responses"
    assert results.results[0].output == {"ok": 1}
    assert results.results == tuple(inbox.results)
    assert last.text == "Done."
    assert inbox.call_ids == {"call_1"}
    assert inbox.message_id == "m1"


@pytest.mark.parametrize(
    ("state", "more", "outcome"),
    [
        ("output-error", {"errorText": "no money"}, ("no money", True)),
        ("output-denied", {"approval": {"id": "a", "approved": False}},
         ("The user denied this call.", True)),
        ("output-denied", {"approval": {"id": "a", "approved": False, "reason": "no"}},
         ("The user denied this call: no", True)),
        ("approval-requested", {"approval": {"id": "a"}}, None),
        ("input-available", {}, None),
        ("approval-responded", {"approval": {"id": "a", "approved": True}}, None),
    ],
)  # fmt: skip
def test_each_state_of_a_call(state: str, more: dict[str, Any], outcome: Any) -> None:
    inbox = from_ai_sdk(ui(said("assistant", tool(state, **more))))
    assert len(inbox.conversation.turns[0].calls) == 1
    got = [(r.output, r.is_error) for r in inbox.results]
    assert got == ([] if outcome is None else [outcome])
    waits = state == "approval-responded"  # what is answered and told needs no answer any more
    assert inbox.approvals == ({"a": Decision(id="a", allow=True)} if waits else {})


def responded(id: str, call: str = "call_1", **approval: Any) -> dict[str, Any]:
    part = tool("approval-responded", approval={"id": id, **approval})
    return {**part, "toolCallId": call, "toolMetadata": {"streamnorm": {"id": f"wire_{call}"}}}


def test_approvals_are_those_of_the_last_answer_and_edits_stand_in_the_body() -> None:
    body = {
        **ui(said("assistant", responded("old", approved=True)), said("user"),
             said("assistant", responded("a", approved=True),
                  responded("b", "call_2", approved=False, reason="no"))),
        "editedArgs": {"a": {"euro": 3}, "unknown": {}},
    }  # fmt: skip
    inbox = from_ai_sdk(body)
    assert inbox.approvals == {
        "a": Decision(id="a", allow=True, arguments={"euro": 3}),
        "b": Decision(id="b", allow=False, reason="no"),
    }
    assert inbox.unanswered == {"wire_call_1": "call_1", "wire_call_2": "call_2"}
    moved_on = from_ai_sdk(ui(said("assistant", responded("a", approved=True)), said("user")))
    assert moved_on.approvals == {"a": Decision(id="a", allow=True)}
    assert moved_on.unanswered == {}  # the next answer is a message of its own


@pytest.mark.parametrize(
    ("more", "edits", "where"),
    [
        ({}, {}, "approval.approved"), ({"approved": "yes"}, {}, "approval.approved"),
        ({"approved": None}, {}, "approval.approved"), ({"approved": 1}, {}, "approval.approved"),
        ({"approved": True, "reason": 5}, {}, "approval.reason"),
        ({"approved": True}, {"a": "all"}, "editedArgs.a"), ({"approved": True}, "x", "editedArgs"),
    ],
)  # fmt: skip
def test_an_answer_that_is_neither_yes_nor_no_is_none(
    more: dict[str, Any], edits: Any, where: str
) -> None:
    body = {**ui(said("assistant", responded("a", **more))), "editedArgs": edits}
    with pytest.raises(BadBody, match=where.replace(".", r"\.")):
        from_ai_sdk(body)


@pytest.mark.parametrize(
    "part",
    [
        tool("input-streaming"),
        {**tool("output-error", errorText="truncated"), "input": '{"n'},
        tool("output-error", errorText="x", toolMetadata={"streamnorm": {"broken": "truncated"}}),
    ],
)
def test_a_call_that_was_never_whole_does_not_come_back(part: dict[str, Any]) -> None:
    inbox = from_ai_sdk(ui(said("assistant", {"type": "text", "text": "x"}, part)))
    assert inbox.conversation.turns[0].parts == (Text("x"),)
    assert inbox.left_out == ["messages[0].parts[1]"]


def test_what_the_provider_ran_stays_in_its_turn() -> None:
    part = tool("output-available", output="x", providerExecuted=True)
    (turn,) = from_ai_sdk(ui(said("assistant", part))).conversation
    call, result = turn.parts
    assert isinstance(call, ToolCall)
    assert call.runs_on == "provider"
    assert result == ProviderToolResult(0, "call_1", "x", family="function")


def test_reasoning_comes_back_with_its_signature() -> None:
    kept = {"streamnorm": {"echoes": [{"signature": "s"}], "marks": [2]}}
    part = {"type": "reasoning", "text": "Hm", "providerMetadata": kept}
    (turn,) = from_ai_sdk(
        ui(said("assistant", part, metadata={"provider": "anthropic", "model": "c"}))
    ).conversation
    assert turn.parts == (Reasoning("Hm", ({"signature": "s"},), (2,)),)
    assert (turn.provider, turn.model) == ("anthropic", "c")


def test_files_are_decoded_and_never_fetched() -> None:
    inbox = from_ai_sdk(
        ui(said("user",
                {"type": "file", "mediaType": "image/png", "filename": "a.png",
                 "url": "data:image/png;base64,AQI="},
                {"type": "file", "mediaType": "text/plain", "url": "data:text/plain,hi"},
                {"type": "file", "mediaType": "image/png", "url": "http://169.254.169.254/x"}))
    )  # fmt: skip
    assert inbox.conversation.turns[0].parts == (
        File(b"\1\2", "image/png", "a.png"), File(b"hi", "text/plain"),
        Text("[file: http://169.254.169.254/x]"),
    )  # fmt: skip


def test_a_client_does_not_write_the_system_prompt() -> None:
    body = ui(said("system", {"type": "text", "text": "Obey."}))
    assert from_ai_sdk(body).conversation.system is None
    assert from_ai_sdk(body).left_out == ["messages[0]"]
    assert from_ai_sdk(body, allow_system=True).conversation.system == "Obey."


def test_what_is_only_for_the_page_is_left_out() -> None:
    parts = [
        {"type": "data-weather", "data": 1},
        {"type": "source-url", "sourceId": "s", "url": ""},
    ]
    assert from_ai_sdk(ui(said("assistant", *parts))).conversation.turns == []


BAD = [
    ({}, "id: is not a text"),
    ({"id": "", "messages": []}, "id: is not a text of 1 to 512"),
    ({"id": "c1", "messages": {}}, "messages: is not a list"),
    (ui("x"), r"messages\[0\]: is not an object"),  # type: ignore[arg-type]
    (ui(said("root")), r"messages\[0\]\.role: 'root' is none of"),
    (ui(said("user", {"type": "text"})), r"messages\[0\]\.parts\[0\]\.text: is not a text"),
    (ui(said("assistant", {"type": "tool-f", "state": "x"})), "toolCallId: is not a text"),
    (ui(said("user", {"type": "file", "url": "data:a/b;base64,%"})), "is not base64"),
]


@pytest.mark.parametrize(("body", "message"), BAD)
def test_a_bad_body_names_the_place(body: dict[str, Any], message: str) -> None:
    with pytest.raises(BadBody, match=message):
        from_ai_sdk(body)


# --- AG-UI ----------------------------------------------------------------------------------------


def run(*messages: dict[str, Any], **body: Any) -> dict[str, Any]:
    return {"threadId": "t1", "runId": "r1", "messages": list(messages), **body}


def called(**more: Any) -> dict[str, Any]:
    function = {"name": "pay", "arguments": '{"n": 1180591620717411303424}'}
    return {"id": "call_1", "type": "function", "function": function, **more}


def test_an_ag_ui_conversation() -> None:
    inbox = from_ag_ui(
        run({"id": "u", "role": "user", "content": "Pay"},
            {"id": "r", "role": "reasoning", "content": "Hm",
             "encryptedValue": '{"echoes":[{"signature":"s"}],"marks":[2]}'},
            {"id": "a", "role": "assistant", "content": "Ok.",
             "toolCalls": [called(metadata=FACTS, encryptedValue='{"sig":"s"}')]},
            {"id": "x", "role": "tool", "toolCallId": "call_1", "content": "paid"},
            {"id": "b", "role": "assistant", "content": "Done."},
            {"id": "n", "role": "activity", "activityType": "x", "content": {}},
            protocolVersion="1.0", tools=[{"name": "f"}])
    )  # fmt: skip
    user, turn, results, last = inbox.conversation
    assert user.text == "Pay"
    reasoning, text, call = turn.parts
    assert reasoning == Reasoning("Hm", ({"signature": "s"},), (2,))
    assert text == Text("Ok.")
    assert isinstance(call, ToolCall)
    assert (call.id, call.arguments, call.echo) == ("call_real", {"n": 2**70}, {"sig": "s"})
    assert call.raw == '{"n": 1180591620717411303424}'
    assert results.results[0].output == "paid"
    assert last.text == "Done."
    assert (inbox.run, inbox.protocol_version, inbox.tools) == ("r1", "1.0", [{"name": "f"}])
    assert inbox.left_out == ["messages[5]"]


def test_results_in_any_place_find_their_call() -> None:
    inbox = from_ag_ui(
        run({"id": "a", "role": "assistant", "toolCalls": [called()]},
            {"id": "b", "role": "assistant", "content": "Then."},
            {"id": "x", "role": "tool", "toolCallId": "call_1", "content": "no",
             "error": "no money"},
            {"id": "y", "role": "tool", "toolCallId": "gone", "content": "?"})
    )  # fmt: skip
    assert [t.role for t in inbox.conversation] == ["assistant", "tool", "assistant"]
    assert [(r.output, r.is_error) for r in inbox.results] == [("no", True)]


@pytest.mark.parametrize(
    "call",
    [
        called(metadata={"streamnorm": {"broken": "superseded"}}),
        called(function={"name": "pay", "arguments": '{"n": 1'}),
        called(function={"name": "pay", "arguments": '{"n": 1, "n": 2}'}),
        called(function={"name": "pay", "arguments": "[]"}),
    ],
)
def test_a_broken_ag_ui_call_does_not_come_back(call: dict[str, Any]) -> None:
    inbox = from_ag_ui(
        run({"id": "a", "role": "assistant", "content": "x", "toolCalls": [call]},
            {"id": "y", "role": "tool", "toolCallId": "call_1", "content": "broken"})
    )  # fmt: skip
    assert [t.parts for t in inbox.conversation] == [(Text("x"),)]
    assert inbox.results == []


def test_interrupts_are_answered() -> None:
    entries = [
        {"interruptId": "a", "status": "resolved",
         "payload": {"approved": True, "editedArgs": {"euro": 3}}},
        {"interruptId": "b", "status": "resolved", "payload": {"approved": False, "reason": "no"}},
        {"interruptId": "c", "status": "cancelled", "payload": {"approved": True}},
        {"interruptId": "d", "status": "resolved", "payload": True},
    ]  # fmt: skip
    assert list(from_ag_ui(run(resume=entries)).approvals.values()) == [
        Decision(id="a", allow=True, arguments={"euro": 3}),
        Decision(id="b", allow=False, reason="no"),
        Decision(id="c", allow=False),
        Decision(id="d", allow=True),
    ]


@pytest.mark.parametrize("payload", [None, "yes", {}, {"approved": "true"}, {"editedArgs": {}}, 1])
def test_an_interrupt_that_is_resolved_without_a_yes_or_no_is_a_bad_body(payload: Any) -> None:
    entry = {"interruptId": "a", "status": "resolved", "payload": payload}
    with pytest.raises(BadBody, match=r"resume\[0\]\.payload"):
        from_ag_ui(run(resume=[entry]))


@pytest.mark.parametrize("answers", [(False, True), (True, False)])
def test_two_answers_to_one_question_are_a_bad_body(answers: tuple[bool, bool]) -> None:
    entries = [
        {"interruptId": "a", "status": "resolved", "payload": {"approved": answer}}
        for answer in answers
    ]
    with pytest.raises(BadBody, match=r"resume\[1\]: is another answer to 'a'; send one"):
        from_ag_ui(run(resume=entries))
    parts = [responded("a", approved=answer) for answer in answers]
    with pytest.raises(BadBody, match=r"parts\[1\]\.approval: is another answer to 'a'; send one"):
        from_ai_sdk(ui(said("assistant", *parts)))


def test_the_same_answer_twice_is_one() -> None:
    entry = {"interruptId": "a", "status": "cancelled"}
    no = {"a": Decision(id="a", allow=False)}
    assert from_ag_ui(run(resume=[entry, entry])).approvals == no
    part = responded("a", approved=False)
    assert from_ai_sdk(ui(said("assistant", part, part))).approvals == no


def test_ag_ui_media() -> None:
    data = {"type": "data", "value": "AQI=", "mimeType": "image/png"}
    far = {"type": "url", "value": "http://a.b/"}
    content = [{"type": "text", "text": "See"}, {"type": "image", "source": data},
               {"type": "document", "source": far}]  # fmt: skip
    (turn,) = from_ag_ui(run({"id": "u", "role": "user", "content": content})).conversation
    assert turn.parts == (Text("See"), File(b"\1\2", "image/png"), Text("[document: http://a.b/]"))


# --- our own, and bodies --------------------------------------------------------------------------


def test_a_plain_body() -> None:
    body = {"id": "c", "messages": [{"role": "user", "text": "Hi"},
                                    {"role": "assistant", "text": "Yo"}],
            "approvals": {"a": False, "b": {"approved": True, "editedArgs": {"euro": 3}}}}  # fmt: skip
    inbox = from_plain(body)
    assert [(t.role, t.text) for t in inbox.conversation] == [("user", "Hi"), ("assistant", "Yo")]
    assert inbox.approvals == {
        "a": Decision(id="a", allow=False),
        "b": Decision(id="b", allow=True, arguments={"euro": 3}),
    }
    with pytest.raises(BadBody, match=r"approvals\.a"):
        from_plain({**body, "approvals": {"a": "yes"}})


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[]", b'{"a":1,"a":2}', b'{"a":NaN}'])
def test_bytes_that_are_no_object(body: bytes) -> None:
    with pytest.raises(BadBody):
        parse_body(body)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "tool", "text", "output-available", "tool-f",
                       "approval-responded", "resolved"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["id", "messages", "role", "parts", "type", "text", "toolCallId", "state",
                         "input", "output", "toolMetadata", "streamnorm", "content", "toolCalls",
                         "function", "name", "arguments", "threadId", "runId", "resume", "tools",
                         "approval", "approved", "interruptId", "status", "payload", "editedArgs"]),
        inner, max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@given(_json, _json)
def test_any_json_is_a_conversation_or_a_bad_body(messages: Any, more: Any) -> None:
    for decode in (from_ai_sdk, from_ag_ui, from_plain):
        body = {"id": "c", "threadId": "t", "runId": "r", "messages": messages, "resume": more,
                "tools": more, "approvals": more, "editedArgs": more}  # fmt: skip
        try:
            inbox = decode(parse_body(json.dumps(body).encode()))
        except BadBody:
            continue
        assert inbox.conversation.to_json()
