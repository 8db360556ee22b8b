"""PROVIDERS x recordings: the events of every take are those written beside it."""

from __future__ import annotations

import json

from streamnorm import Normalizer
from streamnorm.providers import PROVIDERS
from tests.conftest import (
    RECORDINGS,
    assert_well_formed,
    chunkings,
    load,
    noted,
    over_takes,
    run,
)
from tools.golden import golden_of, lines_of


@over_takes()
def test_a_take_gives_its_golden_events(path):
    golden = golden_of(path)
    assert golden.exists(), f"{golden.name} is missing: run make golden, and read what it wrote"
    told = lines_of(path)
    expected = golden.read_bytes().splitlines()
    for number, (line, wanted) in enumerate(zip(told, expected, strict=False), start=1):
        assert json.loads(line) == json.loads(wanted), f"{golden.name}, line {number}"
    assert len(told) == len(expected)


@over_takes(quick=100)
def test_a_take_as_it_came_gives_what_its_bytes_give(path):
    take, body = load(path)
    as_it_came = run(path.parent.name, [chunk for _, chunk in take.chunks], seed=take.seed)
    assert as_it_came == run(path.parent.name, [body], seed=take.seed)
    assert_well_formed(as_it_came)


@over_takes(quick=150)
def test_any_chunking_of_a_take_gives_the_same_events_and_notes(path):
    take, body = load(path)
    whole = Normalizer(path.parent.name, seed=take.seed)
    expected = whole.feed(body) + whole.close()
    for chunks in chunkings(body):
        pipe = Normalizer(path.parent.name, seed=take.seed)
        told = [event for chunk in chunks for event in pipe.feed(chunk)] + pipe.close()
        assert told == expected
        assert noted(pipe) == noted(whole)


@over_takes()
def test_a_take_says_what_it_proves_and_how_it_was_made(path):
    take, _ = load(path)
    assert take.provider == path.parent.name
    assert take.header["proves"]
    assert take.header["made"]
    assert take.seed


def test_every_provider_has_at_least_eight_takes():
    for name in PROVIDERS:
        assert len(list((RECORDINGS / name).glob("*.sse"))) >= 8, name
