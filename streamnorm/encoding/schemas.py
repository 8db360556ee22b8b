"""JSON Schemas in the dialect of a wire: a tool's schema in, one that is not refused out.

Rule: what a provider refuses is taken out or said otherwise, and each time there is a row about it
in the report. The caller's schema is never changed. Which keywords a provider refuses is written in
its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from ..errors import EncodeError
from ..text.shown import clean, shorten

__all__ = ["ANY_KEYWORD", "PLAIN_OBJECTS", "UNBOUNDED", "Dialect", "Dropped", "lowered"]

Schema: TypeAlias = dict[str, Any]


class Dropped(NamedTuple):
    """Something that could not be said on a wire: where it stood, what it was, and why."""

    where: str
    what: str
    why: str


class Dialect(NamedTuple):
    """Which keywords a wire takes.

    ``known``: the only ones it takes (None: any). ``top``: those it refuses at the top, where the
    schema must be a plain object. ``strict``: those it refuses for a strict tool. ``all_required``:
    a strict tool must require all its properties, so that an optional one becomes nullable.
    """

    known: frozenset[str] | None = None
    top: frozenset[str] = frozenset()
    strict: frozenset[str] = frozenset()
    all_required: bool = False


ANY_KEYWORD = Dialect()
# Dialects that more than one provider speaks. A strict tool has no bounds in its schema …
UNBOUNDED = Dialect(
    top=frozenset({"anyOf", "oneOf", "allOf"}),
    strict=frozenset(
        {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
         "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
    ),
)  # fmt: skip
# … or its schema is one of plain objects, all of whose properties are required.
PLAIN_OBJECTS = Dialect(
    top=frozenset({"anyOf", "oneOf", "allOf", "not", "enum"}),
    strict=frozenset(
        {"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
         "patternProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains",
         "minContains", "maxContains", "minProperties", "maxProperties", "uniqueItems", "default"}
    ),
    all_required=True,
)  # fmt: skip

# Where schemas stand inside a schema: keyword -> one, a list of them, or some by name.
_INSIDE: Mapping[str, Callable[[Any], Iterator[tuple[Any, Any]]]] = {
    **dict.fromkeys(
        ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"),
        lambda value: iter(value.items() if isinstance(value, dict) else ()),
    ),
    **dict.fromkeys(
        ("anyOf", "oneOf", "allOf", "prefixItems"),
        lambda value: iter(enumerate(value) if isinstance(value, list) else ()),
    ),
}
_ONE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
     "unevaluatedItems", "unevaluatedProperties"}
)  # fmt: skip


def lowered(
    schema: Schema, dialect: Dialect, *, where: str, strict: bool | None = None
) -> tuple[Schema, list[Dropped]]:
    """The schema in that dialect, and what was dropped of it.

    >>> dialect = Dialect(known=frozenset({"type", "properties", "enum"}))
    >>> lowered({"type": "object", "properties": {"a": {"const": 1}}}, dialect, where="f")
    ({'type': 'object', 'properties': {'a': {'enum': [1]}}}, [])
    """
    top = _as_object(schema, where)
    lowering = _Lowering(dialect, bool(strict))
    try:
        return lowering.of(top, where, top=True), lowering.dropped
    except (TypeError, ValueError, AttributeError) as error:
        raise EncodeError(
            f"the schema of {where!r} is none ({error}); pass one that JSON Schema knows"
        ) from error


def _as_object(schema: Any, where: str) -> Schema:
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        found = schema.get("type") if isinstance(schema, dict) else type(schema).__name__
        shown = shorten(clean(repr(found)), 80)
        raise EncodeError(
            f"the schema of {where!r} describes {shown}, but arguments are always an object; "
            'wrap it: {"type": "object", "properties": {"value": …}}'
        )
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise EncodeError(
            f"the properties of {where!r} are a {type(properties).__name__}; pass an object that "
            "has a schema for each name"
        )
    return {**schema, "type": "object", "properties": properties}


class _Lowering:
    def __init__(self, dialect: Dialect, strict: bool) -> None:
        self._dialect = dialect
        self._strict = strict
        self.dropped: list[Dropped] = []

    def of(self, schema: Any, where: str, *, top: bool = False) -> Any:
        if not isinstance(schema, dict):  # true and false are schemas too
            return schema
        spelled = self._respelled(schema)
        kept = {
            keyword: self._inside(keyword, value, where)
            for keyword, value in spelled.items()
            if self._takes(keyword, where, top)
        }
        return self._closed(kept, where) if self._strict else kept

    def _respelled(self, schema: Schema) -> Schema:
        """The same said with keywords that are known, where there is such a way."""
        known = self._dialect.known
        if known is None:
            return schema
        said = dict(schema)
        for keyword, respell in _RESPELLINGS.items():
            if keyword in said and keyword not in known:
                said = respell(said)
        return said

    def _takes(self, keyword: str, where: str, top: bool) -> bool:
        why = ""
        if self._dialect.known is not None and keyword not in self._dialect.known:
            why = "this wire does not know the keyword"
        elif top and keyword in self._dialect.top:
            why = "this wire refuses it at the top of a schema"
        elif self._strict and keyword in self._dialect.strict:
            why = "this wire refuses it for a strict tool"
        if why and keyword != "$schema":  # which says nothing about the arguments
            self.dropped.append(Dropped(where, keyword, why))
        return not why

    def _inside(self, keyword: str, value: Any, where: str) -> Any:
        if keyword in _ONE:
            return self.of(value, f"{where}.{keyword}") if isinstance(value, dict) else value
        if keyword == "$ref" and self._dialect.known is not None:
            return str(value).replace("#/definitions/", "#/$defs/")
        if keyword not in _INSIDE:
            return value
        parts = {k: self.of(v, f"{where}.{_step(keyword, k)}") for k, v in _INSIDE[keyword](value)}
        return parts if isinstance(value, dict) else list(parts.values())

    def _closed(self, schema: Schema, where: str) -> Schema:
        """A strict object has no other properties than its own."""
        if "properties" not in schema:
            return schema
        if schema.get("additionalProperties") not in (None, False):
            self.dropped.append(
                Dropped(where, "additionalProperties", "a strict tool has no other properties")
            )
        closed = {**schema, "additionalProperties": False}
        return self._all_required(closed, where) if self._dialect.all_required else closed

    def _all_required(self, schema: Schema, where: str) -> Schema:
        required = set(schema.get("required", ()))
        properties = {
            name: inner if name in required else self._nullable(inner, f"{where}.{name}")
            for name, inner in schema["properties"].items()
        }
        return {**schema, "properties": properties, "required": list(properties)}

    def _nullable(self, schema: Any, where: str) -> Any:
        self.dropped.append(
            Dropped(where, "optional", "a strict tool requires all properties: null means absent")
        )
        kind = schema.get("type") if isinstance(schema, dict) else None
        if kind is None:
            return {"anyOf": [schema, {"type": "null"}]}
        kinds = kind if isinstance(kind, list) else [kind]
        said = {**schema, "type": [*kinds, "null"] if "null" not in kinds else kinds}
        return {**said, "enum": [*said["enum"], None]} if "enum" in said else said


def _step(keyword: str, key: Any) -> str:
    return str(key) if keyword == "properties" else f"{keyword}.{key}"


def _const(schema: Schema) -> Schema:
    rest = {k: v for k, v in schema.items() if k != "const"}
    return {**rest, "enum": [schema["const"]]}


def _all_of_one(schema: Schema) -> Schema:
    """A list of one is that one; several cannot be said without the keyword."""
    parts = schema["allOf"]
    rest = {k: v for k, v in schema.items() if k != "allOf"}
    alone = isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict)
    return {**parts[0], **rest} if alone else schema


def _definitions(schema: Schema) -> Schema:
    rest = {k: v for k, v in schema.items() if k != "definitions"}
    return {**rest, "$defs": {**schema["definitions"], **schema.get("$defs", {})}}


_RESPELLINGS: Mapping[str, Callable[[Schema], Schema]] = {
    "const": _const,
    "allOf": _all_of_one,
    "definitions": _definitions,
}
