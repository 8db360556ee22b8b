"""The public surface: the documented names and no others, and an import that costs little."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import streamnorm

ROOT = Path(__file__).parents[2]
DOORS = [
    "streamnorm",
    "streamnorm.sessions",
    "streamnorm.ui",
    "streamnorm.testing",
    "streamnorm.table",
    "streamnorm.report",
]  # where users import from
LIBRARY = [p for p in (ROOT / "streamnorm").rglob("*.py") if p.parent.name not in ("cli", "page")]
DEFINES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

EVENTS = {
    "Media",
    "BrokenToolCall", "Citation", "Event", "Failed", "Finish", "Provenance", "ProviderToolResult",
    "ReasoningDelta", "RecorderFailed", "StreamStart", "TextDelta", "ToolCall", "ToolCallDelta", "ToolCallStart",
    "ToolEnded", "ToolProgress", "ToolStarted", "Unrecognized", "Usage", "event_from_dict",
    "event_to_dict", "event_to_json",
}  # fmt: skip
ERRORS = {
    "BrokenCallError", "EncodeError", "FrameError", "MissingExtra", "NoteRaised", "ProviderError",
    "RecordingError", "StreamTruncated", "StreamnormError", "UnknownProvider", "UsageError", "WireError",
}  # fmt: skip
PIPE = {"Limits", "NOTES", "Normalizer", "PROVIDERS", "Passage"}
EDGE = {
    "ConsumerTooSlow", "PartialArgs", "Preview", "Recorder", "Stream", "Take", "Telemetry", "connect",
    "normalize", "observe", "read_take", "redact_logs", "replay", "transport",
}  # fmt: skip
KEPT = {
    "Approval", "Artifact",
    "ClientTool", "Decision", "Denied", "History", "HistoryError", "LoopGuard", "MemoryHistory",
    "PersistEachCall", "PostgresHistory", "SQLiteHistory", "Settled", "Spool", "Stop", "ToolLoop",
    "UnansweredCall", "from_jsonl", "from_messages", "mend", "repair", "running",
    "to_jsonl", "to_messages",
}  # fmt: skip
WAY_BACK = {
    "provider", "Conversation", "File", "Link", "Made", "Reasoning", "Request", "RequestOptions", "Text", "Tool",
    "ToolChoice", "ToolResult", "Turn", "read_request",
    "Wire",
}  # fmt: skip
PLAIN_VALUES = {"Event", "NOTES", "PROVIDERS", "ToolChoice"}

HEAVY = [
    "httpx", "httpx_sse", "anyio", "asyncio", "rich", "structlog", "logging",
    "openai", "anthropic", "google.genai", "argparse", "streamnorm.cli",
]  # fmt: skip


def test_the_public_names_are_the_documented_ones():
    assert sorted(streamnorm.__all__) == sorted(EVENTS | ERRORS | PIPE | EDGE | WAY_BACK | KEPT)


@pytest.mark.parametrize("name", sorted(streamnorm.__all__))
def test_every_public_name_is_there_and_documented(name):
    value = getattr(streamnorm, name)
    assert name in PLAIN_VALUES or value.__doc__


def test_the_package_and_its_metadata_tell_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert streamnorm.__version__ == project["version"]


# --- a base install: no extra is there ------------------------------------------------------------

EXTRAS = ("opentelemetry", "psycopg", "redis", "starlette", "uvicorn", "websockets")
WITHOUT_EXTRAS = f"""
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing)
"""


def on_a_base_install(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_EXTRAS + code],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_stand_in_for_a_base_install_has_no_extras(extra):
    assert f"No module named '{extra}'" in on_a_base_install(f"import {extra}").stderr


def test_a_base_install_shows_every_public_name():
    code = f"""
import importlib, pydoc
for door in map(importlib.import_module, {DOORS!r}):
    exec(f"from {{door.__name__}} import *")
    shown = pydoc.plain(pydoc.render_doc(door))
    assert all(name in globals() and name in dir(door) for name in door.__all__)
    print(*[name for name in door.__all__ if name not in shown or not hasattr(door, name)])
"""
    done = on_a_base_install(code)
    assert (done.stdout, done.stderr) == ("\n" * len(DOORS), "")


def test_a_name_that_is_not_there_is_an_attribute_error():
    for door in map(import_module, DOORS):
        assert not hasattr(door, "no_such_name")


# What is used -> what it needs, and the extra that brings it.
USED = {
    "streamnorm.PostgresHistory('postgresql://x')": "PostgresHistory needs psycopg: postgres",
    "streamnorm.Telemetry()": "telemetry needs opentelemetry: otel",
    "streamnorm.observe([])": "telemetry needs opentelemetry: otel",
    "streamnorm.ui.RedisLog('redis://x')": "RedisLog needs redis: redis",
    "streamnorm.ui.chat_router(None, owner=str)": "chat_router needs starlette: ui",
    "streamnorm.cli.main(['serve'])": "the page needs starlette: ui",
    "import streamnorm.gateway": "the gateway needs starlette: gateway",
    "streamnorm.testing.script().websocket('openai_responses')": "a scripted WebSocket needs websockets: testing",
}


@pytest.mark.parametrize(("use", "needs"), USED.items())
def test_what_is_used_without_its_extra_says_in_one_sentence_what_to_install(use, needs):
    what, _, extra = needs.partition(": ")
    last = on_a_base_install(
        f"import streamnorm.cli, streamnorm.testing, streamnorm.ui; {use}"
    ).stderr.splitlines()[-1]
    assert last.endswith(f"{what}: pip install 'streamnorm[{extra}]'")


def test_the_extras_that_sentences_name_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {use.partition(": ")[2] for use in USED.values()} <= set(
        project["optional-dependencies"]
    )


# --- what the documents show ----------------------------------------------------------------------


def shown() -> Iterator[tuple[str, ast.Module]]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.S):
            yield path.name, ast.parse(block)
    for path in sorted((ROOT / "examples").glob("*.py")):
        yield path.name, ast.parse(path.read_text())


def test_documents_and_examples_import_from_the_doors_what_these_export():
    other = []
    for name, tree in shown():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("streamnorm"):
                door = import_module(node.module) if node.module in DOORS else None
                missing = [n.name for n in node.names if n.name not in getattr(door, "__all__", ())]
                other += [f"{name}: from {node.module} import {one}" for one in missing]
    assert other == []


def taken(tree: ast.Module) -> set[str]:
    """The names that a piece of code uses and does not bind itself."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {one.asname or one.name for one in node.names}
        elif isinstance(node, DEFINES):
            bound.add(node.name)
    return {node.id for node in names} - bound


def test_what_documents_name_of_ours_is_exported():
    """A class or function of ours that a document uses without importing it is public, too."""
    public = {name for door in DOORS for name in import_module(door).__all__}
    inside = {
        n.name for m in LIBRARY for n in ast.parse(m.read_text()).body if isinstance(n, DEFINES)
    }
    assert {name for _, tree in shown() for name in taken(tree)} & inside - public == set()


# --- text, calls, results: one rule for three words -----------------------------------------------

# Without parentheses what is there, with empty ones the stream as it comes, else what is handed over.
READS = {"Stream.text", "Stream.calls"}
TAKES = {"Conversation.results", "Wire.calls", "Wire.results"}
ROOMS_OF_USERS = ("", "edge", "takes", "history", "agent", "ui", "testing")


def held() -> Iterator[type]:
    """The classes of the values that users hold, and of the rooms that give them something."""
    for path in LIBRARY:
        parts = path.relative_to(ROOT / "streamnorm").with_suffix("").parts
        if not parts[-1].startswith("__") and (parts[0] if parts[1:] else "") in ROOMS_OF_USERS:
            module = import_module(".".join(["streamnorm", *parts]))
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == module.__name__:
                    yield value


def form(of: type, word: str) -> str | None:
    if word in getattr(of, "__annotations__", ()):
        return "is"
    said = vars(of).get(word)
    if said is None:
        return None
    if not callable(said):
        return "is"
    _, *needed = inspect.signature(said).parameters.values()
    return "takes" if any(p.default is p.empty for p in needed) else "reads"


def test_text_calls_and_results_have_one_form_each():
    forms = {
        f"{of.__name__}.{word}": form(of, word)
        for of in held()
        if not of.__name__.startswith("_")
        for word in ("text", "calls", "results")
    }
    told = {form: {name for name, this in forms.items() if this == form} for form in forms.values()}
    assert (told["reads"], told["takes"]) == (READS, TAKES)
    assert told["is"] >= {
        "Turn.text", "Turn.calls", "Turn.results", "Run.text", "ToolResult.text", "TextDelta.text",
        "Settled.results", "Inbox.results",
    }  # fmt: skip


def test_the_sentence_stands_where_streams_are_described():
    said = (ROOT / "docs" / "streams.md").read_text()
    for part in (
        "without parentheses `.text`, `.calls` and `.results` are what is there",
        "with empty ones they read the stream as it comes",
        "with something in them they take it",
    ):
        assert part in said


# --- an import that costs little ------------------------------------------------------------------


def test_importing_streamnorm_imports_nothing_heavy():
    code = f"import sys, streamnorm; print(*[n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_reading_a_stream_imports_no_network_library():
    code = (
        "import sys, streamnorm; pipe = streamnorm.Normalizer('anthropic');"
        "pipe.feed(b'data: {}\\n\\n'); pipe.close();"
        "print(*[n for n in ('httpx', 'anyio', 'rich') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
