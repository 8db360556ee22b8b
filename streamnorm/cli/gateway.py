"""``streamnorm gateway``: upstreams in, a server out that clients of other wires can be pointed at.

Rule: listens on this machine alone unless told otherwise; keys come from the environment; each exchange
is one line of JSON on stderr. Needs the extra ``gateway``; whoever has not installed it is told how.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .serve import bind, shown_host

if TYPE_CHECKING:
    import socket

    import uvicorn

__all__ = ["add", "run"]

LISTEN = "127.0.0.1:8181"
GRACE = 2  # seconds that exchanges get when the server ends
EXAMPLES = """\
examples:
  streamnorm gateway --to anthropic                         record nothing, guard everything
  streamnorm gateway --to openai_responses --map 'claude-*=gpt-5.1' --record takes
  streamnorm gateway --to ollama --model qwen3 --listen 127.0.0.1:9000
  streamnorm gateway --to openai_chat=https://openrouter.ai/api/v1 --key-env OPENROUTER_API_KEY
  streamnorm gateway --to anthropic --to fast@gemini --map 'claude-haiku-*=fast/gemini-3-flash'

A model is asked of the upstream that a --map names, or of NAME in NAME/model, or of the first --to.
A call reaches a client as one to run only when its turn has ended well; what was cut ends as an error.

Gemini CLI must be told once, in ~/.gemini/settings.json, that it has a key; then point it here:
  {"security": {"auth": {"selectedType": "gemini-api-key"}}}
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8181 GEMINI_API_KEY=any gemini

Claude Code, Codex and an SDK are pointed here with one line each:
  ANTHROPIC_BASE_URL=http://127.0.0.1:8181 ANTHROPIC_API_KEY=any claude
  KEY=any codex -c model_provider=g -c 'model_providers.g={name="g",base_url="http://127.0.0.1:8181/v1",wire_api="responses",env_key="KEY"}'
  OpenAI(base_url="http://127.0.0.1:8181/v1", api_key="any")
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    parser = commands.add_parser(
        "gateway",
        help="serve any provider to clients of another, and hand no cut call on",
        description="Serve the wires of well-known clients, with any provider behind them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--to", required=True, metavar="[NAME@]PROVIDER[=BASE_URL]", action="append", default=[],
        help="where requests go; may be given several times",
    )  # fmt: skip
    parser.add_argument(
        "--model", metavar="M", help="the model that is asked for, whatever a client calls it"
    )
    parser.add_argument(
        "--map", metavar="CLIENT_MODEL=MODEL", action="append", default=[],
        help="what a client calls so (or a pattern, 'small-*') is this MODEL, or NAME/MODEL",
    )  # fmt: skip
    parser.add_argument(
        "--listen", default=LISTEN, metavar="HOST:PORT", help=f"default {LISTEN}; port 0: any free"
    )
    parser.add_argument("--record", metavar="DIR", help="keep a take of every upstream stream")
    parser.add_argument(
        "--key-env", metavar="[NAME=]VARIABLE", action="append", default=[],
        help="the variable that holds an upstream's key, if it is not the provider's usual one",
    )  # fmt: skip
    parser.add_argument(
        "--client-key-env", metavar="VARIABLE",
        help="clients must send the key that this variable holds",
    )  # fmt: skip
    parser.add_argument(
        "--retry", type=int, default=0, metavar="N",
        help="ask an upstream up to N times again, while nothing was shown to the client",
    )  # fmt: skip
    parser.add_argument(
        "--whole", action="store_true", help="tell nothing of a call before it is whole"
    )
    parser.add_argument(
        "--eager", action="store_true",
        help="let a client run a call when it is whole, before its turn has ended",
    )  # fmt: skip
    parser.add_argument(
        "--store", metavar="FILE",
        help="keep what calls need to go back to their provider in this file; default: in memory",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="no line for each exchange")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    from ..errors import needs

    needs("starlette", "the gateway", extra="gateway")
    needs("uvicorn", "the gateway", extra="gateway")
    host, port = _place(args.listen)
    bound = bind(host, port, option="--listen")
    try:
        server = _server(args, host)
        url = f"http://{shown_host(host)}:{bound.getsockname()[1]}"
        print(f"streamnorm gateway is at {url}  (Ctrl+C ends it)", flush=True)
        with suppress(KeyboardInterrupt), _one_line_each():  # that is how it ends
            server.run(sockets=[bound])
    finally:
        bound.close()
    return 0


@contextmanager
def _one_line_each() -> Iterator[None]:
    """What the library logs of a stream is in the line of its exchange, which stays the only one."""
    logger = logging.getLogger("streamnorm")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _place(listen: str) -> tuple[str, int]:
    from ..errors import UsageError

    host, _, port = listen.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise UsageError(f"--listen {listen!r}: write HOST:PORT, such as {LISTEN}")
    return host.strip("[]"), int(port)


def _server(args: argparse.Namespace, host: str) -> uvicorn.Server:
    import uvicorn

    from ..gateway import app
    from ..gateway.log import lines_to, nowhere
    from ..page.origins import ANY, LOCAL

    everywhere, local = host in ("0.0.0.0", "::"), host in ("127.0.0.1", "::1", "localhost")
    if args.retry < 0:
        from ..errors import UsageError

        raise UsageError(f"--retry {args.retry}: a number from 0 on")
    made = app(
        args.to, model=args.model, map=args.map, key_env=args.key_env,
        client_key_env=args.client_key_env, environment=os.environ, record=args.record,
        retry=args.retry, whole=args.whole, eager=args.eager, store=args.store,
        hosts=(ANY,) if everywhere else (*LOCAL, shown_host(host)),
        tell=nowhere if args.quiet else lines_to(),
    )  # fmt: skip
    if not local and args.client_key_env is None:
        print(
            "streamnorm: everybody who reaches this machine can use your keys; "
            "--client-key-env VARIABLE asks clients for a key", file=sys.stderr,
        )  # fmt: skip
    for upstream in made.state.services.upstreams.all.values():
        key = upstream.row.key
        if key is not None and key.needed and not upstream.variable and upstream.at_home:
            print(
                f"streamnorm: no key for {upstream.name} ({' or '.join(key.variables)}); "
                "only clients of the same wire that bring their own are answered", file=sys.stderr,
            )  # fmt: skip
    config = uvicorn.Config(
        made, log_level="error", access_log=False, server_header=False,
        ws="auto", ws_max_size=made.state.services.settings.body, ws_per_message_deflate=False,
        timeout_graceful_shutdown=GRACE,
    )  # fmt: skip

    class Server(uvicorn.Server):
        """Exchanges that are cut when it ends are no news."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await super().shutdown(sockets)
            tasks = self.server_state.tasks
            if tasks:  # they write their lines before a signal ends all
                await asyncio.wait(tasks, timeout=GRACE)

    return Server(config)
