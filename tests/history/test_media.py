"""What a model made, in histories: small bytes in the turn, large ones in a spool."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamnorm import Conversation, Made, Media, Text, TextDelta, Turn
from streamnorm.history import SQLiteHistory
from streamnorm.history.rows import turn_from_bytes, turn_to_bytes
from streamnorm.history.spool import Spool
from streamnorm.history.transcript import from_jsonl, to_jsonl
from streamnorm.wire import provider
from tests.history.stores import EVERYWHERE, opener

LARGE = b"\x89PNG" + bytes(range(256)) * 400
PICTURE = Made("image/png", LARGE, echoes=({"signature": "s"},), agent="main")
TURN = Turn("assistant", (Text("Here:", agent="main"), PICTURE, Made("audio/pcm", b"\0\1")))


def test_a_turn_with_media_and_voices_is_read_as_it_was_written() -> None:
    assert turn_from_bytes(turn_to_bytes(TURN)) == TURN
    talk = Conversation([TURN])
    assert from_jsonl(to_jsonl(talk)) == talk


def test_a_turn_of_a_version_without_voices_is_still_read() -> None:
    old = (
        b'{"role":"assistant","parts":[{"kind":"text","text":"a"},{"kind":"reasoning","text":"b"}]}'
    )
    assert [getattr(part, "agent", "?") for part in turn_from_bytes(old).parts] == [None, None]


@pytest.mark.parametrize("kind", EVERYWHERE)
async def test_every_store_keeps_them(kind: str, tmp_path: Path) -> None:
    with opener(kind, tmp_path) as open_store:
        async with open_store() as history:
            await history.commit("c", "r", 0, [TURN], create=True)
            assert (await history.load("c")).turns == [TURN]


async def test_with_a_spool_large_media_lie_beside_the_database(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    path = tmp_path / "chats.db"
    async with SQLiteHistory(path, spool=spool) as history:
        first = await history.commit("c", "r", 0, [TURN], create=True)
        again = await history.commit("c", "r", 0, [TURN], create=True)
        assert (first.repeated, again.repeated) == (False, True)
        assert (await history.load("c")).turns == [TURN]
    (file,) = (tmp_path / "spool").iterdir()
    assert file.read_bytes() == LARGE
    assert LARGE[4:200] not in path.read_bytes()
    async with SQLiteHistory(path) as history:  # somebody who does not know the spool
        turn = (await history.load("c")).turns[0]
    (_, picture, sound) = turn.parts
    assert isinstance(picture, Made)
    assert (picture.data, picture.handle, picture.echoes) == (None, file.name, PICTURE.echoes)
    assert isinstance(sound, Made)
    assert sound.data == b"\0\1"
    assert spool.filled(turn) == TURN


def test_what_is_gone_from_a_spool_stays_a_handle_and_is_reported(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    kept = spool.kept(TURN)
    for file in tmp_path.iterdir():
        file.unlink()
    assert spool.filled(kept) == kept
    talk = Conversation().user("Draw.").add(kept).user("More.")
    dropped = provider("anthropic").prepare(talk).dropped
    assert "Spool.filled" in next(row.why for row in dropped if row.what == "image/png")


def test_a_handle_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    turn = Turn("assistant", (Made("image/png", handle="../secret"),))
    assert Spool(tmp_path / "spool").filled(turn) == turn


def test_without_a_directory_nothing_is_put_away() -> None:
    assert Spool().kept(TURN) is TURN
    assert Spool().filled(TURN) is TURN


def test_pieces_of_a_sound_and_a_picture_fold_into_what_was_made() -> None:
    events = [
        TextDelta("a"), Media(0, "audio/pcm", b"1", echo={"audio": {"id": "x"}}),
        Media(0, "audio/pcm", b"2", echo={"audio": {"id": "x"}}), Media(1, "image/png", b"3"),
    ]  # fmt: skip
    assert Turn.from_events(events).parts == (
        Text("a"), Made("audio/pcm", b"12", echoes=({"audio": {"id": "x"}},)), Made("image/png", b"3"),
    )  # fmt: skip
