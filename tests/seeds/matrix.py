"""The matrix of seed 001: six scenarios, four wires, and what each cell looks like in its wire's words.

What is expected is written here from the scenario's facts (a name, arguments, an id, an output), never by
the encoders that are tested.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from streamnorm import Conversation, Provenance, Tool, ToolCall, ToolResult, Turn, provider

Json = dict[str, Any]
WIRES = ("anthropic", "openai_responses", "openai_chat", "gemini")
_TEXT, _NUMBER = {"type": "string"}, {"type": "number"}


class Scenario(NamedTuple):
    name: str
    asked: str
    id: str
    arguments: Json
    output: str
    properties: Json
    required: tuple[str, ...]
    description: str = ""

    @property
    def schema(self) -> Json:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
        }

    @property
    def tool(self) -> Tool:
        return Tool(self.name, self.description, self.schema)

    @property
    def text(self) -> str:
        """The arguments as a model writes them."""
        return json.dumps(self.arguments, separators=(",", ":"))

    def call(self, wire: str) -> ToolCall:
        """The call as the wire's own model made it."""
        origin = Provenance("natural", self.id, None, "stated", wire)
        return ToolCall(0, self.id, self.name, self.arguments, self.text, provenance=origin)

    def body(self, wire: str, **options: Any) -> Json:
        """A request: asked, called, answered."""
        call = self.call(wire)
        talk = Conversation().user(self.asked).add(Turn("assistant", (call,), wire))
        talk.results([ToolResult.for_call(call, self.output)])
        return provider(wire).request(talk, [self.tool], model="m", **options)

    def entries(self, wire: str) -> list[Json]:
        """What the request says of call and result, as one list in the wire's container."""
        sent: list[Json] = self.body(wire)[provider(wire).container]
        return sent[1:]


SCENARIOS = {
    "shell": Scenario(
        "run_shell_command", "List files", "call_123", {"command": "ls -la"},
        "Command: ls -la\nDirectory: (root)\nOutput: ...\nError: (none)\nExit Code: 0",
        {"command": _TEXT, "directory": _TEXT, "description": _TEXT}, ("command",),
        "Execute a shell command",
    ),
    "read_file": Scenario(
        "read_file", "Open README", "rf_1", {"absolute_path": "/abs/path/README.md"},
        "# README\n...file contents...",
        {"absolute_path": _TEXT, "offset": _NUMBER, "limit": _NUMBER}, ("absolute_path",),
    ),
    "read_many_files": Scenario(
        "read_many_files", "Read two files", "rmf_1",
        {"paths": ["/abs/path/a.txt", "/abs/path/b.txt"]},
        "--- /abs/path/a.txt ---\n...a...\n--- /abs/path/b.txt ---\n...b...",
        {"paths": {"type": "array", "items": _TEXT}}, ("paths",),
    ),
    "write_file": Scenario(
        "write_file", "Create NEW.txt", "wf_1",
        {"file_path": "/abs/path/NEW.txt", "content": "hello"},
        "Wrote 5 bytes to /abs/path/NEW.txt",
        {"file_path": _TEXT, "content": _TEXT}, ("file_path", "content"),
    ),
    "replace": Scenario(
        "replace", "Edit app.ts", "rep_1",
        {"file_path": "/abs/path/app.ts", "old_string": "const a = 1;",
         "new_string": "const a = 2;", "expected_replacements": 1},
        "Updated /abs/path/app.ts: 1 replacement",
        {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT,
         "expected_replacements": _NUMBER},
        ("file_path", "old_string", "new_string"),
    ),
    "grep": Scenario(
        "search_file_content", "Find TODOs", "grep_1",
        {"pattern": "TODO", "path": "/abs/project", "include": "**/*.ts"},
        "/abs/project/a.ts:10: // TODO: refactor\n/abs/project/b.ts:42: // TODO: add tests",
        {"pattern": _TEXT, "path": _TEXT, "include": _TEXT, "max_matches": _NUMBER}, ("pattern",),
    ),
}  # fmt: skip
_URL = Scenario(
    "web_fetch", "Fetch it", "wfe_1", {"prompt": "https://example.org"}, "Sources: example.org",
    {"prompt": _TEXT}, ("prompt",),
)  # fmt: skip
_QUERY = Scenario(
    "google_web_search", "Search", "ws_1", {"query": "tides"}, "High at noon. [1] example.org",
    {"query": _TEXT}, ("query",),
)  # fmt: skip
WEB = {"web_search": _QUERY, "web_fetch": _URL}
ALL = SCENARIOS | WEB


# --- what the cells say ---------------------------------------------------------------------------


def declared(wire: str, s: Scenario) -> Json:
    """The fields of the body that declare the tool."""
    said = {"name": s.name} | ({"description": s.description} if s.description else {})
    if wire == "anthropic":
        return {"tools": [{**said, "input_schema": s.schema}]}
    if wire == "openai_responses":
        return {"tools": [{"type": "function", **said, "parameters": s.schema, "strict": None}]}
    if wire == "openai_chat":
        return {"tools": [{"type": "function", "function": {**said, "parameters": s.schema}}]}
    return {"tools": [{"functionDeclarations": [{**said, "parametersJsonSchema": s.schema}]}]}


def called(wire: str, s: Scenario) -> Json:
    """The entry in which the model calls."""
    if wire == "anthropic":
        block = {"type": "tool_use", "id": s.id, "name": s.name, "input": s.arguments}
        return {"role": "assistant", "content": [block]}
    if wire == "openai_responses":
        return {"type": "function_call", "call_id": s.id, "name": s.name, "arguments": s.text}
    if wire == "openai_chat":
        function = {"name": s.name, "arguments": s.text}
        call = {"id": s.id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    said = {"id": s.id, "name": s.name, "args": s.arguments}
    return {"role": "model", "parts": [{"functionCall": said}]}


def answered(wire: str, s: Scenario) -> Json:
    """The entry that brings the result."""
    if wire == "anthropic":
        block = {"type": "tool_result", "tool_use_id": s.id, "content": s.output}
        return {"role": "user", "content": [block]}
    if wire == "openai_responses":
        return {"type": "function_call_output", "call_id": s.id, "output": s.output}
    if wire == "openai_chat":
        return {"role": "tool", "tool_call_id": s.id, "content": s.output}
    said = {"id": s.id, "name": s.name, "response": {"output": s.output}}
    return {"role": "user", "parts": [{"functionResponse": said}]}
