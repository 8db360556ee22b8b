"""The openai SDK's stream as it is: the provider is told from the object.

Live with OPENAI_API_KEY in the environment (and ``pip install openai``), otherwise from a take:
``python examples/live_openai_sdk.py``.
"""

import asyncio
import os
from pathlib import Path

from streamnorm import Stream, normalize, replay

TAKE = Path(__file__).parent.parent / "recordings/openai_responses/parallel_calls.sse"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "name": "get_weather", "parameters": SCHEMA}


async def live() -> Stream:
    from openai import AsyncOpenAI

    question = "What is the weather in Oslo and in Bergen?"
    return normalize(
        await AsyncOpenAI().responses.create(
            model="gpt-5-mini", input=question, tools=[TOOL], stream=True
        )
    )


async def main() -> None:
    stream = await live() if os.environ.get("OPENAI_API_KEY") else replay(TAKE)
    async with stream:
        async for call in stream.calls():  # raises at the end if anything was cut or broken
            print(f"{call.name}({call.arguments}) -> pair the result with {call.id}")
    print(stream.summary["reason"], stream.summary["usage"])


asyncio.run(main())
