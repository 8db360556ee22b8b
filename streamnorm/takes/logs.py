"""Log lines of HTTP clients come in; the same lines go out, without the secrets in them.

httpx writes each address that it asks, keys and all, at the level INFO, and its layers below write the
headers at DEBUG. Those loggers are not ours; ``redact_logs`` puts a filter on them.

Rule: a line is changed where it is made, before any handler sees it, and nothing of it is dropped but
the values of parameters and headers that are named like keys, what looks like a key, and what is named.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from .redact import Redactor, is_secret_name, without_secrets

__all__ = ["CLIENTS", "SecretsHidden", "redact_logs"]

CLIENTS = (
    "httpx", "httpx2", "aiohttp.client", "urllib3.connection", "urllib3.connectionpool",
    "urllib3.poolmanager", "urllib3.util.retry",
    *(f"{core}.{part}" for core in ("httpcore", "httpcore2")
      for part in ("connection", "http11", "http2", "proxy", "socks")),
)  # fmt: skip

# A header as such a line has it: (b'set-cookie', b'…'), 'x-api-key': '…'
_HEADER = re.compile(r"""b?(["'])([\w-]{1,80})\1\s*[,:]\s*b?(["'])((?:(?!\3)[^\\\n]|\\.)*)\3""")


class SecretsHidden(logging.Filter):
    """Takes secrets out of every line of the loggers, or handlers, that it is added to.

    >>> line = logging.LogRecord("httpx", 20, "", 0, "GET %s", ("https://host/?key=AIza-1234",), None)
    >>> SecretsHidden().filter(line), line.getMessage()
    (True, 'GET https://host/?key=xxxxxxxxx')
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._redactor = Redactor(secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            said = record.getMessage()
        except (TypeError, ValueError, KeyError, IndexError):  # told by the handler, in its way
            return True
        headers = _HEADER.findall(said)
        found = (value for _, name, _, value in headers if is_secret_name(name, value))
        hidden = without_secrets(said, self._redactor, found)
        if hidden != said:
            record.msg, record.args = hidden, ()
        return True


def redact_logs(*loggers: str, secrets: Iterable[str] = ()) -> SecretsHidden:
    """Keep the keys out of what HTTP clients log. Without names, for httpx, aiohttp and urllib3.

    ``secrets`` are values to be hidden wherever they stand. What it returns can be taken away again:
    ``logging.getLogger("httpx").removeFilter(hidden)``.

    ::

        logging.basicConfig(level="INFO")
        streamnorm.redact_logs()
    """
    hidden = SecretsHidden(secrets)
    for name in loggers or CLIENTS:
        logging.getLogger(name).addFilter(hidden)
    return hidden
