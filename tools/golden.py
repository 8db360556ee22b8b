"""Writes the golden events beside each take: ``python -m tools.golden [--check] [PATH ...]``.

For ``recordings/<provider>/<name>.sse`` the events of that take, one JSON line each, go into
``<name>.events.jsonl``; for a session, ``sessions/<name>.jsonl``, those of its streams, each with the
stream's number and lane, into ``<name>.told.json``; of an agent program, whose takes are sessions,
those of its streams, one after the other as they begin. Read what changed before committing it: the
tests believe these files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from streamnorm import Normalizer, event_to_dict, event_to_json
from streamnorm.captures import read_take
from streamnorm.demultiplexer import Demultiplexer
from streamnorm.events import Event
from streamnorm.providers import PROGRAMS, PROVIDERS
from streamnorm.text.written import json_bytes

RECORDINGS = Path(__file__).resolve().parent.parent / "recordings"


def golden_of(path: Path) -> Path:
    """Where the golden events of a take are."""
    return path.with_suffix(".told.json" if path.suffix == ".jsonl" else ".events.jsonl")


def lines_of(path: Path) -> list[bytes]:
    """The events of a take, one line of JSON each."""
    take = read_take(path)
    if path.parent.name in PROGRAMS:
        return [event_to_json(event) for events in streams_of(path) for event in events]
    pipe = Normalizer(take.provider or path.parent.name, seed=take.seed)
    events = pipe.feed(take.wire) + pipe.close()
    return [event_to_json(event) for event in events]


def streams_of(path: Path) -> list[list[Event]]:
    """The events of each stream of a recorded session."""
    take = read_take(path)
    turns = Demultiplexer(path.parent.name, seed=take.seed)
    told = [one for line in take.wire.splitlines() for one in turns.feed(line)] + turns.close()
    streams: dict[int, list[Event]] = {}
    for one in told:
        if one.stream is not None:
            streams.setdefault(one.stream, []).extend(one.events)
    return [streams[number] for number in sorted(streams)]


def told_of(path: Path) -> list[bytes]:
    """What the streams of a session tell, one line of JSON for each event."""
    turns = Demultiplexer(seed=path.stem)
    told = [one for line in path.read_bytes().splitlines() for one in turns.feed(line)]
    told += turns.close()
    return [
        json_bytes({"stream": one.stream, "lane": one.lane, "event": event_to_dict(event)})
        for one in told
        for event in one.events
    ]


def takes_in(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.sse")) if path.is_dir() else [path]
        yield from sorted(path.rglob("sessions/*.jsonl")) if path.is_dir() else []


def orphans(paths: list[Path]) -> Iterator[Path]:
    """Golden files whose take is gone."""
    for folder in filter(Path.is_dir, paths):
        for golden in sorted(folder.rglob("*.events.jsonl")):
            if not golden.with_name(golden.name.replace(".events.jsonl", ".sse")).exists():
                yield golden


def difference(before: bytes | None, after: bytes) -> str:
    """What changed, in a few words; empty if nothing did."""
    if before is None:
        return f"new, {_lines(after)} events"
    if before == after:
        return ""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    same = min(_lines(before), _lines(after))
    line = next((n for n, (old, new) in enumerate(pairs, 1) if old != new), same + 1)
    return f"differs from line {line} on ({_lines(before)} -> {_lines(after)} events)"


def _lines(data: bytes) -> int:
    return data.count(b"\n")


def main(argv: list[str] | None = None) -> int:
    """0: nothing to do, or written; 1: ``--check`` found a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.golden", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 if anything differs"
    )
    parser.add_argument("paths", nargs="*", type=Path, default=[RECORDINGS], metavar="PATH")
    options = parser.parse_args(argv)
    changed = unchanged = 0
    skipped: dict[str, int] = {}
    for path in takes_in(options.paths):
        is_session = path.suffix == ".jsonl"
        if not is_session and path.parent.name not in {*PROVIDERS, *PROGRAMS}:
            skipped[path.parent.name] = skipped.get(path.parent.name, 0) + 1
            continue
        golden = golden_of(path)
        lines = told_of(path) if is_session else lines_of(path)
        after = b"".join(line + b"\n" for line in lines)
        what = difference(golden.read_bytes() if golden.exists() else None, after)
        if not what:
            unchanged += 1
            continue
        changed += 1
        print(f"{golden.parent.name}/{golden.name}: {what}")
        if not options.check:
            golden.write_bytes(after)
    for golden in orphans(options.paths):
        changed += 1
        print(f"{golden.parent.name}/{golden.name}: its take is gone")
        if not options.check:
            golden.unlink()
    for provider, number in skipped.items():
        print(f"{provider}: {number} takes skipped, the provider is not registered yet")
    verb = "to write" if options.check else "written"
    print(f"{changed} {verb}, {unchanged} unchanged")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
