"""Artifacts of any size under a handle, and the tools that read them."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.agent.artifacts import LONGEST_LINE, MOST_BYTES, artifact_tools
from streamnorm.agent.checking import Unfit
from streamnorm.history.settled import Settled
from streamnorm.history.spool import Artifact, ArtifactMissing, Spool

LOG = "".join(f"line {n}{' failed' if n % 10 == 0 else ''}\n" for n in range(1, 101))


def handle(content, id="call_1", spool=None, **more):
    return Settled(id, "build", {}, (spool or Spool()).put(content), inline=False, **more)


def ask(settled, name, spool=None, **said):
    tools = {tool.name: tool for tool in artifact_tools(settled, spool, grep_seconds=2)}
    return tools[name].handler({"callId": settled[0].id, **said})


# --- the spool ------------------------------------------------------------------------------------


def test_small_content_stays_with_the_artifact_and_large_goes_to_a_file(tmp_path):
    spool = Spool(tmp_path, above=10)
    small, large = spool.put("0123456789"), spool.put("0123456789x")
    assert small.content == b"0123456789"
    assert large.content is None
    assert spool.value(large) == "0123456789x"
    assert os.listdir(tmp_path) == [large.handle]


def test_the_same_content_has_one_handle_and_one_file(tmp_path):
    spool = Spool(tmp_path, above=0)
    assert spool.put("abc", name="a").handle == spool.put("abc", name="b").handle
    assert spool.take([b"a", b"b", b"c"]).handle == spool.put("abc").handle
    assert len(os.listdir(tmp_path)) == 1


def test_content_larger_than_a_chunk_is_taken_piece_by_piece(tmp_path):
    chunks = [b"line\n" * 1000] * 50 + [b"end"]
    for spool in (Spool(tmp_path), Spool()):
        artifact = spool.take(iter(chunks))
        assert (artifact.size, artifact.lines) == (250_003, 50_001)
        assert spool.read(artifact) == b"".join(chunks)


def test_a_source_that_fails_leaves_nothing_behind(tmp_path):
    def failing():
        yield b"half"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        Spool(tmp_path).take(failing())
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("bad", ["../../etc/passwd", "/etc/passwd", "art_", "art_" + "g" * 40])
def test_a_handle_that_is_none_opens_no_file(tmp_path, bad):
    with pytest.raises(ArtifactMissing):
        Spool(tmp_path).read(Artifact(bad, 1))


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")
def test_a_link_in_the_spool_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    name = "art_" + "0" * 40
    (tmp_path / name).symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactMissing):
        Spool(tmp_path).read(Artifact(name, 6))


def test_missing_content_has_a_name(tmp_path):
    artifact = Spool(tmp_path / "here", above=0).put("text")
    with pytest.raises(ArtifactMissing, match=artifact.handle):
        Spool(tmp_path / "elsewhere").read(artifact)


# --- forging --------------------------------------------------------------------------------------


def test_tools_are_forged_around_handles_only():
    inline = Settled("call_0", "f", {}, Artifact.of("shown"))
    broken = Settled("call_2", "f", {}, error="no", inline=False)
    tools = artifact_tools([inline, handle(LOG), broken])
    assert [t.name for t in tools] == [
        "artifact_head", "artifact_tail", "artifact_grep", "artifact_read", "artifact_count",
    ]  # fmt: skip
    for tool in tools:
        assert tool.tool.schema["properties"]["callId"]["enum"] == ["call_1"]
    assert artifact_tools([inline, broken]) == []


def test_calls_of_artifact_tools_are_never_in_the_enum():
    grep = Settled("call_2", "artifact_grep", {}, "line 10", inline=False, from_artifact_tool=True)
    (head, *_) = artifact_tools([handle(LOG), grep])
    assert head.tool.schema["properties"]["callId"]["enum"] == ["call_1"]


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said", "answer"),
    [
        ("artifact_head", {"lines": 2}, "line 1\nline 2"),
        ("artifact_tail", {"lines": 2}, "line 99\nline 100 failed"),
        ("artifact_grep", {"pattern": "failed", "limit": 2}, "10: line 10 failed\n20: line 20 failed"),
        ("artifact_grep", {"pattern": "FAILED", "ignoreCase": True, "limit": 1}, "10: line 10 failed"),
        ("artifact_grep", {"pattern": "l.ne 7$"}, "no line matches"),
        ("artifact_grep", {"pattern": "l.ne 7$", "regex": True}, "7: line 7"),
        ("artifact_grep", {"pattern": "LINE 7$", "regex": True, "ignoreCase": True}, "7: line 7"),
        ("artifact_read", {"length": 6}, f"line 1\n[{len(LOG) - 6} bytes follow; read on from offset 6]"),
        ("artifact_read", {"offset": len(LOG) - 4}, "led\n"),
        ("artifact_count", {}, f"{len(LOG)} bytes, 100 lines"),
        ("artifact_count", {"pattern": "failed"}, f"{len(LOG)} bytes, 100 lines; 10 lines have 'failed'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("spooled", [True, False])
def test_answers(name, said, answer, spooled, tmp_path):
    spool = Spool(tmp_path if spooled else None, above=0)
    assert ask([handle(LOG, spool=spool)], name, spool, **said) == answer


@pytest.mark.parametrize(
    "said",
    [
        {"callId": "call_9"}, {"index": 1}, {"index": -1}, {"lines": "many"}, {"lines": True},
    ],
)  # fmt: skip
def test_questions_that_make_no_sense_are_errors(said):
    with pytest.raises(ValueError):
        ask([handle(LOG)], "artifact_head", **said)


@pytest.mark.parametrize("pattern", ["", None, 5, "x" * 1001])
def test_patterns_that_make_no_sense_are_errors(pattern):
    with pytest.raises(ValueError, match="pattern"):
        ask([handle(LOG)], "artifact_grep", pattern=pattern)


@pytest.mark.parametrize("spooled", [True, False])
def test_a_pattern_that_would_never_end_is_ended(spooled, tmp_path):
    spool = Spool(tmp_path if spooled else None, above=0)
    evil = handle("a" * 50 + "b", spool=spool)
    with pytest.raises(TimeoutError, match="simpler"):
        ask([evil], "artifact_grep", spool, pattern="(a+)+$", regex=True)
    assert ask([evil], "artifact_grep", spool, pattern="(a+)+$") == "no line matches"


def test_a_pattern_that_is_none_is_an_error():
    with pytest.raises(ValueError, match="not a regular expression"):
        ask([handle(LOG)], "artifact_grep", pattern="(", regex=True)


def test_one_of_several_artifacts_is_read_by_its_index():
    record = Settled("call_1", "f", {}, [Artifact.of("one"), Artifact.of("two")], inline=False)
    assert ask([record], "artifact_head", index=1) == "two"


@given(content=st.binary(max_size=400), length=st.integers(1, 50))
def test_reading_on_gives_all_of_it(content, length):
    record, offset, said = handle(content), 0, []
    while True:
        answer = ask([record], "artifact_read", offset=offset, length=max(4, length))
        text, mark, rest = answer.rpartition("\n[")
        more = mark and rest.endswith("]") and "read on from offset " in rest
        said.append(text if more else answer)
        if not more:
            break
        offset = int(rest.rsplit(" ", 1)[1][:-1])
    if "[" not in content.decode(errors="replace"):
        assert "".join(said) == content.decode("utf-8", "replace")


def test_answers_are_bounded_whatever_the_artifact():
    one_line = handle("x" * 1_000_000)
    assert len(ask([one_line], "artifact_head")) == LONGEST_LINE
    many = handle("y" * 200 + "\n" + ("y" * 200 + "\n") * 5000)
    for name, said in (
        ("artifact_head", {"lines": 10**9}),
        ("artifact_grep", {"pattern": "y", "limit": 10**9}),
    ):
        answer = ask([many], name, **said)
        assert len(answer) <= MOST_BYTES + 100
        assert answer.endswith("ask for fewer lines]")
    assert len(ask([many], "artifact_read", length=10**9)) <= MOST_BYTES + 100


@pytest.mark.parametrize(
    ("name", "said", "field"),
    [
        ("artifact_head", {"callId": "call_log", "lines": "x"}, "$.lines"),
        ("artifact_head", {"callId": "call_log", "line": 3}, "`line`"),
        ("artifact_head", {"callId": "another"}, "$.callId"),
        ("artifact_head", {}, "'callId'"),
        ("artifact_grep", {"callId": "call_log"}, "'pattern'"),
        ("artifact_grep", {"callId": "call_log", "pattern": "f", "regex": "yes"}, "$.regex"),
        ("artifact_read", {"callId": "call_log", "offset": True}, "$.offset"),
    ],
)
def test_arguments_of_an_artifact_tool_are_checked_as_those_of_any_other(name, said, field):
    log = Settled("call_log", "log", {}, Artifact.of("ok\nfailed\n"), inline=False)
    (tool,) = (tool for tool in artifact_tools([log]) if tool.name == name)
    with pytest.raises(Unfit) as caught:
        tool.convert(said)
    assert field in str(caught.value)


def test_a_whole_number_is_an_integer_for_an_artifact_tool():
    log = Settled("call_log", "log", {}, Artifact.of("ok\nfailed\n"), inline=False)
    head = artifact_tools([log])[0]
    assert head.handler(head.convert({"callId": "call_log", "lines": 1.0})) == "ok"
