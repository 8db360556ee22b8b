"""streamnorm.ui.preview: what is shown is true so far, and can be shown only."""

import copy
import json
import pickle

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Normalizer, ToolResult
from streamnorm.captures import read_take
from streamnorm.errors import UsageError
from streamnorm.events import (
    BrokenToolCall,
    Finish,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    event_to_json,
)
from streamnorm.testing import call, script
from streamnorm.ui.preview import PartialArgs, PartialList, Preview
from tests.conftest import over_takes


def shown(*pieces: str) -> PartialArgs:
    preview = Preview()
    preview.feed(ToolCallStart(0, "call_1", "f"))
    for piece in pieces:
        view = preview.feed(ToolCallDelta(0, piece))
    assert view is preview.of(0)
    return view


def plain(value):
    """A preview as plain values, for comparing."""
    if isinstance(value, PartialArgs):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, PartialList) else value


# --- what is shown is true so far -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seen", "closed"),
    [
        ("", {}, ()),
        ("{", {}, ()),
        ('{"a', {}, ()),
        ('{"a"', {}, ()),
        ('{"a":', {}, ()),
        ('{"a": 12', {}, ()),  # 12 or 120 or 12.5
        ('{"a": 12,', {"a": 12}, ("a",)),
        ('{"a": -0.5e2}', {"a": -50.0}, ("a",)),
        ('{"a": tru', {}, ()),
        ('{"a": true', {"a": True}, ("a",)),
        ('{"a": null, "b": ', {"a": None}, ("a",)),
        ('{"a": "Os', {"a": "Os"}, ()),
        ('{"a": "Oslo"', {"a": "Oslo"}, ("a",)),
        ('{"a": "x\\', {"a": "x"}, ()),
        ('{"a": "x\\n', {"a": "x\n"}, ()),
        ('{"a": "x\\u00e', {"a": "x"}, ()),
        ('{"a": "x\\u00e9', {"a": "xé"}, ()),
        ('{"a": "x\\ud83d', {"a": "x"}, ()),
        ('{"a": "x\\ud83d\\ude0', {"a": "x"}, ()),
        ('{"a": "x\\ud83d\\ude00', {"a": "x😀"}, ()),
        ('{"a": "x\\ud83d!', {"a": "x\ufffd!"}, ()),
        ('{"a": "x\\ud83d"', {"a": "x\ufffd"}, ("a",)),
        ('{"a": "x\\ude00"', {"a": "x\ufffd"}, ("a",)),
        ('{"a": [1, 2', {"a": [1]}, ()),
        ('{"a": [1, "two", {"b": "th', {"a": [1, "two", {"b": "th"}]}, ()),
        ('{"a": [[], {}], "b": {', {"a": [[], {}], "b": {}}, ("a",)),
        ('{"a": {"b": {"c": 1}}, "d": 2 ', {"a": {"b": {"c": 1}}, "d": 2}, ("a", "d")),
        ('{"a": 1, "a": "tw', {"a": "tw"}, ()),  # said twice: the last is open
        (' {"" : "x" } ', {"": "x"}, ("",)),
        ('{"a\\u0062": 1}', {"ab": 1}, ("ab",)),
    ],
)
def test_what_is_seen_of_a_beginning(text, seen, closed):
    for pieces in ([text], list(text) or [""]):
        view = shown(*pieces)
        assert plain(view) == seen
        assert view.closed_keys == closed


@pytest.mark.parametrize(
    "text",
    ['[{"a": 1}]', '"text"', "hello", '{"a": 01, "b": 2}', '{"a": nil, "b": 2}', '{a: 1}', '{"a" 1}',
     '{"a": "\\x", "b": 2}', '{"a": "\\u12g4", "b": 2}', '{"a": 1 2}', '{"a": +1}', '{"b": 1.}',
     '{"b":' + "9" * 5000 + "}"],
)  # fmt: skip
def test_what_is_no_json_object_stops_growing_and_is_no_error(text):
    for pieces in ([text], list(text)):
        assert "b" not in shown(*pieces, '"later": 1}')
        assert "later" not in shown(*pieces, '"later": 1}')


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.text(), values), st.booleans(), st.sampled_from([None, 2]), st.data())
def test_each_prefix_is_true_and_the_whole_is_the_whole(arguments, ascii_only, indent, data):
    text = json.dumps(arguments, ensure_ascii=ascii_only, indent=indent)
    preview = Preview()
    at = 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        view = preview.feed(ToolCallDelta(0, text[at : at + size]))
        at += size
        for key, value in view.items():
            assert is_beginning(plain(value), arguments[key])
            assert not view.closed(key) or plain(value) == arguments[key]
    assert plain(view) == arguments
    assert view.complete
    assert view.closed_keys == tuple(arguments)


def is_beginning(seen, whole) -> bool:
    if isinstance(seen, str) and isinstance(whole, str):
        return whole.startswith(seen)
    if isinstance(seen, list) and isinstance(whole, list):
        pairs = zip(seen, whole, strict=False)
        return len(seen) <= len(whole) and all(is_beginning(a, b) for a, b in pairs)
    if isinstance(seen, dict) and isinstance(whole, dict):
        return all(key in whole and is_beginning(seen[key], whole[key]) for key in seen)
    return type(seen) is type(whole) and seen == whole


@over_takes(quick=100)
def test_the_preview_of_any_take_agrees_with_its_calls(path, replayed):
    preview, last, told = Preview(), {}, {}
    for event in replayed(path):
        view = preview.feed(event)
        if isinstance(event, ToolCallDelta):
            last[event.call] = view
            told[event.call] = told.get(event.call, "") + event.text
        # What was told twice, mended or corrected at the end is not what was seen growing.
        if isinstance(event, ToolCall) and event.family == "function":
            seen = plain(last[event.call]) if event.call in last else None
            assert told.get(event.call) != event.raw or seen == event.arguments
    assert not preview._readers


@pytest.fixture
def replayed():
    def replay(path):
        take = read_take(path)
        pipe = Normalizer(take.provider or "auto", seed=take.seed)
        return pipe.feed(take.wire) + pipe.close()

    return replay


def test_parallel_calls_are_kept_apart_and_let_go_when_they_are_whole():
    preview, seen = Preview(), {}
    for event in script(call("f", a="one"), call("g", b="two")).events("openai_responses"):
        view = preview.feed(event)
        if view is not None:
            seen[event.call] = plain(view)
        if isinstance(event, ToolCall):
            assert preview.of(event.call) is None
    assert seen == {0: {"a": "one"}, 1: {"b": "two"}}


@pytest.mark.parametrize("end", [BrokenToolCall(0, "i", "f", "", "truncated"), Finish("stop")])
def test_an_end_lets_go(end):
    preview = Preview()
    preview.feed(ToolCallDelta(0, '{"a": 1'))
    assert preview.feed(end) is None
    assert preview.of(0) is None


def test_nesting_beyond_the_limit_stops_growing():
    assert plain(shown('{"a":' + "[" * 200_000))["a"]


def test_a_view_looks_like_a_mapping():
    view = shown('{"city": "Oslo", "days": [1, 2, {"a": ')
    assert (len(view), list(view), "city" in view, view.get("x", 7)) == (
        2,
        ["city", "days"],
        True,
        7,
    )
    assert (len(view["days"]), view["days"][1], view["days"].complete) == (3, 2, False)
    assert repr(view) == "<preview {'city': 'Oslo', 'days': <preview [1, 2, <preview {}>…]>…}>"
    with pytest.raises(KeyError):
        view["x"]


# --- and can be shown only ------------------------------------------------------------------------

REFUSED = {
    "dict": dict,
    "unpacking": lambda view: (lambda **named: named)(**view),
    "json": json.dumps,
    "json, nested": lambda view: json.dumps({"a": [view]}),
    "orjson": orjson.dumps,
    "msgspec": msgspec.json.encode,
    "msgspec builtins": msgspec.to_builtins,
    "msgpack": msgspec.msgpack.encode,
    "pickle": pickle.dumps,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "hash": hash,
    "convert": lambda view: msgspec.convert(view, dict),
    "an event": lambda view: event_to_json(ToolCall(0, "i", "f", view, "")),
    "a checksum": lambda view: ToolCall(0, "i", "f", view, "").checksum,
}


@pytest.mark.parametrize("way", REFUSED)
@pytest.mark.parametrize("text", ['{"ab": "x', '{"ab": "x"}', "{"])
def test_nothing_takes_a_preview_for_arguments(way, text):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        REFUSED[way](shown(text))


def test_no_result_can_be_given_to_a_preview():
    with pytest.raises(UsageError):
        ToolResult.for_call(shown('{"a": 1}'), "done")


def test_a_preview_is_no_mapping_and_no_list():
    from collections.abc import Mapping, Sequence

    view = shown('{"a": [1')
    assert not isinstance(view, dict | Mapping)
    assert not isinstance(view["a"], list | Sequence)
