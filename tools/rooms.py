"""The rooms of the house: which file may import which, who may spell a provider's words, who writes.

ROOMS is the floor plan, from top to bottom. Rule: a file imports only from rooms above its own and,
inside a room, from lines above it; only ``providers/<x>/`` spells a word, a host, a path, a key
variable, an SDK module or the name of provider x; only ``text/written.py`` writes JSON of plain
values. ``tests/house/test_rooms.py`` holds them, ``tools/architecture.py`` draws the plan.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ["LOADERS", "PROVIDER", "ROOMS", "TYPED", "House", "Room"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "streamnorm"


class Room(NamedTuple):
    """A folder, or files at the root that belong together."""

    name: str  # the folder; "" for files at the root
    lines: str  # its files from top to bottom; "." is the folder's own __init__.py
    comes_in: str
    goes_out: str


# fmt: off
ROOMS = (
    Room("text", ". written media balance exact canonical halves shown",
         "characters", "exact values, canonical forms, safe text"),
    Room("", "events errors limits notes private tools options fold conversation",
         "", "the values that users hold"),
    Room("framing", ". sse json_array lines aws borders inflate",
         "bytes in any chunking", "frames"),
    Room("core", ". cursor mint marks copies calls mend stencil even media parser lanes complete row",
         "what a wire said about a call", "events: the state machine of calls"),
    Room("encoding", ". ids names schemas fields pairs mending steps teller encoder extra declare plan envelope "
         "socket server plain messages kept repair",
         "conversations, tools, results", "the way back, in no provider's words"),
    Room("providers", "*",
         "one wire's payloads and words", "verbs of core; that wire's requests"),
    Room("providers", "plugins . detect",
         "a name, a payload, an address", "the row of a provider"),
    Room("", "opening normalizer demultiplexer refusals wire request passage",
         "bytes", "events, without I/O; provider(name), the way back"),
    Room("takes", ". format redact logs writer recorder pipe",
         "chunks of a live stream", "takes: files without secrets"),
    Room("", "survey",
         "a take", "its facts"),
    Room("captures", "packed strangers answer har vcr curl tape . inputs opened",
         "files that other programs wrote", "takes"),
    Room("table", "columns records batches arrow sinks parts crew cluster run .",
         "files with streams", "rows, on any engine"),
    Room("edge", ". runtime clients unpacking sources refusals reading failures summary timer watch intake "
         "broadcast stream connect replay transport messages session",
         "responses, SDK streams, addresses, takes", "Stream: the only room that waits"),
    Room("", "sessions",
         "", "the public names of sessions"),
    Room("history", "errors spool settled base rows migrations sql sqlite memory postgres transcript .",
         "turns and settled calls", "conversations that survive"),
    Room("agent", ". checking client_tools artifacts circles outgoing persist setup claims consent "
         "acting ledger run loop",
         "what the user says", "turns, tools run in between"),
    Room("ui", "_cited _open preview _encoder _pace plain ag_ui vercel inbox log.base "
         "log.memory log.sqlite log.redis log _protocol _telling _hearing router client .",
         "events", "what a page reads, and what it posts back"),
    Room("", "telemetry",
         "events", "spans and metrics"),
    Room("testing", "loopback http websocket script .",
         "a script of steps", "a provider's bytes, for tests"),
    Room("", "pytest_plugin .",
         "", "the public names"),
    Room("report", "rows moments number tally markup plots sections document .",
         "rows", "one page that shows what they say"),
    Room("page", "answers origins work takes dissect scripted protocols live chat app .",
         "a browser's requests", "the page of `streamnorm serve`"),
    Room("gateway", "upstreams headers asked asking store thoughts ids restoring metrics flow log client common "
         "case retelling wholes passing translating counting exchange sockets application .",
         "requests of clients of any wire", "answers of any provider, in their words"),
    Room("cli", "style progress log grid view play sources providers replay demo inspect import_ table report "
         "record repair watch serve gateway . __main__",
         "a command line", "text, exit codes"),
    Room("", "__main__",
         "`python -m streamnorm`", "the command line"),
)
# The files of every provider, from top to bottom: whatever else is there stands above its parser.
PROVIDER = ("*", "socket", "parser", "encoder", "messages", "server", "script", ".")
# fmt: on

# Who imports by a name that is computed, and why; elsewhere the name of a module stands in the code.
LOADERS = {
    "": "public names that need more than most programs do come when they are first used",
    "ui": "the same, for what a page needs",
    "providers": "the row of a provider is read when that is asked for",
    "core.row": "the modules that a row names, its own or those of another package",
    "errors": "an extra is looked for by the name of its library",
    "edge.clients": "the client library that somebody brings, httpx or one that is like it",
}
# Who writes with msgspec, and what: typed values, and pieces of JSON that go on as they came.
TYPED = {
    "tools": "writes nothing: asks whether there is half of a surrogate pair",
    "events": "events, which are structs",
    "conversation": "conversations, which are structs",
    "gateway.asked": "requests of which one field is another, the others as they came",
    "gateway.store": "what is known of a call, which is a struct",
    "core.even": "payloads of which one piece was made even, the others as they came",
    "providers.anthropic.parser": "a block that becomes a piece of a payload",
    "providers.bedrock.parser": "payloads of another wire, without what the service added",
    "providers.codex.parser": "items and their fields as they came",
    "providers.gemini.parser": "chunks with pieces as they came",
    "providers.openai_responses.items": "fields of an item as they came",
    "providers.openai_responses.socket": "requests and payloads, their fields as they came",
    "text.written": "what orjson refuses",
}
_WRITERS = {"json.dump", "json.dumps", "json.JSONEncoder", "orjson.dumps"}
_TYPED_WRITERS = {"msgspec.json.encode", "msgspec.json.Encoder", "msgspec.json.encode_into"}
_IMPORTERS = {"import_module", "importlib.import_module", "__import__"}
_BY_NAME = {"getattr", "hasattr", "setattr", "delattr"}

# A word that can belong to a wire: more than one part, as in tool_use, toolUse, tool-use, /v1/chat.
_WORD = re.compile(r"/?[A-Za-z][A-Za-z0-9]*([_.:/-][A-Za-z0-9]+|(?<=[a-z])[A-Z])[A-Za-z0-9_.:/-]*")
_MEDIA_TYPE = re.compile(r"(application|audio|image|text|video)/.*")
# Words that a wire shares with others: a key of every log line, an attribute of every HTTP client,
# a step of a script, a method of Wire.
_SHARED = {"call_id", "file_id", "status_code", "rate_limit", "tool_choice"}
# Words of the protocols that browsers speak, a path of ours and names of takes: a provider may have
# them as well.
_OF_PAGES = {
    "finishReason", "inputTokens", "outputTokens", "totalTokens", "cacheWriteInputTokens", "mimeType",
    "responseId", "/api/chat",
    "calls_without_ids", "interleaved_calls",
}  # fmt: skip
# Names that no folder tells: of companies, of models, of clients.
_SDKS = {"boto3", "aioboto3", "aiobotocore", "mistralai", "huggingface_hub"}
_BRANDS = {"amazon", "amzn", "botocore", "claude", "google", "gpt"}
# Whole words of one wire each, which must not even stand in a comment elsewhere.
_TELLING = {
    "content_block": "anthropic", "tool_use_id": "anthropic", "functionCall": "gemini",
    "toolUse": "bedrock", "function_call_output": "openai_responses",
}  # fmt: skip
# Agent programs write down what they hear from a provider, in its words.
_PROGRAMS = {"claude_code": "anthropic", "codex": "openai_responses"}
# What Python's own library spells with a ``_`` and means to be used, and where clients of others
# keep a response and the type of its items.
_NOT_OURS = {
    "_SubParsersAction", "_fields", "_get_running_loop", "_replace", "_value2member_map_",
    "_cast_to", "_connection", "_content", "_response",
}  # fmt: skip

_TOP, _BOTTOM = (-1, 0), (len(ROOMS), 0)  # of a file without a place: that is told by itself
Found: TypeAlias = Iterator[tuple[int, str]]  # line, what


class Import(NamedTuple):
    """One import of one of our modules, and the name that is taken from it."""

    line: int
    module: str
    name: str | None


class House:
    """The package as it stands in a folder. Each law is a method: what breaks it in a module."""

    def __init__(self, root: Path = ROOT) -> None:
        self._files = {}
        for path in sorted((root / PACKAGE).rglob("*.py")):
            parts = path.relative_to(root / PACKAGE).with_suffix("").parts
            self._files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        self.modules = list(self._files)  # without the package's own name; that is ""
        self._trees = {name: ast.parse(path.read_text()) for name, path in self._files.items()}

    @cached_property
    def plan(self) -> dict[str, tuple[int, int]]:
        """Every module that the plan names -> its room and its line."""
        places: dict[str, tuple[int, int]] = {}
        for number, room in enumerate(ROOMS):
            if room.lines == "*":
                inside = filter(self.provider_of, self.modules)
                places |= {module: (number, _line_of(module)) for module in inside}
                continue
            for line, name in enumerate(room.lines.split()):
                places[".".join(filter(None, [room.name, name.strip(".")]))] = (number, line)
        return places

    def text(self, module: str) -> str:
        """What stands in a module."""
        return self._files[module].read_text()

    @cached_property
    def providers(self) -> set[str]:
        """The providers: each has a folder."""
        parts = (path.parts for path in self._files.values())
        return {p[-2] for p in parts if p[-3] == "providers"}

    def provider_of(self, module: str) -> str | None:
        """The provider in whose folder a module is."""
        room, _, rest = module.partition(".")
        name = rest.partition(".")[0]
        return name if room == "providers" and name in self.providers else None

    # --- imports ----------------------------------------------------------------------------------

    def imports(self, module: str) -> Iterator[Import]:
        """What a module imports of ours: at its top, in functions, for types only, by its name."""
        for node in ast.walk(self._trees[module]):
            if isinstance(node, ast.Import):
                for one in node.names:
                    yield from self._import(node, one.name, None)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    yield from self._import(node, self._base(module, node), one.name)
        for node, name in self._by_name(module):
            yield from self._import(node, name, None)

    def _by_name(self, module: str) -> Iterator[tuple[ast.expr, str]]:
        """The modules whose name is a string: given to an importer, or anywhere in a loader."""
        for call in self.importers(module):
            if _text_of(call.args[:1]) is not None:
                yield call, self._absolute(module, _text_of(call.args[:1]) or "")
        for node in ast.walk(self._trees[module]) if module in LOADERS else ():
            if isinstance(node, ast.Constant):
                name = _text_of([node])
                if name and not name.startswith("."):
                    yield node, self._absolute(module, "." + name)

    def importers(self, module: str) -> Iterator[ast.Call]:
        """The calls in a module that import another by its name."""
        nodes = list(ast.walk(self._trees[module]))
        names = _IMPORTERS | {name for node in nodes for name in _importer_named(node)}
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield node

    def _absolute(self, module: str, name: str) -> str:
        """The name of a module; one that begins with a dot is in the package of who says it."""
        within = name.lstrip(".")
        if within == name:
            return name
        package = [PACKAGE, *filter(None, self._package(module).split("."))]
        above = package[: len(package) - (len(name) - len(within)) + 1]
        return ".".join([*above, *filter(None, [within])])

    def _import(self, node: ast.stmt | ast.expr, base: str, name: str | None) -> Iterator[Import]:
        if base != PACKAGE and not base.startswith(PACKAGE + "."):
            return
        base = base.removeprefix(PACKAGE).lstrip(".")
        inner = ".".join(filter(None, [base, name]))
        if inner in self._files:
            yield Import(node.lineno, inner, None)
        elif base in self._files:
            yield Import(node.lineno, base, name)

    def _base(self, module: str, node: ast.ImportFrom) -> str:
        """The absolute name of what an import comes from."""
        return self._absolute(module, "." * node.level + (node.module or ""))

    def _package(self, module: str) -> str:
        is_package = self._files[module].name == "__init__.py"
        return module if is_package else module.rpartition(".")[0]

    def down(self, module: str) -> Found:
        """Imports that point to a lower room, or to a line that is not above in the same room."""
        for one in self.imports(module):
            # Providers may build on each other, in any order but without a ring.
            is_other = self.provider_of(one.module) not in (None, self.provider_of(module))
            if not is_other and self.plan.get(one.module, _TOP) >= self.plan.get(module, _BOTTOM):
                yield one.line, f"imports {one.module}"
        for call in self.importers(module) if module not in LOADERS else ():
            if _text_of(call.args[:1]) is None:
                yield call.lineno, f"imports by a computed name: {ast.unparse(call)}"

    def builds_on(self) -> dict[str, set[str]]:
        """Each provider -> the others that it imports from."""
        on: dict[str, set[str]] = {name: set() for name in self.providers}
        for module in filter(self.provider_of, self.modules):
            own = self.provider_of(module)
            others = {self.provider_of(one.module) for one in self.imports(module)} - {None, own}
            on[own or ""] |= {name for name in others if name}
        return on

    def private(self, module: str) -> Found:
        """Names with a leading ``_`` that a module uses and does not define."""
        for one in self.imports(module):
            folder, _, last = one.module.rpartition(".")
            if one.name and _is_private(one.name):
                yield one.line, f"imports {one.module}.{one.name}"
            elif _is_private(last) and folder != self._package(module):
                yield one.line, f"imports {one.module}"
        own = {name for node in ast.walk(self._trees[module]) for name in _defined(node)}
        for node in self._expressions(module):
            of, name = _used(node)
            inherited = of in ("self", "cls", "super()")
            if _is_private(name) and name not in own and not inherited:
                yield node.lineno, f"uses {of}.{name}"

    # --- writing ----------------------------------------------------------------------------------

    def writes(self, module: str) -> Found:
        """JSON of plain values that is written elsewhere than in ``text/written.py``."""
        barred = (_WRITERS if module != "text.written" else set()) | (
            _TYPED_WRITERS if module not in TYPED else set()
        )
        for node in ast.walk(self._trees[module]):
            if isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{one.name}" for one in node.names}
                yield from ((node.lineno, f"writes with {name}") for name in names & barred)
            elif isinstance(node, ast.Attribute) and ast.unparse(node) in barred:
                yield node.lineno, f"writes with {ast.unparse(node)}"

    def _expressions(self, module: str) -> Iterator[ast.expr]:
        return (node for node in ast.walk(self._trees[module]) if isinstance(node, ast.expr))

    # --- words ------------------------------------------------------------------------------------

    def spelled(self, module: str) -> Found:
        """Words, names, hosts, paths, keys and SDKs of providers outside their folders."""
        own = self.provider_of(module)
        if module.endswith(f"providers.{own}") or module == "providers":
            return  # a row may name the other wires that are spoken there; the list names all
        if own is not None:
            brands, foreign = {rf"\A{name}\Z" for name in self.providers - {own}}, set()
        else:
            brands = _BRANDS | {name.partition("_")[0] for name in self.providers}
            foreign = self._words - (_OF_PAGES if module.startswith(("ui.", "page.")) else set())
        pattern = re.compile("|".join(brands) or r"\Z\A", re.I)
        headers = {word.lower() for word in foreign if "-" in word}
        for line, text in self._strings(module):
            theirs = text in foreign or ("-" in text and text.lower() in headers)
            if theirs or (pattern.search(text) and not _MEDIA_TYPE.fullmatch(text)):
                yield line, f"spells {text!r}"
        if own is None:
            for node in ast.walk(self._trees[module]):
                for name in _imported(node):
                    if pattern.match(name) or name.partition(".")[0] in _SDKS:
                        yield node.lineno, f"imports {name}"  # type: ignore[attr-defined]

    def told(self, module: str) -> Found:
        """Telling words of one wire in the folder of another, or in none; comments count, too."""
        own = self.provider_of(module)
        for line, text in enumerate(self.text(module).splitlines(), 1):
            for word in re.findall(r"\w+", text):
                if _TELLING.get(word, own) not in (own, _PROGRAMS.get(own or "")):
                    yield line, f"tells {word!r}"

    def _strings(self, module: str) -> Found:
        """The string constants of a module, without docstrings and the examples of a help text."""
        nodes = list(ast.walk(self._trees[module]))
        said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if not isinstance(node, ast.Constant) or id(node) in said:
                continue
            value = node.value
            if isinstance(value, bytes):
                value = value.decode("latin-1")
            if isinstance(value, str) and not value.startswith("examples:\n"):
                yield node.lineno, value

    @cached_property
    def _words(self) -> set[str]:
        """The words of all wires: those that the folders of providers spell, and that are not ours."""
        theirs = {
            text for m in filter(self.provider_of, self.modules) for _, text in self._strings(m)
        }
        return {
            word
            for word in theirs - self._ours()
            if _WORD.fullmatch(word) and not _MEDIA_TYPE.fullmatch(word)
        }

    def _ours(self) -> set[str]:
        """The words of the two uppermost rooms, and of JSON Schema, which is nobody's."""
        above = {m for m, place in self.plan.items() if place[0] < 2} | {"encoding.schemas"}
        found = set(_SHARED)
        for module in above & set(self.modules):
            found |= {text for _, text in self._strings(module)}
            names = (node for node in ast.walk(self._trees[module]) if isinstance(node, ast.Name))
            found |= {node.id for node in names}
        return found


def _imported(node: ast.AST) -> list[str]:
    """The modules of others that a statement imports."""
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return (
        [node.module] if isinstance(node, ast.ImportFrom) and not node.level and node.module else []
    )


def _line_of(module: str) -> int:
    """Of a file in a provider's folder."""
    name = ".".join(module.split(".")[2:]) or "."
    return PROVIDER.index(name if name in PROVIDER else "*")


def _importer_named(node: ast.AST) -> Iterator[str]:
    """What an import calls ``importlib.import_module``, if it gives it another name."""
    if isinstance(node, ast.Import):
        yield from (f"{one.asname}.import_module" for one in node.names if one.name == "importlib")
    elif isinstance(node, ast.ImportFrom) and node.module == "importlib":
        yield from (one.asname for one in node.names if one.asname)


def _text_of(args: list[ast.expr]) -> str | None:
    """The one argument, if it is a string that stands in the code."""
    if args and isinstance(args[0], ast.Constant) and isinstance(args[0].value, str):
        return args[0].value
    return None


def _used(node: ast.expr) -> tuple[str, str]:
    """What an expression takes a name from, and the name: by a dot or as a string."""
    if isinstance(node, ast.Attribute):
        return ast.unparse(node.value), node.attr
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _BY_NAME:
        return ast.unparse(node.args[0]), _text_of(node.args[1:2]) or ""
    return "", ""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in _NOT_OURS


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
