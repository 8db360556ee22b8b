"""The coding-assistant scenarios: the same words and the same calls on every wire."""

from __future__ import annotations

from dataclasses import dataclass

from tools.takes.common import Json


@dataclass(frozen=True)
class Scenario:
    name: str
    says: str
    calls: tuple[tuple[str, Json], ...]

    @property
    def proves(self) -> str:
        names = ", ".join(name for name, _ in self.calls)
        return f"a short text, then {names}: the same calls on every wire"


SCENARIOS = (
    Scenario(
        "scenario_shell",
        "I'll list the directory and check the branch.",
        (
            ("run_shell_command", {"command": "ls -la", "description": "List all files"}),
            ("run_shell_command", {"command": "git status -sb", "directory": "services/api"}),
        ),
    ),
    Scenario(
        "scenario_read_file",
        "Let me open the readme.",
        (("read_file", {"absolute_path": "/srv/project/README.md"}),),
    ),
    Scenario(
        "scenario_read_many_files",
        "Both configuration files are needed here.",
        (
            (
                "read_many_files",
                {"paths": ["/srv/project/config/base.toml", "/srv/project/config/naïve café.toml"]},
            ),
        ),
    ),
    Scenario(
        "scenario_write_file",
        "Creating the note.",
        (
            (
                "write_file",
                {
                    "file_path": "/srv/project/NOTES.md",
                    "content": '# Notes\n\n- say "hello" 👋\n- path: C:\\temp\n',
                },
            ),
        ),
    ),
    Scenario(
        "scenario_replace",
        "One line changes.",
        (
            (
                "replace",
                {
                    "file_path": "/srv/project/src/app.ts",
                    "old_string": "const limit = 10;\n",
                    "new_string": "const limit = Number(process.env.LIMIT ?? 10);\n",
                },
            ),
        ),
    ),
    Scenario(
        "scenario_grep",
        "Searching for open tasks.",
        (
            ("search_file_content", {"pattern": r"TODO\(\w+\)", "path": "/srv/project/src"}),
            ("search_file_content", {"pattern": "FIXME"}),
        ),
    ),
)
