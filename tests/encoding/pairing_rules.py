"""The providers' pairing rules, written down apart from the code that keeps them.

``assert_paired(provider, body)`` fails as the provider would: with the rule that is broken.
"""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]


def assert_paired(provider: str, body: Any) -> None:
    RULES[provider](body)


def _blocks(message: Entry, key: str) -> list[Entry]:
    content = message.get(key)
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _anthropic(body: Entry) -> None:
    seen: set[str] = set()
    expected: list[str] = []
    for message in body["messages"]:
        assert message["content"], "a message is empty"
        blocks = _blocks(message, "content")
        results = [b["tool_use_id"] for b in blocks if b.get("type") == "tool_result"]
        if message["role"] == "user":
            assert sorted(results) == sorted(expected), f"results {results} for calls {expected}"
            kinds = [b.get("type") == "tool_result" for b in blocks]
            assert kinds == sorted(kinds, reverse=True), "results stand first"
            expected = []
            continue
        assert not expected, f"no results after the calls {expected}"
        uses = [b for b in blocks if b.get("type") == "tool_use"]
        assert all(isinstance(b["input"], dict) for b in uses), "input is an object"
        expected = [b["id"] for b in uses]
        assert not seen & set(expected), "ids are unique"
        assert len(set(expected)) == len(expected), "ids are unique"
        seen |= set(expected)
    assert not expected, f"no results after the calls {expected}"


def _bedrock(body: Entry) -> None:
    expected: list[str] = []
    last = None
    for message in body["messages"]:
        assert message["role"] != last, "roles take turns"
        last = message["role"]
        assert message["content"], "a message is empty"
        results = [b["toolResult"]["toolUseId"] for b in message["content"] if "toolResult" in b]
        if last == "user":
            assert sorted(results) == sorted(expected)
            expected = []
        else:
            expected = [b["toolUse"]["toolUseId"] for b in message["content"] if "toolUse" in b]
            assert len(set(expected)) == len(expected)
    assert not expected


def _gemini(body: Entry) -> None:
    waiting: list[Entry] = []
    for content in body["contents"]:
        assert content["parts"], "a content is empty"
        parts = _blocks(content, "parts")
        answers = [p["functionResponse"] for p in parts if "functionResponse" in p]
        if content["role"] == "model":
            assert not waiting, "no responses after the calls"
            waiting = [p["functionCall"] for p in parts if "functionCall" in p]
        else:
            assert len(answers) == len(waiting), "as many responses as calls"
            assert sorted(a["name"] for a in answers) == sorted(c["name"] for c in waiting)
            waiting = []
    assert not waiting


def _chat(body: Entry, *, by_id: bool = True) -> None:
    waiting: list[Any] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            key = message.get("tool_call_id") if by_id else message.get("tool_name")
            assert key in waiting, f"a result {key!r} without its call directly before"
            waiting.remove(key)
            continue
        assert not waiting, f"calls {waiting} without results directly behind"
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            assert calls or message.get("content"), "an assistant message is empty"
            waiting = [c["id"] if by_id else c["function"]["name"] for c in calls]
            assert not by_id or all(waiting), "a call has an id"
            assert not by_id or len(set(waiting)) == len(waiting), "ids are unique in a message"
    assert not waiting, f"calls {waiting} without results"


def _responses(body: Entry) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    items = body["input"]
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call", "shell_call", "apply_patch_call"):
            assert item["call_id"] not in called, "call ids are unique"
            called.add(item["call_id"])
        elif kind.endswith("_call_output"):
            assert item["call_id"] in called - answered, "an output follows its call, once"
            answered.add(item["call_id"])
        elif kind == "reasoning":
            assert at + 1 < len(items), "reasoning has the item that it led to"
            assert items[at + 1].get("role", "assistant") == "assistant"
            assert not str(items[at + 1].get("type")).endswith("_output")
    assert called == answered, f"no output for {called - answered}"


def _interactions(body: Entry) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    for step in body["input"]:
        if step["type"] == "function_call":
            assert step["id"] not in called, "ids are unique"
            assert isinstance(step["arguments"], dict), "arguments are an object"
            called.add(step["id"])
        elif step["type"] == "function_result":
            assert step["call_id"] in called - answered, "a result follows its call, once"
            answered.add(step["call_id"])
    assert called == answered, f"no result for {called - answered}"


def _conversations(body: Entry) -> None:
    called: set[str] = set()
    answered: set[str] = set()
    for entry in body["inputs"]:
        if entry["type"] == "function.call":
            assert entry["tool_call_id"] not in called, "ids are unique"
            assert isinstance(entry["arguments"], str), "arguments are text"
            called.add(entry["tool_call_id"])
        elif entry["type"] == "function.result":
            assert entry["tool_call_id"] in called - answered, "a result follows its call, once"
            answered.add(entry["tool_call_id"])
    assert called == answered, f"no result for {called - answered}"


RULES = {
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "openai_chat": _chat,
    "mistral": _chat,
    "mistral_conversations": _conversations,
    "dashscope": lambda body: _chat(body["input"]),
    "cohere": _chat,
    "ollama": lambda body: _chat(body, by_id=False),
    "openai_responses": _responses,
    "gemini_interactions": _interactions,
    "azure_foundry": lambda body: _responses(body) if "input" in body else _chat(body),
}
