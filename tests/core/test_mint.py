"""streamnorm.core.mint: a secret and a number in, an unguessable id out."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import streamnorm
from streamnorm import Normalizer
from streamnorm.core.mint import Mint
from tests.conftest import ROOT, Chat, calls_of, run

GRAMMAR = re.compile(r"^[A-Za-z0-9_-]{1,40}$")
BODY = Chat.call(0, None, "f", "{}") + Chat.call(1, None, "g", "{}") + Chat.end()


def test_an_id_fits_every_wire_and_has_enough_bits():
    mint = Mint("take-7")
    for ordinal in range(200):
        id = mint.id(ordinal)
        assert GRAMMAR.match(id)
        assert id.startswith("syn_")
        assert len(id.removeprefix("syn_")) == 22  # of base64: 132 bits


def test_the_same_stand_in_mints_the_same_ids():
    assert [Mint("a").id(n) for n in range(9)] == [Mint("a").id(n) for n in range(9)]
    # Written down, so that ids of old recordings stay what they are.
    assert Mint("take-7").id(0) == "syn_7WnnBCfW1rjDNWC64irgt3"


def test_ids_never_repeat_within_a_stream_or_between_streams():
    ids = [
        Mint(f"{stream}").id(n, salt)
        for stream in range(50)
        for n in range(100)
        for salt in ("", "x")
    ]
    assert len(set(ids)) == len(ids)


def test_two_streams_without_a_seed_have_nothing_in_common():
    first, second = (calls_of(Normalizer("openai_chat").feed(BODY)) for _ in range(2))
    assert not {c.id for c in first} & {c.id for c in second}
    assert len({c.id for c in first}) == 2


def test_two_processes_have_nothing_in_common():
    says = "from streamnorm.core.mint import Mint; print(Mint().id(0), Mint().id(0))"
    same = {**os.environ, "PYTHONHASHSEED": "0"}
    ids = [
        subprocess.run(
            [sys.executable, "-c", says],
            env=same,
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert len({id for process in ids for id in process}) == 4


def test_the_secret_is_all_of_the_systems_generator_and_has_enough_bits(monkeypatch):
    asked = []

    def numbers(size):
        asked.append(size)
        return bytes([len(asked) % 2]) * size

    monkeypatch.setattr(os, "urandom", numbers)
    first, second, third = (Mint().id(0) for _ in range(3))
    assert first == third != second  # nothing else is in it, such as a count or the time
    assert min(asked) >= 16


def test_the_stand_in_is_what_a_recording_needs_and_mints_the_same_again():
    live = Normalizer("openai_chat")
    heard = live.feed(BODY)
    again = Normalizer("openai_chat", seed=live.seed).feed(BODY)
    assert heard == again
    assert GRAMMAR.match(live.seed)


def test_the_stand_in_is_not_in_the_ids():
    mint = Mint()
    assert mint.stand_in not in mint.id(0)
    assert mint.id(0)[4:] not in mint.stand_in


def test_minted_ids_are_told_as_synthetic():
    calls = calls_of(run("openai_chat", [BODY]))
    assert [c.provenance.id_source for c in calls] == ["synthetic", "synthetic"]
    assert [c.provenance.wire_id for c in calls] == [None, None]
    assert [c.id for c in calls] == [Mint("tests").id(0), Mint("tests").id(1)]


def test_the_library_has_no_weak_source_of_ids():
    weak = {"random", "uuid", "time", "datetime"}
    root = Path(streamnorm.__file__).parent
    core = [root / f for f in ("normalizer.py", "events.py")]
    for path in [
        *core,
        *(p for room in ("text", "core", "providers") for p in sorted((root / room).rglob("*.py"))),
    ]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not weak & {n.split(".")[0] for n in names}, path
