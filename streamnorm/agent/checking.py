"""The arguments of a call come in; they go out as the handler wants them, or what does not fit.

Rule: no handler sees arguments that its tool does not take; what is wrong is said by field, so that
the model can correct itself. Types of functions, structs and models are checked by msgspec (and
pydantic); a plain JSON Schema by ``jsonschema-rs``, the extra ``schema``. Without that extra the
words in ``KNOWN`` are checked here, nothing valid is refused, and a warning names the others.

Why ``jsonschema-rs``: of the two that were measured it is 27 times as quick on a nested schema (and 100
times in reading one), knows the present draft (``fastjsonschema``: 7), tells every error with its
path, and its regular expressions cannot hang (``(a+)+$`` does there). Its cost is a download of 15 MB.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from ..text.written import json_text
from ..tools import Tool

__all__ = ["Convert", "SchemaWarning", "Unfit", "by_schema", "by_type", "by_words"]

Convert: TypeAlias = Callable[[dict[str, Any]], Any]

MOST_ERRORS = 5  # that are told of one call
LONGEST_ERROR = 200  # characters


class Unfit(ValueError):
    """Arguments that the tool does not take; the text says which and why."""


class SchemaWarning(UserWarning):
    """A schema of which not all is checked."""


def by_type(kind: Any) -> Convert:
    """Checks and converts to a struct, dataclass or pydantic model.

    A name that the type does not have is wrong, also where the type itself would pass it over: what
    was meant by it would be lost. So is a text for a number, which pydantic converts if left alone.
    """
    schema = Tool.from_model(kind).schema

    def convert(arguments: dict[str, Any]) -> Any:
        if strangers := _some(_strangers(schema, arguments, schema)):
            raise Unfit("; ".join(strangers))
        try:
            return _converted(arguments, kind)
        except ValueError as error:  # of pydantic or msgspec
            try:
                return _converted(_whole(arguments), kind)
            except ValueError:
                raise Unfit(_told(error)) from None

    return convert


_Told: TypeAlias = dict[tuple[int, int], list[str]]  # by the ids of an alternative and of a value


def _strangers(
    schema: Any, value: Any, root: Any, at: str = "$", depth: int = 0, told: _Told | None = None
) -> Iterator[str]:
    """Names that a type does not have and its schema does not close, at any depth."""
    if not isinstance(schema, dict) or depth > 100:  # a reference to itself
        return
    told = {} if told is None else told
    if "$ref" in schema:
        yield from _strangers(_referred(schema["$ref"], root), value, root, at, depth + 1, told)
    yield from _strangers_to_all(_meant(schema, value, root), value, root, at, depth + 1, told)
    known, first = _dict(schema.get("properties")), schema.get("prefixItems", ())
    for number, item in enumerate(value if isinstance(value, list) else ()):
        inner = first[number] if number < len(first) else schema.get("items")
        yield from _strangers(inner, item, root, f"{at}[{number}]", told=told)
    others = schema.get("additionalProperties")
    for name, item in _dict(value).items() if known or others else ():
        if name in known:
            yield from _strangers(known[name], item, root, f"{at}.{name}", told=told)
        elif others is None:
            yield f"there is no `{name}`, only {', '.join(known)} - at `{at}`"
        else:
            yield from _strangers(others, item, root, f"{at}.{name}", told=told)


def _strangers_to_all(
    options: list[Any], value: Any, root: Any, at: str, depth: int, told: _Told
) -> list[str]:
    """Those of the alternative that knows the most names of this value.

    Each is looked at once for each value: alternatives within alternatives would double the work.
    """
    for option in options:
        if (key := (id(option), id(value))) not in told:
            told[key] = []  # of one that is its own alternative
            found = _strangers(option, value, root, at, depth, told)
            told[key] = list(islice(found, MOST_ERRORS + 1))
    return min((told[id(option), id(value)] for option in options), key=len, default=[])


def _meant(schema: dict[str, Any], value: Any, root: Any) -> list[Any]:
    """The alternatives of a schema that this value may be."""
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    options = [option for option in options if option != {"type": "null"}]
    if len(options) == 1:
        return options
    return [option for option in options if not any(_errors(option, value, root))]


def by_schema(tool: Tool) -> Convert:
    """Checks against the tool's schema; the arguments stay as they are."""
    errors_of = _validator(tool)

    def convert(arguments: dict[str, Any]) -> Any:
        try:
            found = _some(errors_of(arguments))
        except UnicodeEncodeError:  # halves of surrogate pairs, which the validator cannot take
            found = _some(_errors(tool.schema, arguments, tool.schema))
        if found:
            raise Unfit("; ".join(found))
        return arguments

    return convert


def by_words(tool: Tool) -> Convert:
    """Checks what this file knows of the tool's schema, and no name but its own; quick to make.

    For tools whose handlers see to the rest. Whole numbers become integers.
    """

    def convert(arguments: dict[str, Any]) -> Any:
        errors = _errors(tool.schema, arguments, tool.schema)
        if found := _some([*errors, *_strangers(tool.schema, arguments, tool.schema)]):
            raise Unfit("; ".join(found))
        return _whole(arguments)

    return convert


def _converted(arguments: Any, kind: Any) -> Any:
    validate = getattr(kind, "model_validate_json", None)
    if validate is not None:
        return validate(json_text(arguments), strict=True)
    # JSON has no other keys than texts, so those of a dict[int, …] are converted.
    return msgspec.convert(arguments, kind, dec_hook=_converted_by_hook, str_keys=True)


def _converted_by_hook(kind: type, value: Any) -> Any:
    if not hasattr(kind, "model_validate_json"):
        raise NotImplementedError(f"a parameter cannot be of type {kind.__name__}")
    try:
        return _converted(value, kind)
    except ValueError as error:
        raise ValueError(_told(error)) from None


def _whole(value: Any) -> Any:
    """1.0 as 1: JSON has one kind of number, and some models write integers so."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _told(error: ValueError) -> str:
    """What pydantic found, by field."""
    rows = error.errors() if hasattr(error, "errors") else ()
    told = [f"{row['msg']} - at `{_path(row['loc'])}`" for row in rows]
    return "; ".join(_some(told)) or str(error)


def _some(errors: Iterable[str]) -> list[str]:
    """The first of them, none too long."""
    found = [error for _, error in zip(range(MOST_ERRORS + 1), errors, strict=False)]
    told = [e if len(e) <= LONGEST_ERROR else f"{e[:LONGEST_ERROR]}…" for e in found[:MOST_ERRORS]]
    return [*told, "and more"] if len(found) > MOST_ERRORS else told


def _path(steps: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps)


# --- a plain schema, by the extra -----------------------------------------------------------------


def _validator(tool: Tool) -> Callable[[Any], Iterable[str]]:
    """What finds errors: the extra if it is there and takes the schema, else this file."""
    try:
        module = import_module("jsonschema_rs")
    except ImportError:
        _warn(tool, sorted(set(_unknown(tool.schema))))
        return lambda arguments: _errors(tool.schema, arguments, tool.schema)
    try:
        validator = module.validator_for(tool.schema, retriever=_fetch_nothing)
    except ValueError as error:
        said = str(error).partition("\n")[0]
        warnings.warn(f"the schema of {tool.name!r} cannot be read, and only its types are checked: "
                      f"{said}", SchemaWarning, stacklevel=2)  # fmt: skip
        return lambda arguments: _errors(tool.schema, arguments, tool.schema)
    return lambda arguments: (
        f"{error.message[:LONGEST_ERROR]} - at `{_path(error.instance_path)}`"
        for error in validator.iter_errors(arguments)
    )


def _fetch_nothing(address: str) -> Any:
    raise ValueError(f"{address} is not fetched")


def _warn(tool: Tool, words: list[str]) -> None:
    if words:
        warnings.warn(
            f"of the schema of {tool.name!r} these are not checked: {', '.join(words)}; "
            "pip install 'streamnorm[schema]' checks all of it",
            SchemaWarning, stacklevel=2,
        )  # fmt: skip


# --- and without it -------------------------------------------------------------------------------

KNOWN = {"$ref", "additionalProperties", "const", "enum", "items", "properties", "required", "type"}
SILENT = {  # that say nothing about what is valid
    "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description",
    "examples", "readOnly", "title", "writeOnly",
}  # fmt: skip

_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: (
        (isinstance(v, int) and not isinstance(v, bool))
        or (isinstance(v, float) and v.is_integer())
    ),
}


def _unknown(schema: Any) -> Iterator[str]:
    """The words of this schema, at any depth, that are not checked here."""
    if not isinstance(schema, dict):
        return
    yield from schema.keys() - KNOWN - SILENT
    for word in ("properties", "$defs", "definitions"):
        for inner in _dict(schema.get(word)).values():
            yield from _unknown(inner)
    for word in ("items", "additionalProperties"):
        yield from _unknown(schema.get(word))


def _errors(schema: Any, value: Any, root: Any, at: str = "$", depth: int = 0) -> Iterator[str]:
    """What is certainly wrong."""
    if schema is False:
        yield f"nothing is allowed - at `{at}`"
    if not isinstance(schema, dict) or depth > 100:  # a reference to itself
        return
    if "$ref" in schema:
        yield from _errors(_referred(schema["$ref"], root), value, root, at, depth + 1)
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, list) and not any(_IS.get(kind, _anything)(value) for kind in kinds):
        yield f"expected {' or '.join(kinds)}, got {_kind(value)} - at `{at}`"
        return
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list) and not any(_same(value, item) for item in allowed):
        yield f"expected one of {', '.join(map(repr, allowed))} - at `{at}`"
    if isinstance(value, dict):
        yield from _errors_of_object(schema, value, root, at)
    if isinstance(value, list) and isinstance(schema.get("items"), dict | bool):
        for number, item in enumerate(value):
            yield from _errors(schema["items"], item, root, f"{at}[{number}]")


def _errors_of_object(
    schema: dict[str, Any], value: dict[str, Any], root: Any, at: str
) -> Iterator[str]:
    known, others = _dict(schema.get("properties")), schema.get("additionalProperties")
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{name!r} is missing - at `{at}`"
    for name, item in value.items():
        if name in known:
            yield from _errors(known[name], item, root, f"{at}.{name}")
        elif "patternProperties" not in schema and others is False:
            yield f"there is no {name!r}, only {', '.join(map(repr, known))} - at `{at}`"
        elif "patternProperties" not in schema:
            yield from _errors(others, item, root, f"{at}.{name}")


def _referred(reference: Any, root: Any) -> Any:
    """What a reference within the schema points to; anything is allowed if it cannot be found."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return True
    for step in reference[1:].split("/")[1:]:
        root = _dict(root).get(step.replace("~1", "/").replace("~0", "~"), True)
    return root


def _anything(value: Any) -> bool:
    return True


def _kind(value: Any) -> str:
    return next(kind for kind, fits in _IS.items() if fits(value))


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
