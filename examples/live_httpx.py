"""A live answer through httpx: text as it comes, whole tool calls when they are whole.

Live with ANTHROPIC_API_KEY in the environment, otherwise offline from a take:
``python examples/live_httpx.py``.
"""

import asyncio
import os
from pathlib import Path

import httpx

from streamnorm import TextDelta, ToolCall, normalize, read_take

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"
KEY = os.environ.get("ANTHROPIC_API_KEY")
WEATHER = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {}}}}
BODY = {"model": "claude-sonnet-4-5", "max_tokens": 500, "stream": True, "tools": [WEATHER],
        "messages": [{"role": "user", "content": "What is the weather in Oslo?"}]}  # fmt: skip
HEADERS = {"x-api-key": KEY or "", "anthropic-version": "2023-06-01"}


async def main() -> None:
    offline = httpx.MockTransport(lambda _: httpx.Response(200, content=read_take(TAKE).wire))
    async with httpx.AsyncClient(transport=None if KEY else offline, timeout=600) as client:
        url = "https://api.anthropic.com/v1/messages"
        async with client.stream("POST", url, json=BODY, headers=HEADERS) as response:
            async for event in normalize(response):
                match event:
                    case TextDelta(text=text):
                        print(text, end="", flush=True)
                    case ToolCall(name=name, arguments=arguments):
                        print(f"\n{name}({arguments})")


asyncio.run(main())
