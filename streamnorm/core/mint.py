"""Synthetic ids: a secret and a call's number in, an unguessable id out.

Rule: two streams never mint the same id, nobody can guess one from another, and the same stand-in
mints the same ids again. The secret itself never leaves this file; what a recording keeps is the
stand-in, a one-way digest of it, which mints ids and nothing else.

The modules of the standard library are imported where they are used: importing streamnorm stays
light, and a stream whose wire gives ids never needs them.
"""

from __future__ import annotations

import os

__all__ = ["Mint"]

PREFIX = "syn_"


class Mint:
    """Mints the ids of one stream.

    >>> Mint("take-7").id(0) == Mint("take-7").id(0) != Mint("take-8").id(0)
    True
    """

    __slots__ = ("_key", "_stand_in")

    def __init__(self, stand_in: str | None = None) -> None:
        self._stand_in = stand_in or ""
        self._key = b""

    @property
    def stand_in(self) -> str:
        """What mints the same ids again; made up when it is first asked for."""
        if not self._stand_in:
            self._stand_in = _new_stand_in()
        return self._stand_in

    def id(self, ordinal: int, salt: str = "") -> str:
        """The id of call number ``ordinal``: 132 bits, ``^[A-Za-z0-9_-]{1,40}$``."""
        import base64
        import hashlib
        import hmac

        if not self._key:
            self._key = hashlib.sha256(b"streamnorm mint\0" + self.stand_in.encode()).digest()
        mac = hmac.digest(self._key, f"{ordinal}/{salt}".encode(), "sha256")
        return PREFIX + base64.urlsafe_b64encode(mac[:18])[:22].decode()


def _new_stand_in() -> str:
    import hashlib

    secret = os.urandom(32)  # the system's own generator, as secrets uses
    return hashlib.sha256(b"streamnorm stand-in\0" + secret).hexdigest()[:32]
