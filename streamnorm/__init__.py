"""streamnorm: the streaming answer of any LLM provider as one trustworthy stream of events.

    pipe = Normalizer("openai_chat")            # without I/O: bytes in, events out
    events = pipe.feed(chunk) + pipe.close()

    async for event in normalize(response):     # around a live stream
        ...

Names of the edge (HTTP, recordings, tools) are imported when they are first used, so that importing
streamnorm costs little and pulls in no network library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import (
    BrokenCall,
    EncodeError,
    FrameError,
    NoteRaised,
    ProviderError,
    RecordingError,
    StreamnormError,
    StreamTruncated,
    UnknownProvider,
    UsageError,
    WireError,
)
from .events import (
    BrokenToolCall,
    Citation,
    Event,
    Failed,
    Finish,
    Provenance,
    ProviderToolResult,
    ReasoningDelta,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolProgress,
    Unrecognized,
    Usage,
    event_from_dict,
    event_to_dict,
    event_to_json,
)
from .limits import Limits
from .normalizer import Normalizer
from .notes import NOTES
from .providers import PROVIDERS

if TYPE_CHECKING:
    from .connecting import connect as connect
    from .conversation import Conversation as Conversation
    from .conversation import Reasoning as Reasoning
    from .conversation import Text as Text
    from .conversation import Turn as Turn
    from .guard import LoopGuard as LoopGuard
    from .handlers import ClientTool as ClientTool
    from .handlers import running as running
    from .history import History as History
    from .history import HistoryError as HistoryError
    from .history import MemoryHistory as MemoryHistory
    from .history import PostgresHistory as PostgresHistory
    from .history import SQLiteHistory as SQLiteHistory
    from .loop import ToolLoop as ToolLoop
    from .persist import PersistEachCall as PersistEachCall
    from .preview import PartialArgs as PartialArgs
    from .preview import Preview as Preview
    from .recorder import Recorder as Recorder
    from .repairing import UnansweredCall as UnansweredCall
    from .repairing import mend as mend
    from .repairing import repair as repair
    from .replaying import replay as replay
    from .settled import Settled as Settled
    from .sharing import ConsumerTooSlow as ConsumerTooSlow
    from .spool import Artifact as Artifact
    from .spool import Spool as Spool
    from .stream import Stream as Stream
    from .stream import normalize as normalize
    from .tools import Media as Media
    from .tools import Tool as Tool
    from .tools import ToolChoice as ToolChoice
    from .tools import ToolResult as ToolResult
    from .transcript import from_jsonl as from_jsonl
    from .transcript import from_messages as from_messages
    from .transcript import to_jsonl as to_jsonl
    from .transcript import to_messages as to_messages
    from .wires import provider as provider

__version__ = "0.1.0"

# name -> the module it comes from, imported at first use
_LAZY = {
    "Artifact": "spool",
    "ClientTool": "handlers",
    "ConsumerTooSlow": "sharing",
    "Conversation": "conversation",
    "History": "history",
    "HistoryError": "history",
    "LoopGuard": "guard",
    "Media": "tools",
    "MemoryHistory": "history",
    "PartialArgs": "preview",
    "PersistEachCall": "persist",
    "PostgresHistory": "history",
    "Preview": "preview",
    "Reasoning": "conversation",
    "Recorder": "recorder",
    "SQLiteHistory": "history",
    "Settled": "settled",
    "Spool": "spool",
    "Stream": "stream",
    "Text": "conversation",
    "Tool": "tools",
    "ToolChoice": "tools",
    "ToolLoop": "loop",
    "ToolResult": "tools",
    "Turn": "conversation",
    "UnansweredCall": "repairing",
    "connect": "connecting",
    "from_jsonl": "transcript",
    "from_messages": "transcript",
    "mend": "repairing",
    "normalize": "stream",
    "provider": "wires",
    "repair": "repairing",
    "replay": "replaying",
    "running": "handlers",
    "to_jsonl": "transcript",
    "to_messages": "transcript",
}

__all__ = [
    # the edge
    "normalize",
    "replay",
    "connect",
    "Stream",
    "Recorder",
    "Preview",
    "PartialArgs",
    # the pipe
    "Normalizer",
    "Limits",
    "PROVIDERS",
    "NOTES",
    # events
    "Event",
    "StreamStart",
    "TextDelta",
    "ReasoningDelta",
    "ToolCallStart",
    "ToolCallDelta",
    "ToolCall",
    "BrokenToolCall",
    "ToolProgress",
    "ProviderToolResult",
    "Citation",
    "Usage",
    "Finish",
    "Failed",
    "Unrecognized",
    "Provenance",
    "event_to_dict",
    "event_from_dict",
    "event_to_json",
    # the way back
    "provider",
    "Tool",
    "ToolChoice",
    "ToolResult",
    "Media",
    "Conversation",
    "Turn",
    "Text",
    "Reasoning",
    # conversations that survive
    "ToolLoop",
    "LoopGuard",
    "ClientTool",
    "running",
    "Settled",
    "Artifact",
    "Spool",
    "History",
    "SQLiteHistory",
    "PostgresHistory",
    "MemoryHistory",
    "PersistEachCall",
    "repair",
    "mend",
    "to_jsonl",
    "from_jsonl",
    "to_messages",
    "from_messages",
    # errors
    "StreamnormError",
    "WireError",
    "FrameError",
    "ProviderError",
    "StreamTruncated",
    "BrokenCall",
    "NoteRaised",
    "UsageError",
    "UnknownProvider",
    "EncodeError",
    "RecordingError",
    "ConsumerTooSlow",
    "UnansweredCall",
    "HistoryError",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
