"""A way to answer comes in; a server on the loopback address, on a thread of its own, goes out.

Rule: nothing outlives the ``with`` statement: closing waits for the thread, also when the reader was
cancelled. What the server speaks is its subclass's to say.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from concurrent.futures import Future
from typing import ClassVar, Self

from anyio import CancelScope

from ..edge.runtime import in_thread
from ..errors import UsageError

__all__ = ["HOST", "THREAD", "Loopback"]

HOST = "127.0.0.1"
THREAD = "streamnorm server"


class Loopback(ABC):
    """Listens from ``start`` to ``close``; ``with`` and ``async with`` both work."""

    SCHEME: ClassVar[str]  # with the slashes

    def __init__(self) -> None:
        self._url = ""
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens, such as ``http://127.0.0.1:40123``."""
        if not self._url:
            raise UsageError("the server is not running: use it in a with statement")
        return self._url

    def start(self) -> Self:
        """Listen on a free port."""
        if self._thread is None:
            port: Future[int] = Future()
            thread = threading.Thread(target=self._run, args=(port,), name=THREAD)
            thread.start()
            self._url = f"{self.SCHEME}{HOST}:{port.result()}"
            self._thread = thread
        return self

    def close(self) -> None:
        """Stop listening and close what is open."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stop()
            thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        with CancelScope(shield=True):
            await in_thread(self.close)  # so that clients of this loop can answer the end

    def _run(self, port: Future[int]) -> None:
        try:
            self._serve(port)
        except OSError as error:
            if port.done():
                raise
            port.set_exception(error)

    @abstractmethod
    def _serve(self, port: Future[int]) -> None:
        """Listen on a free port, tell which, and answer until ``_stop``."""

    @abstractmethod
    def _stop(self) -> None:
        """Have ``_serve`` return."""
