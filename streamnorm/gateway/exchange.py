"""One request of a client comes in; its answer goes out, from whichever upstream is to give it.

    client's wire = upstream's    ``passing``: the bytes themselves, the pipe listens
    another                       ``translating``: read, said in the upstream's words, served

Rule: an attempt either gives the client its answer or says why nothing was shown. Only then is the
upstream asked again, or the client told a status and why, in the words of its own wire.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import msgspec

from ..core.row import Provider
from ..encoding.server import Refused as Form
from ..encoding.server import status_of
from ..errors import ProviderError, UsageError
from ..events import Failed
from ..takes.redact import secrets_in_headers
from ..text.written import json_bytes
from .asked import NOWHERE, Address, Asked
from .asking import BAD_GATEWAY, Refused, pause_before
from .case import MIB, Case, Services
from .client import Client, Left, TooLarge, read_body, while_there
from .counting import Counted
from .headers import Pairs, Secrets, client_headers, lacks_of, passed_back
from .passing import Passing
from .translating import Translating

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["JSON", "Attempt", "Kind", "answer", "counted"]

JSON = (b"content-type", b"application/json")
_REFUSALS = range(400, 600)  # what a status must be to say that there is no answer
_BUSY = "the gateway has as many exchanges under way as it takes; ask again in a moment"
_STUCK = "the client has taken nothing for too long"
Attempt: TypeAlias = Callable[[], Awaitable[Failed | None]]
Kind: TypeAlias = Callable[[Case], Attempt]  # of a request: how it is answered


async def answer(
    services: Services,
    wire: Provider,
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    kind: Kind | None = None,
    said: Address = NOWHERE,
) -> None:
    """Answer one request of a client of this wire, by its upstream or in a way of its own."""
    headers = client_headers(scope["headers"])
    known = services.upstreams.secrets | secrets_in_headers(headers)
    secrets = Secrets(known)
    exchange = services.flow.begin(wire.name, secrets)
    query = scope.get("query_string", b"").decode("latin-1")
    client = Client(send, exchange, secrets)
    case = Case(services, wire, headers, query, client, exchange, known)
    try:
        await _answered(case, receive, said, kind or _usual)
    except Exception as error:  # a mistake of ours: the client hears of it, and so does the log
        if not client.started:
            await _refuse(case, 500, "the gateway made a mistake; its log says more")
        exchange.state, exchange.error = "failed", type(error).__name__
        raise
    finally:
        if exchange.state == "open":  # the gateway itself was told to end
            exchange.state = "stopped"
        services.flow.end(exchange, case.notes)


async def _answered(case: Case, receive: Receive, said: Address, kind: Kind) -> None:
    settings = case.services.settings
    if len(case.services.flow) > settings.exchanges:  # before its body takes any room
        return await _refuse(case, 503, _BUSY, retry_after=1.0)
    try:
        body = await read_body(receive, settings.body)
        case.exchange.received = len(body)
        attempt = _attempt(case, Asked(body, said), kind)
    except Left:
        case.exchange.state = "left"
        return None
    except TimeoutError:
        return await _refuse(case, 408, "the body of the request stopped coming")
    except TooLarge:
        return await _refuse(case, 413, f"the body is longer than {settings.body // MIB} MiB")
    except UsageError as error:
        return await _refuse(case, 400, str(error))
    await while_there(receive, case.client, lambda: _tried(case, attempt))
    if case.exchange.state == "open":
        case.exchange.state = "left"
        case.exchange.error = _STUCK if case.client.is_stuck else None
    return None


def _attempt(case: Case, asked: Asked, kind: Kind) -> Attempt:
    """What is to be done, as often as it takes."""
    if case.headers.get("content-encoding", "").strip().lower() not in ("", "identity"):
        raise UsageError("send the body as it is, without content-encoding")
    if asked.stream and (lacking := lacks_of(case.wire.path, case.query)):
        raise UsageError(f"a stream is asked for with {lacking} in the address")
    case.goes(asked, case.services.upstreams.route(asked.model))
    return kind(case)


def _usual(case: Case) -> Attempt:
    return (Passing if case.is_passed else Translating)(case).attempt


def counted(case: Case) -> Attempt:
    """Its tokens are counted."""
    return Counted(case).attempt


async def _tried(case: Case, attempt: Attempt) -> None:
    """Ask until the client has its answer, or there is a reason to give up."""
    exchange = case.exchange
    while True:
        exchange.attempts += 1
        refused: Refused | None = None
        try:
            failure: Failed | ProviderError | None = await attempt()
        except Refused as error:
            refused, failure = error, error.error
        if failure is None:
            return None
        left = exchange.attempts <= case.services.settings.retry
        pause = pause_before(exchange.attempts, failure) if left else None
        if pause is None:
            return await _give_up(case, failure, refused)
        exchange.again()
        await anyio.sleep(pause)


async def _give_up(case: Case, failure: Failed | ProviderError, refused: Refused | None) -> None:
    if isinstance(failure, Failed):
        return await _refuse(case, status_of(failure), failure.error, code=failure.code)
    told = failure.status is not None and failure.status in _REFUSALS
    status = failure.status if told and failure.status is not None else BAD_GATEWAY
    form = case.server().refused(status, failure.message, failure.code, failure.retry_after)
    case.exchange.state, case.exchange.error = "refused", failure.message
    if refused is None or not told or not case.is_one_wire:
        return await _say(case, form)
    back = passed_back(refused.headers)
    if _is_like(refused.body, form.body, failure.message):
        return await case.client.answer(status, back, refused.body)
    return await _say(case, form, back)


def _is_like(body: bytes, form: dict[str, Any], words: str) -> bool:
    """Is it what a client of this wire expects: with the fields of the form, and words in their place?"""
    try:
        said = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    if any(type(said.get(name)) is not type(value) for name, value in form.items()):
        return False
    inner = [(said[name], value) for name, value in form.items() if isinstance(value, dict)]
    return all(
        isinstance(theirs.get(name), str)
        for theirs, ours in inner
        for name, value in ours.items()
        if value == words
    )


async def _refuse(
    case: Case, status: int, message: str, *, code: str | None = None,
    retry_after: float | None = None,
) -> None:  # fmt: skip
    case.exchange.state, case.exchange.error = "refused", message
    await _say(case, case.server().refused(status, message, code, retry_after))


async def _say(case: Case, said: Form, back: Pairs | None = None) -> None:
    """A refusal in the client's own form, with what may go back of the upstream's headers."""
    own = {name.encode(): value.encode() for name, value in said.headers.items()}
    headers = {**dict(back or ()), **own}
    await case.client.answer(said.status, list(headers.items()), json_bytes(said.body))
