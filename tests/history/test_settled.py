"""A settled record: normalised arguments, a computed checksum, three shapes of results."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import File, ToolCall, event_to_dict, event_to_json
from streamnorm.errors import UsageError
from streamnorm.history.errors import StoreCorrupt
from streamnorm.history.rows import settled_from_bytes, settled_to_bytes
from streamnorm.history.settled import Settled, as_results
from streamnorm.history.spool import Artifact, Spool

CALL = ToolCall(0, "call_1", "weather", {"city": "Oslo"}, '{"city":"Oslo"}')
PICTURE = File(b"\x89PNG", "image/png")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), ("", {}), ('{"n": 1180591620717411303424}', {"n": 2**70})],
)  # fmt: skip
def test_arguments_are_an_object_whether_given_as_one_or_as_text(arguments, expected):
    assert Settled("c", "f", arguments).arguments == expected


@pytest.mark.parametrize("arguments", ["[1]", "{", '{"a":1,"a":2}', [1], None, "NaN"])
def test_arguments_that_are_no_object_are_refused(arguments):
    with pytest.raises(UsageError, match="arguments"):
        Settled("c", "f", arguments)


def test_the_checksum_is_that_of_the_call_and_cannot_be_set():
    record = Settled.of(CALL, Artifact.of("7"))
    assert record.checksum == CALL.checksum
    with pytest.raises(TypeError):
        Settled("c", "f", {}, checksum="x")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        record.checksum = "x"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.name = "other"  # type: ignore[misc]


def test_a_record_has_arguments_of_its_own():
    said = {"paths": ["a"]}
    record = Settled("c", "f", said)
    said["paths"].append("b")
    record.arguments["paths"].append("c")
    assert record.arguments == {"paths": ["a"]}
    assert record.is_intact


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "other"), ("_arguments", {"city": "Rome"}), ("checksum", "0" * 64)],
)
def test_a_record_that_was_changed_is_neither_told_nor_stored(field, value):
    record = Settled.of(CALL, Artifact.of("7"))
    object.__setattr__(record, field, value)
    assert not record.is_intact
    for use in (record.result, lambda: settled_to_bytes(record)):
        with pytest.raises(UsageError, match=r"'call_1' .* was changed after the call had settled"):
            use()


def test_a_stored_record_that_was_changed_is_detected():
    data = settled_to_bytes(Settled.of(CALL, Artifact.of("7")))
    with pytest.raises(StoreCorrupt, match="'call_1' is not what the call settled with"):
        settled_from_bytes(data.replace(b"Oslo", b"Rome"))


def test_a_record_as_plain_values_has_its_kind():
    record = Settled.of(CALL, Artifact.of("7"), seconds=0.5)
    plain = event_to_dict(record)
    assert {key: plain[key] for key in ("kind", "id", "name", "arguments", "checksum", "seconds")} == {
        "kind": "settled", "id": "call_1", "name": "weather", "arguments": {"city": "Oslo"},
        "checksum": CALL.checksum, "seconds": 0.5,
    }  # fmt: skip
    assert plain["results"]["kind"] == "artifact"
    assert json.loads(event_to_json(record)) == plain


@pytest.mark.parametrize("wrong", ["call_1", None, 5, {"id": "call_1"}])
def test_a_record_is_of_a_call_not_of_an_id(wrong):
    with pytest.raises(UsageError, match="a record is of a ToolCall, not"):
        Settled.of(wrong)
    with pytest.raises(UsageError, match=r"Settled\.of\(call"):
        Settled(wrong if wrong != "call_1" else "", "f", {})


def test_equal_calls_have_equal_checksums_whatever_the_order_of_their_keys():
    one = Settled("c1", "f", '{"a": 1.0, "b": [2]}')
    other = Settled("c2", "f", {"b": [2], "a": 1})
    assert one.checksum == other.checksum


@pytest.mark.parametrize(
    ("results", "output"),
    [
        (Artifact.of("text"), "text"),
        (Artifact.of({"json": [2**70]}), {"json": [2**70]}),
        ([Artifact.of("a"), Artifact.of("b")], ["a", "b"]),
        (PICTURE, [PICTURE]),
        ([PICTURE, PICTURE], [PICTURE, PICTURE]),
        (None, ""),
    ],
)
def test_each_shape_of_results_is_shown(results, output):
    assert Settled.of(CALL, results).result(CALL).output == output


def test_plain_text_is_the_result_of_artifact_tools_only():
    record = Settled("c", "artifact_head", {}, "three lines", from_artifact_tool=True)
    assert record.result().output == "three lines"
    assert not record.is_handle
    with pytest.raises(UsageError, match="Artifact"):
        Settled("c", "f", {}, "plain")
    with pytest.raises(UsageError, match="artifact tool"):
        Settled("c", "artifact_head", {}, Artifact.of("x"), from_artifact_tool=True)


def test_what_is_not_inline_is_shown_as_a_handle():
    artifact = Artifact.of("secret\nlines\n", name="build.log")
    record = Settled.of(CALL, artifact, inline=False)
    shown = record.result(CALL).output
    assert "build.log: text, 13 bytes, 2 lines" in shown
    assert '"call_1"' in shown
    assert "secret" not in shown
    assert record.is_handle


def test_an_error_is_an_error_result():
    result = Settled.of(CALL, error="it broke").result(CALL)
    assert (result.output, result.is_error) == ("it broke", True)


def test_a_record_answers_its_own_call_only():
    with pytest.raises(UsageError, match="call_1"):
        Settled.of(CALL, Artifact.of("7")).result(ToolCall(0, "call_2", "weather", {}, "{}"))


def test_halves_of_surrogate_pairs_are_kept_and_never_sent():
    record = Settled.of(CALL, Artifact.of("\ud83d\ude00 \ud800"))
    assert Spool().value(record.artifacts[0]) == "\ud83d\ude00 \ud800"
    assert record.result(CALL).output == "😀 \ufffd"


def test_what_a_handler_returns_takes_one_of_the_shapes():
    spool = Spool()
    assert as_results(PICTURE, spool) is PICTURE
    assert as_results([PICTURE, "and text"], spool) == (PICTURE, Artifact.of("and text"))
    assert as_results(None, spool).content == b"null"
    with pytest.raises(UsageError, match="JSON value"):
        as_results(object(), spool)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
any_text = st.text(st.characters(codec=None, categories=None))  # halves of pairs, NUL, all of it
results = st.one_of(
    st.none(),
    any_text.map(Artifact.of),
    st.binary().map(Artifact.of),
    json_values.filter(lambda v: not isinstance(v, str | bytes)).map(lambda v: Artifact.of([v])),
    st.lists(st.binary().map(lambda b: File(b, "image/png")) | any_text.map(Artifact.of)),
)


@given(
    arguments=st.dictionaries(any_text, json_values, max_size=4),
    results=results,
    error=st.none() | any_text,
    inline=st.booleans(),
)
def test_a_record_is_stored_and_read_without_loss(arguments, results, error, inline):
    record = Settled("id\0\ud800", "f", arguments, results, error=error, inline=inline, seconds=0.5)
    again = settled_from_bytes(settled_to_bytes(record))
    assert again == record
    assert list(again.arguments) == list(arguments)
