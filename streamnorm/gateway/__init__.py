"""The gateway: clients of one wire in, answers of any provider out, and no cut call ever runs.

    uvicorn.run(streamnorm.gateway.app("anthropic", record="takes"))

``streamnorm gateway`` is the same on the command line. Needs the extra ``gateway``.

Rule: no client runs a call whose turn did not end well; no key is told; a cut is told as one.
"""

from __future__ import annotations

from ..errors import needs

needs("starlette", "the gateway", extra="gateway")

from .application import app  # noqa: E402

__all__ = ["app"]
