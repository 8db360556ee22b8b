"""What is handed on of a stream: its beginning, all of it after a normal end, and never a call that
its end does not vouch for. Over all takes, in any chunking, cut anywhere; and case by case."""

from __future__ import annotations

import json
import random
import tracemalloc
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Limits, Normalizer
from streamnorm.core.calls import NORMAL
from streamnorm.events import BrokenToolCall, Event, Failed, Finish, ToolCall
from streamnorm.framing.aws import write_frame
from streamnorm.framing.borders import all_ends, borders_of, last_end
from streamnorm.framing.sse import read
from streamnorm.passage import Passage
from streamnorm.text.written import json_bytes
from tests.conftest import (
    Chat,
    Messages,
    at_random,
    bytewise,
    chunkings,
    cuts_of,
    load,
    over_takes,
    rechunked,
    sse,
    take_id,
    take_paths,
)

MANY = 40  # cuts of each take in the quick run


def handed(provider: str, chunks: list[bytes], **options: Any) -> tuple[bytes, Passage]:
    """All that goes out, and the passage."""
    passage = Passage(provider, **options)
    return b"".join([*map(passage.feed, chunks), passage.close()]), passage


def told(passage: Passage) -> tuple[Any, Any]:
    return passage.ending, passage.failure


# --- every take -------------------------------------------------------------------------------------


@over_takes(quick=100)
def test_what_goes_out_is_a_beginning_and_after_a_normal_end_all_in_any_chunking(path: Path):
    take, body = load(path)
    provider = path.parent.name
    heard: list[Event] = []
    out, passage = handed(provider, [body], seed=take.seed, listener=heard.extend)
    assert body.startswith(out)
    if isinstance(passage.ending, Finish) and passage.ending.reason in NORMAL:
        if broken := _broken(heard):
            assert passage.failure == Failed(
                "protocol", f"the call {broken[0]!r} is not whole", True
            )
        else:
            assert (out, passage.failure) == (body, None)
    for chunks in (*chunkings(body), _by_event(body)):
        again, other = handed(provider, chunks, seed=take.seed)
        assert (again, told(other)) == (out, told(passage))


def _broken(events: list[Event]) -> list[str]:
    """The names of the client's calls that broke, other than by the limit that the wire tells itself."""
    broken = (event for event in events if isinstance(event, BrokenToolCall))
    return [e.name for e in broken if e.runs_on == "client" and e.reason != "length"]


@over_takes(quick=100)
def test_its_listener_hears_what_the_pipe_alone_tells(path: Path):
    take, body = load(path)
    heard: list[Event] = []
    handed(path.parent.name, at_random(body, 900, 7), seed=take.seed, listener=heard.extend)
    pipe = Normalizer(path.parent.name, seed=take.seed)
    assert heard == pipe.feed(body) + pipe.close()


@over_takes(quick=100)
def test_a_cut_anywhere_hands_on_no_call_that_no_normal_end_is_behind(path: Path):
    """A client that is as quick as can be runs a call as soon as its bytes are whole: so a pipe that
    hears what went out, and then the end of input, has told no call of the client's."""
    take, body = load(path)
    for cut in cuts_of(body, take_id(path)):
        out, passage = handed(path.parent.name, at_random(body[:cut], 700, cut), seed=take.seed)
        assert body[:cut].startswith(out)
        if passage.failure is not None:
            pipe = Normalizer(path.parent.name, seed=take.seed)
            events = pipe.feed(out) + pipe.close()
            assert not [e for e in events if isinstance(e, ToolCall) and e.runs_on == "client"]


@over_takes(quick=100)
def test_eager_hands_on_all_but_what_follows_a_failure(path: Path):
    take, body = load(path)
    heard: list[Event] = []
    options: dict[str, Any] = {"seed": take.seed, "eager": True, "listener": heard.extend}
    out, passage = handed(path.parent.name, at_random(body, 300, 5), **options)
    assert body.startswith(out)
    if isinstance(passage.ending, Finish):
        cut = [e for e in heard if isinstance(e, BrokenToolCall) and e.runs_on == "client"]
        assert (passage.failure is None) == (not cut)
        assert (out == body) == (passage.failure is None)


def _by_event(body: bytes) -> list[bytes]:
    ends = [0, *all_ends(body), len(body)]
    return [body[a:b] for a, b in pairwise(ends) if b > a]


# --- clients that are as quick as real ones ---------------------------------------------------------


def run_by_a_quick_client(provider: str, out: bytes) -> list[str]:
    """What the programs of today run with these bytes, however they end: at the closing mark of a
    call, at its whole text, or at any word for the end; on Chat also as soon as its text is JSON."""
    runs, named = list[str](), dict[Any, Any]()
    for block in out.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = read(block).data
        if data is None or not data.startswith(b"{"):
            continue
        try:
            said = json.loads(data)
        except ValueError:
            continue
        runs += _QUICK[provider](said, named)
    return runs


def _messages(said: dict[str, Any], named: dict[Any, str]) -> list[str]:
    block = said.get("content_block") or {}
    if block.get("type") == "tool_use":
        named[said["index"]] = str(block.get("name"))
    closed = said.get("type") == "content_block_stop" and said.get("index") in named
    return [named[said["index"]]] if closed else []


def _responses(said: dict[str, Any], named: dict[Any, str]) -> list[str]:
    item = said.get("item") or {}
    if item.get("type") in ("function_call", "custom_tool_call"):
        return [str(item.get("name"))] if said["type"] == "response.output_item.done" else []
    return [said["type"]] if said.get("type") == "response.function_call_arguments.done" else []


def _chat(said: dict[str, Any], named: dict[Any, Any]) -> list[str]:
    ended, runs = False, list[str]()
    for choice in said.get("choices") or []:
        for call in (choice.get("delta") or {}).get("tool_calls") or []:
            if isinstance(call, dict) and call.get("type") == "builtin_function":
                named[call.get("index")] = "", "run by the provider: "
            elif isinstance(call, dict) and isinstance(call.get("function"), dict):
                name, text = named.get(call.get("index"), ("", ""))
                name, more = (
                    name or str(call["function"].get("name")),
                    call["function"].get("arguments"),
                )
                text += more if isinstance(more, str) else ""
                named[call.get("index")] = name, text
                runs += [name] if _is_json(text) else []
        ended = ended or bool(choice.get("finish_reason"))
    return [name for name, _ in named.values()] if ended else runs


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


_QUICK = {"anthropic": _messages, "openai_responses": _responses, "openai_chat": _chat}


@pytest.mark.parametrize("path", [p for p in take_paths() if p.parent.name in _QUICK], ids=take_id)
def test_no_client_runs_anything_of_a_stream_that_did_not_end_well(path: Path):
    take, body = load(path)
    whole, _ = handed(path.parent.name, [body])
    assert body.startswith(whole)
    cuts = sorted({*all_ends(body), *cuts_of(body, take_id(path)), len(body)})
    for cut in cuts:
        out, passage = handed(path.parent.name, [body[:cut]], seed=take.seed)
        ended_well = isinstance(passage.ending, Finish) and passage.ending.reason in NORMAL
        if not ended_well or passage.failure is not None:
            assert run_by_a_quick_client(path.parent.name, out) == []


# --- case by case -----------------------------------------------------------------------------------

OPEN = Messages.START + Messages.open(0, "toolu_1", "shell") + Messages.args(0, '{"cmd":"ls"}')
CLOSE = Messages.close(0)
MORE = Messages.open(1, "toolu_2", "shell") + Messages.args(1, "{}")


def test_a_call_streams_and_its_closing_mark_waits_for_the_end_of_the_turn():
    passage = Passage("anthropic")
    assert passage.feed(OPEN) == OPEN
    assert passage.feed(CLOSE) == b""
    assert passage.feed(MORE) == b""
    assert passage.feed(Messages.close(1)) == b""
    assert passage.feed(Messages.end()) == CLOSE + MORE + Messages.close(1) + Messages.end()
    assert (passage.close(), passage.failure) == (b"", None)
    assert passage.ending == Finish("tool_calls", "tool_use")


def test_text_before_the_call_in_the_same_chunk_goes_out():
    passage = Passage("anthropic")
    assert passage.feed(OPEN + CLOSE + MORE) == OPEN


def test_a_passage_says_that_it_holds_something_from_the_mark_of_a_call_to_the_end():
    frames = (
        Messages.START, Messages.open(0, "a", "f"), Messages.args(0, '{"a":1}'), Messages.close(0),
        Messages.end("tool_use"),
    )  # fmt: skip
    passage, holds = Passage("anthropic"), list[bool]()
    for frame in frames:
        passage.feed(frame)
        holds.append(passage.holds)
    assert holds == [False, False, False, True, False]


def test_a_call_without_arguments_is_held_though_only_the_end_makes_it_one():
    begun = Messages.START + Messages.open(0, "toolu_1", "clear")
    out, passage = handed("anthropic", [begun + CLOSE])
    assert out == begun
    assert passage.failure is not None
    assert passage.failure.reason == "truncated"


@pytest.mark.parametrize(
    ("word", "code"), [("max_tokens", "length"), ("refusal", "refusal"), ("odd_word", "other")]
)
def test_an_end_that_vouches_for_no_call_is_told_in_place_of_what_is_held(word: str, code: str):
    out, passage = handed("anthropic", [OPEN, CLOSE, Messages.end(word)])
    assert out == OPEN
    assert isinstance(passage.ending, Finish)
    assert passage.ending.reason == code
    assert passage.failure == Failed(
        "provider_error",
        f"the answer ended with {word!r} and a tool call in it, which must not be run so",
        False,
        code,
    )


def test_such_an_end_goes_out_if_no_call_is_under_way():
    body = Chat.text("Hi") + Chat.end("length")
    out, passage = handed("openai_chat", [body])
    assert (out, passage.failure) == (body, None)


@pytest.mark.parametrize("word", ["length", "content_filter", "network_error", "error", "new_word"])
def test_a_word_for_a_bad_end_of_an_open_call_is_held_where_nothing_closes_calls(word: str):
    begun = Chat.text("Hi") + Chat.call(0, "call_1", "shell", '{"cmd":"ls"')
    out, passage = handed("openai_chat", [begun + Chat.end(word)])
    assert out == begun
    assert passage.failure is not None


def more(text: str) -> bytes:
    return Chat.call(0, None, None, text)


def test_where_nothing_closes_a_call_the_piece_that_makes_it_whole_waits_for_the_end():
    begun = Chat.call(0, "call_1", "shell", '{"a":{"b":1')
    passage = Passage("openai_chat")
    assert passage.feed(begun) == begun
    assert passage.feed(more("}")) == more("}")
    assert passage.feed(more("} \n")) == b""
    assert passage.feed(Chat.text("More.")) == b""
    assert passage.feed(Chat.end("tool_calls")) == b"".join(
        (more("} \n"), Chat.text("More."), Chat.end("tool_calls"))
    )


@pytest.mark.parametrize(
    "pieces", [('{"cmd":"ls"}',), ('{"cmd":', '"ls"}'), ('{"cmd":"ls"', "\n}\n")]
)
@pytest.mark.parametrize("provider", ["openai_chat", "mistral"])
def test_of_a_call_that_is_whole_without_an_end_the_last_piece_never_goes(
    provider: str, pieces: tuple[str, ...]
):
    frames = [Chat.text("Hi"), Chat.call(0, "call_1ab", "shell", pieces[0])]
    frames += [more(piece) for piece in pieces[1:]]
    for chunks in (frames, [b"".join(frames)], bytewise(b"".join(frames))):
        out, passage = handed(provider, chunks)
        assert out == b"".join(frames[:-1])
        assert passage.failure is not None


def test_many_pieces_of_one_call_go_out_until_the_last():
    """So many that they are read the quick way."""
    begun = Chat.call(0, "call_1", "shell", '{"cmd":"')
    words = [more(f"word{number} }}") for number in range(40)]
    last = more('"}')
    for chunks in ([begun, *words, last], [begun + b"".join(words) + last]):
        out, _ = handed("openai_chat", chunks)
        assert out == begun + b"".join(words)


@pytest.mark.parametrize("name", ["anthropic", "openai_chat"])
def test_a_normal_end_releases_no_call_that_is_not_whole(name: str):
    wire = {"anthropic": Messages, "openai_chat": Chat}[name]
    if wire is Messages:
        begun = (
            Messages.START + Messages.open(0, "toolu_1", "shell") + Messages.args(0, '{"cmd":"l')
        )
        rest = Messages.close(0) + Messages.end("tool_use")
    else:
        begun, rest = Chat.call(0, "call_1", "shell", '{"cmd":"l'), Chat.end("tool_calls")
    for chunks in ([begun + rest], bytewise(begun + rest)):
        out, passage = handed(name, chunks)
        assert out == begun
        assert passage.failure == Failed("protocol", "the call 'shell' is not whole", True)
        assert isinstance(passage.ending, Finish)


def test_a_call_that_was_begun_again_spoils_a_normal_end():
    again = Messages.open(0, "toolu_2", "shell") + Messages.args(0, "{}")
    begun = Messages.START + Messages.open(0, "toolu_1", "shell") + Messages.args(0, '{"a":')
    out, passage = handed("anthropic", [begun, again, Messages.close(0), Messages.end()])
    assert out == begun + again
    assert passage.failure == Failed("protocol", "the call 'shell' is not whole", True)


def test_a_broken_call_that_is_the_only_one_does_not_let_the_end_go():
    both = Chat.call(0, "call_1", "shell", '{"a":') + Chat.call(0, "call_2", "shell", '{"b":1')
    out, passage = handed("openai_chat", [both, Chat.end("tool_calls")])
    assert out == both
    assert passage.failure is not None


def test_a_word_for_the_end_is_held_behind_a_call_that_broke_and_was_the_only_one():
    begun = Messages.START + Messages.open(0, "toolu_1", "shell") + Messages.args(0, '{"a":')
    again = Messages.START + Messages.text("Hi")
    out, passage = handed("anthropic", bytewise(begun + again + Messages.end("end_turn")))
    assert out == begun + again
    assert passage.failure == Failed("protocol", "the call 'shell' is not whole", True)


def test_a_broken_call_of_the_provider_s_own_lets_the_end_go():
    tool = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    start = {"type": "content_block_start", "index": 0, "content_block": tool}
    body = Messages.START + sse(start, "content_block_start") + Messages.args(0, '{"query":"x')
    body += Messages.close(0) + Messages.end("end_turn")
    heard: list[Event] = []
    out, passage = handed("anthropic", [body], listener=heard.extend)
    assert [e.runs_on for e in heard if isinstance(e, BrokenToolCall)] == ["provider"]
    assert (out, passage.failure) == (body, None)


def test_an_error_of_the_provider_goes_out_as_it_came_and_nothing_behind_it():
    error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error")
    begun = Messages.START + Messages.text("Hi")
    for chunks in ([begun + error + CLOSE], [begun, error, CLOSE], bytewise(begun + error + CLOSE)):
        out, passage = handed("anthropic", chunks)
        assert out == begun + error
        assert passage.failure is None
        assert isinstance(passage.ending, Failed)


def test_an_error_behind_a_closed_call_is_told_in_place_of_both():
    error = sse({"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, "error")
    out, passage = handed("anthropic", [OPEN + CLOSE + error])
    assert out == OPEN
    assert passage.failure == passage.ending
    assert isinstance(passage.ending, Failed)
    assert (passage.ending.code, passage.ending.error) == ("overloaded_error", "no")


def test_an_event_that_is_no_json_is_not_handed_on():
    begun = Messages.START + Messages.text("Hi")
    out, passage = handed("anthropic", [begun + b"data: {oops\n\n" + CLOSE])
    assert out == begun
    assert passage.failure is not None
    assert passage.failure.reason == "protocol"


def test_half_an_event_waits_for_its_other_half():
    passage = Passage("anthropic")
    assert passage.feed(Messages.START[:20]) == b""
    assert passage.feed(Messages.START[20:] + b"event: pi") == Messages.START
    assert (
        passage.feed(b'ng\ndata: {"type":"ping"}\n\n') == b'event: ping\ndata: {"type":"ping"}\n\n'
    )


def test_a_connection_that_breaks_is_a_failure_and_what_was_held_never_goes():
    passage = Passage("anthropic")
    passage.feed(OPEN + CLOSE)
    passage.fail("transport", "reset by peer", retryable=True)
    assert passage.failure == Failed("transport", "reset by peer", True)
    assert (passage.feed(Messages.end()), passage.close()) == (b"", b"")


def test_a_connection_that_breaks_behind_the_normal_end_is_none():
    passage = Passage("anthropic")
    body = OPEN + CLOSE + Messages.end()
    assert passage.feed(body) == body
    passage.fail("transport", "reset by peer")
    assert passage.failure is None


def test_eager_hands_on_closing_marks_at_once_and_still_says_that_it_was_cut():
    passage = Passage("anthropic", eager=True)
    assert passage.feed(OPEN) == OPEN
    assert passage.feed(CLOSE) == CLOSE
    assert passage.close() == b""
    assert passage.failure is not None
    assert passage.failure.reason == "truncated"


def test_what_follows_the_end_goes_out_as_well():
    body = Chat.text("Hi") + Chat.end("stop") + b": bye\n\n" + b"data: "
    assert handed("openai_chat", [body])[0] == body
    assert handed("openai_chat", bytewise(body))[0] == body


def test_what_is_held_is_bounded():
    text = Messages.text("x" * 1000, 1)
    passage = Passage("anthropic", limits=Limits(held=10_000))
    passage.feed(OPEN + CLOSE)
    for _ in range(20):
        assert passage.feed(text) == b""
    assert passage.failure is not None
    assert (passage.failure.reason, passage.failure.code) == ("limit", "held")
    assert passage.feed(Messages.end()) == b""


def test_what_went_out_is_forgotten_and_half_a_frame_is_bounded():
    text, line = Messages.text("x" * 20_000), Messages.text("y" * 3_000_000)
    passage = Passage("anthropic", limits=Limits(frame_bytes=1_000_000))
    passage.feed(Messages.START)
    tracemalloc.start()
    for _ in range(400):
        passage.feed(text[:7])
        passage.feed(text[7:])
    assert tracemalloc.get_traced_memory()[0] < 200_000
    for at in range(0, len(line), 1000):
        passage.feed(line[at : at + 1000])
    assert tracemalloc.get_traced_memory()[1] < 4_000_000
    tracemalloc.stop()
    assert passage.failure is not None
    assert passage.failure.reason == "limit"


def test_a_frame_beyond_the_limit_ends_it_in_any_chunking():
    begun = Messages.START + Messages.text("Hi")
    body = begun + Messages.text("x" * 5000) + Messages.end("end_turn")
    for chunks in ([body], bytewise(body), rechunked(body, (700,))):
        out, passage = handed("anthropic", chunks, limits=Limits(frame_bytes=2000))
        assert begun.startswith(out)  # a chunk that is split at a limit is held as a whole
        assert passage.failure is not None
        assert passage.failure.reason == "limit"


def test_it_tells_what_an_error_frame_needs_to_follow_what_went_out():
    def event(number: int, **said: Any) -> bytes:
        return sse({**said, "sequence_number": number}, said["type"])

    response = {"id": "resp_1", "model": "gpt-9", "object": "response", "output": []}
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "shell"}
    begun = event(0, type="response.created", response=response) + event(
        1, type="response.output_item.added", output_index=0, item={**item, "arguments": ""}
    )
    done = event(
        2, type="response.output_item.done", output_index=0, item={**item, "arguments": "{}"}
    )
    passage = Passage("openai_responses")
    assert passage.feed(begun + done) == begun
    assert (passage.model, passage.response_id, passage.number) == ("gpt-9", "resp_1", 1)


def test_of_frames_that_come_together_those_behind_an_error_do_not_go_out():
    error = sse({"error": {"message": "no"}})
    passage = Passage("openai_chat")
    assert passage.feed(Chat.text("a") + error + Chat.text("b")) == Chat.text("a") + error


def test_the_place_of_a_frame_is_told_once_frames_are_known_and_where_one_says_it():
    frame = sse({"type": "response.in_progress", "sequence_number": 7, "response": {"id": "r"}})
    pipe = Normalizer("openai_responses")
    assert pipe.place_of(frame) is None
    pipe.feed(frame)
    assert [pipe.place_of(each) for each in (frame, b": hi\n\n")] == [7, None]


def test_a_call_that_has_begun_and_is_not_told_yet_is_under_way():
    passage = Passage("openai_chat")
    said = []
    for piece in (Chat.text("Hi"), Chat.call(0, "a", "f"), Chat.call(0, None, None, "{")):
        passage.feed(piece)
        said.append(passage.hesitates)
    assert said == [False, True, False]


def test_a_body_that_is_no_stream_gives_nothing_out():
    out, passage = handed("anthropic", [b"<html>\n\nno\n\n</html>"])
    assert out == b""
    assert passage.failure is not None


def test_nothing_at_all_is_a_cut():
    out, passage = handed("anthropic", [])
    assert out == b""
    assert passage.failure is not None
    assert passage.failure.reason == "truncated"


def test_a_whole_answer_in_place_of_a_stream_is_not_handed_on_line_by_line():
    message = {"role": "assistant", "content": "Hi", "tool_calls": []}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
    out, passage = handed("openai_chat", bytewise(json.dumps(answer, indent=1).encode()))
    assert out == b""
    assert passage.failure is not None
    assert "not a stream" in passage.failure.error


def test_lines_go_out_one_by_one_and_a_call_waits():
    text = b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    call = (
        b'{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":'
        b'{"name":"shell","arguments":{"cmd":"ls"}}}]},"done":false}\n'
    )
    end = b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
    passage = Passage("ollama")
    assert passage.feed(text + text[:9]) == text
    assert passage.feed(text[9:]) == text
    assert passage.feed(call + text) == b""
    assert passage.feed(end) == call + text + end
    out, cut = handed("ollama", [text + call + text])
    assert out == text
    assert cut.failure is not None


def test_binary_frames_go_out_one_by_one_and_a_call_waits():
    def frame(name: str, **said: Any) -> bytes:
        headers = {
            ":event-type": name,
            ":content-type": "application/json",
            ":message-type": "event",
        }
        return write_frame(headers, json_bytes(said))

    begun = frame("messageStart", role="assistant") + frame(
        "contentBlockStart",
        contentBlockIndex=0,
        start={"toolUse": {"toolUseId": "t", "name": "shell"}},
    )
    stop = frame("contentBlockStop", contentBlockIndex=0)
    end = frame("messageStop", stopReason="tool_use")
    passage = Passage("bedrock")
    assert b"".join(map(passage.feed, bytewise(begun))) == begun
    assert passage.feed(stop) == b""
    assert passage.feed(end) == b""  # the counts may follow
    assert (passage.close(), passage.failure) == (stop + end, None)
    assert handed("bedrock", [begun + stop])[0] == begun


# --- what is given out, and what is known of it -------------------------------------------------------


def numbered(number: int) -> bytes:
    return sse({"type": "response.in_progress", "sequence_number": number, "response": {"id": "r"}})


def test_the_place_is_that_of_the_last_frame_with_one_whatever_has_followed_it():
    passage = Passage("openai_responses")
    passage.feed(numbered(1) + numbered(2) + b": hi\n\n")
    assert passage.number == 2
    assert passage.feed(numbered(3)[:9]) == b""
    assert passage.number == 2
    passage.feed(numbered(3)[9:])
    assert passage.number == 3


def test_the_place_stays_while_frames_are_held():
    item = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    done = {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0}
    passage = Passage("openai_responses")
    passage.feed(numbered(1))
    for _ in range(2):
        assert passage.feed(sse({**done, "item": item})) == b""
        assert (passage.number, passage.holds) == (1, True)


def test_bytes_that_were_given_out_are_counted():
    passage = Passage("openai_chat")
    body = Chat.text("a")
    for size, piece in ((len(body), body), (len(body), body[:9]), (2 * len(body), body[9:])):
        passage.feed(piece)
        assert passage.bytes == size


def test_a_buffer_that_is_used_again_may_be_fed():
    passage, buffer = Passage("openai_chat"), bytearray(Chat.text("a"))
    given = passage.feed(buffer)
    half = passage.feed(memoryview(Chat.text("b")[:30]))  # type: ignore[arg-type]
    assert [type(given), given, half] == [bytes, Chat.text("a"), b""]
    rest = bytearray(Chat.text("b")[30:-1])
    passage.feed(rest)
    rest[:] = b"x" * len(rest)
    assert passage.feed(b"\n") == Chat.text("b")


def test_a_listener_hears_only_what_there_is_to_hear():
    for provider, piece in (("openai_chat", Chat.text("a")), ("ollama", b'{"model":"m"}\n')):
        heard: list[list[Event]] = []
        passage = Passage(provider, listener=heard.append)
        for chunk in bytewise(piece):
            passage.feed(chunk)
        assert all(heard)


def test_a_short_body_that_is_no_stream_is_heard_at_its_end():
    _, passage = handed("anthropic", [b" "])
    assert passage.failure is not None
    assert (passage.failure.reason, passage.failure.error[:22]) == (
        "protocol",
        "1 bytes and no event i",
    )


@pytest.mark.parametrize("space", [0, 3, 78])
def test_space_before_a_body_says_nothing_of_its_framing(space: int):
    line = (
        b" " * space + b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    )
    passage = Passage("ollama")
    given = [passage.feed(byte) for byte in bytewise(line)]
    assert (given[-1], set(given[:-1])) == (line, {b""})


def test_what_says_how_it_is_framed_is_not_waited_with():
    assert Passage("openai_chat").feed(b": hi\n\n") == b": hi\n\n"
    passage = Passage("openai_chat")
    assert passage.feed(b"\n" * 79) == b""
    assert passage.feed(b"\n") == b"\n" * 80  # enough of them: no other framing begins so


# --- ends -----------------------------------------------------------------------------------------------


def test_eager_hands_on_the_piece_that_makes_a_call_whole_at_once():
    passage = Passage("openai_chat", eager=True)
    whole = Chat.call(0, "call_1", "shell", '{"a":1}')
    assert passage.feed(whole) == whole


def test_eager_hands_on_a_bad_end_behind_a_call_that_is_whole():
    body = Chat.call(0, "call_1", "shell", '{"a":1}') + Chat.end("length")
    assert handed("openai_chat", bytewise(body), eager=True)[0] == body
    assert handed("openai_chat", bytewise(body))[0] == b""


@pytest.mark.parametrize("end", [b"\n", b""])
def test_an_error_in_a_line_goes_out_as_it_came_with_or_without_its_line_end(end: bytes):
    line = b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}\n'
    body = line + b'{"error":"no"}' + end
    for chunks in ([body], bytewise(body)):
        out, passage = handed("ollama", chunks)
        assert (out, passage.failure) == (body, None)


def test_what_is_held_may_reach_its_limit_and_pass_it_with_the_end():
    more = Messages.text("x" * 500, 1)
    limits = Limits(held=len(CLOSE) + len(more))
    passage = Passage("anthropic", limits=limits)
    assert passage.feed(OPEN) == OPEN
    for chunk in (CLOSE, more):
        assert passage.feed(chunk) == b""
    assert passage.failure is None
    assert passage.feed(Messages.end()) == CLOSE + more + Messages.end()
    assert passage.failure is None


# --- borders ------------------------------------------------------------------------------------------

_lines = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"data: 1", b"\n\n"]), max_size=30)


@given(_lines)
def test_the_last_end_of_events_is_an_end_and_none_is_behind_it(parts: list[bytes]):
    data = b"".join(parts)
    end = last_end(data)
    assert end == 0 or end in _blank_lines(data)
    assert end == max([0, *all_ends(data)]) or not data[max(all_ends(data)) : end].strip(b"\r\n")


def _blank_lines(data: bytes) -> set[int]:
    """The places behind a line end that follows a line end, or a line end of two."""
    lines = data.splitlines(keepends=True)
    places = list(accumulate(map(len, lines)))
    ended = [line.endswith((b"\n", b"\r")) for line in lines]
    bare = [ended[i] and not lines[i].strip(b"\r\n") for i in range(len(lines))]
    return {places[i] for i in range(len(lines)) if bare[i]}


@pytest.mark.parametrize("start", ["array", "json"])
def test_frames_end_at_the_same_places_in_any_chunking(start: str):
    body = b'[{"a":"}"}\n,{"b":[1,{}]}\n]' if start == "array" else b'{"a":1}\n\n{"b":2}\r\n'
    whole = borders_of(start, 1000).ends(body)
    dice = random.Random(1)
    for _ in range(50):
        borders, at, ends = borders_of(start, 1000), 0, list[int]()
        while at < len(body):
            chunk = body[at : at + dice.randint(1, 9)]
            ends += [at + end for end in borders.ends(chunk)]
            at += len(chunk)
        assert ends == whole
