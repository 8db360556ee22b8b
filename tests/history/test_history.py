"""One suite over all histories: what goes in comes back, once, whole, or an error has a name."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import suppress

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnorm import File, Text, ToolCall, ToolResult, Turn, Usage
from streamnorm.errors import UsageError
from streamnorm.history import (
    CommitConflict,
    ConversationMoved,
    ForeignResult,
    HistoryError,
    NotStorable,
    SQLiteHistory,
    StoreCorrupt,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownConversation,
    WrongVersion,
    rows,
)
from streamnorm.history.migrations import SQLITE
from streamnorm.history.settled import Settled
from streamnorm.history.spool import Artifact
from streamnorm.history.sql import _digest
from tests.conftest import ROOT
from tests.history.stores import (
    DSN,
    EVERYWHERE,
    ON_DISK,
    asks,
    call,
    gives,
    needs_postgres,
    opener,
    user,
)
from tests.history.test_settled import any_text, json_values

A, B = call("a", x=1), call("b", x=2)
NASTY = ToolCall(
    0, "id\0\ud800", "näme\0", {"z": 2**70, "a": "\0\ud83d\ude00\udc00", "$": {"$": "bytes"}, "\ud800": 1e300},
    '{"raw\0', echo={"signature": b"\xff\x00", "nan": float("inf")},
)  # fmt: skip


@pytest.fixture(params=EVERYWHERE)
def store(request, tmp_path):
    with opener(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def history(store):
    async with store() as opened:
        yield opened


# --- what goes in comes back ----------------------------------------------------------------------


async def test_turns_come_back_in_order(history):
    await history.commit("c", "r", 0, [user("one"), user("two")], create=True, system="Be brief.")
    await history.commit("c", "r", 1, [user("three")])
    stored = await history.load("c")
    assert [turn.text for turn in stored.turns] == ["one", "two", "three"]
    assert stored.conversation.system == "Be brief."


async def test_bytes_come_back_exactly(history):
    turns = [
        Turn("user", (Text("\0 \ud800 \udc00\ud83d"), File(bytes(range(256)), "image/png", "x\0"))),
        Turn("assistant", (NASTY,), provider="p", usage=Usage(1, raw={"z": 1, "a": {"$": 2}}),
             echo={"deep": [[b"\0"]]}),
        Turn("tool", (ToolResult.for_call(NASTY, {"z": [2**70, -0.0, 1e-300], "a": None}),)),
    ]  # fmt: skip
    await history.commit("c\0\ud800", "r\0", 0, turns, create=True)
    stored = await history.load("c\0\ud800")
    assert stored.turns == turns
    assert list(stored.turns[1].parts[0].arguments) == list(NASTY.arguments)
    assert stored.calls[0].id == NASTY.id
    assert await history.conversations() == ["c\0\ud800"]


@settings(max_examples=40)
@given(
    text=any_text,
    arguments=st.dictionaries(any_text, json_values, max_size=4),
    output=json_values,
    data=st.binary(max_size=50),
)
@pytest.mark.parametrize("kind", ON_DISK)
def test_any_turn_comes_back(kind, text, arguments, output, data, tmp_path_factory):
    one = ToolCall(0, text or "x", text or "y", arguments, text)
    turns = [Turn("user", (Text(text), File(data, "audio/wav"))), Turn("assistant", (one,))]
    with suppress(UsageError):  # half a surrogate pair cannot be sent, and is no result
        turns.append(Turn("tool", (ToolResult.for_call(one, [output]),)))

    async def main():
        with opener(kind, tmp_path_factory.mktemp("any")) as opened:
            async with opened() as history:
                await history.commit("c", "r", 0, turns, create=True)
                assert (await history.load("c")).turns == turns

    anyio.run(main)


@pytest.mark.parametrize("kind", ON_DISK)
async def test_a_store_that_is_opened_again_has_it_all(kind, tmp_path):
    with opener(kind, tmp_path) as opened:
        async with opened() as first:
            await first.commit("c", "r", 0, [asks(A)], create=True)
        async with opened() as second:
            assert (await second.load("c")).turns == [asks(A)]


async def test_the_first_turns_alone_can_be_loaded(history):
    await history.commit("c", "r", 0, [asks(A), gives(A), user()], create=True)
    stored = await history.load("c", until=1)
    assert len(stored.turns) == 1
    assert [c.state for c in stored.calls] == ["unresolved"]


async def test_a_conversation_can_be_forgotten(history):
    await history.commit("c", "r", 0, [asks(A), gives(A)], create=True)
    await history.commit("d", "r", 0, [user()], create=True)
    await history.delete("c")
    assert await history.conversations() == ["d"]
    await history.commit("c", "r", 0, [user("new")], create=True)
    assert (await history.load("c")).turns == [user("new")]


def test_it_runs_under_trio(tmp_path):
    pytest.importorskip("trio")

    async def main():
        async with SQLiteHistory(tmp_path / "h.db") as history:
            await history.commit("c", "r", 0, [user()], create=True)
            return await history.load("c")

    assert anyio.run(main, backend="trio").turns == [user()]


# --- commits have names ---------------------------------------------------------------------------


async def test_a_commit_sent_again_is_stored_once(history):
    first = await history.commit("c", "r", 0, [user()], create=True)
    again = await history.commit("c", "r", 0, [user()], create=True)
    assert (first.repeated, again.repeated) == (False, True)
    assert again[:2] == first[:2] == (0, 1)
    assert len((await history.load("c")).turns) == 1


async def test_the_same_name_with_other_content_is_refused(history):
    await history.commit("c", "r", 0, [user("one")], create=True)
    with pytest.raises(CommitConflict, match="other content"):
        await history.commit("c", "r", 0, [user("two")])
    assert (await history.load("c")).turns == [user("one")]


async def test_commits_of_a_run_come_in_order(history):
    await history.create("c")
    with pytest.raises(CommitConflict, match="at commit 0"):
        await history.commit("c", "r", 1, [user()])
    await history.commit("c", "r", 0, [user()])
    with pytest.raises(CommitConflict, match="at commit 1"):
        await history.commit("c", "r", 2, [user()])


async def test_runs_of_one_conversation_have_commits_of_their_own(history):
    await history.commit("c", "r1", 0, [user("1")], create=True)
    await history.commit("c", "r2", 0, [user("2")])
    assert [t.text for t in (await history.load("c")).turns] == ["1", "2"]


async def test_whoever_expects_other_turns_is_told(history):
    await history.commit("c", "r", 0, [user()], create=True, expect=0)
    with pytest.raises(ConversationMoved, match="1 turns, not 0"):
        await history.commit("c", "r2", 0, [user()], expect=0)


async def test_a_cancelled_commit_is_stored_whole_or_not_at_all_and_can_be_sent_again(history):
    await history.create("c")
    for n in range(6):
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(history.commit, "c", "r", n, [user(str(n)), user("x")])
                for _ in range(n):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        await history.commit("c", "r", n, [user(str(n)), user("x")])
    assert len((await history.load("c")).turns) == 12


# --- calls and results ----------------------------------------------------------------------------


async def test_each_call_is_answered_settled_or_unresolved(history):
    c = call("c3")
    await history.commit("c", "r", 0, [asks(A, B, c), gives(A)], create=True)
    record = Settled.of(B, Artifact.of("it ran"), seconds=1.5)
    await history.settle("c", record)
    await history.settle("c", record)
    stored = await history.load("c")
    assert [s.state for s in stored.calls] == ["answered", "settled", "unresolved"]
    assert stored.journal == [record]
    assert [s.id for s in stored.unresolved] == ["c3"]


async def test_records_are_stored_with_their_turns(history):
    record = Settled.of(A, Artifact.of("7"), inline=False, started=1.0, seconds=0.25)
    await history.commit("c", "r", 0, [asks(A), gives(A)], settled=[record], create=True)
    (state,) = (await history.load("c")).calls
    assert (state.state, state.settled) == ("answered", record)


async def test_a_result_for_another_conversations_call_is_refused(history):
    await history.commit("one", "r", 0, [asks(A)], create=True)
    await history.create("two")
    with pytest.raises(ForeignResult, match="'two' has no such call 'a'"):
        await history.commit("two", "r", 0, [gives(A)])
    with pytest.raises(ForeignResult):
        await history.settle("two", Settled.of(A))
    assert (await history.load("two")).turns == []


async def test_a_result_for_another_call_of_the_same_id_is_refused(history):
    await history.commit("c", "r", 0, [asks(A)], create=True)
    with pytest.raises(ForeignResult):
        await history.commit("c", "r", 1, [gives(call("a", x=99))])


async def test_a_second_result_is_refused_and_nothing_of_its_commit_is_stored(history):
    await history.commit("c", "r", 0, [asks(A), gives(A)], create=True)
    with pytest.raises(ForeignResult, match="result in turn 1"):
        await history.commit("c", "r", 1, [user("before"), gives(A)])
    assert len((await history.load("c")).turns) == 2


async def test_an_id_that_is_used_again_is_another_call(history):
    again = call("a", x=9)
    turns = [asks(A), gives(A, output="1"), asks(again), gives(again, output="9")]
    records = [Settled.of(A, Artifact.of("1")), Settled.of(again, Artifact.of("9"))]
    await history.commit("c", "r", 0, turns, settled=records, create=True)
    assert [s.settled for s in (await history.load("c")).calls] == records


@pytest.mark.parametrize("kind", ON_DISK)
@pytest.mark.parametrize("column", ["settled", "settled_digest", "checksum"])
async def test_a_record_that_was_changed_in_the_store_is_detected(tmp_path, kind, column):
    with opener(kind, tmp_path) as opened:
        async with opened() as history:
            await history.commit("c", "r", 0, [user(), asks(A)], create=True)
            await history.settle("c", Settled.of(A, Artifact.of("x")))
            other = rows.settled_to_bytes(Settled.of(A, Artifact.of("y")))
            value = "0" * 64 if column == "checksum" else other
            await history._write(
                lambda db: db.execute(f"UPDATE streamnorm_calls SET {column} = ?", (value,))  # noqa: S608
            )
            with pytest.raises(StoreCorrupt, match="record") as caught:
                await history.load("c")
            assert caught.value.turns == [user(), asks(A)]


async def test_what_is_no_turn_and_no_record_is_refused(history):
    await history.create("c")
    with pytest.raises(UsageError, match="keeps turns, not str"):
        await history.commit("c", "r", 0, ["Hi"])
    with pytest.raises(UsageError, match="a Settled, not str"):
        await history.settle("c", "done")


# --- service ids ----------------------------------------------------------------------------------


async def test_the_name_that_a_service_has_for_a_conversation_is_kept(history):
    await history.commit("c", "r", 0, [user()], create=True, service_id="resp_1")
    assert (await history.load("c")).service_id == "resp_1"
    await history.commit("c", "r", 1, [user()])
    assert (await history.load("c")).service_id == "resp_1"
    assert not (await history.load("c")).is_handed_over


async def test_a_conversation_that_is_handed_over_keeps_the_services_name_and_no_turn(history):
    await history.commit("c", "r", 0, [user(), asks(A)], create=True, system="Be brief.")
    await history.hand_over("c", "resp_1", expect=2)
    await history.hand_over("c", "resp_2", expect=0)
    stored = await history.load("c")
    assert (stored.turns, stored.calls, stored.service_id) == ([], [], "resp_2")
    assert (stored.is_handed_over, stored.system) == (True, "Be brief.")
    await history.commit(
        "c", "r2", 0, [user("Ours again")]
    )  # nothing of the old turns is in its way
    taken_back = await history.load("c")
    assert (taken_back.turns, taken_back.calls) == ([user("Ours again")], [])


async def test_a_conversation_that_is_new_may_begin_with_the_service(history):
    await history.hand_over("c", "thread_1", system="Be brief.")
    stored = await history.load("c")
    assert (stored.is_handed_over, stored.service_id, stored.system) == (
        True,
        "thread_1",
        "Be brief.",
    )


async def test_turns_that_somebody_else_appended_are_not_handed_over(history):
    await history.commit("c", "r", 0, [user()], create=True)
    with pytest.raises(ConversationMoved, match="has 1 turns, not 0"):
        await history.hand_over("c", "resp_1", expect=0)
    stored = await history.load("c")
    assert (stored.turns, stored.service_id) == ([user()], None)


# --- named errors ---------------------------------------------------------------------------------


async def test_an_unknown_conversation_has_a_name(history):
    for job in (
        history.load("nobody"), history.commit("nobody", "r", 0, [user()]),
        history.settle("nobody", Settled.of(A)),
    ):  # fmt: skip
        with pytest.raises(UnknownConversation, match="'nobody'"):
            await job


@pytest.mark.parametrize("bad", [("", "r", 0), ("c", "", 0), ("c", "r", -1)])
async def test_a_commit_without_a_name_is_refused(history, bad):
    with pytest.raises(UsageError, match="conversation, a run and a sequence"):
        await history.commit(*bad, [user()], create=True)


async def test_what_cannot_be_json_is_refused_before_anything_is_stored(history):
    await history.create("c")
    with pytest.raises(NotStorable):
        await history.commit("c", "r", 0, [user(), Turn("assistant", (), echo={"x": object()})])
    assert (await history.load("c")).turns == []


async def test_a_closed_history_says_so(store):
    history = store()
    await history.aclose()
    await history.aclose()
    with pytest.raises(UsageError, match="closed"):
        await history.load("c")


@needs_postgres
async def test_a_newer_postgres_store_is_refused(tmp_path):
    import psycopg

    with opener("postgres", tmp_path) as opened:
        async with opened() as history:
            await history.commit("c", "r", 0, [user()], create=True)
        schema = opened()._schema
        with psycopg.connect(str(DSN), autocommit=True) as db:
            db.execute(f'SET search_path TO "{schema}"')
            db.execute("UPDATE streamnorm_version SET version = 99")
        async with opened() as history:
            with pytest.raises(WrongVersion, match="version 99"):
                await history.load("c")


@needs_postgres
async def test_a_connection_that_the_server_ended_is_made_anew(tmp_path):
    import psycopg

    with opener("postgres", tmp_path) as opened:
        async with opened() as history:
            await history.commit("c", "r", 0, [user("1")], create=True)
            await history.load("c")
            mine = [db.info.backend_pid for db in history._db.values()]
            with psycopg.connect(str(DSN), autocommit=True) as db:
                for pid in mine:
                    db.execute("SELECT pg_terminate_backend(%s)", (pid,))
            await history.commit("c", "r", 1, [user("2")])
            assert [t.text for t in (await history.load("c")).turns] == ["1", "2"]


@needs_postgres
async def test_a_postgres_that_may_only_be_read_has_a_name(tmp_path):
    from psycopg.conninfo import make_conninfo

    from streamnorm.history import PostgresHistory

    with opener("postgres", tmp_path) as opened:
        async with opened() as history:
            await history.commit("c", "r", 0, [user()], create=True)
            schema = history._schema
        readonly = make_conninfo(str(DSN), options="-c default_transaction_read_only=on")
        async with PostgresHistory(readonly, schema=schema) as history:
            with pytest.raises(StoreReadOnly):
                await history.commit("c", "r", 1, [user()])
            assert (await history.load("c")).turns == [user()]


@needs_postgres
async def test_a_postgres_that_is_not_there_has_a_name():
    from streamnorm.history import PostgresHistory

    async with PostgresHistory("postgresql://nobody@127.0.0.1:1/none") as history:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            await history.load("c")


# --- SQLite: the file -----------------------------------------------------------------------------


@pytest.fixture
async def filled(tmp_path):
    """A file with 200 turns of some size in it."""
    path = tmp_path / "h.db"
    async with SQLiteHistory(path) as history:
        await history.commit(
            "c", "r", 0, [user(f"{n} " + "x" * 600) for n in range(200)], create=True
        )
    return path


async def test_a_file_is_durable_by_default(tmp_path):
    async with SQLiteHistory(tmp_path / "h.db") as history:
        settings = await history.settings()
    assert settings == {
        "journal_mode": "wal", "synchronous": 2, "user_version": len(SQLITE), "quick_check": "ok",
    }  # fmt: skip


@pytest.mark.parametrize("version", range(len(SQLITE)))
async def test_an_older_file_is_brought_up_to_date(tmp_path, version):
    path = tmp_path / "h.db"
    db = sqlite3.connect(path)
    for number, step in enumerate(SQLITE[:version], start=1):
        for statement in step:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {number}")
        db.execute(f"PRAGMA application_id = {0x53746E6D}")
    if version:
        db.execute("INSERT INTO streamnorm_conversations (id) VALUES (?)", (b"old",))
    db.commit()
    db.close()
    async with SQLiteHistory(path) as history:
        assert await history.conversations() == (["old"] if version else [])
        await history.commit("old", "r", 0, [asks(A)], create=True)
        await history.settle("old", Settled.of(A, Artifact.of("x")))


async def test_a_newer_file_is_refused(filled):
    db = sqlite3.connect(filled)
    db.execute("PRAGMA user_version = 99")
    db.close()
    async with SQLiteHistory(filled) as history:
        for job in (history.load("c"), history.commit("c", "r", 1, [user()])):
            with pytest.raises(WrongVersion, match="version 99"):
                await job


async def test_a_database_that_is_none_of_ours_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "theirs.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()
    before = path.read_bytes()
    async with SQLiteHistory(path) as history:
        with pytest.raises(WrongVersion, match="no history of streamnorm"):
            await history.commit("c", "r", 0, [user()], create=True)
    assert path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "text.db"
    path.write_text("not a database, but long enough to be looked at" * 50)
    async with SQLiteHistory(path) as history:
        with pytest.raises(WrongVersion, match="no database"):
            await history.load("c")


async def test_a_folder_that_is_missing_has_a_name(tmp_path):
    async with SQLiteHistory(tmp_path / "none" / "h.db") as history:
        with pytest.raises(StoreUnavailable, match="cannot be opened"):
            await history.commit("c", "r", 0, [user()], create=True)


READ_ONLY = """
import anyio, os, sys
from streamnorm import Text, Turn
from streamnorm.history import MemoryHistory, SQLiteHistory, StoreReadOnly, StoreUnavailable
path = sys.argv[1]
os.chmod(path, 0o444)
os.chmod(os.path.dirname(path), int(sys.argv[2], 8))
async def main():
    async with MemoryHistory() as history:      # all that is imported late is imported now
        await history.commit("c", "r", 0, [Turn("user", (Text("x"),))], create=True)
        await history.load("c")
    async with SQLiteHistory(path) as history:
        try:
            await history.commit("c", "r", 1, [Turn("user", (Text("no"),))])
        except (StoreReadOnly, StoreUnavailable) as error:
            print(type(error).__name__)
        print(len((await history.load("c")).turns))
anyio.run(main)
"""


def obey_modes():
    """Root may write anything; without these two rights it is as bound by modes as any owner of a file."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        drop_right, write_any, read_any = (
            24,
            1,
            2,
        )  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        assert not any(libc.prctl(drop_right, right, 0, 0, 0) for right in (write_any, read_any))


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
@pytest.mark.parametrize(("mode", "name"), [("777", "StoreReadOnly"), ("555", "Store")])
def test_a_file_that_may_only_be_read_is_read(filled, tmp_path, mode, name):
    folder = tmp_path / "shared"
    folder.mkdir()
    copy = shutil.copy(filled, folder)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, copy, mode],
        cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=obey_modes,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    error, turns = done.stdout.split()
    assert error.startswith(name)
    assert turns == "200"


async def test_a_damaged_page_has_a_name_and_earlier_turns_are_readable(filled):
    size = filled.stat().st_size
    data, at = filled.read_bytes(), size * 2 // 3 // 4096 * 4096
    filled.write_bytes(data[:at] + b"\xa5" * 4096 + data[at + 4096 :])
    async with SQLiteHistory(filled) as history:
        with pytest.raises(StoreCorrupt) as caught:
            await history.load("c")
    turns = caught.value.turns
    assert 0 < len(turns) < 200
    assert [t.text.split()[0] for t in turns] == [str(n) for n in range(len(turns))]


async def test_a_flipped_bit_is_found_by_the_digest(filled):
    data = filled.read_bytes()
    at = data.index(b"150 xxx")
    filled.write_bytes(data[: at + 10] + b"y" + data[at + 11 :])
    async with SQLiteHistory(filled) as history:
        with pytest.raises(StoreCorrupt, match="turn 150") as caught:
            await history.load("c")
        assert len(caught.value.turns) == 150
        assert len((await history.load("c", until=150)).turns) == 150


async def test_a_row_that_is_whole_and_no_turn_is_named_and_earlier_turns_are_readable(filled):
    body = b'{"role":"user","parts":"Hello"}'
    db = sqlite3.connect(filled)
    db.execute("UPDATE streamnorm_turns SET body=?, digest=? WHERE seq=150", (body, _digest(body)))
    db.commit()
    db.close()
    async with SQLiteHistory(filled) as history:
        with pytest.raises(StoreCorrupt, match="turn 150 of 'c' cannot be read") as caught:
            await history.load("c")
        assert len(caught.value.turns) == 150
        assert len((await history.load("c", until=150)).turns) == 150


async def test_what_could_not_be_read_again_is_not_stored(store):
    async with store() as history:
        await history.commit("c", "r", 0, [user("Hello")], create=True)
        with pytest.raises(
            NotStorable, match=r"Expected `str \| null`, got `int` - at `\$.provider`"
        ):
            await history.commit("c", "r", 1, [Turn("user", (Text("x"),), provider=5)])
        assert [turn.text for turn in (await history.load("c")).turns] == ["Hello"]


async def until_full(history):
    for n in range(100):
        try:
            await history.commit("c", "r", n, [user("x" * 10_000)])
        except StoreFull:
            return n
    return 100


async def test_a_file_that_is_full_has_a_name_and_stays_readable(tmp_path):
    async with SQLiteHistory(tmp_path / "h.db", max_bytes=200_000) as history:
        await history.create("c")
        stored = await until_full(history)
        assert 3 < stored < 100
        assert len((await history.load("c")).turns) == stored
        await history.commit("c", "r", stored, [user("small")])


FULL_DISK = """
import anyio, resource, sys
from streamnorm import Text, Turn
from streamnorm.history import SQLiteHistory, StoreFull
async def main():
    async with SQLiteHistory(sys.argv[1]) as history:
        await history.create("c")
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        stored = 0
        try:
            for n in range(100):
                await history.commit("c", "r", n, [Turn("user", (Text("x" * 10_000),))])
                stored += 1
        except StoreFull as error:
            print(stored, len((await history.load("c")).turns))
anyio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
def test_a_disk_that_takes_no_more_has_a_name_and_earlier_turns_are_readable(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "h.db")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stored, readable = map(int, done.stdout.split())
    assert stored == readable > 3


async def test_a_file_that_somebody_keeps_locked_has_a_name(filled):
    db = sqlite3.connect(filled, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    async with SQLiteHistory(filled, busy=0.05) as history:
        with pytest.raises(StoreUnavailable, match="locked"):
            await history.commit("c", "r", 1, [user()])
        assert len((await history.load("c")).turns) == 200
    db.close()


async def test_a_commit_that_reads_first_keeps_others_from_writing_in_between(filled):
    """A transaction that reads and then writes would fail at once if somebody wrote in between."""
    others: list[Exception] = []

    async def commit_too() -> None:
        async with SQLiteHistory(filled, busy=0.05) as other:
            with suppress(StoreUnavailable):
                await other.commit("c", "other", 0, [user()])
                others.append(AssertionError("it was let in"))

    class Slow(SQLiteHistory):
        def at(self, moment: str) -> None:
            if moment == "begun":  # it has read how many turns there are
                anyio.run(commit_too)

    async with Slow(filled, busy=0.05) as history:
        await history.commit("c", "mine", 0, [user()])
        assert others == []
        assert len((await history.load("c")).turns) == 201


async def test_every_error_of_a_history_is_one(filled):
    names = [CommitConflict, ConversationMoved, ForeignResult, NotStorable, StoreCorrupt, StoreFull,
             StoreReadOnly, StoreUnavailable, UnknownConversation, WrongVersion]  # fmt: skip
    assert all(issubclass(name, HistoryError) for name in names)
