"""What a chat client posts, damaged in any way, is an ``Inbox`` or a ``BadBody`` that names the place."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from streamnorm.ui.inbox import BadBody, Inbox, from_ag_ui, from_ai_sdk, from_plain, parse_body
from tests.conftest import ALL
from tests.encoding.mutants import dumped, flipped, mutant

PICTURE = "data:image/png;base64,aGk="
FACTS = {"streamnorm": {"id": "t1", "idSource": "natural", "call": 0}}
POSTS: dict[str, tuple[Callable[[Any], Inbox], Any]] = {
    "AI SDK": (from_ai_sdk, {
        "id": "c1", "trigger": "submit-message", "messageId": "m1", "editedArgs": {"a1": {"x": 1}},
        "messages": [
            {"id": "m0", "role": "system", "parts": [{"type": "text", "text": "Be brief."}]},
            {"id": "m1", "role": "user", "parts": [
                {"type": "text", "text": "Hello"},
                {"type": "file", "url": PICTURE, "mediaType": "image/png", "filename": "a.png"}]},
            {"id": "m2", "role": "assistant", "metadata": {"streamnorm": {"provider": "anthropic"}}, "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm.", "providerMetadata": {
                    "streamnorm": {"echoes": [{"a": 1}], "marks": [0]}}},
                {"type": "text", "text": "x"},
                {"type": "tool-f", "toolCallId": "t1", "state": "output-available", "input": {"a": 1},
                 "output": {"b": 2}, "toolMetadata": FACTS},
                {"type": "dynamic-tool", "toolName": "g", "toolCallId": "t2", "state": "approval-responded",
                 "input": {}, "approval": {"id": "a1", "approved": True, "reason": "ok"}},
                {"type": "file", "url": "https://example.org/x.png", "mediaType": "image/png"}]},
        ]}),
    "AG-UI": (from_ag_ui, {
        "threadId": "t", "runId": "r", "protocolVersion": "1", "tools": [{"name": "f", "parameters": {}}],
        "resume": [{"interruptId": "a1", "status": "resolved", "payload": {"approved": True}}],
        "messages": [
            {"id": "1", "role": "system", "content": "Be brief."},
            {"id": "2", "role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}]},
            {"id": "3", "role": "reasoning", "content": "Hm.", "encryptedValue": "e30="},
            {"id": "4-a1", "role": "assistant", "name": "bob", "content": "x", "toolCalls": [
                {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'},
                 "metadata": FACTS}]},
            {"id": "5", "role": "tool", "toolCallId": "t1", "content": "ok"},
        ]}),
    "plain": (from_plain, {
        "id": "c", "approvals": {"a": False, "b": {"approved": True, "editedArgs": {"euro": 3}}},
        "messages": [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Yo"}]}),
}  # fmt: skip
every_protocol = pytest.mark.parametrize("protocol", POSTS)


@every_protocol
def test_the_post_itself_is_read(protocol: str):
    read, post = POSTS[protocol]
    assert read(parse_body(dumped(post))).conversation.turns


@every_protocol
def test_no_damage_to_a_post_raises_anything_foreign(protocol: str):
    read, post = POSTS[protocol]
    data, heard = json.dumps(post).encode(), 0
    for seed in range(10_000 if ALL else 300):
        for body in (dumped(mutant(post, seed)), flipped(data, random.Random(seed))):
            with suppress(BadBody):
                assert read(parse_body(body)).conversation.to_json()
                heard += 1
    assert heard > 20
