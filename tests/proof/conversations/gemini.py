"""Gemini generateContent: parts, whole or value by value."""

from __future__ import annotations

from typing import Any

from tests.proof.conversations.parts import (
    Called,
    Dice,
    client_call,
    comments,
    fragments,
    ident,
    merged,
    prose,
    sprinkled,
)
from tests.proof.talk import Frame, Said


def gemini(dice: Dice) -> tuple[list[Frame], list[Said]]:
    said: list[Said] = []
    count = dice.choice((1, 1, 1, 1, 2))
    with_ids = dice.random() < 0.5
    tracks = [gemini_candidate(dice, number, said, with_ids) for number in range(count)]
    entries = merged(dice, tracks, 0.5 if count > 1 else 0.0)
    base = {"modelVersion": "gemini-x", "responseId": ident(dice, "r")}
    counts = {"promptTokenCount": 4, "candidatesTokenCount": 5, "totalTokenCount": 9}
    everywhere = dice.random() < 0.5
    frames = []
    for n, entry in enumerate(entries):
        last = n == len(entries) - 1
        usage = {"usageMetadata": counts} if everywhere or last else {}
        frames.append(Frame({"candidates": [entry.payload], **usage, **base}, "", entry.about))
    return sprinkled(dice, frames, comments(dice)), said


def gemini_candidate(dice: Dice, number: int, said: list[Said], with_ids: bool) -> list[Frame]:
    parts: list[Frame] = []
    for _ in range(dice.randint(1, 4)):
        roll = dice.random()
        if roll < 0.2:
            parts += [Frame({"text": p}) for p in fragments(dice, prose(dice))]
        elif roll < 0.3:
            parts += [Frame({"text": p, "thought": True}) for p in fragments(dice, prose(dice))]
        elif roll < 0.4:
            code = prose(dice) + "x"
            parts.append(Frame({"executableCode": {"language": "PYTHON", "code": code}}, "", True))
            result = {"outcome": "OUTCOME_OK", "output": prose(dice)}
            parts.append(Frame({"codeExecutionResult": result}))
            said.append(Said(None, "code_execution", {"code": code}, "provider", number))
        else:
            call = client_call(dice, "")
            id = call.id if with_ids else None
            said.append(Said(id, call.name, call.arguments, "client", number))
            parts += gemini_call(dice, call, id)
    entries = []
    for n, part in enumerate(parts):
        content = {"role": "model", "parts": [part.payload]}
        entry: dict[str, Any] = {"content": content, "index": number}
        if not number and dice.random() < 0.3:
            del entry["index"]
        if n == len(parts) - 1 and dice.random() < 0.6:
            entry["finishReason"] = "STOP"
        entries.append(Frame(entry, "", part.about))
    if not entries or "finishReason" not in entries[-1].payload:
        entries.append(Frame({"finishReason": "STOP", "index": number}))
    return entries


def gemini_call(dice: Dice, call: Called, id: str | None) -> list[Frame]:
    identity: dict[str, Any] = {"name": call.name} | ({"id": id} if id else {})
    if dice.random() < 0.3 and (pieces := partial_args(dice, call.arguments)):
        told = [{**identity, "willContinue": True}]
        told += [{"partialArgs": [p], "willContinue": True} for p in pieces]
        told.append({})
        return [Frame({"functionCall": part}, "", True) for part in told]
    args = {"args": call.arguments} if call.arguments or dice.random() < 0.5 else {}
    part: dict[str, Any] = {"functionCall": {**identity, **args}}
    if dice.random() < 0.2:
        part["thoughtSignature"] = "c2ln"
    return [Frame(part, "", True)]


def partial_args(dice: Dice, said: dict[str, Any]) -> list[dict[str, Any]]:
    """The arguments value by value, if each is one that can be said so."""
    pieces: list[dict[str, Any]] = []
    for key, item in said.items():
        path = f"$.{key}" if key.isidentifier() else f"$['{key}']"
        if isinstance(item, str):
            texts = fragments(dice, item) or [""]
            pieces += [
                {"jsonPath": path, "stringValue": t, "willContinue": n < len(texts) - 1}
                for n, t in enumerate(texts)
            ]
        elif item is None:
            pieces.append({"jsonPath": path, "nullValue": "NULL_VALUE"})
        elif isinstance(item, bool):
            pieces.append({"jsonPath": path, "boolValue": item})
        elif isinstance(item, int | float):
            pieces.append({"jsonPath": path, "numberValue": item})
        else:
            return []
    return pieces
