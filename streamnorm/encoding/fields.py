"""Where a wire's body has its options: one row for each, and the same row reads and writes it.

A provider's encoder has ``fields``, rows of ``Field``: the option, the path of its field, and its form
there. ``read_options`` takes a body apart, ``said_options`` makes the fields of one.

Rule: nothing is lost. A field that no row can read stays as it is; an option that no row can write, or
that has to be said otherwise, is a row of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ..errors import EncodeError
from ..options import EFFORTS, Format, RequestOptions
from .schemas import Dropped

__all__ = [
    "FLAG", "NUMBER", "SWITCH", "TEXT", "TEXTS", "WHOLE", "Field", "Form", "Otherwise", "at", "efforts",
    "is_there", "joined", "nameless", "only", "placed", "read_format", "read_options", "replaced",
    "said_options", "taken",
]  # fmt: skip

Body: TypeAlias = dict[str, Any]
_MISSING = object()


class Otherwise(NamedTuple):
    """What is written in place of something that the wire cannot say, and why."""

    value: Any
    why: str


class Form(NamedTuple):
    """How a value stands in a body. Both give None for what they have no word for; ``read`` may raise.

    ``write`` is given the value of the option, None if nobody said it, and all options.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any, RequestOptions], Any] = lambda value, options: value


def only(*kinds: type) -> Form:
    """A value that stands there as it is, if it is of such a type.

    >>> only(int).read(7), only(int).read(True), only(int).read("7")
    (7, None, None)
    """
    return Form(lambda value: value if type(value) in kinds else None)


def efforts(*known: str, spelled: Callable[[str], str] = str) -> Form:
    """An effort, on a wire that knows these; another is said as the next one.

    >>> efforts("low", "high").write("minimal", RequestOptions()).value
    'low'
    """

    def write(effort: str | None, options: RequestOptions) -> Any:
        if effort is None:
            return None
        place = EFFORTS.index(effort)
        near = min(known, key=lambda word: abs(EFFORTS.index(word) - place))
        said = spelled(near)
        return said if near == effort else Otherwise(said, f"said as {said!r}, the nearest word")

    ours = {spelled(word): word for word in known}
    return Form(lambda said: ours.get(said) if isinstance(said, str) else None, write)


def _texts(value: Any) -> Any:
    said = [value] if isinstance(value, str) else value
    is_texts = isinstance(said, list) and said and all(isinstance(text, str) for text in said)
    return tuple(said) if is_texts else None


NUMBER = only(int, float)
WHOLE = only(int)
TEXT = only(str)
FLAG = only(bool)
SWITCH = Form(FLAG.read, lambda value, options: value or None)  # off is not said
TEXTS = Form(_texts, lambda value, options: list(value) or None)


class Field(NamedTuple):
    """One option on one wire.

    ``least`` and ``most`` bound a number; ``most`` of texts is how many, of a text how many letters.
    ``unsaid``: what a body means that does not say it. ``reads_only``: an older place of what another row writes.
    """

    name: str
    path: str
    form: Form
    least: float | None = None
    most: float | None = None
    unsaid: Any = None
    reads_only: bool = False


# Where an option stands elsewhere than in the body, or is so by itself, there is nothing to tell.
_ELSEWHERE = {"model", "stream", "usage", "native"}


# --- reading --------------------------------------------------------------------------------------


def read_options(fields: Iterable[Field], body: Body) -> tuple[dict[str, Any], Body]:
    """The options that a body says, and the body without them; the body itself stays as it is.

    >>> read_options([Field("seed", "more.seed", WHOLE)], {"more": {"seed": 7, "other": 1}})
    ({'seed': 7}, {'more': {'other': 1}})
    """
    found: dict[str, Any] = {}
    for field in fields:
        value = at(body, field.path)
        said = _read(field, value)
        if said is None:
            continue
        known = found.setdefault(field.name, said)
        # Else it is said twice, and differently; or this is what goes with the other way to say it.
        if known == said or field.form.write(known, RequestOptions(**found)) == value:
            body = taken(body, field.path)
    for field in fields:
        if field.unsaid is not None and at(body, field.path) is _MISSING:
            found.setdefault(field.name, field.unsaid)
    return found, body


def _read(field: Field, value: Any) -> Any:
    try:
        return None if value is _MISSING else field.form.read(value)
    except (KeyError, TypeError, ValueError, AttributeError):  # odd, and so none that we have
        return None


def at(body: Any, path: str) -> Any:
    """What stands at a path; a marker of ours where nothing does."""
    for step in path.split("."):
        if not isinstance(body, dict) or step not in body:
            return _MISSING
        body = body[step]
    return body


def is_there(value: Any) -> bool:
    """Did something stand at the path?"""
    return value is not _MISSING


def taken(body: Body, path: str) -> Body:
    """The body without what stands at a path, and without an object that is empty for it.

    >>> taken({"a": {"b": 1}, "c": 2}, "a.b"), taken({"c": 2}, "a.b")
    ({'c': 2}, {'c': 2})
    """
    step, _, rest = path.partition(".")
    if step not in body:
        return body
    kept = {key: value for key, value in body.items() if key != step}
    if not rest or not isinstance(body[step], dict):
        return body if rest else kept
    inner = taken(body[step], rest)
    return {**body, step: inner} if inner else kept


def replaced(body: Body, path: str, value: Any) -> Body:
    """The body with something else at a path where something stands.

    >>> replaced({"a": {"b": 1, "c": 2}}, "a.b", 3)
    {'a': {'b': 3, 'c': 2}}
    """
    step, _, rest = path.partition(".")
    return {**body, step: replaced(body[step], rest, value) if rest else value}


# --- writing --------------------------------------------------------------------------------------


def said_options(fields: Sequence[Field], options: RequestOptions) -> tuple[Body, list[Dropped]]:
    """The fields that say these options, and a report of what they cannot say.

    >>> said_options([Field("seed", "more.seed", WHOLE)], RequestOptions(seed=7, top_k=1))
    ({'more': {'seed': 7}}, [Dropped(where='options', what='top_k', why='this wire has no such option')])
    """
    body: Body = {}
    report: list[Dropped] = []
    said: set[str] = set()
    for field in fields:
        value = getattr(options, field.name)
        if field.reads_only:
            continue
        written, why = _bounded(field, _written(field, value, options))
        if written is not None:
            said.add(field.name)
            body = joined(body, placed(field.path, written))
        if why:
            said.add(field.name)
            report.append(Dropped("options", field.name, why))
    return body, [*report, *_unsaid(options, said)]


def _written(field: Field, value: Any, options: RequestOptions) -> Any:
    try:
        return field.form.write(value, options)
    except ValueError as error:  # a number in a schema that JSON cannot say
        raise EncodeError(f"the option {field.name} cannot be said ({error})") from error


def _bounded(field: Field, value: Any) -> tuple[Any, str]:
    """The value within the field's bounds, and why it is another."""
    if isinstance(value, Otherwise):
        return value
    if isinstance(value, list) and field.most is not None and len(value) > field.most:
        kept = int(field.most)
        return value[:kept], f"this wire takes {kept} of them; left out are {value[kept:]!r}"
    if isinstance(value, str) and field.most is not None and len(value) > field.most:
        return None, f"this wire takes {field.most:g} letters at the most"
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value, ""
    for bound, is_out in ((field.least, _below), (field.most, _above)):
        if bound is not None and is_out(value, bound):
            return bound, f"this wire takes {bound:g} at the {'least' if bound > value else 'most'}"
    return value, ""


def _below(value: float, bound: float) -> bool:
    return value < bound


def _above(value: float, bound: float) -> bool:
    return value > bound


def _unsaid(options: RequestOptions, said: set[str]) -> Iterator[Dropped]:
    for name in options.__struct_fields__:
        value = getattr(options, name)
        if value not in (None, ()) and name not in said and name not in _ELSEWHERE:
            yield Dropped("options", name, "this wire has no such option")


def placed(path: str, value: Any) -> Body:
    """A body that has nothing but a value at a path.

    >>> placed("a.b", 1)
    {'a': {'b': 1}}
    """
    for step in reversed(path.split(".")):
        value = {step: value}
    said: Body = value
    return said


def joined(body: Body, more: Body) -> Body:
    """Both bodies in one; where both say something that is no object, the first does.

    >>> joined({"a": {"b": 1, "c": 2}}, {"a": {"c": 3, "d": 4}, "e": 5})
    {'a': {'b': 1, 'c': 2, 'd': 4}, 'e': 5}
    """
    whole = dict(body)
    for key, value in more.items():
        held = whole.setdefault(key, value)
        if isinstance(held, dict) and isinstance(value, dict):
            whole[key] = joined(held, value)
    return whole


# --- formats, which many wires say alike ----------------------------------------------------------


def read_format(said: Body) -> Format | None:
    """A schema with its name, if nothing else is said of it than we can keep.

    >>> read_format({"name": "trip", "schema": {}, "more": 1})
    """
    known = {"name": str, "schema": dict, "description": str | None, "strict": bool | None}
    if not said.keys() <= known.keys() or "schema" not in said:
        return None
    whole = {"name": Format().name, "description": None, "strict": None, **said}
    if not all(isinstance(whole[key], kind) for key, kind in known.items()):
        return None
    return Format(whole["schema"], whole["name"], whole["description"] or "", whole["strict"])


def nameless(said: Any, format: Format) -> Any:
    """A format on a wire that has nothing but the schema of it.

    >>> nameless({}, Format({}, "trip")).why
    'this wire has no name of a format'
    """
    usual = Format()
    keys = ("name", "description", "strict")
    left = [key for key in keys if getattr(format, key) not in (getattr(usual, key), False)]
    return Otherwise(said, f"this wire has no {', '.join(left)} of a format") if left else said
