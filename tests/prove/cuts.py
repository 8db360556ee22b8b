"""Every stream there is, cut at every byte, ended cleanly and by a broken connection.

Rule: a cut stream tells no call that the whole one does not tell, and has one ending. A long stream is cut
around the end of each of its events, and anywhere else as often as there is time for.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamnorm import Failed, Finish, Normalizer, ToolCall, read_take
from streamnorm.events import Event
from streamnorm.providers import PROVIDERS
from tests.proof.judge import misshapen
from tests.proof.run import be_quiet
from tests.prove.share import Report, Share

__all__ = ["cuts", "every_cut", "our_takes", "places", "streams"]

ROOT = Path(__file__).resolve().parents[2]
SHORT = 16 * 1024  # bytes of a stream that is cut at each of them
ANYWHERE = 300  # places of a longer one, besides those around the ends of its events
_BORDER = re.compile(rb"\n\n|\r\n\r\n|\r\r|\}[\n,\r]")


class Stream(NamedTuple):
    name: str
    provider: str
    body: bytes
    seed: str = "cuts"


def streams() -> Iterator[Stream]:
    """Our takes, and the recorded streams of STREAMNORM_CORPUS where there are any."""
    yield from our_takes()
    corpus = corpus_folder()
    if corpus is not None:
        for line in (corpus / "expected.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["streamnorm_provider"] in PROVIDERS:
                body = (corpus / row["path"]).read_bytes()
                yield Stream(row["path"], row["streamnorm_provider"], body)


def our_takes() -> Iterator[Stream]:
    for path in sorted((ROOT / "recordings").glob("*/*.sse")):
        if path.parent.name in PROVIDERS:
            take = read_take(path)
            yield Stream(f"{path.parent.name}/{path.stem}", path.parent.name, take.wire, take.seed)


def corpus_folder() -> Path | None:
    folder = Path(os.environ.get("STREAMNORM_CORPUS") or ROOT.parent / "shared" / "corpus")
    return folder if (folder / "expected.jsonl").is_file() else None


def cuts(share: Share) -> Report:
    todo = list(streams())
    random.Random(share.seed).shuffle(todo)
    done = Counter[str]()
    found: list[str] = []
    with multiprocessing.get_context("fork").Pool(share.jobs, be_quiet) as workers:
        for count, wrong in workers.imap_unordered(every_cut, todo):
            done["streams"] += 1
            done["cuts"] += count
            found += wrong
            if not share.told(f"{done['streams']} of {len(todo)} streams, {done['cuts']:,} cuts"):
                workers.terminate()
                break
    left = len(todo) - done["streams"]
    corpus = "takes and recorded streams" if corpus_folder() else "takes"
    return Report(
        f"{done['cuts']:,} cuts of {done['streams']} {corpus}, each ended in two ways", found,
        f"{left} streams, for want of time" if left else "",
    )  # fmt: skip


def places(stream: Stream) -> list[int]:
    """Where it is cut."""
    size = len(stream.body)
    if size <= SHORT:
        return list(range(size))
    near = {
        place
        for border in _BORDER.finditer(stream.body)
        for place in range(max(0, border.start() - 2), min(size, border.end() + 2))
    }
    dice = random.Random(stream.name)
    most = dice.sample(sorted(near), min(len(near), 4 * ANYWHERE))
    return sorted({*most, *dice.sample(range(size), ANYWHERE)})


def every_cut(stream: Stream) -> tuple[int, list[str]]:
    """How many cuts, and what is wrong with any."""
    known = calls_of(told(stream, len(stream.body), "close"))
    found = []
    for cut in places(stream):
        for end in ("close", "fail"):
            events = told(stream, cut, end)
            wrong = calls_of(events) - known
            if wrong or misshapen(events):
                what = [str(call) for call in wrong] or [f.sentence for f in misshapen(events)]
                found.append(f"{stream.name} cut at {cut} ({end}): {what}")
            elif end == "fail" and isinstance(events[-1], Finish) and not ended(stream, cut):
                found.append(f"{stream.name} cut at {cut}: a broken connection is a good end")
    return len(places(stream)), found[:20]


def told(stream: Stream, cut: int, end: str) -> list[Event]:
    pipe = Normalizer(stream.provider, seed=stream.seed)
    events = pipe.feed(stream.body[:cut])
    if end == "fail":
        return events + pipe.fail("transport", "the connection broke")
    return events + pipe.close()


def ended(stream: Stream, cut: int) -> bool:
    """Had it told its end before it was cut?"""
    pipe = Normalizer(stream.provider, seed=stream.seed)
    return any(isinstance(event, Finish | Failed) for event in pipe.feed(stream.body[:cut]))


def calls_of(events: list[Event]) -> Counter[tuple[object, ...]]:
    calls = (event for event in events if isinstance(event, ToolCall))
    return Counter((c.choice, c.id, c.name, json.dumps(c.arguments), c.runs_on) for c in calls)
