"""The anthropic SDK's blocking stream in a plain ``for`` loop.

Live with ANTHROPIC_API_KEY in the environment (and ``pip install anthropic``), otherwise from a
take: ``python examples/live_anthropic_sdk.py``.
"""

import os
from pathlib import Path

from streamnorm import BrokenToolCall, Failed, Stream, TextDelta, ToolCall, normalize, replay

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "Weather in a city", "input_schema": SCHEMA}


def live() -> Stream:
    from anthropic import Anthropic

    question = [{"role": "user", "content": "What is the weather in Oslo and in Bergen?"}]
    return normalize(
        Anthropic().messages.create(
            model="claude-sonnet-4-5", max_tokens=500, messages=question, tools=[TOOL], stream=True
        )
    )


with live() if os.environ.get("ANTHROPIC_API_KEY") else replay(TAKE) as stream:
    for event in stream:
        match event:
            case TextDelta(text=text):
                print(text, end="", flush=True)
            case ToolCall(name=name, arguments=arguments):
                print(f"\n{name}({arguments})")
            case BrokenToolCall(name=name, reason=why) | Failed(error=name, reason=why):
                print(f"\nnot to be run: {name} ({why})")
