"""Whatever stands in a body: it is read, mended, or refused in our own words, which say where."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from streamnorm import Conversation, Tool, from_jsonl, from_messages, read_request, repair, to_jsonl
from streamnorm.encoding.plain import DEEPEST, must_be_plain
from streamnorm.errors import StreamnormError, UsageError
from streamnorm.providers import AUTO
from streamnorm.text.shown import clean
from streamnorm.wire import provider
from tests.conftest import ALL
from tests.encoding.mutants import ODD, WIRES, dumped, flipped, mutant, talk_on, valid

LONGEST = 1_000  # characters of what is said of a mistake
MUTANTS = 3_000 if ALL else 40  # of each wire's body
every_wire = pytest.mark.parametrize("wire", WIRES)


def only_ours(act: Any, *values: Any, **options: Any) -> str:
    """What it said of itself if it was refused; any error that is none of ours goes through."""
    try:
        act(*values, **options)
    except StreamnormError as error:
        said = str(error)
        assert said == clean(
            said, newlines=True
        )  # what stands in a body is not a terminal's to obey
        assert len(said) < LONGEST
        return said
    return ""


@every_wire
def test_a_valid_body_is_read_and_needs_no_repair(wire: str):
    assert not repair(wire, valid(wire)).report
    assert read_request(wire, valid(wire)).conversation.turns


@every_wire
def test_no_mutant_of_a_body_raises_anything_foreign(wire: str):
    for seed in range(MUTANTS):
        dice = random.Random(seed)
        body = mutant(valid(wire), seed)
        whose = dice.choice([wire, wire, AUTO, dice.choice(WIRES)])
        only_ours(repair, whose, body, orphans=dice.choice(["error", "drop", "raise"]))
        only_ours(from_messages, whose, body)
        only_ours(_read_and_said_again, whose, body, dice.choice(WIRES))


def _read_and_said_again(whose: str, body: Any, other: str) -> None:
    read_request(whose, body).prepare(other)


@every_wire
def test_a_body_that_is_any_odd_value_raises_nothing_foreign(wire: str):
    for make in ODD:
        for act in (repair, from_messages, read_request):
            only_ours(act, wire, make())
            only_ours(act, wire, [make()])
            only_ours(act, AUTO, {"messages": [make()]})


# --- where it is told that something is odd -------------------------------------------------------


def said(content: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def deep(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


ROWS = [
    ([{"type": "text", "text": {1, 2}}], r"messages\[0\]\.content\[0\]\.text is of type set, which no JSON has; "
     r"pass plain values, for an SDK's object those of its model_dump\(\)"),
    (object(), r"messages\[0\]\.content is of type object, which no JSON has"),
    ([float("nan")], r"messages\[0\]\.content\[0\] is NaN or Infinity, which JSON cannot say"),
    ([{7: "x"}], r"messages\[0\]\.content\[0\] has a key that is an int; keys are texts"),
    (deep(DEEPEST), r"messages\[0\]\.content\[0\]\[0\].* is nested too deeply; the most is 256 levels"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "words"), ROWS)
@pytest.mark.parametrize("act", [repair, from_messages, read_request])
def test_what_no_json_has_is_told_with_its_place(act: Any, content: Any, words: str):
    with pytest.raises(UsageError, match=words):
        act("anthropic", said(content))


@pytest.mark.parametrize("act", [repair, from_messages])
def test_a_list_of_messages_has_the_same_places(act: Any):
    with pytest.raises(
        UsageError, match=r"^messages\[0\]\.content is of type complex, which no JSON has"
    ):
        act("anthropic", said(1j)["messages"])


def test_what_stands_in_the_place_of_a_message_is_named():
    with pytest.raises(
        UsageError, match=r"^messages\[1\] is a text; pass an object for each message$"
    ):
        repair("openai_chat", [{"role": "user", "content": "Hi"}, "Hello"])


def test_what_is_as_deep_as_allowed_is_read():
    assert read_request("anthropic", said(deep(DEEPEST - 4))).report


def test_a_body_that_holds_itself_is_nested_too_deeply():
    body = said([])
    body["messages"][0]["content"].append(body)
    for act in (repair, from_messages, read_request):
        with pytest.raises(UsageError, match="nested too deeply"):
            act("anthropic", body)


def test_one_object_in_a_million_places_is_too_much():
    content: Any = ["x"]
    for _ in range(40):
        content = [content, content]
    with pytest.raises(UsageError, match=r"messages has more than 1,000 values"):
        must_be_plain([content], "messages", most=1000)


def test_a_key_that_is_no_text_for_a_terminal_is_shown_harmlessly():
    with pytest.raises(UsageError) as caught:
        repair("anthropic", said([{"\x1b[2J\n": 1j}]))
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


ODD_TEXTS = ["\x1b[2J\n", "\u202e", "\ud800", "x" * 9_999]


@pytest.mark.parametrize("odd", ODD_TEXTS, ids=["escape", "bidi", "half", "long"])
def test_a_refusal_shows_odd_text_harmlessly_and_in_short(odd: str):
    call = {"id": odd, "type": "function", "function": {"name": odd, "arguments": "{}"}}
    asked = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert "has no result" in only_ours(repair, "openai_chat", asked, orphans="raise")
    heading = json.dumps({"streamnorm": "conversation", "version": odd})
    assert "is not known here" in only_ours(from_jsonl, heading) or len(odd) > 200
    schema = {"type": odd}
    tool = Tool("now", "", schema)
    assert "arguments are always an object" in only_ours(
        provider("openai_chat").request, Conversation().user("Hi"), tools=[tool], model="m"
    )


# --- conversations --------------------------------------------------------------------------------


def test_no_damage_to_a_stored_conversation_raises_anything_foreign():
    talk = talk_on("anthropic")
    plain, lines = talk.to_json(), to_jsonl(talk)
    for seed in range(2_000 if ALL else 150):
        dice = random.Random(seed)
        only_ours(Conversation.from_json, dumped(mutant(_loaded(plain), seed)))
        only_ours(Conversation.from_json, flipped(plain, dice))
        only_ours(from_jsonl, flipped(lines, dice))
        rows = mutant([_loaded(line) for line in lines.splitlines()], seed)
        only_ours(from_jsonl, b"\n".join(map(dumped, rows if isinstance(rows, list) else [rows])))


def _loaded(data: bytes) -> Any:
    return json.loads(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"\xff", "malformed"),
        ("\ud800", "surrogates not allowed"),
        (None, "bytes-like"),
        (b"[" * 100_000, "no conversation"),
        (b'{"turns":[{"role":"x"}]}', r"turns\[0\]\.role"),
        (b'{"turns":[{"role":"user","parts":[{"kind":"text","text":7}]}]}', r"turns\[0\]\.parts\[0\]\.text"),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_is_no_conversation_is_told_with_what_to_pass(data: Any, words: str):
    with pytest.raises(UsageError, match=words) as caught:
        Conversation.from_json(data)
    assert str(caught.value).endswith("pass what Conversation.to_json() wrote")
