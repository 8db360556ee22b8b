"""``streamnorm watch``: the address of a chat's stream in, a live view or one event per line out.

Rule: what is heard is heard once. A line that is cut is taken up again where it was; if that cannot
be, or somebody interrupts, the position is said, and ``--from`` goes on there.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..events import Event
    from ..ui.client import Following
    from .view import View

__all__ = ["add", "run"]

EXAMPLES = """\
examples:
  streamnorm watch http://127.0.0.1:8765/api/chat/ID/stream         what is told now
  streamnorm watch http://127.0.0.1:8765/api/chat/ID/log            all answers of the chat
  streamnorm watch URL --json | jq 'select(.kind == "tool_call")'
  streamnorm watch URL --header 'Authorization: Bearer ...'

exit codes: 0 finished, 2 usage or nothing to be heard there, 3 the stream failed or a call broke
"""
# What a part of another protocol is called if it tells of a failure or of a broken call.
TROUBLE = {"error", "tool-input-error", "RUN_ERROR"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Tells the parser about this command."""
    from .style import add_color_options

    parser = commands.add_parser(
        "watch",
        help="follow the stream of a chat, also when the line is cut",
        description="Follow a stream of streamnorm.ui.router: the plain form, AI SDK or AG-UI.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("url", metavar="URL", help="…/{chat}/stream or …/{chat}/log")
    parser.add_argument("--json", action="store_true", help="print one event per line as JSON")
    parser.add_argument(
        "--from", dest="after", metavar="ID", help="the position of the last event that was heard"
    )
    parser.add_argument(
        "--header",
        action="append",
        default=[],
        type=_header,
        metavar="'NAME: VALUE'",
        help="a header for every request",
    )
    add_color_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Follows the stream and says how it ended."""
    import anyio

    if not args.url.startswith(("http://", "https://")):
        from ..errors import UsageError

        raise UsageError(f"{args.url!r}: an address begins with http:// or https://")
    return anyio.run(_followed, args)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r}: write 'NAME: VALUE'")
    return name.strip(), value.strip()


async def _followed(args: argparse.Namespace) -> int:
    from ..errors import UsageError
    from ..ui.client import FollowError, follow

    tell = _as_json() if args.json else _as_view(args.color)
    trouble = False
    async with follow(args.url, after=args.after, headers=dict(args.header)) as told:
        try:
            async for item in told:
                trouble |= _is_trouble(item)
                tell(item)
                sys.stdout.flush()
        except FollowError as error:
            if not told.heard:
                raise UsageError(f"{args.url}: {error}") from error
            _say(f"{error}; {_further(told)}")
            return 3
        except BaseException:  # interrupted
            _say(_further(told))
            raise
    if not told.heard:
        _say("nothing is told there now")
    return 3 if trouble else 0


def _further(told: Following) -> str:
    return f"to go on: --from {told.position}" if told.position else "nothing was heard"


def _say(words: str) -> None:
    from ..text.shown import clean

    print(f"streamnorm: {clean(words)}", file=sys.stderr)


def _is_trouble(item: Event | dict[str, Any]) -> bool:
    from .replay import is_trouble

    return item.get("type") in TROUBLE if isinstance(item, dict) else is_trouble(item)


def _as_json() -> Callable[[Event | dict[str, Any]], None]:
    from ..events import event_to_json
    from ..text.shown import escape_json
    from ..text.written import json_bytes

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # JSON, whatever the locale says

    def tell(item: Event | dict[str, Any]) -> None:
        line = json_bytes(item) if isinstance(item, dict) else event_to_json(item)
        sys.stdout.write(escape_json(line.decode()) + "\n")

    return tell


def _as_view(color: str) -> Callable[[Event | dict[str, Any]], None]:
    from .style import style_for
    from .view import View

    view = View(sys.stdout, style_for(sys.stdout, color))

    def tell(item: Event | dict[str, Any]) -> None:
        if isinstance(item, dict):
            _show(view, item)
        else:
            view.show(item)

    return tell


def _show(view: View, item: dict[str, Any]) -> None:
    """What is no event: what a chat tells besides, or a part of another protocol."""
    from ..events import ProviderToolResult
    from ..text.shown import clean
    from ..text.written import json_text

    match item:
        case {"kind": "client_tool_result", "call": int(call), "id": str(id), "output": output}:
            view.show(ProviderToolResult(call, id, output, item.get("is_error") is True))
        case {"kind": "said", "text": str(text)}:
            view.say(f"> {clean(text)}")
        case {"kind": "approval", "id": str(id)}:
            view.say(f"? may {clean(id)} run?")
        case {"kind": "denied", "id": str(id)}:
            view.say(f"? {clean(id)} was not allowed to run")
        case _:
            view.say(f". {clean(json_text(item))}")
