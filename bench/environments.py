"""The environments of the peers: a name in, a Python that has them out.

They are made by pip in ``.venv-bench`` when they are missing or when what is wanted has changed;
``python -m bench.environments`` does only that. What cannot be installed is said in one line and
left out of the tables.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

__all__ = ["ENVIRONMENTS", "ensure"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-bench"
# Two environments, as litellm wants an older openai than the rest. It needs mcp to pass tools on,
# but does not ask for it.
ENVIRONMENTS = {
    "sdks": (
        "openai",
        "anthropic",
        "google-genai",
        "pydantic-ai-slim[openai,anthropic,google]",
        "langchain-openai",
    ),
    "litellm": ("litellm", "mcp"),
}


@cache
def ensure(name: str) -> Path | None:
    """The Python of the environment, made now if needed; None if that cannot be done.

    It is tried once in a run.
    """
    folder = FOLDER / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = "\n".join([*ENVIRONMENTS[name], *_own_dependencies()])
    stamp = folder / "wanted.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _say(f"first time only: installing {', '.join(ENVIRONMENTS[name])} into {FOLDER.name}/{name}")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n")
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-q", "-q"]
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*pip, *wanted.split("\n")], check=True, stderr=subprocess.PIPE)
    except (subprocess.CalledProcessError, OSError) as error:
        output = getattr(error, "stderr", None) or str(error).encode()
        reason = output.decode(errors="replace").strip().splitlines()[-1:]
        _say(f"left out: {name} could not be installed ({' '.join(reason)})")
        shutil.rmtree(folder, ignore_errors=True)
        return None
    stamp.write_text(wanted)
    return python


def _own_dependencies() -> list[str]:
    """What streamnorm itself needs: the workers run from the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [str(requirement) for requirement in project["dependencies"]]


def _say(what: str) -> None:
    print(f"... {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    made = [ensure(name) for name in ENVIRONMENTS]
    sys.exit(0 if all(made) else 1)
