"""Writes golden request bodies: ``python -m tools.golden_requests [--check]``.

For every provider that calls tools and each of six scenarios (shell, read_file, read_many_files,
write_file, replace, grep) ``tests/golden/<provider>/<scenario>.json`` holds the declaration, the call,
the result and the whole body of the second turn. Read what changed before committing it: the tests
believe these files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from streamnorm.conversation import Conversation, Turn
from streamnorm.events import ToolCall
from streamnorm.providers import PROVIDERS
from streamnorm.tools import Tool, ToolResult, json_text
from streamnorm.wire import provider

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
STRING = {"type": "string"}
NUMBER = {"type": "integer"}


class Scenario(NamedTuple):
    """One tool, one call of it, and what came of it."""

    tool: Tool
    asked: str
    id: str
    arguments: dict[str, Any]
    output: str
    answered: str


def _tool(name: str, about: str, required: tuple[str, ...], /, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, about, schema)


SCENARIOS = {
    "shell": Scenario(
        _tool("run_shell_command", "Execute a shell command", ("command",),
              command=STRING, directory=STRING, description=STRING),
        "List files", "call_123", {"command": "ls -la"},
        "Command: ls -la\nDirectory: (root)\nOutput: ...\nError: (none)\nExit Code: 0",
        "Listed files successfully.",
    ),
    "read_file": Scenario(
        _tool("read_file", "Read a file", ("absolute_path",),
              absolute_path=STRING, offset=NUMBER, limit=NUMBER),
        "Open README", "rf_1", {"absolute_path": "/abs/path/README.md"},
        "# README\n...file contents...", "Here is the README.",
    ),
    "read_many_files": Scenario(
        _tool("read_many_files", "Read several files", ("paths",),
              paths={"type": "array", "items": STRING}),
        "Read two files", "rmf_1", {"paths": ["/abs/path/a.txt", "/abs/path/b.txt"]},
        "--- /abs/path/a.txt ---\n...a...\n--- /abs/path/b.txt ---\n...b...", "Read both.",
    ),
    "write_file": Scenario(
        _tool("write_file", "Write a file", ("file_path", "content"),
              file_path=STRING, content=STRING),
        "Create NEW.txt", "wf_1", {"file_path": "/abs/path/NEW.txt", "content": "hello"},
        "Wrote 5 bytes to /abs/path/NEW.txt", "Created NEW.txt.",
    ),
    "replace": Scenario(
        _tool("replace", "Replace text in a file", ("file_path", "old_string", "new_string"),
              file_path=STRING, old_string=STRING, new_string=STRING, expected_replacements=NUMBER),
        "Edit app.ts", "rep_1",
        {"file_path": "/abs/path/app.ts", "old_string": "const a = 1;",
         "new_string": "const a = 2;", "expected_replacements": 1},
        "Updated /abs/path/app.ts: 1 replacement", "Edited app.ts.",
    ),
    "grep": Scenario(
        _tool("search_file_content", "Search in files", ("pattern",),
              pattern=STRING, path=STRING, include=STRING, max_matches=NUMBER),
        "Find TODOs", "grep_1",
        {"pattern": "TODO", "path": "/abs/project", "include": "**/*.ts"},
        "/abs/project/a.ts:10: // TODO: refactor\n/abs/project/b.ts:42: // TODO: add tests",
        "There are two TODOs.",
    ),
}  # fmt: skip


def golden(name: str, scenario: Scenario) -> dict[str, Any]:
    """What a provider is sent in that scenario."""
    wire = provider(name)
    raw = json_text(scenario.arguments)
    call = ToolCall(0, scenario.id, scenario.tool.name, scenario.arguments, raw)
    result = ToolResult.for_call(call, scenario.output)
    talk = Conversation().user(scenario.asked).add(Turn("assistant", (call,))).results([result])
    talk.assistant(scenario.answered).user("Thank you.")
    return {
        "declaration": wire.tools([scenario.tool]),
        "call": wire.calls([call]),
        "result": wire.results([result]),
        "second_turn": wire.request(
            talk, [scenario.tool], system="You are helpful.", model="a-model", max_tokens=1024
        ),
    }


def files() -> dict[Path, str]:
    """Every golden file and what it is to hold."""
    return {
        GOLDEN / name / f"{title}.json": json.dumps(golden(name, scenario), indent=2) + "\n"
        for name, row in PROVIDERS.items()
        if row.tools
        for title, scenario in SCENARIOS.items()
    }


def main(arguments: list[str]) -> int:
    changed = [
        (path, text)
        for path, text in files().items()
        if not path.exists() or path.read_text() != text
    ]
    for path, text in changed:
        print(f"{path.relative_to(GOLDEN)} differs")
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    print(f"{len(changed)} of {len(files())} differ")
    return 1 if changed and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
