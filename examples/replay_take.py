"""A take, chunk by chunk as it arrived: when each call was whole, and how the stream ended.

Run it with ``python examples/replay_take.py [TAKE]``.
"""

import sys
from pathlib import Path

from streamnorm import BrokenToolCall, Failed, Finish, Normalizer, ToolCall, read_take

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"

take = read_take(sys.argv[1] if len(sys.argv) > 1 else TAKE)
pipe = Normalizer(take.provider or "auto", seed=take.seed)

heard = [(at, event) for at, chunk in take.chunks for event in pipe.feed(chunk)]
heard += [(take.chunks[-1][0], event) for event in pipe.close()]

for at, event in heard:
    match event:
        case ToolCall():
            print(f"{at:6.3f} s  {event.name} {event.arguments}  id {event.id}")
        case BrokenToolCall():
            print(f"{at:6.3f} s  {event.name} broke: {event.reason}")
        case Finish(reason=reason) | Failed(reason=reason):
            print(f"{at:6.3f} s  {event.kind}: {reason}")
