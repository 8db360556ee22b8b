"""Takes of the OpenAI Chat Completions wire and of the servers that imitate it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

from tools.takes.common import (
    DONE,
    PIXEL,
    PNG,
    SOUND,
    Json,
    Take,
    comment,
    cut_after,
    dumps,
    fragments,
    ident,
    sse,
)
from tools.takes.scenarios import SCENARIOS

WEATHER = ("get_weather", {"city": "Reykjavík", "unit": "celsius"})
TIDES = ("get_tides", {"harbour": "Höfn", "days": 3})


class Chat:
    """One streamed completion; every method appends what the wire would say."""

    provider, model = "openai_chat", "gpt-4.1-mini-2025-04-14"
    more: ClassVar[Json] = {}  # fields this flavour adds to every choice

    def __init__(self, name: str, model: str | None = None, **body: Any) -> None:
        self.name, self.wire = name, list[str]()
        self.model = model or self.model
        self.body: Json = {"id": ident("chatcmpl-", name), "object": "chat.completion.chunk"}
        self.body |= {"created": 1767225600, "model": self.model} | body

    def payload(self, payload: Json) -> Self:
        self.wire.append(sse(payload))
        return self

    def raw(self, piece: str) -> Self:
        self.wire.append(piece)
        return self

    def delta(self, choice: int = 0, finish: str | None = None, **delta: Any) -> Self:
        said = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self.payload(self.body | {"choices": [said | self.more]})

    def role(self, choice: int = 0) -> Self:
        return self.delta(choice, role="assistant", content="", refusal=None)

    def text(self, text: str, choice: int = 0) -> Self:
        for piece in fragments(text, (6, 21, 14)):
            self.delta(choice, content=piece)
        return self

    def tool(self, *entries: Json, choice: int = 0, finish: str | None = None) -> Self:
        return self.delta(choice, finish, tool_calls=list(entries))

    def id(self, at: object) -> str:
        return ident("call_", self.name, at, size=24)

    def begin(self, at: int, tool: str, arguments: str = "", choice: int = 0) -> Self:
        entry = {"index": at, "id": self.id((choice, at)), "type": "function"}
        function = {"name": tool, "arguments": arguments}
        return self.tool(entry | {"function": function}, choice=choice)

    def pour(self, at: int, text: str, choice: int = 0) -> Self:
        for piece in fragments(text):
            self.tool({"index": at, "function": {"arguments": piece}}, choice=choice)
        return self

    def call(self, at: int, tool: str, arguments: Json, choice: int = 0) -> Self:
        return self.begin(at, tool, choice=choice).pour(at, dumps(arguments), choice)

    def finish(self, reason: str, choice: int = 0) -> Self:
        return self.delta(choice, reason)

    def end(self, usage: Json | None = None) -> list[str]:
        self.payload(self.body | {"choices": [], "usage": usage or USAGE})
        return self.raw(DONE).wire

    def take(self, proves: str, wire: list[str] | None = None, newline: str = "\n") -> Take:
        wire = self.finish("tool_calls").end() if wire is None else wire
        return Take(self.provider, self.name, self.model, proves, wire, newline=newline)


USAGE: Json = {
    "prompt_tokens": 214,
    "completion_tokens": 37,
    "total_tokens": 251,
    "prompt_tokens_details": {"cached_tokens": 128},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


def takes() -> Iterator[Take]:
    yield from _ordinary()
    yield from _identity()
    yield from _names_and_arguments()
    yield from _ends()
    yield from _framing()
    yield from _vendors()
    yield from _scenarios()


def _ordinary() -> Iterator[Take]:
    c = Chat("text_only").role().text("The harbour is open until ten in the evening.")
    yield c.take("an answer without calls finishes with stop", c.finish("stop").end())

    c = Chat("parallel_calls").role().text("Both, then.").call(0, *WEATHER).call(1, *TIDES)
    yield c.take("two calls, one after the other")

    c = Chat("interleaved_calls").role().begin(0, WEATHER[0]).begin(1, TIDES[0])
    first, second = dumps(WEATHER[1]), dumps(TIDES[1])
    c.pour(0, first[:12]).pour(1, second[:9]).pour(0, first[12:]).pour(1, second[9:])
    yield c.take("fragments of two calls are told apart by index")

    c = Chat("two_choices").role(0).role(1).begin(0, WEATHER[0]).begin(0, TIDES[0], choice=1)
    c.pour(0, dumps(WEATHER[1])).pour(0, dumps(TIDES[1]), choice=1)
    c.finish("tool_calls", 1).finish("tool_calls", 0)
    yield c.take("two choices use the same index for different calls", c.end())

    c = Chat("refusal").role()
    for piece in ("I can't ", "help with that."):
        c.delta(refusal=piece)
    yield c.take("refusal deltas make the finish a refusal", c.finish("stop").end())

    c = Chat("citations").role().text("The ferry leaves at 07:40.")
    link: Json = {"url": "https://example.org/ferries", "title": "Ferries"}
    link |= {"start_index": 0, "end_index": 26}
    c.delta(annotations=[{"type": "url_citation", "url_citation": link}])
    yield c.take("annotations arrive beside the text", c.finish("stop").end())

    c = Chat("reasoning_content", "deepseek-reasoner").role()
    for piece in ("The unit is ", "not given; celsius."):
        c.delta(content=None, reasoning_content=piece)
    yield c.call(0, *WEATHER).take("reasoning_content is reasoning")

    c = Chat("reasoning_details", "anthropic/claude-sonnet-4.5", provider="Anthropic").role()
    for piece in ("Which ", "harbour?"):
        detail: Json = {"type": "reasoning.text", "text": piece, "format": "anthropic-claude-v1"}
        c.delta(content="", reasoning=piece, reasoning_details=[detail | {"index": 0}])
    detail = {"type": "reasoning.text", "signature": "c2lnbmVkCg==", "index": 0}
    c.delta(content="", reasoning_details=[detail]).call(0, *TIDES)
    yield c.take("reasoning told twice is reasoning once; its signature comes last")

    c = Chat("thought_signature", "gemini-3-flash-preview").role()
    entry: Json = {"index": 0, "id": "function-call-7", "type": "function"}
    entry |= {"extra_content": {"google": {"thought_signature": "c2lnbmVkCg=="}}}
    c.tool(entry | {"function": {"name": TIDES[0], "arguments": dumps(TIDES[1])}})
    yield c.take("a signature inside the call entry is kept")

    c = Chat("custom_tool").role()
    entry = {"index": 0, "id": c.id(0), "type": "custom"}
    c.tool(entry | {"custom": {"name": "run_sql", "input": "SELECT "}})
    c.tool({"index": 0, "custom": {"input": "max(level) FROM tides"}})
    yield c.take("a custom tool's input is free text")

    c = Chat("legacy_function_call", "gpt-3.5-turbo-0613").role()
    c.delta(function_call={"name": WEATHER[0], "arguments": ""})
    for piece in fragments(dumps(WEATHER[1])):
        c.delta(function_call={"arguments": piece})
    yield c.take("function_call of old: no id at all", c.finish("function_call").end())

    c = Chat("executed_tools", "groq/compound").role()
    ran: Json = {"index": 0, "type": "search", "arguments": '{"query": "Höfn ferry"}'}
    c.delta(executed_tools=[ran]).delta(executed_tools=[ran | {"output": "Ferry at 07:40"}])
    c.text("At 07:40.")
    yield c.take("tools the server ran itself, and their output", c.finish("stop").end())


def _identity() -> Iterator[Take]:
    def entry(tool: str, arguments: str, **keys: Any) -> Json:
        return keys | {"type": "function", "function": {"name": tool, "arguments": arguments}}

    first, second = dumps(WEATHER[1]), dumps(TIDES[1])

    def both(c: Chat, one: Json, two: Json) -> Chat:
        """Two calls, each opened by an entry of odd keys and continued by another."""
        for (tool, _), text, keys in ((WEATHER, first, one), (TIDES, second, two)):
            c.tool(entry(tool, text[:10], **keys))
            c.tool({k: v for k, v in keys.items() if k == "index"} | _rest(text[10:]))
        return c

    c = Chat("index_missing", "qwen2.5:7b").role()
    yield both(c, {"id": c.id(0)}, {"id": c.id(1)}).take("no index; a new id opens a call")

    c = Chat("index_null", "qwen2.5:7b").role()
    both(c, {"index": None, "id": c.id(0)}, {"index": None, "id": c.id(1)})
    yield c.take("index is null: as if it were missing")

    c = Chat("index_reused_new_id", "qwen2.5:7b").role()
    both(c, {"index": 0, "id": c.id(0)}, {"index": 0, "id": c.id(1)})
    yield c.take("one index for two calls; a new id with a name opens the second")

    c = Chat("all_index_zero_no_ids", "qwen2.5:7b").role()
    both(c, {"index": 0}, {"index": 0})
    yield c.take("one index and no ids: a name after whole arguments opens a call")

    c = Chat("index_from_one_with_gaps", "gpt-5").role()
    both(c, {"index": 1, "id": c.id(0)}, {"index": 4, "id": c.id(1)})
    yield c.take("an index is a key, not a place in a list")

    c = Chat("id_missing_for_second", "deepseek-v3").role()
    yield both(c, {"index": 0, "id": c.id(0)}, {"index": 1}).take("only the first call has an id")

    c = Chat("several_in_one_chunk_no_index", "mistral-nemo").role()
    c.tool(entry(WEATHER[0], first[:10]), entry(TIDES[0], second[:10]))
    c.tool(_rest(first[10:]), _rest(second[10:]))
    yield c.take("no keys at all: within a chunk the position tells the calls apart")

    c = Chat("late_id", "glm-4.6").role().tool(entry(WEATHER[0], first[:10], index=0))
    yield c.tool({"index": 0, "id": c.id(0)} | _rest(first[10:])).take("the id comes second")

    c = Chat("id_changes_within_call", "laguna-m").role()
    c.tool(entry(WEATHER[0], "", index=0, id=c.id("first")))
    for piece in fragments(first):
        c.tool({"index": 0, "id": c.id("second")} | _rest(piece))
    yield c.take("another id without a name is the same call; the first id stays")

    c = Chat("id_empty_on_continuations", "qwen-plus").role()
    c.tool(entry(WEATHER[0], "", index=0, id=c.id(0)))
    for piece in fragments(first):
        c.tool(entry("", piece, index=0, id=""))
    yield c.take('id and name are "" on every later delta')

    c = Chat("everything_repeated", "minimax-m2").role()
    for piece in fragments(first):
        c.tool(entry(WEATHER[0], piece, index=0, id=c.id(0)))
    yield c.take("id, type and name on every delta; only arguments add up")

    c = Chat("no_keys_after_start", "gpt-oss-120b").role()
    c.tool(entry(WEATHER[0], "", index=0, id=c.id(0)))
    for piece in fragments(first):
        c.tool(_rest(piece))
    yield c.take("later fragments name no call: they belong to the last one")

    c = Chat("ids_from_names", "kimi-k2").role()
    one, two = "functions.get_weather:0", "functions.get_tides:1"
    both(c, {"index": 0, "id": one}, {"index": 1, "id": two})
    yield c.take("ids with dots and colons go back verbatim")


def _rest(arguments: Any) -> Json:
    return {"function": {"arguments": arguments}}


def _names_and_arguments() -> Iterator[Take]:
    text = dumps(WEATHER[1])

    c = Chat("no_arguments").role().begin(0, "list_harbours").begin(1, "refresh", "{}")
    yield c.take('"" and "{}" both mean no arguments')

    c = Chat("whole_call_in_one_chunk", "llama-3.3-70b-versatile").role()
    c.begin(0, WEATHER[0], text).finish("tool_calls")
    yield c.take("name, id and all arguments at once", c.end())

    c = Chat("name_in_fragments", "gemini-2.5-pro").role()
    c.tool({"index": 0, "id": c.id(0), "type": "function", "function": {"name": "get_"}})
    c.tool({"index": 0, "function": {"name": "weather"}}).pour(0, text)
    yield c.take("the name comes in two pieces")

    c = Chat("name_after_empty_name", "qwen3-30b").role().begin(0, "")
    c.tool({"index": 0, "function": {"name": WEATHER[0], "arguments": ""}}).pour(0, text)
    yield c.take("the opening delta has an empty name, the real one follows")

    c = Chat("arguments_before_name", "deepseek-v3").role()
    c.tool({"index": 0, "id": c.id(0), "type": "function"} | _rest(text[:9]))
    c.tool({"index": 0, "function": {"name": WEATHER[0], "arguments": text[9:]}})
    yield c.take("arguments wait for their name")

    c = Chat("object_arguments", "minimax-m2").role()
    entry = {"index": 0, "id": c.id(0), "type": "function"}
    c.tool(entry | {"function": {"name": WEATHER[0], "arguments": WEATHER[1]}})
    yield c.take("arguments are an object, not a string")

    c = Chat("object_arguments_in_pieces", "minimax-m2").role().begin(0, WEATHER[0])
    for key, value in WEATHER[1].items():
        c.tool({"index": 0} | _rest({key: value}))
    yield c.take("an object per chunk: their keys make one object")

    c = Chat("cumulative_arguments", "ernie-4.5").role().begin(0, WEATHER[0])
    for end in (9, 22, len(text)):
        c.tool({"index": 0} | _rest(text[:end]))
    yield c.take("every chunk repeats the arguments so far")

    c = Chat("full_arguments_repeated", "glm-4.6").role().call(0, *WEATHER)
    yield c.tool({"index": 0} | _rest(text)).take("the whole arguments once more at the end")

    c = Chat("fragment_that_parses").role().begin(0, "wrap")
    for piece in ('{"inner":', '{"a":1}', ',"again":', '{"a":1}', "}"):
        c.tool({"index": 0} | _rest(piece))
    yield c.take("a fragment that is JSON by itself is still a fragment")

    c = Chat("arguments_null", "qwen-plus").role().begin(0, WEATHER[0])
    c.tool({"index": 0} | _rest(None)).tool({"index": 0, "function": None}).pour(0, text)
    yield c.take("null arguments and a null function say nothing")

    c = Chat("invalid_json", "hermes-3").role().begin(0, "get_weather").pour(0, text[:-1])
    c.begin(1, "get_tides").pour(1, '["Höfn"]')
    yield c.take("a missing brace or a list: broken calls, never {}")

    c = Chat("duplicate_keys").role().begin(0, "transfer").pour(0, '{"amount":10,"amount":1000}')
    yield c.take("an object that says one key twice is not trusted")

    c = Chat("exact_numbers").role().begin(0, "transfer")
    c.pour(0, '{"id":12345678901234567890123,"rate":0.1,"scale":1e-7}')
    yield c.take("big integers stay integers")

    c = Chat("split_emoji").role().delta(content="Waving \ud83d").delta(content="\udc4b now.")
    c.begin(0, "post")
    for piece in ('{"outer":"\ud83c', '\udf0a","inner":"\\ud83d', '\\udc4b"}'):
        c.tool({"index": 0} | _rest(piece))
    yield c.take("half an emoji per delta, escaped once and escaped twice")


def _ends() -> Iterator[Take]:
    c = Chat("cut_in_arguments").role().call(0, *WEATHER).begin(1, "write_file")
    yield c.take("simply ends inside the arguments", c.pour(1, '{"file_path":"/srv/a').wire)

    c = Chat("cut_after_whole_arguments").role().call(0, *WEATHER)
    yield c.take("simply ends where the arguments happen to parse", c.wire)

    c = Chat("cut_in_frame").role().call(0, *WEATHER).finish("tool_calls")
    yield c.take("the bytes end inside a data line", [*c.wire[:-1], c.wire[-1][:120]])

    c = Chat("max_tokens_in_arguments").role().begin(0, "write_file").pour(0, '{"content":"Far ou')
    yield c.take("the length limit inside the arguments", c.finish("length").end())

    c = Chat("error_after_200", "openai/gpt-4.1").role().begin(0, "get_tides").pour(0, '{"harb')
    error = {"code": 502, "message": "Provider returned error", "metadata": {"provider": "x"}}
    c.payload({"error": error})
    yield c.take("an error payload ends the stream", c.wire)

    c = Chat("finish_error", "openai/gpt-4.1").role().text("One mom")
    failed = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    error = {"code": "server_error", "message": "Upstream went away"}
    c.payload(c.body | {"error": error, "choices": [failed]})
    yield c.take('finish_reason "error" beside an error object', c.wire)

    c = Chat("error_field", "llama.cpp").role().text("One mom")
    c.raw('error: {"code":500,"message":"context shift is disabled","type":"server_error"}\n\n')
    yield c.take("the error comes in an SSE field called error", c.wire)

    c = Chat("choice_error_then_done", "openai/gpt-4.1").role().call(0, *WEATHER)
    failed = {"index": 0, "delta": {}, "finish_reason": None}
    error = {"code": 500, "message": "Upstream went away"}
    c.payload(c.body | {"choices": [failed | {"error": error}]}).finish("tool_calls").raw(DONE)
    yield c.take("an error in a choice fails the turn although [DONE] follows", c.wire)

    c = Chat("finish_unknown", "glm-5").role().call(0, *WEATHER).finish("repetition")
    yield c.take("a word for an end that is not normal: no call is whole by it", c.end())

    c = Chat("finish_network_error", "glm-5").role().call(0, *WEATHER).finish("network_error")
    yield c.take("a word for a failure is one, although [DONE] follows", c.end())

    c = Chat("stop_on_every_chunk", "llama3:8b").role()
    entry = {"index": 0, "id": c.id(0), "type": "function"}
    c.tool(entry | {"function": {"name": TIDES[0], "arguments": ""}}, finish="stop")
    for piece in fragments(dumps(TIDES[1])):
        c.tool({"index": 0} | _rest(piece), finish="stop")
    yield c.take('"stop" on every chunk ends no call before its text is whole', c.raw(DONE).wire)

    c = Chat("usage_in_choice", "kimi-k2").role().text("Good morning.")
    counted = {"prompt_tokens": 19, "completion_tokens": 4, "total_tokens": 23, "cached_tokens": 16}
    last = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": counted}
    c.payload(c.body | {"choices": [last]}).raw(DONE)
    yield c.take("usage in the choice, with cached_tokens at its top", c.wire)

    c = Chat("usage_beside_reasoning", "gemini-2.5-pro").role().text("Good morning.").finish("stop")
    counted = {"prompt_tokens": 19, "completion_tokens": 4, "reasoning_tokens": 60}
    yield c.take("reasoning_tokens beside the answer's", c.end(counted | {"total_tokens": 83}))

    c = Chat("usage_before_choices", "sonar")
    for n, piece in enumerate(("Good ", "morning", "."), 1):
        counted = {"prompt_tokens": 9, "completion_tokens": n, "total_tokens": 9 + n}
        cited = {"usage": counted, "citations": ["https://example.org/1"]}
        said = {
            "index": 0,
            "delta": {"content": piece},
            "finish_reason": "stop" if n == 3 else None,
        }
        c.payload(c.body | cited | {"choices": [said]})
    yield c.take("usage and citations stand before the choices", c.raw(DONE).wire)

    c = Chat("stop_with_calls", "llama-3.1-8b").role().call(0, *WEATHER).finish("stop")
    yield c.take('finish_reason "stop" although there are calls', c.end())

    c = Chat("two_finish_reasons").role().call(0, *WEATHER).finish("tool_calls").finish("stop")
    yield c.take("tool_calls, then stop: one finish", c.end())

    c = Chat("finish_with_last_fragment", "glm-5").role().begin(0, TIDES[0])
    c.tool({"index": 0} | _rest(dumps(TIDES[1])), finish="tool_calls")
    yield c.take("the last fragment rides on the finishing chunk", c.end())

    c = Chat("empty_finish_reason", "llama3:8b").role().delta(0, "", content="Hel")
    c.delta(0, "", content="lo").finish("stop")
    yield c.take('finish_reason "" on every chunk is none', c.end())

    c = Chat("chunk_without_choices", "gpt-audio-1.5").role().text("Twelve")
    c.payload(c.body | {"usage": None, "obfuscation": "AMNUm9Vi"}).text(" boats.").finish("stop")
    yield c.take("a chunk without choices is padding between the others", c.end())

    c = Chat("pictures", "google/gemini-3.1-flash-image", provider="Google").role().text("Here:")
    for at, (kind, data) in enumerate((("png", PNG), ("gif", PIXEL))):
        url = f"data:image/{kind};base64,{data}"
        c.delta(images=[{"type": "image_url", "image_url": {"url": url}, "index": at}])
    link = {"url": "https://example.org/harbour.webp"}
    c.delta(images=[{"type": "image_url", "image_url": link, "index": 2}]).finish("stop")
    yield c.take("pictures beside the content: as bytes, or where they are", c.end())

    c = Chat("voice", "gpt-audio-1.5").role()
    voice: Json = {"id": ident("audio_", c.name)}
    c.delta(audio=voice | {"transcript": "Good "}).delta(audio={"transcript": "evening."})
    for piece in SOUND:
        c.delta(audio=voice | {"data": piece})
    c.delta(audio={"expires_at": 1767229200}).finish("stop")
    yield c.take("a voice in pieces, and what it says in words", c.end())

    c = Chat("ping_payload").role().payload({"type": "ping"}).text("Twelve boats.").finish("stop")
    yield c.take("a relay keeps the connection alive by payloads of another wire", c.end())

    c = Chat("no_finish_reason").role().call(0, *WEATHER).raw(DONE)
    yield c.take("[DONE] without any finish_reason", c.wire)

    c = Chat("no_done").role().call(0, *WEATHER).finish("tool_calls")
    yield c.take("no [DONE]: finish_reason is enough", c.wire)

    c = Chat("usage_on_every_chunk", "kimi-k2").role()
    for i, piece in enumerate(("High ", "water ", "at 04:12.")):
        said = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
        usage = {"prompt_tokens": 20, "completion_tokens": i + 1, "total_tokens": i + 21}
        c.payload(c.body | {"choices": [said], "usage": usage})
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    c.finish("stop").payload(c.body | {"choices": [], "usage": zero}).raw(DONE)
    yield c.take("running usage on every chunk, zero at the end: never summed", c.wire)


def _framing() -> Iterator[Take]:
    c = Chat("keep_alives", "openai/gpt-4.1").raw(comment("OPENROUTER PROCESSING")).role()
    c.raw(comment("OPENROUTER PROCESSING")).call(0, *TIDES).raw(":\n\n")
    yield c.take("comments change nothing")

    c = Chat("crlf").role().call(0, *TIDES)
    yield c.take("CRLF framing", newline="\r\n")

    c = Chat("data_without_space").role().call(0, *TIDES).finish("tool_calls")
    wire = [piece.replace("data: ", "data:", 1) for piece in c.end()]
    yield c.take("no space after `data:`", wire)

    c = Chat("multi_line_data").role().begin(0, TIDES[0], dumps(TIDES[1])).finish("tool_calls")
    wire = [p.replace(',"choices":', ',\ndata: "choices":') for p in c.end()]
    wire = [p.replace("}]", "}\ndata: ]") for p in wire]
    yield c.take("one payload over several data lines", wire)

    c = Chat("last_blank_line_missing").role().call(0, *TIDES).finish("tool_calls")
    yield c.take("the file ends without its last blank line", [*c.wire, "data: [DONE]"])

    c = Chat("line_separators").role().delta(content="one\u2028two\u2029three\x85four")
    yield c.take("U+2028, U+2029 and U+0085 are not line ends", c.finish("stop").end())

    c = Chat("other_fields").raw("retry: 3000\n\n").raw("id: 7\nevent: message\n").role()
    c.call(0, *TIDES)
    yield c.take("id, retry and event fields are allowed")

    for name, proves, before, newline, edges in (
        ("bom", "a byte order mark, cut in two", b"\xef\xbb\xbf", "\n", b"\xbb\n"),
        ("lone_cr", "CR alone ends a line", b"", "\r", b"}"),
        ("crlf_split", "chunks that end between CR and LF", b"", "\r\n", b"\r"),
        ("utf8_split", "chunks that end inside a character", b"", "\n", bytes(range(0xC2, 0xF5))),
    ):
        c = Chat(name).role().delta(content="Höfn 🌊 日").begin(0, TIDES[0], dumps(TIDES[1]))
        body = "".join(c.finish("tool_calls").end()).replace("\n", newline)
        chunks = cut_after(before + body.encode(), edges)
        yield Take(c.provider, name, c.model, proves, chunks, chunks=True)


def _vendors() -> Iterator[Take]:
    """What one of those who imitate this wire adds to it."""
    hit = {"title": "Ferries", "url": "https://example.org/ferries", "date": "2026-01-02"}
    step: Json = {"thought": "When does it leave?", "type": "web_search"}
    found = {"search_keywords": ["Höfn ferry"], "search_results": [hit]}
    c = Chat("reasoning_steps", "sonar-pro")
    c.delta(role="assistant", content="", reasoning_steps=[step | {"web_search": found}])
    ran = {"code": "print(7 * 60 + 40)", "result": "460"}
    step = {"thought": "In minutes, then.", "type": "execute_python", "execute_python": ran}
    c.delta(role="assistant", content="", reasoning_steps=[step])
    said = {"index": 0, "delta": {"content": "At 07:40."}, "finish_reason": "stop"}
    c.payload(c.body | {"search_results": [hit], "choices": [said]}).raw(DONE)
    yield c.take("steps of reasoning: a thought, and the tool that was run for it", c.wire)

    c = Chat("web_search_results", "glm-5").role().text("At 07:40[ref_1].")
    link = {"title": "Ferries", "link": "https://example.org/ferries", "refer": "ref_1"}
    last = {"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}
    c.payload(c.body | {"choices": [last], "web_search": [link | {"content": "Daily."}]}).raw(DONE)
    yield c.take("what a search found stands beside the choices", c.wire)

    c = Chat("builtin_web_search", "kimi-k2").role()
    entry: Json = {"index": 0, "id": "call_4", "type": "builtin_function"}
    c.tool(entry | {"function": {"name": "$web_search", "arguments": ""}})
    c.pour(0, '{"search_result": {"search_id": "c7e5"}, "usage": {"total_tokens": 9120}}')
    yield c.take("a call that the provider runs: what goes back is known, and the turn pauses")

    c = Chat("builtin_beside_function", "kimi-k2").role()
    c.tool(entry | {"function": {"name": "$web_search", "arguments": '{"search_id": "c7e5"}'}})
    yield c.call(1, *TIDES).take("one call that the provider runs, and one for the client")

    well: Json = {"input_sensitive": False, "base_resp": {"status_code": 0, "status_msg": ""}}
    c = Chat("base_resp", "MiniMax-M2", **well).role().text("Twelve boats.")
    whole = {"role": "assistant", "content": "Twelve boats."}
    last = {"index": 0, "message": whole, "finish_reason": "stop"}
    c.payload(c.body | {"object": "chat.completion", "choices": [last], "usage": USAGE}).raw(DONE)
    yield c.take("how it goes stands on every chunk; the last has all of it again", c.wire)

    c = Chat("base_resp_error", "MiniMax-M2")
    status = {"status_code": 1027, "status_msg": "output new_sensitive"}
    c.payload({"id": "", "choices": None, "created": 0, "model": "", "base_resp": status})
    yield c.take("an error at HTTP 200 has its code in base_resp", c.wire)

    c = Chat("base_resp_rate_limit", "MiniMax-M2").role().begin(0, "get_tides").pour(0, '{"harb')
    status = {"status_code": 1002, "status_msg": "rate limit, please retry later"}
    c.payload(c.body | {"choices": None, "base_resp": status})
    yield c.take("an error that passes fails the turn and breaks its call", c.wire)

    c = Chat("search_citations", "grok-4").role().text("At 07:40.").finish("stop")
    c.payload(c.body | {"choices": [], "usage": USAGE, "citations": ["https://example.org/1"]})
    yield c.take("citations come beside the usage", c.raw(DONE).wire)

    c = Chat("reasoning_opaque", "gpt-5-mini").role().delta(reasoning_text="Which harbour?")
    c.delta(reasoning_opaque="c2VhbGVkCg==").call(0, *TIDES)
    yield c.take("reasoning as text, and sealed, to be sent back")

    for name, host, body in (
        ("at_anthropic", "claude-sonnet-4-5", {"system_fingerprint": None}),
        ("at_cohere", "command-a-03-2025", {}),
    ):
        c = Chat(name, host, **body).role().call(0, *WEATHER)
        yield c.take("this wire at the address of a provider that has one of its own")


def _scenarios() -> Iterator[Take]:
    for scenario in SCENARIOS:
        c = Chat(scenario.name).role().text(scenario.says)
        for at, call in enumerate(scenario.calls):
            c.call(at, *call)
        yield c.take(scenario.proves)
