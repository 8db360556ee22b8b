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
    BrokenCallError,
    EncodeError,
    FrameError,
    MissingExtra,
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
    Media,
    Provenance,
    ProviderToolResult,
    ReasoningDelta,
    RecorderFailed,
    StreamStart,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolEnded,
    ToolProgress,
    ToolStarted,
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
    from .agent.circles import LoopGuard as LoopGuard
    from .agent.client_tools import ClientTool as ClientTool
    from .agent.client_tools import Stop as Stop
    from .agent.client_tools import running as running
    from .agent.loop import ToolLoop as ToolLoop
    from .agent.persist import PersistEachCall as PersistEachCall
    from .captures import read_take as read_take
    from .conversation import Conversation as Conversation
    from .conversation import Made as Made
    from .conversation import Reasoning as Reasoning
    from .conversation import Text as Text
    from .conversation import Turn as Turn
    from .edge.broadcast import ConsumerTooSlow as ConsumerTooSlow
    from .edge.connect import connect as connect
    from .edge.replay import replay as replay
    from .edge.stream import Stream as Stream
    from .edge.stream import normalize as normalize
    from .edge.transport import transport as transport
    from .encoding.mending import mend as mend
    from .encoding.pairs import UnansweredCall as UnansweredCall
    from .fold import Approval as Approval
    from .fold import Decision as Decision
    from .fold import Denied as Denied
    from .history import History as History
    from .history import HistoryError as HistoryError
    from .history import MemoryHistory as MemoryHistory
    from .history import PostgresHistory as PostgresHistory
    from .history import SQLiteHistory as SQLiteHistory
    from .history.settled import Settled as Settled
    from .history.spool import Artifact as Artifact
    from .history.spool import Spool as Spool
    from .history.transcript import from_jsonl as from_jsonl
    from .history.transcript import from_messages as from_messages
    from .history.transcript import to_jsonl as to_jsonl
    from .history.transcript import to_messages as to_messages
    from .options import RequestOptions as RequestOptions
    from .passage import Passage as Passage
    from .request import Request as Request
    from .request import read_request as read_request
    from .takes.format import Take as Take
    from .takes.logs import redact_logs as redact_logs
    from .takes.recorder import Recorder as Recorder
    from .telemetry import Telemetry as Telemetry
    from .telemetry import observe as observe
    from .tools import File as File
    from .tools import Link as Link
    from .tools import Tool as Tool
    from .tools import ToolChoice as ToolChoice
    from .tools import ToolResult as ToolResult
    from .ui.preview import PartialArgs as PartialArgs
    from .ui.preview import Preview as Preview
    from .wire import Wire as Wire
    from .wire import provider as provider
    from .wire import repair as repair

__version__ = "0.1.0"

# name -> the module it comes from, imported at first use
_LAZY = {
    "Approval": "fold",
    "Artifact": "history.spool",
    "ClientTool": "agent.client_tools",
    "ConsumerTooSlow": "edge.broadcast",
    "Conversation": "conversation",
    "Decision": "fold",
    "Denied": "fold",
    "History": "history",
    "HistoryError": "history",
    "LoopGuard": "agent.circles",
    "File": "tools",
    "Link": "tools",
    "MemoryHistory": "history",
    "PartialArgs": "ui.preview",
    "Passage": "passage",
    "PersistEachCall": "agent.persist",
    "PostgresHistory": "history",
    "Preview": "ui.preview",
    "Made": "conversation",
    "Reasoning": "conversation",
    "Recorder": "takes.recorder",
    "Request": "request",
    "RequestOptions": "options",
    "SQLiteHistory": "history",
    "Settled": "history.settled",
    "Spool": "history.spool",
    "Stop": "agent.client_tools",
    "Stream": "edge.stream",
    "Take": "takes.format",
    "Telemetry": "telemetry",
    "Text": "conversation",
    "Tool": "tools",
    "ToolChoice": "tools",
    "ToolLoop": "agent.loop",
    "ToolResult": "tools",
    "Turn": "conversation",
    "UnansweredCall": "encoding.pairs",
    "Wire": "wire",
    "connect": "edge.connect",
    "from_jsonl": "history.transcript",
    "from_messages": "history.transcript",
    "mend": "encoding.mending",
    "normalize": "edge.stream",
    "observe": "telemetry",
    "provider": "wire",
    "read_request": "request",
    "read_take": "captures",
    "redact_logs": "takes.logs",
    "repair": "wire",
    "replay": "edge.replay",
    "running": "agent.client_tools",
    "to_jsonl": "history.transcript",
    "to_messages": "history.transcript",
    "transport": "edge.transport",
}

__all__ = [
    # the edge
    "normalize",
    "replay",
    "connect",
    "Stream",
    "transport",
    "Recorder",
    "redact_logs",
    "read_take",
    "Take",
    "Preview",
    "PartialArgs",
    "observe",
    "Telemetry",
    # the pipe
    "Normalizer",
    "Passage",
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
    "ToolStarted",
    "ToolEnded",
    "Citation",
    "Usage",
    "Finish",
    "Media",
    "Failed",
    "RecorderFailed",
    "Unrecognized",
    "Provenance",
    "event_to_dict",
    "event_from_dict",
    "event_to_json",
    # the way back
    "provider",
    "Wire",
    "read_request",
    "Request",
    "RequestOptions",
    "Tool",
    "ToolChoice",
    "ToolResult",
    "File",
    "Link",
    "Conversation",
    "Turn",
    "Text",
    "Made",
    "Reasoning",
    # conversations that survive
    "ToolLoop",
    "LoopGuard",
    "ClientTool",
    "running",
    "Stop",
    "Approval",
    "Decision",
    "Denied",
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
    "BrokenCallError",
    "NoteRaised",
    "UsageError",
    "UnknownProvider",
    "MissingExtra",
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
