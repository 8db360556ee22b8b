"""What is JSON, what is not, and what parsers disagree on, as the arguments of calls on several wires.

The categories are those of the well-known suites of JSON (structure, numbers, strings, Unicode, depth; what
must be read, what must not, what is left to the parser); the cases are written here. Each text stands in a
call as an argument, beside a call that is in order. It is read exactly or the call is broken, with the
right reason; the other call is whole in any case, and nothing is rounded, dropped or guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from streamnorm.events import BrokenToolCall, ToolCall
from tests.conftest import Chat, Messages, broken_of, calls_of, piped, sse, tr

DEEP = 128  # levels of arguments that are read; the object around the value is one of them


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


# What must be read, and the value that it is.
MUST: dict[str, dict[str, tuple[str, Any]]] = {
    "structure": {
        "an empty array": ("[]", []),
        "an array of one": ("[1]", [1]),
        "white space in an array": ("[ 1 , 2 ]", [1, 2]),
        "an array of every kind": (
            '[null,1,"1",{},[],true,false]',
            [None, 1, "1", {}, [], True, False],
        ),
        "an array that ends in a line": ("[1\n]", [1]),
        "an array behind a tab": ("\t[1]", [1]),
        "arrays in arrays": ("[[]   ,[[]]]", [[], [[]]]),
        "an empty object": ("{}", {}),
        "an object": ('{"a":"b","c":[{"d":1}]}', {"a": "b", "c": [{"d": 1}]}),
        "an empty key": ('{"":0}', {"": 0}),
        "a key with an escape": (r'{"a\u0062\"":1}', {'ab"': 1}),
        "a key with a NUL": (r'{"a\u0000":1}', {"a\0": 1}),
        "a long key": ('{"%s":1}' % ("k" * 500), {"k" * 500: 1}),
        "lines in an object": ('{\n"a"\r\n:\t1\n}', {"a": 1}),
        "alone: null": ("null", None),
        "alone: true": ("true", True),
        "alone: false": ("false", False),
        "white space around": (" \t\r\n[1] \n", [1]),
        "keys that are alike": ('{"a":1,"A":2,"a ":3}', {"a": 1, "A": 2, "a ": 3}),
    },
    "numbers": {
        "zero": ("0", 0),
        "minus zero": ("-0", 0),
        "minus zero, a fraction": ("-0.0", -0.0),
        "one digit": ("7", 7),
        "minus one": ("-1", -1),
        "many digits": ("-123123123123123123123123123123", -123123123123123123123123123123),
        "2**53 + 1": ("9007199254740993", 9007199254740993),
        "2**64": ("18446744073709551616", 2**64),
        "a fraction": ("123.456789", 123.456789),
        "a long fraction": ("0." + "0" * 60 + "1", 1e-61),
        "an exponent": ("1e2", 100.0),
        "a capital exponent": ("1E22", 1e22),
        "a plus exponent": ("1e+2", 100.0),
        "a minus exponent": ("1E-2", 0.01),
        "zero with an exponent": ("0e1", 0.0),
        "zero, plus exponent": ("0e+1", 0.0),
        "a fraction and an exponent": ("123.456e78", 1.23456e80),
        "close to zero": ("-0.0000000001", -1e-10),
        "the largest double": ("1.7976931348623157e308", 1.7976931348623157e308),
        "the smallest": ("5e-324", 5e-324),
        "a number behind a blank": (" 4", 4),
        "4,300 digits": ("9" * 4300, int("9" * 4300)),
    },
    "strings": {
        "an empty text": ('""', ""),
        "a text": ('"asd"', "asd"),
        "a blank": ('" "', " "),
        "DEL": ('"\x7f"', "\x7f"),
        "all short escapes": (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t'),
        "a slash": ('"/\\/"', "//"),
        "an escaped backslash before an n": (r'"\\n"', "\\n"),
        "an escaped backslash before a u": (r'"\\u0041"', r"\u0041"),
        "a backslash and a quote": (r'"\\\""', '\\"'),
        "a comment in a text": ('"a/*b*/c//d"', "a/*b*/c//d"),
        "an escaped NUL": (r'"a\u0000b"', "a\0b"),
        "an escaped control": (r'"\u001f\u0012"', "\x1f\x12"),
        "a long text": ('"%s"' % ("x" * 20_000), "x" * 20_000),
    },
    "unicode": {
        "two bytes": ('"é"', "é"),
        "three bytes": ('"日本"', "日本"),
        "four bytes": ('"😀"', "😀"),
        "an escape": (r'"\u00e9\u00E9"', "éé"),
        "a pair": (r'"\ud83d\ude39"', "😹"),
        "two pairs": (r'"\ud83d\ude39\uD83D\uDC8D"', "😹💍"),
        "the last pair": (r'"\udbff\udfff"', "\U0010ffff"),
        "a noncharacter": (r'"\uffff\ufdd0"', "\uffff\ufdd0"),
        "the last character": ('"\U0010ffff"', "\U0010ffff"),
        "line separators": ('"\u2028\u2029"', "\u2028\u2029"),
        "NEL and NBSP": ('"\x85\xa0"', "\x85\xa0"),
        "a mark inside": ('"\ufeff"', "\ufeff"),
        "combined": ('"e\u0301"', "e\u0301"),
        "bidi": ('"\u202eabc"', "\u202eabc"),
        "private": ('"\ue000"', "\ue000"),
        "an escaped separator": (r'"\u2028"', "\u2028"),
    },
    "depth": {
        "as deep as allowed": ("[" * (DEEP - 1) + "0" + "]" * (DEEP - 1), nested(DEEP - 1)),
        "500 levels side by side": ("[" + ",".join(["[]"] * 500) + "]", [[]] * 500),
    },
}

# What must not be read.
MUST_NOT: dict[str, dict[str, str]] = {
    "structure": {
        "a comma too many": "[1,]",
        "two commas": "[1,,2]",
        "a comma first": "[,1]",
        "only a comma": "[,]",
        "no comma": "[1 2]",
        "a colon in an array": "[1:2]",
        "not closed": "[1",
        "not closed, with a comma": "[1,",
        "closed by another": "[1}",
        "closed twice": "[1]]",
        "an object not closed": '{"a":1',
        "an object closed twice": '{"a":1}}',
        "a comma in an object": '{"a":1,}',
        "two commas in an object": '{"a":1,,"b":2}',
        "a comma first in an object": '{,"a":1}',
        "no colon": '{"a" 1}',
        "two colons": '{"a"::1}',
        "a comma for a colon": '{"a",1}',
        "no value": '{"a":}',
        "no key": "{:1}",
        "only a key": '{"a"}',
        "a key without quotes": "{a:1}",
        "a number for a key": "{1:1}",
        "null for a key": "{null:null}",
        "single quotes": "{'a':0}",
        "a key in an object alone": '{"a":"b",c}',
        "a star": "[*]",
        "a word": "[a]",
        "nul": "nul",
        "tru": "tru",
        "fals": "fals",
        "True": "True",
        "None": "None",
        "undefined": "undefined",
        "an open object": "{",
        "an open array": "[",
        "a closed one": "]",
        "a comment": "[1]/**/",
        "a line comment": "[1]//x",
        "a comment inside": "[/**/1]",
        "a hash": "[1]#",
        "two values": "[][]",
        "text behind": "[1]x",
        "a semicolon": "[1];",
        "a form feed": "[\x0c]",
        "a vertical tab": "[\x0b1]",
        "a NUL": "[\x00]",
        "a blank of another kind": "[\xa01]",
        "a zero width blank": "[1]\u2060",
        "a mark before it": "\ufeff[1]",
        "escaped white space": r"[\u000A]",
        "angle brackets": "<.>",
        "a null and more": "<null>",
        "brackets by the wrong end": "][",
        "a sum": "[1+2]",
        "a function": "f(1)",
    },
    "numbers": {
        "a plus": "+1",
        "a double plus": "++1",
        "a lone minus": "-",
        "minus minus": "--1",
        "minus a word": "-foo",
        "minus blank": "- 1",
        "leading zero": "01",
        "minus leading zero": "-012",
        "zeros": "00",
        "no digit before": ".5",
        "minus none before": "-.5",
        "none behind": "1.",
        "minus none behind": "-2.",
        "none, exponent": "2.e3",
        "an exponent without digits": "1e",
        "plus without digits": "1e+",
        "minus without digits": "1.0e-",
        "two exponents": "1eE2",
        "a broken exponent": "0.1.2",
        "an exponent of a fraction": "1e2.5",
        "hexadecimal": "0x42",
        "octal": "0o7",
        "binary": "0b1",
        "an underscore": "1_000",
        "a comma for a point": "[1,000]x",
        "NaN": "NaN",
        "minus NaN": "-NaN",
        "Infinity": "Infinity",
        "minus Infinity": "-Infinity",
        "Inf": "Inf",
        "nan": "nan",
        "a suffix": "1L",
        "a float suffix": "1.5f",
        "a blank inside": "1 000",
        "full width": "\uff11",
        "arabic digits": "\u0661",
        "an infinity sign": "\u221e",
        "a fraction sign": "\xbd",
        "a letter behind": "1a",
        "e alone": "e1",
        "only a point": ".",
    },
    "strings": {
        "not closed": '"a',
        "a quote alone": '"',
        "closed by another quote": "\"a'",
        "a quote inside": '"a"b"',
        "an unknown escape": r'"\a"',
        "an escaped apostrophe": r'''"\'"''',
        "x": r'"\x00"',
        "octal": r'"\012"',
        "a capital U": r'"\U0041"',
        "u without digits": r'"\u"',
        "u with one": r'"\u1"',
        "u with three": r'"\u00A"',
        "u with a letter": r'"\u00g0"',
        "u with a sign": r'"\u+041"',
        "u with a blank": r'"\u 041"',
        "u with braces": r'"\u{1F600}"',
        "an escape at the end": '"\\',
        "an escaped end": r'"\"',
        "a raw tab": '"\t"',
        "a raw line": '"a\nb"',
        "a raw return": '"a\rb"',
        "a raw NUL": '"a\x00b"',
        "a raw escape": '"\x1b"',
        "a raw unit separator": '"\x1f"',
        "an escaped line": '"\\\n"',
        "an escaped emoji": '"\\\U0001f600"',
        "quotes of a typesetter": "\u201ca\u201d",
        "a backtick": "`a`",
        "no quotes": "abc",
        "three quotes": '"""a"""',
        "pieces side by side": '"a" "b"',
        "a sum of texts": '"a"+"b"',
    },
}

# What is left to the parser: read exactly, or refused; never something else. ``Refused`` marks those.
REFUSED = object()
LEFT: dict[str, dict[str, tuple[str, Any]]] = {
    "numbers": {
        "beyond a double": ("1e309", REFUSED),
        "minus beyond a double": ("-1e9999", REFUSED),
        "a huge exponent": ("0.4e00669999999999", REFUSED),
        "a huge minus exponent": ("123.456e-789", 0.0),
        "zero with a huge exponent": ("0e999999999", 0.0),
        "smaller than any double": ("1e-400", 0.0),
        "more digits than a double has": ("0.1000000000000000055511151231257827", 0.1),
        "beyond 4,300 digits": ("9" * 4301, REFUSED),
    },
    "objects": {
        "a key twice": ('{"a":1,"a":2}', REFUSED),
        "a key and a value twice": ('{"a":1,"a":1}', REFUSED),
        "an empty key twice": ('{"":1,"":2}', REFUSED),
        "a key twice, once escaped": (r'{"a":1,"\u0061":2}', REFUSED),
        "a key twice, further in": ('[{"b":{"a":1,"a":2}}]', REFUSED),
    },
    "unicode": {
        "a first half": (r'"\ud800"', REFUSED),
        "a second half": (r'"\udead"', REFUSED),
        "halves the wrong way round": (r'"\ude39\ud83d"', REFUSED),
        "two first halves": (r'"\ud800\ud800"', REFUSED),
        "a half and a letter": (r'"\ud800abc"', REFUSED),
        "a half and an escape": (r'"\ud800\n"', REFUSED),
        "a half in a key": (r'{"\ud800":1}', REFUSED),
        "a half and half an escape": (r'"\ud83d\u00e9"', REFUSED),
    },
    "depth": {
        "one level too deep": ("[" * DEEP + "0" + "]" * DEEP, REFUSED),
        "500 levels": ("[" * 500 + "]" * 500, REFUSED),
        "100,000 levels": ("[" * 100_000 + "]" * 100_000, REFUSED),
        "100,000 objects": ('{"":' * 100_000 + "0" + "}" * 100_000, REFUSED),
        "100,000 that never end": ("[" * 100_000, REFUSED),
    },
}


def wrapped(text: str) -> str:
    return '{"v":' + text + "}"


def events_of(wire: str, body: bytes) -> list[Any]:
    """In any chunking; what is very long, as a whole."""
    return tr(wire, body) if len(body) < 50_000 else piped(wire, [body])[0]


def rows(*tables: Any) -> list[Any]:
    return [
        pytest.param(case, id=f"{category}: {name}")
        for table in tables
        for category, cases in table.items()
        for name, case in cases.items()
    ]


# --- wires: two calls, the second of which is in order --------------------------------------------

GOOD = '{"city":"Oslo"}'


def chat(text: str) -> bytes:
    half = len(text) // 2
    return (
        Chat.call(0, "a", "f", text[:half]) + Chat.call(0, None, None, text[half:])
        + Chat.call(1, "b", "g", GOOD) + Chat.end() + Chat.DONE
    )  # fmt: skip


def messages(text: str) -> bytes:
    third = len(text) // 3
    pieces = [text[:third], text[third : 2 * third], text[2 * third :]]
    return (
        Messages.START + Messages.open(0, "a", "f") + b"".join(Messages.args(0, p) for p in pieces)
        + Messages.close(0) + Messages.open(1, "b", "g") + Messages.args(1, GOOD) + Messages.close(1)
        + Messages.end()
    )  # fmt: skip


def responses(text: str) -> bytes:
    body, items = b"", []
    for at, (id, name, args) in enumerate((("a", "f", text), ("b", "g", GOOD))):
        item = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name}
        items.append({**item, "arguments": args, "status": "completed"})
        place = {"output_index": at, "item_id": item["id"]}
        body += (
            said("output_item.added", output_index=at, item={**item, "arguments": "", "status": "in_progress"})
            + said("function_call_arguments.delta", **place, delta=args)
            + said("function_call_arguments.done", **place, arguments=args)
            + said("output_item.done", output_index=at, item=items[-1])
        )  # fmt: skip
    done = {"id": "resp_1", "model": "m", "status": "completed", "output": items}
    created = said("created", response={"id": "resp_1", "model": "m", "output": []})
    return created + body + said("completed", response=done)


def said(kind: str, **fields: Any) -> bytes:
    return sse({"type": f"response.{kind}", **fields})


def cohere(text: str) -> bytes:
    def call(at: int, id: str, name: str, args: str) -> bytes:
        function = {"name": name, "arguments": ""}
        started = {"id": id, "type": "function", "function": function}
        return (
            sse({"type": "tool-call-start", "index": at, "delta": {"message": {"tool_calls": started}}})
            + sse({"type": "tool-call-delta", "index": at,
                   "delta": {"message": {"tool_calls": {"function": {"arguments": args}}}}})
            + sse({"type": "tool-call-end", "index": at})
        )  # fmt: skip

    return (
        sse({"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}})
        + call(0, "a", "f", text) + call(1, "b", "g", GOOD)
        + sse({"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}})
    )  # fmt: skip


WIRES: dict[str, Callable[[str], bytes]] = {
    "openai_chat": chat, "anthropic": messages, "openai_responses": responses, "cohere": cohere,
}  # fmt: skip
every_wire = pytest.mark.parametrize("wire", WIRES)


SURPLUS = [
    MUST_NOT["structure"][name]
    for name in (
        "closed twice", "an object closed twice", "a closed one", "brackets by the wrong end",
    )
]  # fmt: skip


def heard(wire: str, text: str) -> ToolCall | BrokenToolCall:
    """The call whose arguments these are. The other one is whole, whatever they are."""
    events = events_of(wire, WIRES[wire](text))
    good = [call for call in calls_of(events) if call.id == "b"]
    if wire == "openai_chat" and not good:
        # No call is closed by itself there: a bracket too many may be of the next call, and is told so.
        assert [call.reason for call in broken_of(events) if call.id == "b"] == ["conflict"]
        assert any(surplus in text for surplus in SURPLUS)
    else:
        assert [call.arguments for call in good] == [{"city": "Oslo"}]
    assert events[-1].kind == "finish"
    (call,) = [call for call in [*calls_of(events), *broken_of(events)] if call.id == "a"]
    assert call.raw == text
    return call


def same(value: Any, expected: Any) -> bool:
    """Equal, and of the same types and signs."""
    return bool(value == expected) and (repr(value) == repr(expected) if _short(expected) else True)


def _short(value: Any) -> bool:
    return not isinstance(value, int) or value.bit_length() < 10_000


@every_wire
@pytest.mark.parametrize("case", rows(MUST))
def test_what_must_be_read_is_read_exactly(wire: str, case: tuple[str, Any]):
    text, value = case
    call = heard(wire, wrapped(text))
    assert isinstance(call, ToolCall)
    assert same(call.arguments, {"v": value})


@every_wire
@pytest.mark.parametrize("case", rows(MUST))
def test_arguments_are_an_object(wire: str, case: tuple[str, Any]):
    text, value = case
    call = heard(wire, text)
    if isinstance(value, dict):
        assert isinstance(call, ToolCall)
        assert same(call.arguments, value)
    else:
        assert isinstance(call, BrokenToolCall)
        assert call.reason == "not_object"


@every_wire
@pytest.mark.parametrize("text", rows(MUST_NOT))
def test_what_must_not_be_read_breaks_its_call(wire: str, text: str):
    for arguments in (wrapped(text), '{"v":[' + text + '],"w":1}', text):
        call = heard(wire, arguments)
        assert isinstance(call, BrokenToolCall), arguments
        assert call.reason == "invalid_json"


@every_wire
@pytest.mark.parametrize("case", rows(LEFT))
def test_what_is_left_to_the_parser_is_exact_or_broken(wire: str, case: tuple[str, Any]):
    text, value = case
    call = heard(wire, wrapped(text))
    if value is REFUSED:
        assert isinstance(call, BrokenToolCall)
        assert call.reason in ("invalid_json", "limit")
    else:
        assert isinstance(call, ToolCall)
        assert same(call.arguments, {"v": value})


# --- wires that write an object where others write its text ---------------------------------------


def gemini(value: str) -> bytes:
    chunk = (
        '{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":'
        + wrapped(value) + '}},{"functionCall":{"name":"g","args":' + GOOD
        + '}}]},"finishReason":"STOP"}]}'
    )  # fmt: skip
    return b"data: " + chunk.encode("utf-8", "surrogatepass") + b"\n\n"


def ollama(value: str) -> bytes:
    line = (
        '{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f",'
        '"arguments":' + wrapped(value) + '}},{"function":{"name":"g","arguments":' + GOOD
        + '}}]},"done":false}\n'
        '{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
    )  # fmt: skip
    return line.encode("utf-8", "surrogatepass")


OBJECTS: dict[str, Callable[[str], bytes]] = {"gemini": gemini, "ollama": ollama}
every_object = pytest.mark.parametrize("wire", OBJECTS)


def in_one_line(text: str) -> bool:
    return "\n" not in text and "\r" not in text


@every_object
@pytest.mark.parametrize("case", [row for row in rows(MUST) if in_one_line(row.values[0][0])])
def test_an_object_is_read_exactly(wire: str, case: tuple[str, Any]):
    text, value = case
    first, second = calls_of(events_of(wire, OBJECTS[wire](text)))
    assert same(first.arguments, {"v": value})
    assert second.arguments == {"city": "Oslo"}


@every_object
@pytest.mark.parametrize("text", [row for row in rows(MUST_NOT) if in_one_line(row.values[0])])
def test_an_object_that_is_none_is_never_a_call(wire: str, text: str):
    """The payload as a whole is no JSON: the stream fails, and says so."""
    events = events_of(wire, OBJECTS[wire](text))
    assert not [call for call in calls_of(events) if call.name == "f"]
    assert events[-1].kind == "failed"


@every_object
@pytest.mark.parametrize("case", rows(LEFT))
def test_what_is_left_to_the_parser_is_exact_or_no_call(wire: str, case: tuple[str, Any]):
    text, value = case
    events = events_of(wire, OBJECTS[wire](text))
    read = [call for call in calls_of(events) if call.name == "f"]
    if value is REFUSED:
        assert read == []
        assert broken_of(events) or events[-1].kind == "failed"
    else:
        assert same(read[0].arguments, {"v": value})


def test_the_cases_are_what_they_say():
    """Held against the standard library, which is no judge of what is left to the parser."""
    for cases in MUST.values():
        for name, (text, value) in cases.items():
            assert json.loads(text) == value, name
    for category, refused in MUST_NOT.items():
        for name, text in refused.items():
            if text.strip("-") in ("NaN", "Infinity"):  # it reads these, which no JSON has
                continue
            with pytest.raises(ValueError):
                print(category, name, json.loads(text))
