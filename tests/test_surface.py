"""The public surface: the documented names and no others, and an import that costs little."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import streamnorm

ROOT = Path(__file__).parent.parent

EVENTS = {
    "BrokenToolCall", "Citation", "Event", "Failed", "Finish", "Provenance", "ProviderToolResult",
    "ReasoningDelta", "StreamStart", "TextDelta", "ToolCall", "ToolCallDelta", "ToolCallStart",
    "ToolProgress", "Unrecognized", "Usage", "event_from_dict", "event_to_dict", "event_to_json",
}  # fmt: skip
ERRORS = {
    "BrokenCall", "EncodeError", "FrameError", "NoteRaised", "ProviderError", "RecordingError",
    "StreamTruncated", "StreamnormError", "UnknownProvider", "UsageError", "WireError",
}  # fmt: skip
PIPE = {"Limits", "NOTES", "Normalizer", "PROVIDERS"}
EDGE = {
    "ConsumerTooSlow", "PartialArgs", "Preview", "Recorder", "Stream", "connect", "normalize", "replay",
}  # fmt: skip
KEPT = {
    "Artifact", "ClientTool", "History", "HistoryError", "LoopGuard", "MemoryHistory",
    "PersistEachCall", "PostgresHistory", "SQLiteHistory", "Settled", "Spool", "ToolLoop",
    "UnansweredCall", "from_jsonl", "from_messages", "mend", "repair", "running",
    "to_jsonl", "to_messages",
}  # fmt: skip
WAY_BACK = {
    "provider", "Conversation", "Media", "Reasoning", "Text", "Tool", "ToolChoice", "ToolResult", "Turn",
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
