"""Streams in Redis: for more than one machine. Redis Streams are the log; nothing is invented here.

Rule: the number of an entry is its id in the stream (``7-0``), so that the engine itself refuses it
twice, and a hole is seen. Each change is one script, atomic. A lease is a key that expires by the
server's own clock. Readers are rung through pub/sub, on one connection per process, and one look every
``poll`` seconds finds what nobody rang for: a ring that gets lost delays and never loses.

Nothing waits for Redis longer than ``patience``, its retries included. A Redis that was away has
forgotten no stream, but leases ran out meanwhile: for a moment nobody is taken for dead.

A Redis that loses acknowledged entries when it dies (no append-only file), or throws keys away when
memory is short, is refused unless ``allow_loss=True``. So are a cluster, as one change is of several
keys, and a Sentinel, as what follows a failover may not have what was acknowledged before it.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from ...edge.runtime import spawn
from ...errors import needs
from .base import (
    KEEP_FOR,
    LEASE,
    Busy,
    Conflict,
    Entry,
    EventLog,
    Gone,
    LogError,
    LogUnavailable,
    Page,
    State,
    View,
    is_writable,
)

with suppress(ImportError):  # an extra, asked for when a log is made
    from redis.asyncio import BlockingConnectionPool, Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import NoScriptError, RedisError, ResponseError, TimeoutError

__all__ = ["RedisLog"]

PATIENCE = 1.5  # seconds for one request: whoever asks for a new chat is told within two
RETRIES, LONGEST_PAUSE = 1000, 0.25  # as often as there is time
BACK = 5.0  # seconds after the last failure in which producers may not have said yet that they live
CARRIERS = 3  # connections that carry requests
MOST = 64  # requests that one of them carries at once
LOOK_BYTES = (
    256 * 1024
)  # that a reader takes at once, so that nobody is out of patience for his sake
TOO_OLD = (6, 2)

# KEYS: stream, meta, lease, chat   ARGV: id, owner, lease ms, keep ms, chat's prefix of lease keys
CREATE = """
if KEYS[4] ~= '' then
  local running = redis.call('LINDEX', KEYS[4], -1)
  if running then
    local state = redis.call('HGET', ARGV[5] .. '{' .. running .. '}:meta', 'state')
    if state == 'open' and redis.call('EXISTS', ARGV[5] .. '{' .. running .. '}:lease') == 1 then
      return running
    end
  end
  redis.call('RPUSH', KEYS[4], ARGV[1])
  redis.call('LTRIM', KEYS[4], -1000, -1)
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
end
redis.call('HSET', KEYS[2], 'owner', ARGV[2], 'state', 'open', 'last', 0)
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[3], 1, 'PX', ARGV[3])
return false
"""

# KEYS: stream, meta, lease   ARGV: first, state, lease ms, keep ms, entries kept (0: all), bell, data…
APPEND = """
local last = tonumber(redis.call('HGET', KEYS[2], 'last'))
if not last then return redis.error_reply('GONE') end
local seq = tonumber(ARGV[1])
if seq > last + 1 then return redis.error_reply('CONFLICT ' .. seq) end
for i = 7, #ARGV do
  local id = seq .. '-0'
  if seq > last then
    redis.call('XADD', KEYS[1], id, 'd', ARGV[i])
    last = seq
  else
    local kept = redis.call('XRANGE', KEYS[1], id, id)
    if #kept == 1 and kept[1][2][2] ~= ARGV[i] then
      return redis.error_reply('CONFLICT ' .. seq)
    end
  end
  seq = seq + 1
end
redis.call('HSET', KEYS[2], 'state', ARGV[2], 'last', last)
if tonumber(ARGV[5]) > 0 then redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[5]) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
redis.call('SET', KEYS[3], 1, 'PX', ARGV[3])
if #ARGV > 6 or ARGV[2] ~= 'open' then redis.call('PUBLISH', ARGV[6], 1) end
return redis.call('HEXISTS', KEYS[2], 'stopped')
"""

# KEYS: stream, meta, lease   ARGV: owner, after, limit
LOOK = """
local meta = redis.call('HMGET', KEYS[2], 'owner', 'state', 'last')
if not meta[1] or meta[1] ~= ARGV[1] then return redis.error_reply('GONE') end
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)
local entries = {}
if tonumber(ARGV[3]) > 0 then
  entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
end
return {entries, first[1] and first[1][1] or '', meta[2], meta[3], redis.call('EXISTS', KEYS[3])}
"""

# KEYS: meta, lease of each stream
VIEWS = """
local views = {}
for i = 1, #KEYS, 2 do
  local meta = redis.call('HMGET', KEYS[i], 'last', 'state')
  views[#views + 1] = {meta[1], meta[2], redis.call('EXISTS', KEYS[i + 1])}
end
return views
"""

# KEYS: meta   ARGV: owner, bell
STOP = """
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return redis.error_reply('GONE') end
redis.call('HSET', KEYS[1], 'stopped', 1)
redis.call('PUBLISH', ARGV[2], 1)
return 1
"""


SCRIPTS = {s: hashlib.sha1(s.encode()).hexdigest() for s in (CREATE, APPEND, LOOK, VIEWS, STOP)}


class RedisLog(EventLog):
    """An ``EventLog`` in Redis 6.2 or later, with the append-only file on.

    ::

        async with RedisLog("redis://10.0.0.5:6379/0") as log: ...

    ``prefix`` keeps several applications apart in one database. ``patience`` is how many seconds a
    Redis that is away is waited for, each time: then it is ``LogUnavailable``.
    """

    def __init__(
        self,
        url: str,
        *,
        lease: float = LEASE,
        keep_for: float = KEEP_FOR,
        keep: int | None = None,
        poll: float = 1.0,
        prefix: str = "streamnorm",
        allow_loss: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__()
        self.lease, self.poll = lease, poll
        self._back = 0.0  # until when it counts as having been away
        self._keep_for, self._keep, self._prefix = keep_for, keep, prefix
        self._allow_loss = allow_loss
        needs("redis", "RedisLog", extra="redis")
        # Before 7.2 redis-py does not count a refused connection among them by itself.
        errors: Any = RedisConnectionError, TimeoutError, OSError
        retry = Retry(ExponentialBackoff(cap=LONGEST_PAUSE, base=0.01), RETRIES, errors)
        pool: Any = BlockingConnectionPool.from_url(
            url, max_connections=CARRIERS + 1, timeout=None,  # one for the ears
            retry=retry, retry_on_error=[RedisConnectionError, TimeoutError],
        )  # fmt: skip
        self._redis: Any = Redis.from_pool(pool)
        self._carriers = _Carriers(self._redis, patience, self._check, self._missed)
        self._ask = self._carriers.ask
        self._checked = False
        self._ears = _Ears(self._redis, prefix, self._ring, self._missed)

    async def aclose(self) -> None:
        await super().aclose()
        await self._ears.aclose()
        await self._redis.aclose()

    async def check(self) -> None:
        """Refuse a Redis that would lose what it acknowledged; done before the first use."""
        await self._ask("PING")

    async def _check(self) -> None:
        if self._checked:
            return
        info = await self._redis.info()
        if (why := _unfit(info)) is not None:
            raise LogUnavailable(why)
        if not self._allow_loss and (why := _losses(info)):
            raise LogUnavailable(f"{why}, or pass allow_loss=True to accept that streams get lost")
        self._checked = True

    async def stop(self, stream: str, *, owner: str) -> None:
        if not is_writable(stream, owner):
            raise Gone
        await self._script(STOP, [self._key(stream, "meta")], [owner, self._ears.name(stream)])

    async def _create(self, stream: str, owner: str, chat: str | None) -> None:
        keys = [*self._keys(stream), self._chat_key(owner, chat) if chat is not None else ""]
        args = [stream, owner, _ms(self.lease), _ms(self._keep_for), f"{self._prefix}:"]
        running = await self._script(CREATE, keys, args)
        if (
            running and running.decode() != stream
        ):  # its own id: a reply got lost, and was asked again
            raise Busy(running.decode())

    async def streams(self, *, owner: str, chat: str) -> list[str]:
        found = await self._ask("LRANGE", self._chat_key(owner, chat), 0, -1)
        return [stream.decode() for stream in found]

    async def _append(
        self, stream: str, first: int, payloads: Sequence[bytes], state: State
    ) -> bool:
        args = [
            first, state, _ms(self.lease), _ms(self._keep_for), self._keep or 0,
            self._ears.name(stream), *payloads,
        ]  # fmt: skip
        return bool(await self._script(APPEND, self._keys(stream), args))

    async def _look(self, stream: str, owner: str, after: int, limit: int) -> Page:
        self._ears.open()
        found = await self._script(LOOK, self._keys(stream), [owner, after, limit])
        rows, first, state, last, alive = found
        entries = [Entry(_seq(id), fields[1]) for id, fields in rows]
        kept = int(last)
        return Page(entries, _seq(first) if first else kept + 1, kept, state.decode(), bool(alive))

    async def _views(self, streams: Sequence[str]) -> dict[str, View]:
        keys = [self._key(stream, part) for stream in streams for part in ("meta", "lease")]
        found = await self._script(VIEWS, keys, [])
        return {
            stream: (int(last), state.decode(), bool(alive))
            for stream, (last, state, alive) in zip(streams, found, strict=True)
            if last is not None
        }

    def _lives(self, page: Page) -> bool:
        return page.alive or anyio.current_time() < self._back

    # --- asking -----------------------------------------------------------------------------------

    def _keys(self, stream: str) -> list[str]:
        return [self._key(stream, part) for part in ("log", "meta", "lease")]

    def _key(self, stream: str, part: str) -> str:
        return f"{self._prefix}:{{{stream}}}:{part}"

    def _chat_key(self, owner: str, chat: str) -> str:
        name = hashlib.sha256(f"{len(owner)}:{owner}{chat}".encode("utf-8", "surrogatepass"))
        return f"{self._prefix}:chat:{name.hexdigest()}"

    async def _script(self, script: str, keys: list[str], args: list[Any]) -> Any:
        return await self._ask("EVALSHA", SCRIPTS[script], len(keys), *keys, *args)

    def _missed(self) -> None:
        self._back = anyio.current_time() + BACK


class _Request:
    """A command, and what came of it."""

    def __init__(self, command: tuple[Any, ...]) -> None:
        self.command = command
        self.done = anyio.Event()
        self.value: Any = None
        self.error: LogError | None = None

    def answer(self, said: Any) -> None:
        """What Redis said, which may be an error."""
        if isinstance(said, ResponseError):
            self.refuse(_ours(said))
        elif not self.done.is_set():
            self.value = said
            self.done.set()

    def refuse(self, error: LogError) -> None:
        """There is no answer."""
        if not self.done.is_set():
            self.error = error
            self.done.set()


class _Carriers:
    """Requests come in one by one; they go to Redis together, all that wait at a time.

    So many streams need few connections and few calls of the system, and one that nobody answers is
    found out once for all who wait. A request is carried to its end, whoever asked for it.
    """

    def __init__(
        self,
        redis: Any,
        patience: float,
        check: Callable[[], Awaitable[None]],
        missed: Callable[[], None],
    ) -> None:
        self._redis, self.patience, self._check, self._missed = redis, patience, check, missed
        self._waiting: deque[_Request] = deque()
        self._running = 0

    async def ask(self, *command: Any) -> Any:
        """What Redis answers to this."""
        request = _Request(command)
        self._waiting.append(request)
        if self._running < CARRIERS:
            self._running += 1
            spawn(self._run)
        await request.done.wait()
        if request.error is not None:
            raise request.error.with_traceback(None)
        return request.value

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                await self._carry(batch)
        finally:
            self._running -= 1

    async def _carry(self, batch: list[_Request]) -> None:
        error: LogError = LogUnavailable("the event loop ends")
        try:
            with anyio.fail_after(self.patience):
                await self._check()
                await self._answer(batch)
        except LogError as unfit:
            error = unfit
        except ResponseError as refused:
            error = _ours(refused)
        except (RedisError, OSError) as missed:  # a time that is up among them
            why = str(missed) or f"nothing within {self.patience:g} s"
            error = LogUnavailable(f"Redis does not answer: {why}")
            self._missed()
            batch += self._waiting
            self._waiting.clear()
        finally:
            for request in batch:
                request.refuse(error)

    async def _answer(self, batch: list[_Request]) -> None:
        said = await self._said(batch)
        if any(isinstance(answer, NoScriptError) for answer in said):  # it was started anew
            for script in SCRIPTS:
                await self._redis.script_load(script)
            again = [n for n, answer in enumerate(said) if isinstance(answer, NoScriptError)]
            for n, answer in zip(again, await self._said([batch[n] for n in again]), strict=True):
                said[n] = answer
        for request, answer in zip(batch, said, strict=True):
            request.answer(answer)

    async def _said(self, batch: list[_Request]) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for request in batch:
                pipe.execute_command(*request.command)
            said: list[Any] = await pipe.execute(raise_on_error=False)
        return said


def _ours(error: ResponseError) -> LogError:
    said = str(error)
    if said.startswith("GONE"):
        return Gone()
    if said.startswith("CONFLICT"):
        return Conflict(f"a number was told twice, differently: {said}")
    return LogUnavailable(f"Redis refused: {said}")


class _Ears:
    """One connection that hears which streams have news, for all readers of this process."""

    def __init__(
        self, redis: Any, prefix: str, ring: Callable[[str], None], missed: Callable[[], None]
    ) -> None:
        self._redis, self._prefix, self._ring, self._missed = redis, prefix, ring, missed
        # made when somebody listens: a log may be made before there is an event loop
        self._scope: anyio.CancelScope | None = None
        self._ended: anyio.Event | None = None

    def name(self, stream: str) -> str:
        return f"{self._prefix}:bell:{stream}"

    def open(self) -> None:
        if self._ended is None:
            self._scope, self._ended = anyio.CancelScope(), anyio.Event()
            spawn(partial(self._listen, self._scope, self._ended))

    async def aclose(self) -> None:
        if self._scope is not None and self._ended is not None:
            self._scope.cancel()
            await self._ended.wait()

    async def _listen(self, scope: anyio.CancelScope, ended: anyio.Event) -> None:
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            with scope:
                while True:
                    await self._hear(pubsub)
        finally:
            with suppress(RedisError), anyio.CancelScope(shield=True):
                await pubsub.aclose()
            ended.set()

    async def _hear(self, pubsub: Any) -> None:
        try:
            if not pubsub.subscribed:
                await pubsub.psubscribe(_literally(self.name("")) + "*")
            message = await pubsub.get_message(timeout=1.0)
        except (RedisError, OSError):  # it is away; the lookout tells readers
            self._missed()
            await anyio.sleep(LONGEST_PAUSE)
            return
        if message is not None:
            channel = message["channel"].decode(errors="replace")  # anybody may call into the room
            self._ring(channel.removeprefix(self.name("")))


def _literally(name: str) -> str:
    r"""A pattern of Redis that is this name and no other.

    >>> _literally("app[1]:*")
    'app\\[1\\]:\\*'
    """
    return re.sub(r"[\\*?\[\]]", r"\\\g<0>", name)


def _unfit(info: dict[str, Any]) -> str | None:
    """Why this is not a Redis that a log can be kept in, and what is."""
    version = tuple(int(n) for n in str(info.get("redis_version", "0")).split(".")[:2])
    if version < TOO_OLD:
        return "this Redis is older than 6.2"
    return _REFUSED.get(str(info.get("redis_mode")))


_REFUSED = {
    "cluster": "this Redis is a node of a cluster, and a log changes several keys at once, which a cluster "
    "keeps in different nodes: give RedisLog a Redis of its own, with `cluster-enabled no`",
    "sentinel": "this is a Sentinel, which knows where a Redis is and keeps no streams: give RedisLog the "
    "address of the Redis itself. A failover forgets entries that were not copied yet, so "
    "that address is to be changed by hand, with a restart",
}


def _losses(info: dict[str, Any]) -> str | None:
    """Why this Redis would lose entries that it acknowledged, and what to set."""
    if not info.get("aof_enabled"):
        return "this Redis has no append-only file and forgets when it dies: set `appendonly yes`"
    if info.get("maxmemory") and info.get("maxmemory_policy") != "noeviction":
        return "this Redis throws keys away when memory is short: set `maxmemory-policy noeviction`"
    return None


def _seq(id: bytes) -> int:
    return int(id.split(b"-", 1)[0])


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
