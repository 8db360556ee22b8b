"""Stencils: what is alike is read by its text alone, and nothing else is taken for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from streamnorm.core.stencil import NEVER, Stencil

PADDED = b'{"a":{"text":"hi"},"n":1,"pad":"x1"}'
BARE = b'{"a":{"text":"hi"},"n":1}'


def learnt(data: bytes, place: Any = 3, reads: bool = True) -> Stencil:
    stencil, said = Stencil(), msgspec.json.decode(data)

    def says(made: bytes, text: str, padding: str) -> bool:
        said["a"]["text"] = text
        if padding:
            said["pad"] = padding
        return reads and msgspec.json.decode(made) == said

    stencil.is_due(place)
    stencil.learn(data, b'"text":', b'"pad"', says)
    return stencil


def read(stencil: Stencil, data: bytes) -> str:
    rest = data.removeprefix(stencil.before)
    return "" if rest is data else stencil.text(rest)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (PADDED, "hi"),
        (b'{"a":{"text":"\\"}:\\u00e9\\\\"},"n":1,"pad":"zZ9"}', '"}:é\\'),
        ('{"a":{"text":"žluť"},"n":1,"pad":"q"}'.encode(), "žluť"),
        (b'{"a":{"text":"}, pad:"},"n":1,"pad":"q"}', "}, pad:"),
        (b'{"a":{"text":"hi" },"n":1,"pad":"x1"}', "hi"),  # and so is one behind it
        (b'{"a":{"text":"hi"},"n":2,"pad":"x1"}', ""),
        (b'{"a":{"text": "hi"},"n":1,"pad":"x1"}', "hi"),  # a space before it is JSON
        (b'{"b":{"text":"hi"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":"hi"},"n":1,"pad":"x1"', ""),
        (b'{"a":{"text":"hi"},"n":1,"pad":"x1"}}', ""),
        (b'{"a":{"text":"hi"},"n":1,"pad":"x-1"}', ""),  # padding has letters and digits alone
        (b'{"a":{"text":"hi"},"n":1,"pad":""}', ""),
        (b'{"a":{"text":"hi"},"n":1,"pad":"x"y"}', ""),
        (b'{"a":{"text":"hi"},"n":1,"pad":"x1"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":5},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":null},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":"h"i"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":"hi\\"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":"h\ti"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":"\\ud83d"},"n":1,"pad":"x1"}', ""),  # half a character
        (b'{"a":{"text":"\xff"},"n":1,"pad":"x1"}', ""),
        (b'{"a":{"text":""},"n":1,"pad":"x1"}', ""),
    ],
)
def test_a_payload_is_read_by_its_text_if_all_else_is_alike(data: bytes, text: str):
    assert read(learnt(PADDED), data) == text
    if text:
        assert msgspec.json.decode(data)["a"]["text"] == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (BARE, "hi"),
        (b'{"a":{"text":"},\\"n\\":1}"},"n":1}', '},"n":1}'),
        (b'{"a":{"text":"hi"},"n":1} ', ""),
        (b'{"a":{"text":"hi"},"n":1', ""),
        (PADDED, ""),
    ],
)
def test_without_padding_a_payload_ends_as_the_first_one_did(data: bytes, text: str):
    assert read(learnt(BARE), data) == text


@pytest.mark.parametrize(
    ("data", "reads"),
    [
        (PADDED, False),  # made with the stencil it says something else
        (b'{"b":"text","a":{}}', True),
        (b'{"a":{"text":5}}', True),
        (b'{"x":{"text":"no"},"a":{"text":"hi"}}', True),  # another's text comes first
        (b'{"a":{"text":"hi","text":"ho"}}', True),  # the last one counts
    ],
)
def test_nothing_is_learnt_of_a_payload_that_cannot_be_made_again(data: bytes, reads: bool):
    assert learnt(data, reads=reads).before == NEVER


def test_a_stencil_knows_its_place():
    assert learnt(PADDED, place=7).place == 7
    assert learnt(PADDED, place=None).place is None


def test_one_is_learnt_after_eight_of_its_place():
    stencil = Stencil()
    assert [stencil.is_due(0) for _ in range(10)] == [False] * 8 + [True] * 2


def test_where_places_alternate_nothing_is_learnt():
    stencil = Stencil()
    assert not any(stencil.is_due(number % 2) for number in range(1000))


def test_what_was_never_used_is_learnt_ever_more_seldom():
    stencil, waits = Stencil(), []
    for _ in range(12):
        waits.append(next(n for n in range(9999) if stencil.is_due(0)))
        stencil.learn(PADDED, b'"text":', b'"pad"', lambda made, text, padding: False)
    assert waits == [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096, 4096]


def test_what_was_used_is_learnt_again_soon():
    stencil = learnt(PADDED)
    assert read(stencil, PADDED) == "hi"
    stencil.learn(PADDED, b'"text":', b'"pad"', lambda made, text, padding: True)
    assert [stencil.is_due(3) for _ in range(9)] == [False] * 8 + [True]
