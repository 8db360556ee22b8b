"""``streamnorm serve``: a folder of takes in, a page in the browser out.

Rule: listens on this machine alone unless told otherwise, says where it is, and needs the extra
``ui``; whoever has not installed it is told how. Chats are kept in a file that the next start finds.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import uvicorn

    from ..page.chat import Chats

__all__ = ["add", "bind", "run", "shown_host"]

EXAMPLES = """\
examples:
  streamnorm serve                                 the takes in ./recordings, at 127.0.0.1:8765
  streamnorm serve takes --port 9000 --open
  streamnorm serve --live anthropic=claude-sonnet-4-5   chat with a model; ANTHROPIC_API_KEY is read
  streamnorm serve --chats talks.db                chats in this file; none: in memory only
  streamnorm serve --allow-origin http://localhost:5173    let a page of one's own ask as well
"""
HOST, PORT = "127.0.0.1", 8765
GRACE = 1  # seconds that open streams get when the server ends
NONE = "none"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    parser = commands.add_parser(
        "serve",
        help="open the page: watch, cut and compare streams, or chat",
        description="Serve a page that shows wires and events side by side, and a chat with tools.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dir", metavar="DIR", nargs="?", help="takes as DIR/<provider>/*.sse; default: recordings"
    )
    parser.add_argument("--host", default=HOST, help=f"the address to listen on; default {HOST}")
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"default {PORT}; 0 takes any free one"
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--live",
        action="append",
        default=[],
        metavar="PROVIDER=MODEL",
        help="let the chat use this model; the key comes from the environment",
    )
    parser.add_argument(
        "--chats",
        metavar="FILE",
        help=f"where chats are kept for 30 days; {NONE!r}: in memory only; "
        f"default: {_shown_path(_usual_chats())}",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="a page of another origin that may ask this server",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    from ..errors import needs

    needs("starlette", "the page", extra="ui")
    needs("uvicorn", "the page", extra="ui")
    bound = bind(args.host, args.port)
    try:
        server = _server(args)
        url = f"http://{shown_host(args.host)}:{bound.getsockname()[1]}/"
        print(f"streamnorm is at {url}  (Ctrl+C ends it)", flush=True)
        if args.open:
            import webbrowser

            webbrowser.open(url)
        with suppress(KeyboardInterrupt):  # that is how it ends
            server.run(sockets=[bound])
    finally:
        bound.close()
    return 0


def _server(args: argparse.Namespace) -> uvicorn.Server:
    import uvicorn

    from ..page.app import create_app
    from ..page.live import live_models
    from ..page.origins import ANY, LOCAL
    from ..page.scripted import TOOLS
    from ..page.takes import Takes

    open_to_all = args.host in ("0.0.0.0", "::")
    app = create_app(
        Takes(_folder(args.dir)),
        live=live_models(args.live, os.environ, TOOLS),
        chats=_chats(args.chats),
        hosts=(ANY,) if open_to_all else (*LOCAL, shown_host(args.host)),
        origins=args.allow_origin,
    )
    if open_to_all:
        print("streamnorm: everybody who reaches this machine can use the page", file=sys.stderr)
    config = uvicorn.Config(
        app, log_level="warning", timeout_graceful_shutdown=GRACE, server_header=False
    )

    class Server(uvicorn.Server):
        """Ends the conversations first, so that their readers hear it instead of being cut off."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # streams of others
            await app.state.end_answers()
            await super().shutdown(sockets)

    return Server(config)


def _chats(given: str | None) -> Chats:
    """The chats in the file that was named, or in the usual one; in memory if that cannot be."""
    from ..errors import UsageError
    from ..page.chat import Chats
    from ..private import private_database, private_folder

    if given == NONE:
        return Chats()
    path = Path(given) if given else _usual_chats()
    try:
        private_folder(path.parent)
        private_database(str(path))  # what was said is nobody else's business
        path.touch()
    except OSError as error:
        why = f"cannot keep chats in {path}: {error.strerror or error}"
        if given:
            raise UsageError(f"{why}. Name another file, or --chats {NONE}") from error
        print(f"streamnorm: {why}; they are kept in memory", file=sys.stderr)
        return Chats()
    return Chats(path)


def _usual_chats() -> Path:
    """A file in the user's folder for what programs remember."""
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        folder = os.path.expanduser("~/Library/Application Support")
    else:
        folder = os.environ.get("XDG_STATE_HOME")
    return Path(folder or os.path.expanduser("~/.local/state")) / "streamnorm" / "chats.db"


def _shown_path(path: Path) -> str:
    home = os.path.expanduser("~")
    return str(path).replace(home, "~", 1).replace("%", "%%") if home != "/" else str(path)


def _folder(given: str | None) -> Path | None:
    """The folder that was named, or ./recordings if it is there, or none: then takes are made."""
    from ..errors import RecordingError

    if given is None:
        usual = Path("recordings")
        return usual if usual.is_dir() else None
    folder = Path(given)
    if not any(folder.glob("*/*.sse")):
        raise RecordingError(f"no takes in {folder}: expected {folder}/<provider>/*.sse")
    return folder


def bind(host: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that listens there, or an error that says what to pass instead."""
    from ..errors import UsageError

    if not 0 <= port < 65536:
        raise UsageError(f"{option} {port}: a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)  # here, so that a second server on the port is told at once
    except OSError as error:
        bound.close()
        why = error.strerror or str(error)
        raise UsageError(
            f"cannot listen on {host}:{port}: {why}. Name another port with {option}: 0 takes a free one"
        ) from error
    return bound


def shown_host(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host
