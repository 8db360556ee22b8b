"""Takes of Hugging Face TGI's own wire: one token per event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import Json, Take, comment, dumps, fragments, rechunk

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
END = "<|eot_id|>"
HARBOUR = "The harbour is open until ten in the evening."


class Tokens:
    def __init__(self, name: str) -> None:
        self.name, self.events, self.said, self.index = name, list[str](), "", 0

    def event(self, payload: Json) -> Self:
        self.events.append(f"data:{dumps(payload)}\n\n")  # without a space
        return self

    def step(self, text: str, special: bool = False, **more: Any) -> Self:
        self.index += 1
        self.said += "" if special else text
        token = {"id": 900 + self.index, "text": text, "logprob": -0.125, "special": special}
        step: Json = {"index": self.index, "token": token}
        return self.event(step | {"generated_text": None, "details": None} | more)

    def text(self, text: str) -> Self:
        for piece in fragments(text, (4, 8, 3, 7)):
            self.step(piece)
        return self

    def end(self, reason: str = "eos_token", text: str = END, **more: Any) -> Self:
        special = text == END
        said = self.said + ("" if special else text)
        details = {"finish_reason": reason, "generated_tokens": self.index + 1, "seed": None}
        details |= {"input_length": 24}
        return self.step(text, special, **({"generated_text": said, "details": details} | more))

    def take(self, proves: str, sizes: tuple[int, ...] = (), cut: int = 0) -> Take:
        """One chunk per event, or cut anywhere."""
        if not sizes:
            return Take("tgi", self.name, MODEL, proves, self.events)
        wire = "".join(self.events).encode()
        pieces = rechunk(wire[: len(wire) - cut], sizes)
        return Take("tgi", self.name, MODEL, proves, pieces, chunks=True)


def takes() -> Iterator[Take]:
    t = Tokens("text_only").text(HARBOUR)
    yield t.end().take("the last token is a special one and no text; the end says why and how much")

    t = Tokens("stop_sequence").text("The harbour is open")
    yield t.end("stop_sequence", ".").take("a text that was asked for ends the answer")

    t = Tokens("max_tokens").text("Far out, the lamp")
    yield t.end("length", " of").take("the length limit; the last token is text")

    t = Tokens("no_details").text("It is open.")
    yield t.end(details=None).take("without details nothing says why it ended")

    t = Tokens("special_tokens").step("<|start|>", True).text("Höfn").step("<|tool|>", True)
    yield t.text(" 🌊").end().take("special tokens in between are no text")

    t = Tokens("top_tokens").step("Yes", top_tokens=[{"id": 901, "text": "No", "logprob": -2.5}])
    yield t.end().take("other tokens that might have been are no text")

    t = Tokens("tool_as_text").text('{"name": "get_tides", "parameters": {"harbour": "Höfn"}}')
    yield t.end().take("a call that a model writes is text: the wire has none")

    t = Tokens("keep_alives").text("Open")
    t.events.insert(1, ":\n\n")
    t.events.insert(3, comment("still here"))
    yield t.end().take("comments between tokens")

    t = Tokens("split_events").text("Höfn 🌊.").end()
    yield t.take("chunks that end inside events and characters", (1, 97, 18, 2, 55))

    t = Tokens("error_after_200").text("The har")
    error = "Request failed during generation: Server error: CUDA out of memory"
    t.event({"error": error, "error_type": "generation"})
    yield t.take("an error event ends the stream")

    t = Tokens("overloaded").event({"error": "Model is overloaded", "error_type": "overloaded"})
    yield t.take("an error instead of an answer; asking again may help")

    t = Tokens("cut").text("The harbour is op")
    yield t.take("simply ends: nothing says the whole text")
