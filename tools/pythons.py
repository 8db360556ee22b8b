"""The Pythons of this machine that the package is for: a version out, and where it is.

Looked for on the path, among those of pyenv, and those that uv has installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

__all__ = ["ROOT", "VERSIONS", "bin_of", "environment", "project", "pythons"]

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_PLACES = ("~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin", "/opt/python/*/bin")
_ASKED = "import sys; print('%d.%d' % sys.version_info[:2])"


def project() -> dict[str, object]:
    """The table ``project`` of pyproject.toml."""
    table: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def pythons() -> dict[str, str]:
    """Version -> its program, of those that are there."""
    found: dict[str, str] = {}
    for version in VERSIONS:
        named = [shutil.which(f"python{version}"), *_elsewhere(version)]
        for program in filter(None, named):
            if _version_of(program) == version:
                found[version] = program
                break
    return found


def _elsewhere(version: str) -> list[str]:
    folders = (folder for place in _PLACES for folder in _glob(place))
    return [
        str(folder / f"python{version}")
        for folder in folders
        if (folder / f"python{version}").exists()
    ]


def _glob(place: str) -> list[Path]:
    path = Path(os.path.expanduser(place))
    root = Path(path.anchor)
    return sorted(root.glob(str(path.relative_to(root))), reverse=True)


def _version_of(program: str) -> str:
    """A shim of pyenv is there for versions that are not chosen, too: it fails."""
    done = subprocess.run([program, "-c", _ASKED], capture_output=True, text=True, check=False)
    return done.stdout.strip() if re.fullmatch(r"3\.\d+\s*", done.stdout) else ""


def environment(python: str, folder: Path) -> Path:
    """A fresh environment; its Python."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    return bin_of(folder)


def bin_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
