"""Record a live stream, then replay it: the same events, the same ids, and no key in the file.

Live with OPENAI_API_KEY in the environment, otherwise from a take that plays the provider:
``python examples/record.py [FILE]``.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

import httpx

from streamnorm import connect, read_take, replay

TAKE = Path(__file__).parent.parent / "recordings/openai_chat/parallel_calls.sse"
KEY = os.environ.get("OPENAI_API_KEY")
BODY = {"model": "gpt-5-mini", "stream": True,
        "messages": [{"role": "user", "content": "Say hello in five languages."}]}  # fmt: skip


async def main(path: str) -> None:
    offline = httpx.MockTransport(lambda _: httpx.Response(200, content=read_take(TAKE).wire))
    async with httpx.AsyncClient(transport=None if KEY else offline) as client:
        headers = {"authorization": f"Bearer {KEY or 'sk-not-a-real-key'}"}
        stream = connect("openai_chat", json=BODY, headers=headers, client=client, record=path)
        live = [event async for event in stream]
    again = [event async for event in replay(path)]
    print(f"{len(live)} events, {stream.summary['bytes']} bytes; the same again: {live == again}")


asyncio.run(main(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp() + "/take.sse"))
