"""No async at all: the bytes of a recorded stream in, its tool calls out.

Run it with ``python examples/sync_use.py [TAKE]``.
"""

import sys
from pathlib import Path

from streamnorm import Normalizer, ToolCall

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"
wire = Path(sys.argv[1] if len(sys.argv) > 1 else TAKE).read_bytes()

pipe = Normalizer("auto")
for event in pipe.feed(wire) + pipe.close():
    match event:
        case ToolCall(id=id, name=name, arguments=arguments):
            print(f"{name}({arguments}) -> pair the result with {id}")
