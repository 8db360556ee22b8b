"""Takes of the Gemini generateContent wire, as SSE and as a JSON array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Self

from tools.takes.common import (
    PIXEL,
    PNG,
    SOUND,
    Json,
    Take,
    comment,
    dumps,
    fragments,
    ident,
    opaque,
    rechunk,
)
from tools.takes.scenarios import SCENARIOS

MODEL = "gemini-3-flash-preview"
WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Answer:
    """One streamed answer; every chunk is a whole GenerateContentResponse."""

    def __init__(self, name: str) -> None:
        self.name, self.chunks, self.calls = name, list[Json](), 0
        self.extras = list[tuple[int, str]]()

    def raw(self, piece: str) -> Self:
        self.extras.append((len(self.chunks), piece))
        return self

    def chunk(self, candidates: list[Json] | None = None, **fields: Any) -> Self:
        spent = 8 * (len(self.chunks) + 1)
        usage: Json = {"promptTokenCount": 96, "candidatesTokenCount": spent}
        usage |= {"totalTokenCount": 96 + spent + 21, "thoughtsTokenCount": 21}
        body = {"candidates": candidates} if candidates is not None else {}
        body |= fields | {"usageMetadata": usage, "modelVersion": MODEL}
        self.chunks.append(body | {"responseId": ident("", self.name)})
        return self

    def say(self, *parts: Json, index: int = 0, **candidate: Any) -> Self:
        content = {"parts": list(parts), "role": "model"}
        return self.chunk([{"content": content} | candidate | {"index": index}])

    def text(self, text: str, index: int = 0, **part: Any) -> Self:
        for piece in fragments(text, (6, 21, 14)):
            self.say({"text": piece} | part, index=index)
        return self

    def part(self, name: str, args: Json | None, with_id: bool = True, **more: Any) -> Json:
        self.calls += 1
        key = {"id": ident("", self.name, self.calls, size=8).lower()} if with_id else {}
        call = key | {"name": name} | ({"args": args} if args is not None else {})
        return {"functionCall": call} | more

    def call(self, name: str, args: Json | None, with_id: bool = True, **more: Any) -> Self:
        return self.say(self.part(name, args, with_id, **more))

    def partial(self, name: str, *args: Json) -> Self:
        self.say({"functionCall": {"name": name, "willContinue": True}})
        for arg in args:
            self.say({"functionCall": {"partialArgs": [arg], "willContinue": True}})
        return self.say({"functionCall": {}})

    def end(self, reason: str = "STOP", **candidate: Any) -> Self:
        return self.say({"text": ""}, finishReason=reason, **candidate)

    def wire(self) -> list[str]:
        pieces = [f"data: {dumps(chunk, ',', ': ')}\n\n" for chunk in self.chunks]
        for at, piece in reversed(self.extras):
            pieces.insert(at, piece)
        return pieces

    def take(self, proves: str, *types: str, newline: str = "\n") -> Take:
        return Take("gemini", self.name, MODEL, proves, self.wire(), types, newline=newline)

    def array_take(self, proves: str, sizes: tuple[int, ...], cut: int = 0) -> Take:
        """The body without alt=sse: one pretty-printed array that arrives in pieces."""
        body = json.dumps(self.chunks, ensure_ascii=False, indent=2).encode()
        chunks = rechunk(body[: len(body) - cut], sizes)
        return Take("gemini", self.name, MODEL, proves, chunks, chunks=True)


def takes() -> Iterator[Take]:
    yield from _ordinary()
    yield from _odd()
    yield from _partial()
    yield from _bodies()
    yield from _scenarios()
    yield from _types()


def _ordinary() -> Iterator[Take]:
    a = Answer("text_only").text("The harbour is open until ten in the evening.")
    yield a.end().take("an answer without calls finishes with stop")

    a = Answer("parallel_calls").text("Both, then.").call(*WEATHER).call(*TIDES)
    yield a.end().take("two calls with ids, one per chunk; STOP means tool_calls")

    a = Answer("parallel_in_one_chunk")
    a.say(a.part(*WEATHER), a.part(*TIDES), finishReason="STOP")
    yield a.take("two calls and the finish in one chunk")

    a = Answer("calls_without_ids").call(*WEATHER, with_id=False).call(*TIDES, with_id=False)
    yield a.end().take("no ids on the wire: they are minted and never sent back")

    a = Answer("same_tool_twice_without_ids")
    for city in ("Oslo", "Oslo", "Bergen"):
        a.call("get_weather", {"city": city}, with_id=False)
    yield a.end().take("equal calls without ids are still separate calls")

    a = Answer("thought_signature")
    a.call(*WEATHER, thoughtSignature=opaque("thought")).call(*TIDES)
    yield a.end().take("the signature sits beside the first of two calls and stays there")

    a = Answer("signature_on_last_text").text("High water is at 04:12.")
    a.say({"text": "", "thoughtSignature": opaque("text")}, finishReason="STOP")
    yield a.take("a signature on an empty last text part")

    a = Answer("thoughts").text("The user did not name a unit.", thought=True).text("7 °C.")
    yield a.end().take("parts marked thought are reasoning")

    a = Answer("two_candidates").text("High", 0).text("Low", 1)
    a.say({"text": " water"}, index=1, finishReason="STOP")
    a.say({"text": " water"}, index=0, finishReason="STOP")
    yield a.take("two candidates at once")

    a = Answer("citations").text("The ferry leaves at 07:40.")
    web = {"web": {"uri": "https://example.org/ferries", "title": "example.org"}}
    segment = {"endIndex": 26, "text": "The ferry leaves at 07:40."}
    support = {"segment": segment, "groundingChunkIndices": [0]}
    grounding = {"webSearchQueries": ["Höfn ferry"], "groundingChunks": [web]}
    a.end(groundingMetadata=grounding | {"groundingSupports": [support]})
    yield a.take("grounding metadata is a citation")

    a = Answer("code_execution").say({"text": "Counting."})
    a.say({"executableCode": {"language": "PYTHON", "code": "print(6 * 7)\n"}})
    a.say({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}})
    yield a.text("42.").end().take("code and its result, joined by order alone")

    a = Answer("inline_image").say({"text": "Here:"})
    a.say({"inlineData": {"mimeType": "image/gif", "data": "R0lGODlhAQABAAAAACw="}})
    yield a.end().take("a picture among the parts is not lost")

    a = Answer("pictures_with_signatures").say({"text": "First a draft:"})
    a.say({"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True})
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    a.say(picture | {"thoughtSignature": opaque(a.name)}).say({"text": "Better."})
    a.say({"inlineData": {"data": PIXEL}} | {"thoughtSignature": opaque(a.name, "second")})
    yield a.end().take("pictures, a thought's draft and what goes back with them")

    a = Answer("sound_in_pieces")
    for piece in SOUND:
        a.say({"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": piece}})
    yield a.end().take("a voice comes in pieces, which are one part")

    a = Answer("file_at_an_address")
    uri = "https://generativelanguage.googleapis.com/v1beta/files/abc123"
    a.say({"fileData": {"mimeType": "video/mp4", "fileUri": uri}})
    yield a.end().take("what lies elsewhere is told by its address, and never fetched")

    a = Answer("picture_is_no_base64").say({"text": "Here:"})
    a.say({"inlineData": {"mimeType": "image/png", "data": PNG[:40] + "?" + PNG[41:]}})
    yield a.end().take("bytes that cannot be read are passed on whole, never half of them")


def _odd() -> Iterator[Take]:
    a = Answer("done_sentinel").call(*TIDES).end()
    yield a.raw("data: [DONE]\n\n").take("a proxy adds [DONE]")

    a = Answer("text_beside_call")
    a.say({"text": ""} | a.part(*TIDES)).say({"text": "And this:"} | a.part(*WEATHER))
    yield a.end().take("a text beside a call, empty or not, hides no call")

    a = Answer("no_arguments").call("list_harbours", {}).call("refresh", None)
    yield a.end().take("empty args and absent args both mean {}")

    a = Answer("stop_on_every_chunk")
    for piece in ("High ", "water ", "soon."):
        a.say({"text": piece}, finishReason="STOP")
    a.say(a.part(*TIDES), finishReason="STOP")
    yield a.take("STOP on every chunk; the stream's end is the end")

    a = Answer("finish_without_content").call(*TIDES)
    a.chunk([{"finishReason": "STOP", "index": 0}])
    yield a.take("the finishing candidate has no content at all")

    a = Answer("cut_after_call").text("Looking.").call(*TIDES)
    yield a.take("simply ends: a whole call, but no finishReason")

    a = Answer("max_tokens").text("Far out, the lamp")
    yield a.end("MAX_TOKENS").take("the length limit")

    a = Answer("safety").text("The first step")
    rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
    yield a.end("SAFETY", safetyRatings=[rating]).take("an answer stopped by the safety filter")

    a = Answer("prompt_blocked").chunk(promptFeedback={"blockReason": "PROHIBITED_CONTENT"})
    yield a.take("the prompt is blocked: no candidates at all")

    a = Answer("malformed_function_call").text("Looking.")
    message = "Malformed function call: print(get_tides(harbour='Höfn'"
    a.chunk([{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message, "index": 0}])
    yield a.take("the model wrote a call that is none")

    a = Answer("error_after_200").call(*TIDES)
    error = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    a.raw(f"data: {dumps({'error': error})}\n\n")
    yield a.take("an error payload ends the stream")

    a = Answer("keep_alives").raw(comment("keep-alive")).text("High water.")
    yield a.raw(comment("")).call(*TIDES).end().take("comments change nothing")

    a = Answer("crlf").text("Lines end in CRLF.").call(*TIDES).end()
    yield a.take("CRLF framing, as this wire really has it", newline="\r\n")

    a = Answer("exact_numbers")
    a.call("transfer", {"id": 12345678901234567890123, "rate": 0.1, "scale": 1e-07})
    yield a.end().take("big integers inside args stay integers")

    a = Answer("unknown_parts").say({"hologram": {"sky": "clear"}}).text("Still here.")
    yield a.end().take("parts nobody knows yet are handed on, not dropped")


def _partial() -> Iterator[Take]:
    def string(path: str, *pieces: str) -> list[Json]:
        args = [{"jsonPath": path, "stringValue": p, "willContinue": True} for p in pieces]
        return [*args, {"jsonPath": path, "stringValue": ""}]

    a = Answer("partial_args").partial("get_weather", *string("$.city", "Reyk", "javík"))
    a.partial("get_weather", *string("$.city", "Höfn"))
    yield a.end().take("two calls told value by value; strings at one path add up")

    a = Answer("partial_args_nested")
    numbers = [{"jsonPath": "$.berths[0].number", "numberValue": 14}]
    numbers += [{"jsonPath": "$.berths[1].number", "numberValue": 2.5}]
    flags = [{"jsonPath": "$.berths[1].free", "boolValue": True}]
    flags += [{"jsonPath": "$['odd key']", "nullValue": "NULL_VALUE"}]
    a.partial("book", *string("$.berths[0].boat.name", "Blue ", "yawl"), *numbers, *flags)
    yield a.end().take("paths into lists and objects, and all four kinds of value")

    a = Answer("partial_args_none").partial("list_harbours")
    yield a.end().take("a call opened and closed without any value")

    a = Answer("cut_in_arguments").partial("write_file", *string("$.content", "Fa", "r out"))
    del a.chunks[-2:]
    yield a.take("simply ends inside the partial arguments")

    a = Answer("max_tokens_in_arguments").partial("write_file", *string("$.content", "Fa", "r out"))
    del a.chunks[-2:]
    yield a.end("MAX_TOKENS").take("the length limit inside the partial arguments")


def _bodies() -> Iterator[Take]:
    a = Answer("json_array_body").text("Höfn 🌊, then.").call(*TIDES).end()
    proves = "no alt=sse: one JSON array, in chunks that end anywhere"
    yield a.array_take(proves, (1, 37, 211, 5, 400))

    a = Answer("json_array_cut").text("Looking.").call(*TIDES).call(*WEATHER)
    yield a.array_take("the array ends inside its last object", (300, 7), cut=420)

    error = {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}
    a = Answer("json_array_error").text("Looking.")
    a.chunks.append({"error": error})
    yield a.array_take("an error object inside the array", (128,))


def _scenarios() -> Iterator[Take]:
    for scenario in SCENARIOS:
        a = Answer(scenario.name).text(scenario.says)
        for call in scenario.calls:
            a.call(*call)
        yield a.end().take(scenario.proves)


def _types() -> Iterator[Take]:
    a = Answer("type_functionCall").call(*WEATHER).call(*TIDES, with_id=False).end()
    yield a.take("functionCall with an id and without", "functionCall")

    a = Answer("type_functionResponse")
    part = a.part(*WEATHER)
    back = {"id": part["functionCall"]["id"], "name": WEATHER[0], "response": {"output": "7 °C"}}
    a.say(part).say({"functionResponse": back}).end()
    yield a.take("functionResponse, if a wire carried it back", "functionResponse", "functionCall")

    for key in ({"id": "code_7"}, {}):
        a = Answer("type_executableCode" + ("" if key else "_without_id"))
        a.say({"executableCode": key | {"language": "PYTHON", "code": "print(6 * 7)\n"}})
        a.say({"codeExecutionResult": key | {"outcome": "OUTCOME_OK", "output": "42\n"}})
        a.say({"executableCode": {"language": "PYTHON", "code": "1 / 0\n"}})
        failed = {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}
        a.say({"codeExecutionResult": failed}).end()
        proves = "code and its results, paired by id" if key else "the same without any id"
        yield a.take(proves, "executableCode", "codeExecutionResult")

    for key in ({"id": "search_7"}, {}):
        a = Answer("type_toolCall" + ("" if key else "_without_id"))
        kind = key | {"toolType": "GOOGLE_SEARCH_WEB"}
        a.say({"toolCall": kind | {"args": {"queries": ["Höfn ferry"]}}})
        found = {"search_suggestions": "<div>Höfn ferry</div>"}
        a.say({"toolResponse": kind | {"response": found}}).text("At 07:40.").end()
        proves = "a server tool and its response" + ("" if key else ", without ids")
        yield a.take(proves, "toolCall", "toolResponse")
