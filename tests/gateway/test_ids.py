"""Ids that the gateway has given out stand for one call, and for the provider that made it."""

from __future__ import annotations

import msgspec

from streamnorm.encoding.encoder import Encoder
from streamnorm.encoding.ids import Grammar
from streamnorm.events import Provenance, ToolCall, ToolCallStart
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


def test_two_conversations_at_once_never_share_an_id_of_their_calls():
    """Else the thoughts and the signature of the one would go back to the provider with the other."""
    store, grammar = MemoryStore(), Grammar("[a-z0-9_]{1,20}")
    one, other = ServedIds(grammar, set(), store), ServedIds(grammar, set(), store)
    start, whole = ToolCallStart(0, "call_1", "now"), ToolCall(0, "call_1", "now", {}, "{}")
    assert one(0, start) == "call_1"
    served = other(0, start)
    assert served != "call_1"
    one.keep(msgspec.structs.replace(whole, echo={"signature": "of one"}))
    other.keep(whole)
    assert store.get("call_1").echo == {"signature": "of one"}
    assert (store.get(served).id, store.get(served).echo) == ("call_1", None)


def test_a_call_that_needs_nothing_kept_has_its_id_for_itself_all_the_same():
    """A later conversation would else put its own signature under that id, for both."""
    store, grammar = MemoryStore(), Grammar("[a-z0-9_]{1,20}")
    whole = ToolCall(0, "call_1", "now", {}, "{}")
    ServedIds(grammar, set(), store).keep(whole)
    later = ServedIds(grammar, set(), store)
    later.keep(msgspec.structs.replace(whole, echo={"signature": "of the later"}))
    assert later(0, whole) != "call_1"
    assert store.get("call_1").echo is None


def test_a_call_that_its_provider_runs_itself_is_not_kept():
    store = MemoryStore()
    ids = ServedIds(Grammar("[a-z0-9_]{1,20}"), set(), store)
    assert ids(0, ToolCallStart(0, "search_1", "search", runs_on="provider")) == "search_1"
    assert store.get("search_1") is None


def test_an_id_of_another_provider_is_put_into_no_request_that_is_handed_on():
    wire, store = provider_row("anthropic"), MemoryStore()
    served = wire.part("encoder", Encoder).grammar.made_from("g1", "salt")
    body = b'{"tool_use_id":"%b"}' % served.encode()
    store.put(served, Kept("g1", "now", Provenance("natural", provider="gemini")))
    assert returned(body, wire, store) == body
    store.put(served, Kept("a1", "now", Provenance("natural", provider="anthropic")))
    assert returned(body, wire, store) == b'{"tool_use_id":"a1"}'
