"""One conversation, two providers: the call of one model, answered, goes on with another.

Run it with ``python examples/two_providers.py``; it reads a recorded stream and sends nothing.
"""

import json
from pathlib import Path

from streamnorm import Conversation, Normalizer, Tool, ToolCall, ToolResult, provider

TAKE = Path(__file__).parent.parent / "recordings/anthropic/parallel_calls.sse"


def get_weather(city: str, unit: str = "celsius") -> dict[str, object]:
    """The weather in a city."""
    return {"city": city, "degrees": 7, "unit": unit}


def run(call: ToolCall) -> ToolResult:
    if call.name == "get_weather":
        return ToolResult.for_call(call, get_weather(**call.arguments))
    return ToolResult.for_call(call, f"there is no tool {call.name}", is_error=True)


tools = [Tool.from_function(get_weather)]
talk = Conversation(system="Be brief.").user("What is the weather in Reykjavík, and the tide?")

pipe = Normalizer("anthropic")  # what the first model answers
talk.assistant(pipe.feed(TAKE.read_bytes()) + pipe.close())
talk.results([run(call) for call in talk.turns[-1].calls])

for name in ("anthropic", "openai_responses", "gemini"):  # back to it, and on to two others
    wire = provider(name)
    body = wire.request(talk, tools, model="a-model", max_tokens=1024)
    print(f"--- {name}: POST {wire.path('a-model')}")
    for entry in body[wire.container]:
        print(json.dumps(entry, ensure_ascii=False)[:160])
