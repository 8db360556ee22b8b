"""For the tests of your own program: a script in, the exact bytes of any provider out.

Rule: what a script says is what a reader of that wire hears; a fault is a step like any other.

    from streamnorm.testing import say, call, finish, script

    s = script(say("Let me look."), call("get_weather", city="Oslo"), finish())
    s.bytes("anthropic")                      # what the provider would send
    s.events("gemini")                        # what streamnorm makes of it
    httpx.AsyncClient(transport=s.transport("openai_chat"))
    with s.server("ollama") as server: ...    # a real server, at server.url
    with s.websocket("openai_responses") as server: ...    # many answers on one connection

Faults are steps as well: ``cut()``, ``error("overloaded")``, ``missing_id()``, ``duplicate()``,
``wrong_index()``, ``interleave()``, ``bad_json()``, ``keep_alives()``, ``chunked(n)``, ``delay(s)``.
"""

from __future__ import annotations

from ..encoding.steps import (
    bad_json,
    call,
    chunked,
    cut,
    delay,
    duplicate,
    error,
    finish,
    hear,
    interleave,
    keep_alives,
    missing_id,
    result,
    say,
    show,
    think,
    usage,
    wrong_index,
)
from .http import Received, Server
from .script import Script, Turns, script, turns
from .websocket import WebSocketServer

__all__ = [
    "Received",
    "Script",
    "Server",
    "Turns",
    "WebSocketServer",
    "bad_json",
    "call",
    "chunked",
    "cut",
    "delay",
    "duplicate",
    "error",
    "finish",
    "hear",
    "interleave",
    "keep_alives",
    "missing_id",
    "result",
    "say",
    "script",
    "show",
    "think",
    "turns",
    "usage",
    "wrong_index",
]
