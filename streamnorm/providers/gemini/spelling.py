"""Gemini generateContent, a body as any client spells it in; the one spelling that is read here out.

The service reads its requests as protocol buffers are read from JSON: ``function_declarations`` is
``functionDeclarations``, and one value stands for a list of one. Its own examples do both.

Rule: names of fields alone are changed. What a tool was called with or gave, a JSON schema, and the names of
properties are somebody's own and stay as they are; so does a field that stands there in both spellings.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["as_json_schema", "evened"]

# Lists of objects: one of them may stand there alone.
LISTS = frozenset({"contents", "parts", "tools", "functionDeclarations", "safetySettings"})
# In these anything may stand.
FREE = frozenset(
    {"args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "enum", "default",
     "example"}
)  # fmt: skip
# In these the keys are names that somebody gave.
NAMED = frozenset({"properties", "$defs", "defs"})
_is_count = re.compile("[0-9]{1,18}").fullmatch
# Numbers of 64 bits, which protocol buffers write as texts.
COUNTS = frozenset(
    {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
)

_is_snake = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)+").fullmatch


def evened(said: Any) -> Any:
    """The same, with every field under the name that it has in this provider's own answers.

    >>> evened({"contents": {"parts": {"function_call": {"name": "f", "args": {"my_id": 1}}}}})
    {'contents': [{'parts': [{'functionCall': {'name': 'f', 'args': {'my_id': 1}}}]}]}
    """
    if isinstance(said, list):
        return [evened(inner) for inner in said]
    if not isinstance(said, dict):
        return said
    names = {field: _name(field, said) for field in said}
    return {name: _field(name, said[field]) for field, name in names.items()}


def _name(field: str, said: dict[str, Any]) -> str:
    if _is_snake(field) is None:
        return field
    first, *more = field.split("_")
    name = first + "".join(map(str.capitalize, more))
    return field if name in said else name


def _field(name: str, said: Any) -> Any:
    if name in FREE:
        return said
    if name in NAMED and isinstance(said, dict):
        return {key: evened(inner) for key, inner in said.items()}
    return evened([said] if name in LISTS and isinstance(said, dict) else said)


def as_json_schema(said: Any) -> Any:
    """A schema in the provider's older dialect, whose types are in capitals, and whose counts may be texts.

    >>> as_json_schema({"type": "STRING", "nullable": True, "maxLength": "9"})
    {'type': ['string', 'null'], 'maxLength': 9}
    """
    if isinstance(said, list):
        return [as_json_schema(inner) for inner in said]
    if not isinstance(said, dict):
        return said
    schema = {key: _keyword(key, value) for key, value in said.items() if key != "nullable"}
    return _or_null(schema) if said.get("nullable") is True else schema


def _keyword(key: str, said: Any) -> Any:
    if key in FREE:
        return said
    if key in NAMED and isinstance(said, dict):
        return {name: as_json_schema(inner) for name, inner in said.items()}
    if isinstance(said, str):
        if key == "type":
            return said.lower()
        return int(said) if key in COUNTS and _is_count(said) else said
    return as_json_schema(said)


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, which null fits as well."""
    if isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list):
            schema["enum"] = [*schema["enum"], None]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    return schema
