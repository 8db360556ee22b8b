"""Values of another type than the wire's, anywhere: no exception, one ending, and no handler surprised."""

from __future__ import annotations

import random

import pytest

from streamnorm import Normalizer, event_to_json
from streamnorm.captures import read_take
from streamnorm.providers import PROVIDERS
from tests.conftest import RECORDINGS, assert_well_formed, piped

OTHERS = (b"null", b"[]", b'{"k":1}', b"5", b'"text"', b"true", b"[[]]", b"-1.5", b'[{"type":[]}]')
MUTANTS = 400


def mutants(provider: str) -> list[bytes]:
    """Takes in which the value behind some colon is another: the old one moves to a field ``z``."""
    rng = random.Random(provider)
    wires = [read_take(path).wire for path in sorted((RECORDINGS / provider).glob("*.sse"))]
    made = []
    for _ in range(MUTANTS):
        body = rng.choice(wires)
        for _ in range(rng.randint(1, 2)):
            at = body.find(b'":', rng.randrange(len(body))) + 2
            body = body[:at] + rng.choice(OTHERS) + b',"z":' + body[at:]
        made.append(body)
    return made


@pytest.mark.parametrize(
    "provider", [p for p in PROVIDERS if p != "bedrock"]
)  # its frames have checksums
def test_a_value_of_another_type_surprises_no_handler(provider: str):
    for body in mutants(provider):
        events, pipe = piped(provider, [body])
        assert_well_formed(events)
        assert [event_to_json(event) for event in events]
        assert pipe.notes["wire.unreadable"] == 0, (events[-1], body)


def test_a_handler_that_is_surprised_all_the_same_ends_the_stream_with_our_own_words(monkeypatch):
    pipe = Normalizer("ollama")
    table = {kind: lambda parser, payload, out: len(None) for kind in pipe._parser.KINDS}
    monkeypatch.setattr(pipe._parser, "KINDS", table)
    events = pipe.feed(b'{"model":"m","message":{"content":"Hi"},"done":false}\n')
    assert (events[-1].kind, events[-1].reason) == ("failed", "protocol")
    assert "TypeError" in events[-1].error
    assert pipe.notes["wire.unreadable"] == 1
