"""Writes docs/requests.md: how requests are read, and where each wire has its options.

python -m tools.requests             write it
python -m tools.requests --check     exit 1 if it is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from streamnorm.encoding.encoder import Encoder
from streamnorm.encoding.fields import Field
from streamnorm.options import RequestOptions
from streamnorm.providers import PROVIDERS
from tools.documents import main_of

__all__ = ["OUT", "made"]

OUT = Path(__file__).resolve().parent.parent / "docs" / "requests.md"

HEAD = """\
# Requests that others wrote

`read_request` reads the body of a request that any program wrote for any provider; the same request can then
be said to any other. Nothing is sent.

```python
from streamnorm import read_request

request = read_request("anthropic", body)  # or "auto": told by its shape
request.conversation, request.system, request.tools, request.tool_choice
request.options.max_tokens, request.options.effort, request.options.stream
request.report  # what could not be kept, one row for each thing

prepared = request.prepare("gemini", model="gemini-3-pro")
prepared.body, prepared.dropped  # and what that wire cannot say
```

| field | what it is |
|---|---|
| `provider` | the wire that the body is written for |
| `conversation` | the turns, as the provider's own parser reads them, ids and signatures too |
| `system` | what stands before everything; system texts in the midst are turns |
| `tools`, `tool_choice` | `Tool`s and a `ToolChoice` |
| `options` | `RequestOptions`: how to answer, in no provider's words |
| `report` | rows of `where`, `what`, `why` |
| `has_past` | the service has turns of which the body has no more than a name; then nobody else can be asked |

## What is kept, and what is told

- **Its own wire** gets the request as it was: a body that this library wrote is the same again, and every field
  that no other wire has a word for stands in `options.native[provider]` and goes back to the letter.
- **Another wire** hears all that it has a word for; each thing that it has none for is a row of
  `prepared.dropped`: a field of the body, an option, a keyword of a schema, a tool that the provider runs itself, a
  choice that cannot be said. An option that is out of bounds there is said as near as can be, with a row.
- **What has no place in a conversation** (`cache_control`, ids of input items, a picture by its address) is a
  row of `request.report`, once for each kind, with a count. So is what the model said and no part of its turn
  has, at most 50 fields of a turn.
- **A call that was never whole** is a row of `request.report`, and so is its result; the turn has it in `broken`,
  and no wire hears of it.
- **A body that is none** is a `UsageError` or an `EncodeError` that says where; whatever stands in a body, no
  other error comes out.

`prepare` takes the options of [`Wire.prepare`](way_back.md), and these:

- A `Wire` in place of its name: afterwards `wire.tool(call.name)` is the tool that a call means.
- `model`: another one. `without=["max_tokens"]`: options that are not to be said.
- `thinking`: `effort`, `thinking` and `thinking_budget` go to the wire that they were said to (`"own"`, the
  default): programs send them unasked, and models that cannot think refuse them. `"any"`: to any wire.

Options can be given without a body, too: `wire.request(talk, settings=RequestOptions(temperature=0.2))`.

## Tools

- **Functions** keep their schema and `strict`. What else a declaration says is in `tool.extra[provider]`.
- **Tools that the provider runs** are `Tool.server(provider, declaration)`, and are left out elsewhere.
- **Text tools** (`custom` on Responses and Chat; `Tool.of_text(name, description, grammar)`) have `tool.text`
  set. On their own wire they are declared as they were. Elsewhere they are a function with one text, `input`, and
  the grammar stands in the description; their calls have the arguments `{"input": text}` everywhere.
- **Namespaces** (Responses) are flattened: `tool.namespace` is `agents`, `tool.name` is `agents__close`, and
  `tool.own_name` is `close`. On their own wire they are namespaces again, and so are the calls of their tools.

## Where each wire has its options

Made from the tables that read and write them (`fields` of each encoder). A wire that is not named has no such
option, and a row says so (but for a model or a stream that is a matter of the address). ≤ n: a larger one, or
more, is cut to that.
"""


def made() -> dict[Path, str]:
    """The document."""
    names = [name for name in RequestOptions.__struct_fields__ if name != "native"]
    rows = [f"| `{name}` | {_places(name)} |" for name in names]
    return {OUT: "\n".join([HEAD, "| option | fields |", "|---|---|", *rows, ""])}


def _places(name: str) -> str:
    """The fields that say an option, each with its wires."""
    wires: dict[str, list[str]] = {}
    for row in PROVIDERS.values():
        fields = [field for field in row.part("encoder", Encoder).fields if field.name == name]
        told = " and ".join(_told(field) for field in fields if not field.reads_only)
        wires.setdefault(told, []).append(row.name)
    wires.pop("", None)
    return " · ".join(f"{told}: {', '.join(names)}" for told, names in wires.items())


def _told(field: Field) -> str:
    bounds = [f"≥ {field.least:g}"] if field.least is not None else []
    bounds += [f"≤ {field.most:g}"] if field.most is not None else []
    return " ".join([f"`{field.path}`", *bounds])


if __name__ == "__main__":
    sys.exit(main_of("tools.requests", __doc__, made))
