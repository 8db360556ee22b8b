"""Ids that the gateway has given out stand for one call, and for the provider that made it."""

from __future__ import annotations

from streamnorm.encoding.encoder import Encoder
from streamnorm.encoding.ids import Grammar
from streamnorm.events import Provenance, ToolCallStart
from streamnorm.gateway.ids import ServedIds
from streamnorm.gateway.restoring import returned
from streamnorm.gateway.store import Kept, MemoryStore
from streamnorm.providers import provider_row


def test_an_id_that_the_store_knows_is_given_to_no_other_call():
    store = MemoryStore()
    store.put("call_1", Kept("theirs", "now", Provenance("natural")))
    ids = ServedIds(Grammar("[a-z0-9_]{1,20}"), set(), store)
    assert ids(0, ToolCallStart(0, "call_1", "now")) != "call_1"
    assert ids(1, ToolCallStart(1, "call_2", "now")) == "call_2"


def test_an_id_of_another_provider_is_put_into_no_request_that_is_handed_on():
    wire, store = provider_row("anthropic"), MemoryStore()
    served = wire.part("encoder", Encoder).grammar.made_from("g1", "salt")
    body = b'{"tool_use_id":"%b"}' % served.encode()
    store.put(served, Kept("g1", "now", Provenance("natural", provider="gemini")))
    assert returned(body, wire, store) == body
    store.put(served, Kept("a1", "now", Provenance("natural", provider="anthropic")))
    assert returned(body, wire, store) == b'{"tool_use_id":"a1"}'
