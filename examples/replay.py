"""A take as it arrived, or faster: ``python examples/replay.py [TAKE] [PACE]``.

PACE 0 is flat out (as here without arguments), 1 the recorded speed, 2 twice as fast. What
``curl -N … > answer.sse`` saved is a take, too.
"""

import asyncio
import sys
from pathlib import Path

from streamnorm import replay

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"


async def main(path: str | Path = TAKE, pace: str = "0") -> None:
    async with replay(path, pace=float(pace)) as stream:
        async for text in stream.text():
            print(text, end="", flush=True)
    print()
    for call in stream.summary["calls"]:
        print(f"{call['name']}: id {call['id']} ({call['id_source']})")


asyncio.run(main(*sys.argv[1:]))
