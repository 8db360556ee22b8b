"""OpenAI Responses says every argument text four times: no single changed copy gives a wrong call."""

from __future__ import annotations

import re

import pytest

from streamnorm import Normalizer
from streamnorm.captures import read_take
from tests.conftest import RECORDINGS

SAID = re.compile(rb'"(?:delta|arguments)": ?"((?:[^"\\]|\\.)+)"')


def wire(name: str) -> bytes:
    take = read_take(RECORDINGS / "openai_responses" / f"{name}.sse")
    return b"".join(chunk for _, chunk in take.chunks)


def calls(body: bytes) -> set[tuple[str, str]]:
    pipe = Normalizer("openai_responses", seed="s")
    events = pipe.feed(body) + pipe.close()
    return {(e.name, repr(e.arguments)) for e in events if e.kind == "tool_call"}


def with_one_letter_changed(body: bytes) -> list[bytes]:
    """Each letter or digit of each copy of the arguments, changed alone."""
    changed = []
    for match in SAID.finditer(body):
        for at in range(*match.span(1)):
            old = body[at : at + 1]
            if old.isalnum():
                new = (b"7" if old != b"7" else b"8") if old.isdigit() else b"Z"
                changed.append(body[:at] + new + body[at + 1 :])
    return changed


@pytest.mark.parametrize("name", ["parallel_calls", "interleaved_calls", "scenario_write_file"])
def test_a_change_in_one_copy_of_the_arguments_never_gives_a_wrong_call(name: str):
    body = wire(name)
    right = calls(body)
    mutants = with_one_letter_changed(body)
    assert right
    assert len(mutants) > 100
    assert [calls(m) - right for m in mutants if calls(m) - right] == []
