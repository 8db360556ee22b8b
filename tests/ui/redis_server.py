"""A Redis of a test's own, that can be stopped, killed and started again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

SERVER = shutil.which("redis-server")
needs_server = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed")
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


class RedisServer:
    """A private server that can be killed and started again."""

    def __init__(self, folder: Path, *options: str, config: Path | None = None) -> None:
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [
            str(SERVER), *([str(config), "--sentinel"] if config else ["--save", ""]),
            "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder),
            "--logfile", str(folder / "log"), *options,
        ]  # fmt: skip
        self.process = subprocess.Popen(self._command)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """From now on it takes connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def start(self) -> None:
        self.process = subprocess.Popen(self._command)


def _free_port() -> int:
    """A node of a cluster takes the one that is 10,000 higher as well."""
    while True:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
            if port <= 55_535:
                return port
