"""Claude Code: sessions of answers, in partial or whole messages, their results, agents below them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.proof.conversations.parts import (
    Called,
    Dice,
    client_call,
    fragments,
    ident,
    prose,
    sprinkled,
)
from tests.proof.talk import Frame, Said

Block = dict[str, Any]


def claude_code(dice: Dice) -> tuple[list[Frame], list[Said]]:
    session = Session(dice, partial=dice.random() < 0.5, saved=dice.random() < 0.15)
    for _ in range(dice.choice((1, 1, 1, 2))):
        session.question()
    return session.finished(), session.said


@dataclass
class Session:
    """What a program prints, or saves, line by line."""

    dice: Dice
    partial: bool
    saved: bool
    frames: list[Frame] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.partial &= not self.saved
        self.id = ident(self.dice, "s_")
        self.with_uuids = self.dice.random() < 0.8
        if not self.saved:
            self.line({"type": "system", "subtype": "init", "tools": ["Bash"]}, None, False)

    def line(self, said: Block, agent: str | None, about: bool = True) -> None:
        """One line; the program adds whose it is."""
        more: Block = {"sessionId": self.id} if self.saved else {"session_id": self.id}
        if not self.saved:
            more["parent_tool_use_id"] = agent
        elif agent:
            more["agentId"] = agent
        if self.with_uuids:
            more["uuid"] = str(uuid.UUID(int=self.dice.getrandbits(128), version=4))
        self.frames.append(Frame({**said, **more}, "", about))

    def question(self, agent: str | None = None, depth: int = 0) -> None:
        """One or two answers with calls, and one without."""
        if self.saved or (agent and self.dice.random() < 0.5):
            asked = {"role": "user", "content": prose(self.dice) or "x"}
            self.line({"type": "user", "message": asked}, agent, False)
        for _ in range(self.dice.choice((0, 1, 1, 2))):
            self.answer(agent, depth, [self.call() for _ in range(self.dice.choice((1, 1, 2, 3)))])
        self.answer(agent, depth, [])

    def call(self) -> Called:
        return client_call(self.dice, "toolu_")

    def answer(self, agent: str | None, depth: int, calls: list[Called]) -> None:
        self.said += [Said(c.id, c.name, c.arguments, "provider") for c in calls]
        blocks: list[tuple[Block, Called | None]] = [(use(call), call) for call in calls]
        if not calls or self.dice.random() < 0.4:
            blocks.insert(0, ({"type": "text", "text": prose(self.dice)}, None))
        if self.dice.random() < 0.2:
            thought = {"type": "thinking", "thinking": prose(self.dice), "signature": "c2ln"}
            blocks.insert(0, (thought, None))
        message: Block = {
            "model": "claude-x", "id": ident(self.dice, "msg_"), "type": "message",
            "role": "assistant", "stop_reason": None, "usage": {"input_tokens": 5},
        }  # fmt: skip
        reason = "tool_use" if calls else "end_turn"
        # most agents below are told in whole messages, also where the main one is not
        if self.partial and (agent is None or self.dice.random() < 0.2):
            self.in_pieces(message, blocks, reason, agent, depth, calls)
        else:
            self.whole(message, blocks, reason, agent)
            self.results(calls, agent, depth)

    def whole(
        self,
        message: Block,
        blocks: list[tuple[Block, Called | None]],
        reason: str,
        agent: str | None,
    ) -> None:
        """A line for each block, or one for all."""
        if self.saved:
            message = {**message, "stop_reason": reason}
        lists = [[b] for b, _ in blocks] if self.dice.random() < 0.8 else [[b for b, _ in blocks]]
        for content in lists:
            about = any(b["type"] == "tool_use" for b in content)
            said = {**message, "content": content}
            self.line({"type": "assistant", "message": said}, agent, about)

    def in_pieces(
        self, message: Block, blocks: list[tuple[Block, Called | None]], reason: str,
        agent: str | None, depth: int, calls: list[Called],
    ) -> None:  # fmt: skip
        """The events of the Messages wire, and beside them a whole line for each block."""

        def event(said: Block, about: bool = False) -> None:
            self.line({"type": "stream_event", "event": said}, agent, about)

        event({"type": "message_start", "message": {**message, "content": []}})
        early = self.dice.random() < 0.3  # tools run as soon as their block has ended
        for index, (block, call) in enumerate(blocks):
            at, about = {"index": index}, call is not None
            start, deltas = opened(self.dice, block, call)
            event({"type": "content_block_start", **at, "content_block": start}, about)
            for delta in deltas:
                event({"type": "content_block_delta", **at, "delta": delta}, about)
            if self.dice.random() < 0.9:
                copy = {**message, "content": [block]}
                self.line({"type": "assistant", "message": copy}, agent, about)
            event({"type": "content_block_stop", **at}, about)
            if early and call is not None:
                self.result(call, agent)
        event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason},
                "usage": {"output_tokens": 9},
            }
        )
        event({"type": "message_stop"})
        if not early:
            self.results(calls, agent, depth)

    def results(self, calls: list[Called], agent: str | None, depth: int) -> None:
        """What came out of the calls, in any order; some of them are agents."""
        for call in self.dice.sample(calls, len(calls)):
            if depth < 2 and not self.saved and self.dice.random() < 0.2:
                self.question(call.id, depth + 1)
            elif self.dice.random() < 0.1 and not self.saved:
                told = {"type": "tool_progress", "tool_use_id": call.id, "elapsed_time_seconds": 3}
                self.line(told, agent, False)
            self.result(call, agent)

    def result(self, call: Called, agent: str | None) -> None:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": prose(self.dice)}
        if self.dice.random() < 0.2:
            block["is_error"] = True
        message = {"role": "user", "content": [block]}
        self.line({"type": "user", "message": message}, agent, False)

    def finished(self) -> list[Frame]:
        if self.saved:
            self.line({"type": "last-prompt", "lastPrompt": "x"}, None, False)
            return self.frames
        over = {"type": "result", "subtype": "success", "is_error": False, "result": "x",
                "stop_reason": "end_turn", "num_turns": 3}  # fmt: skip
        self.line(over, None, False)
        own = Frame({"type": "system", "subtype": "status", "status": "requesting"})
        return sprinkled(self.dice, self.frames, [own] * self.dice.choice((0, 0, 1, 2)))


def use(call: Called) -> Block:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def opened(dice: Dice, block: Block, call: Called | None) -> tuple[Block, list[Block]]:
    """A block as it starts, and the deltas that fill it."""
    if call is not None:
        pieces = fragments(dice, call.text)
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": p} for p in pieces
        ]
    kind = block["type"]
    deltas: list[Block] = [
        {"type": f"{kind}_delta", kind: p} for p in fragments(dice, block[kind], halves=False)
    ]
    if kind == "thinking":
        deltas.append({"type": "signature_delta", "signature": "c2ln"})
    return {**block, kind: ""}, deltas
