"""Arguments are checked before a handler runs, for every form of tool; what is wrong is said by field."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
import warnings
from datetime import date
from typing import Literal

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import ClientTool, Tool, ToolLoop
from streamnorm.agent.checking import SchemaWarning, Unfit, by_schema, by_words
from streamnorm.errors import UsageError
from streamnorm.testing import call, say, script
from tests.agent.models import Model, outputs, ran

HAS_EXTRA = importlib.util.find_spec("jsonschema_rs") is not None
needs_extra = pytest.mark.skipif(not HAS_EXTRA, reason="needs the extra `schema` (jsonschema-rs)")


@pytest.fixture(params=["alone", pytest.param("extra", marks=needs_extra)])
def with_and_without_the_extra(request, monkeypatch):
    if request.param == "alone":
        monkeypatch.setitem(sys.modules, "jsonschema_rs", None)


def told(tool, arguments):
    """What the model is told of a call with these arguments, and what reached the handler."""
    model = Model(script(call("trip", arguments)), script(say("ok")))
    run, _ = anyio.run(ran, ToolLoop(model, [tool]))
    return outputs(run)[0]


# --- the same tool in every form ------------------------------------------------------------------

SEEN = []
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def trip(city: str, days: int = 1) -> str:
    "Book a trip."
    SEEN.append((city, days))
    return f"{days} days in {city}"


async def later(city: str, days: int = 1) -> str:
    "Book a trip."
    return trip(city, days)


def by_dict(said):
    return trip(**said)


def by_value(said):
    return trip(said.city, said.days)


class Struct(msgspec.Struct, forbid_unknown_fields=True):
    "Book a trip."

    city: str
    days: int = 1


@dataclasses.dataclass
class Data:
    "Book a trip."

    city: str
    days: int = 1


class Open(msgspec.Struct):
    "Book a trip; by itself it passes unknown names over."

    city: str
    days: int = 1


def pydantic_model(**config):
    pydantic = pytest.importorskip("pydantic")
    return pydantic.create_model(
        "Trip", city=(str, ...), days=(int, 1), __doc__="Book a trip.",
        __config__=pydantic.ConfigDict(**config),
    )  # fmt: skip


STRICT = {"extra": "forbid", "strict": True}


FORMS = {
    "function": lambda: trip,
    "async function": lambda: ClientTool.from_function(later, name="trip"),
    "partial": lambda: ClientTool.from_function(functools.partial(trip), name="trip"),
    "(Tool, handler)": lambda: (Tool("trip", "Book a trip.", SCHEMA), by_dict),
    "ClientTool": lambda: ClientTool(Tool("trip", "Book a trip.", SCHEMA), by_dict),
    "msgspec struct": lambda: ClientTool.from_model(Struct, by_value, name="trip"),
    "open struct": lambda: ClientTool.from_model(Open, by_value, name="trip"),
    "dataclass": lambda: ClientTool.from_model(Data, by_value, name="trip"),
    "pydantic model": lambda: ClientTool.from_model(pydantic_model(), by_value, name="trip"),
    "strict model": lambda: ClientTool.from_model(pydantic_model(**STRICT), by_value, name="trip"),
}
WRONG = [
    ({"city": "Oslo", "days": "two"}, "days"),
    ({"city": "Oslo", "days": "2"}, "days"),
    ({"city": "Oslo", "days": True}, "days"),
    ({"city": 5}, "city"),
    ({"days": 2}, "city"),
    ({"city": "Oslo", "nights": 2}, "nights"),
    ({"city": None}, "city"),
]


@pytest.mark.parametrize("form", FORMS)
def test_what_fits_reaches_the_handler(form, with_and_without_the_extra):
    SEEN.clear()
    assert told(FORMS[form](), {"city": "Oslo", "days": 2}) == "2 days in Oslo"
    assert told(FORMS[form](), {"city": "Oslo"}) == "1 days in Oslo"
    assert SEEN == [("Oslo", 2), ("Oslo", 1)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("arguments", "field"), WRONG, ids=[field for _, field in WRONG])
def test_what_does_not_fit_is_an_error_that_says_which_field(
    form, arguments, field, with_and_without_the_extra
):
    SEEN.clear()
    text = told(FORMS[form](), arguments)
    assert text.startswith("not run: the arguments do not fit: ")
    assert field in text
    assert SEEN == []


def test_a_name_that_a_type_does_not_have_is_found_at_any_depth():
    class Leg(msgspec.Struct):
        to: Open
        back: Open | None = None

    class Tour(msgspec.Struct):
        legs: list[Leg]
        notes: dict[str, int] = {}

    Leg.__annotations__ = {"to": Open, "back": Open | None}
    Tour.__annotations__ = {"legs": list[Leg], "notes": dict[str, int]}
    convert = ClientTool.from_model(Tour, len).convert
    oslo = {"city": "Oslo"}
    convert({"legs": [{"to": oslo, "back": None}], "notes": {"any": 1}})
    for legs, place in (
        ([{"to": oslo}, {"to": {"city": "Oslo", "day": 2}}], "`$.legs[1].to`"),
        ([{"to": oslo, "back": {"city": "Oslo", "day": 2}}], "`$.legs[0].back`"),
    ):
        with pytest.raises(Unfit) as caught:
            convert({"legs": legs})
        assert str(caught.value) == f"there is no `day`, only city, days - at {place}"


def test_of_alternatives_the_one_that_the_value_says_it_is_knows_its_names():
    class Train(msgspec.Struct, tag="train"):
        seat: int = 0

    class Ship(msgspec.Struct, tag="ship"):
        deck: int = 0

    way = msgspec.defstruct("Way", [("by", Train | Ship), ("or_else", Train | Ship | None, None)])
    convert = ClientTool.from_model(way, len).convert
    convert({"by": {"type": "ship", "deck": 2}, "or_else": None})
    with pytest.raises(Unfit, match=r"there is no `deck`, only type, seat - at `\$.by`"):
        convert({"by": {"type": "train", "deck": 2}})


@pytest.mark.parametrize(
    ("kind", "value", "place"),
    [
        (dict[str, Open], {"k": {"city": "Oslo", "day": 2}}, "$.a.k"),
        (dict[str, list[Open]], {"k": [{"city": "Oslo", "day": 2}]}, "$.a.k[0]"),
        (tuple[Open, int], [{"city": "Oslo", "day": 2}, 2], "$.a[0]"),
        (tuple[Open, ...], [{"city": "Oslo"}, {"city": "Oslo", "day": 2}], "$.a[1]"),
        (Open | list[Open], [{"city": "Oslo", "day": 2}], "$.a[0]"),
    ],
)
def test_a_name_that_a_type_does_not_have_is_found_inside_every_container(kind, value, place):
    kind = msgspec.defstruct("Holder", [("a", kind)])
    with pytest.raises(Unfit) as caught:
        ClientTool.from_model(kind, len).convert({"a": value})
    assert str(caught.value) == f"there is no `day`, only city, days - at `{place}`"


def test_of_alternatives_that_fit_the_one_that_knows_most_names_counts():
    pydantic = pytest.importorskip("pydantic")
    short = pydantic.create_model("Short", city=(str, ...))
    long = pydantic.create_model("Long", city=(str, ...), days=(int, 1))
    model = pydantic.create_model("Holder", a=(short | long, ...), b=(dict[str, short], {}))
    convert = ClientTool.from_model(model, len).convert
    assert convert({"a": {"city": "Oslo", "days": 2}}).a.days == 2
    assert convert({"a": {"city": "Oslo"}, "b": {"day": {"city": "Oslo"}}}).b["day"].city == "Oslo"
    with pytest.raises(Unfit, match=r"there is no `day`, only city, days - at `\$.a`"):
        convert({"a": {"city": "Oslo", "days": 2, "day": 2}})
    with pytest.raises(Unfit, match=r"there is no `day`, only city - at `\$.b.x`"):
        convert({"a": {"city": "Oslo"}, "b": {"x": {"city": "Oslo", "day": 2}}})


def test_alternatives_within_alternatives_are_looked_at_once_each():
    one = {"properties": {"next": {"$ref": "#/$defs/way"}, "a": {}}}
    two = {"properties": {"next": {"$ref": "#/$defs/way"}, "b": {}}}
    schema = {"$ref": "#/$defs/way", "$defs": {"way": {"anyOf": [one, two]}}}
    value = {"c": 1}
    for _ in range(60):  # 2 ** 60 ways to read it
        value = {"next": value}
    convert = by_words(Tool("go", "", schema))
    with pytest.raises(Unfit, match="there is no `c`, only next, a"):
        convert(value)


def test_a_model_that_takes_any_name_takes_any_name():
    convert = ClientTool.from_model(pydantic_model(extra="allow"), by_value, name="trip").convert
    assert convert({"city": "Oslo", "nights": 2}).nights == 2


def test_json_says_what_it_can_of_the_types_of_a_model():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("When", on=(date, ...), seats=(tuple[int, int], (1, 2)))
    made = ClientTool.from_model(model, by_value).convert({"on": "2026-05-17", "seats": [3, 4.0]})
    assert (made.on, made.seats) == (date(2026, 5, 17), (3, 4))


def test_a_model_and_its_handler_are_a_tool():
    loop = ToolLoop(lambda out, tools: [], [(Struct, by_value), (Data, by_value)])
    assert [(t.name, t.description, t.schema["required"]) for t in loop.setup.tools] == [
        ("Struct", "Book a trip.", ["city"]), ("Data", "Book a trip.", ["city"]),
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"\(Model, handler\) or a ClientTool, not Struct"):
        ToolLoop(lambda out, tools: [], [Struct])


# --- typed functions ------------------------------------------------------------------------------


def book(stops: list[Struct], when: date, way: Literal["train", "ship"] = "train") -> str:
    "Types of all kinds."
    assert isinstance(stops[0], Struct)
    return f"{way} to {stops[0].city} on {when:%d.%m.}"


def asked(tool, **arguments):
    return ClientTool.from_function(tool).convert(arguments)


def test_arguments_are_made_into_the_types_of_a_function():
    made = asked(book, stops=[{"city": "Oslo"}], when="2026-05-17")
    assert made == {"stops": [Struct("Oslo")], "when": date(2026, 5, 17)}
    assert book(**made) == "train to Oslo on 17.05."


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"stops": [{"city": 1}], "when": "2026-05-17"}, "Expected `str`, got `int` - at `$.stops[0].city`"),
        ({"stops": [], "when": "soon"}, "Invalid RFC3339 encoded date - at `$.when`"),
        ({"stops": [], "when": "2026-05-17", "way": "car"}, "Invalid enum value 'car' - at `$.way`"),
        ({"stops": []}, "Object missing required field `when`"),
    ],
)  # fmt: skip
def test_what_a_function_does_not_take_is_said_by_path(arguments, complaint):
    with pytest.raises(Unfit) as caught:
        asked(book, **arguments)
    assert str(caught.value) == complaint


def test_an_integer_may_be_written_as_a_whole_number():
    def wait(seconds: int, factor: float = 1.0) -> None: ...

    assert asked(wait, seconds=3.0) == {"seconds": 3}
    assert asked(wait, seconds=2**70, factor=2) == {"seconds": 2**70, "factor": 2.0}
    with pytest.raises(Unfit, match="Expected `int`, got `float`"):
        asked(wait, seconds=3.5)


def test_keys_may_be_numbers_which_json_writes_as_texts():
    def seat(people: dict[int, str], on: dict[date, list[dict[int, int]]] = {}) -> None: ...  # noqa: B006

    struct = msgspec.defstruct("Seats", [("people", dict[int, str])])
    data = dataclasses.make_dataclass("Seats", [("people", dict[int, str])])
    assert asked(seat, people={"1": "Ada"}) == {"people": {1: "Ada"}}
    made = asked(seat, people={}, on={"2026-05-17": [{"1": 2}]})
    assert made["on"] == {date(2026, 5, 17): [{1: 2}]}
    for kind in (struct, data):
        convert = ClientTool.from_model(kind, len).convert
        assert convert({"people": {"1": "Ada"}}).people == {1: "Ada"}
        with pytest.raises(Unfit, match=r"`key` in `\$.people`"):
            convert({"people": {"one": "Ada"}})
        with pytest.raises(Unfit, match=r"Expected `str`, got `int` - at `\$.people\[...\]`"):
            convert({"people": {"1": 2}})


def test_a_function_may_take_a_pydantic_model():
    pydantic = pytest.importorskip("pydantic")

    class Stop(pydantic.BaseModel):
        city: str
        nights: int = pydantic.Field(1, ge=1)

    class Tour(pydantic.BaseModel):
        stops: list[Stop]

    def plan(tour: Tour, note: str = "") -> int:
        "Plan a tour."
        return sum(stop.nights for stop in tour.stops)

    plan.__annotations__ = {"tour": Tour, "note": str, "return": int}
    schema = Tool.from_function(plan).schema
    assert schema["$defs"]["Stop"]["properties"]["nights"]["minimum"] == 1
    assert schema["properties"]["tour"]["properties"]["stops"]["items"] == {"$ref": "#/$defs/Stop"}
    assert plan(**asked(plan, tour={"stops": [{"city": "Oslo", "nights": 2}]})) == 2
    with pytest.raises(Unfit) as caught:
        asked(plan, tour={"stops": [{"city": "Oslo", "nights": 0}]})
    assert "greater than or equal to 1 - at `$.stops[0].nights`" in str(caught.value)


def test_objects_that_can_be_called_are_tools():
    class Greeter:
        "Greets."

        def __call__(self, name: str) -> str:
            return f"Hello {name}"

    tool = ClientTool.from_function(Greeter())
    assert (tool.name, tool.handler(tool.convert({"name": "Ann"}))) == ("Greeter", "Hello Ann")
    with pytest.raises(Unfit, match="Expected `str`"):
        tool.convert({"name": 1})


# --- plain schemas --------------------------------------------------------------------------------

NESTED = {
    "type": "object",
    "properties": {
        "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
        "mode": {"enum": ["fast", 1, None]},
        "tags": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    },
    "required": ["edits"],
    "$defs": {
        "Edit": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "more": {"$ref": "#/$defs/Edit"}},
            "required": ["path"],
            "additionalProperties": False,
        }
    },
}
FITS = [
    {"edits": []},
    {"edits": [{"path": "/a", "more": {"path": "\ud800"}}], "mode": None, "tags": {"a": None}},
    {"edits": [], "mode": 1, "else": 2**70},
]
UNFIT = [
    ({}, "edits"),
    ({"edits": {}}, "$.edits"),
    ({"edits": [{"path": "/a"}, {"path": 1}]}, "$.edits[1].path"),
    ({"edits": [{"path": "/a", "more": {}}]}, "$.edits[0].more"),
    ({"edits": [{"path": "/a", "x": 1}]}, "$.edits[0]"),
    ({"edits": [], "mode": True}, "$.mode"),
    ({"edits": [], "tags": {"a": 1}}, "$.tags.a"),
    ({"edits": [{"path": "\ud800", "more": 1}]}, "$.edits[0].more"),
]


@pytest.mark.parametrize("arguments", FITS)
def test_arguments_that_fit_a_schema_are_passed_as_they_are(arguments, with_and_without_the_extra):
    assert by_schema(Tool("f", "", NESTED))(arguments) is arguments


@pytest.mark.parametrize(("arguments", "where"), UNFIT)
def test_arguments_that_do_not_fit_are_told_by_path(arguments, where, with_and_without_the_extra):
    with pytest.raises(Unfit) as caught:
        by_schema(Tool("f", "", NESTED))(arguments)
    assert where in str(caught.value)


def test_every_error_is_told_up_to_a_few(with_and_without_the_extra):
    schema = {"type": "array", "items": {"type": "integer"}}
    tool = Tool("f", "", {"type": "object", "properties": {"n": schema}})
    with pytest.raises(Unfit) as caught:
        by_schema(tool)({"n": ["x" * 1000] * 9})
    assert str(caught.value).count("- at `$.n[") <= 5
    assert str(caught.value).endswith("; and more")
    assert len(str(caught.value)) < 1500


def test_without_the_extra_it_is_said_what_is_not_checked(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}, "s": {"type": "string", "pattern": "^a"}},
        "anyOf": [{}],
    }  # fmt: skip
    with pytest.warns(SchemaWarning) as caught:
        convert = by_schema(Tool("f", "", schema))
    assert [str(w.message) for w in caught] == [
        "of the schema of 'f' these are not checked: anyOf, minimum, pattern; "
        "pip install 'streamnorm[schema]' checks all of it"
    ]
    assert convert({"n": 0, "s": "b"}) == {"n": 0, "s": "b"}


def test_a_schema_that_is_checked_whole_warns_of_nothing(with_and_without_the_extra):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_schema(Tool("f", "", NESTED))
        by_schema(Tool("g"))


@needs_extra
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"minimum": 1}, 0),
        ({"pattern": "^(a+)+$"}, "a" * 40 + "b"),  # and it does not hang
        ({"prefixItems": [{"type": "string"}]}, [1]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}),
        ({"unevaluatedProperties": False}, {"a": 1}),
    ],
)
def test_with_the_extra_every_word_of_a_schema_counts(schema, value):
    tool = Tool("f", "", {"type": "object", "properties": {"x": schema}})
    with pytest.raises(Unfit, match=r"\$\.x"):
        by_schema(tool)({"x": value})


@needs_extra
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/secret"}}},
        {"type": "OBJECT"},
        {"$ref": "#/$defs/none"},
    ],
)
def test_a_schema_that_cannot_be_read_warns_and_nothing_is_fetched(schema):
    with pytest.warns(SchemaWarning, match="'f' cannot be read"):
        convert = by_schema(Tool("f", "", schema))
    assert convert({"x": 1}) == {"x": 1}


def test_a_schema_that_refers_to_itself_ends(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert by_schema(Tool("f", "", {"$ref": "#"}))({"x": 1}) == {"x": 1}


names = st.sampled_from(["a", "b", "c"])
types = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
schemas = st.recursive(
    st.booleans() | st.builds(lambda kind: {"type": kind}, types)
    | st.builds(lambda items: {"enum": items}, st.lists(st.integers() | st.text(), min_size=1)),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", ["object", "array"], "array"])},
        optional={
            "properties": st.dictionaries(names, inner), "required": st.lists(names, unique=True),
            "additionalProperties": inner, "items": inner,
        },
    ),
    max_leaves=8,
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@needs_extra
@given(schemas.filter(lambda s: isinstance(s, dict)), st.dictionaries(names, values))
def test_what_is_checked_without_the_extra_is_what_the_extra_finds(schema, arguments):
    import jsonschema_rs

    from streamnorm.agent import checking

    alone = list(checking._errors(schema, arguments, schema))
    assert bool(alone) != jsonschema_rs.is_valid(schema, arguments)
