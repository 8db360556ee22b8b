"""What is mutated and which tests are asked: two tables.

``TARGETS``: file -> which of its functions, and the tests that concern it (a path, or a path and a word
that the test's name has). ``EQUIVALENT``: mutants that no test can catch, each with the reason; one
that is caught or gone is reported, as its row is no longer needed.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tools.mutate.guards import READING, Scope

__all__ = ["EQUIVALENT", "TARGETS", "Target"]

Test: TypeAlias = str | tuple[str, str]

CORE = ("tests/core", "tests/proof/test_finds.py", "tests/providers/test_evidence_wires.py")
STREAMS = ("tests/providers/test_takes.py", "tests/providers/test_quirks.py")
WORDS = tuple(
    f"tests/providers/test_{about}.py"
    for about in (
        "endings", "exactness", "families", "guards_places", "identity", "one_place", "partial_args",
        "plain_errors", "shapes", "usage",
    )
)  # fmt: skip
BEGINNING: tuple[Test, ...] = (
    *(("tests/pipe/test_auto.py", word) for word in ("payload", "framing", "byte_by_byte", "auto_")),
    *(f"tests/pipe/test_{about}.py" for about in ("bad_input", "beginnings", "limits", "no_data",
                                            "runs", "whole_frames")),
    ("tests/pipe/test_logging.py", "summary"),
    "tests/pipe/test_resume.py",
    "tests/providers/test_enveloped.py",
    "tests/providers/test_guards_anthropic.py",
    "tests/values/test_notes.py",
    "tests/providers/test_shapes.py",
    "tests/providers/test_guards_gemini.py",
    "tests/providers/test_exactness.py",
    "tests/providers/test_unheard.py",
    *((f"tests/providers/test_{about}dashscope.py", "number") for about in ("", "guards_")),
    *(("tests/pipe/test_passage.py", word) for word in ("last_piece", "come_together", "place_of", "under_way")),
)  # fmt: skip
FRAMING = (
    "tests/framing/test_bounds.py",
    "tests/pipe/test_limits.py",
    "tests/pipe/test_whole_frames.py",
)
BAD = "tests/pipe/test_bad_input.py"
# What goes out of a stream, case by case; the same over all takes would take long.
HANDED_ON: tuple[Test, ...] = tuple(
    ("tests/pipe/test_passage.py", word)
    for word in ("waits", "piece", "is_held", "normal_end_releases", "spoils", "_own_", "only_one",
                 "vouches", "under_way")
)  # fmt: skip


class Target(NamedTuple):
    scope: Scope
    tests: tuple[Test, ...]


def _wire(name: str, *more: Test) -> tuple[Test, ...]:
    """The tests of a provider's parser."""
    return (
        "tests/proof/test_finds.py",
        "tests/providers/test_evidence_wires.py",
        "tests/providers/test_unheard.py",
        ("tests/providers/test_bad_wires.py", name),
        ("tests/providers/test_takes.py", f"{name}/"),
        "tests/providers/test_quirks.py",
        f"tests/providers/test_guards_{name}.py",
        "tests/pipe/test_runs.py",
        *WORDS,
        *more,
    )


ALL = Scope()
CLOSELY = Scope(closely=True)
_RESPONSES = _wire("openai_responses", "tests/providers/test_responses.py")
_DASHSCOPE = _wire("dashscope", "tests/providers/test_dashscope.py")
_PROGRAMS = ("tests/providers/test_programs.py", "tests/pipe/test_demultiplexer.py")
_CLAUDE_CODE = (
    "tests/providers/test_claude_code.py",
    "tests/providers/test_guards_claude_code.py",
    *_PROGRAMS,
)
_CODEX = (
    "tests/providers/test_codex.py",
    "tests/providers/test_guards_codex.py",
    *_PROGRAMS,
)

TARGETS: dict[str, Target] = {
    "streamnorm/core/calls.py": Target(CLOSELY, (*CORE, "tests/pipe/test_logging.py", *HANDED_ON)),
    "streamnorm/providers/openai_chat/entries.py": Target(ALL, _wire("openai_chat")),
    "streamnorm/providers/openai_chat/parser.py": Target(
        READING, _wire("openai_chat", "tests/providers/test_chat_vendors.py", *HANDED_ON)
    ),
    "streamnorm/providers/anthropic/parser.py": Target(READING, _wire("anthropic")),
    "streamnorm/providers/openai_responses/parser.py": Target(
        READING, (*_RESPONSES, "tests/pipe/test_resume.py")
    ),
    "streamnorm/providers/openai_responses/items.py": Target(
        ALL,
        (
            "tests/providers/test_guards_openai_responses.py",
            "tests/providers/test_responses_items.py",
            ("tests/providers/test_takes.py", "openai_responses/"),
        ),
    ),
    "streamnorm/providers/openai_responses/numbering.py": Target(
        ALL,
        (
            *_RESPONSES,
            "tests/providers/test_responses_places.py",
            "tests/pipe/test_resume.py",
        ),
    ),
    "streamnorm/providers/openai_responses/outputs.py": Target(
        ALL, (*_RESPONSES, "tests/providers/test_responses_outputs.py")
    ),
    "streamnorm/providers/openai_responses/places.py": Target(
        ALL, (*_RESPONSES, "tests/providers/test_responses_places.py")
    ),
    "streamnorm/providers/openai_responses/texts.py": Target(
        ALL, ("tests/providers/test_responses_texts.py",)
    ),
    "streamnorm/core/parser.py": Target(
        READING,
        (
            "tests/providers/test_unheard.py",
            *CORE,
            *STREAMS,
            *WORDS,
            BAD,
            "tests/providers/test_guards_anthropic.py",
            ("tests/providers/test_guards_openai_chat.py", "says_nothing_at_all"),
        ),
    ),
    "streamnorm/core/marks.py": Target(CLOSELY, (*CORE, *HANDED_ON)),
    "streamnorm/core/copies.py": Target(CLOSELY, (*CORE, *_wire("openai_chat"))),
    "streamnorm/core/even.py": Target(ALL, (*CORE, *WORDS, "tests/providers/test_unheard.py")),
    "streamnorm/core/mend.py": Target(ALL, ("tests/text/test_halves.py",)),
    "streamnorm/providers/gemini/parser.py": Target(READING, _wire("gemini")),
    "streamnorm/providers/gemini/told.py": Target(ALL, _wire("gemini")),
    "streamnorm/providers/gemini/spelling.py": Target(
        ALL, (("tests/encoding/test_requests.py", "gemini"),)
    ),
    "streamnorm/providers/cohere/parser.py": Target(
        READING, _wire("cohere", "tests/providers/test_cohere_v1.py")
    ),
    "streamnorm/providers/bedrock/parser.py": Target(
        READING,
        _wire(
            "bedrock",
            "tests/providers/test_enveloped.py",
            ("tests/providers/test_media.py", "picture"),
        ),
    ),
    "streamnorm/providers/mistral/parser.py": Target(
        READING, _wire("mistral", "tests/providers/test_guards_openai_chat.py")
    ),
    "streamnorm/providers/ollama/parser.py": Target(READING, _wire("ollama")),
    "streamnorm/providers/gemini_interactions/parser.py": Target(
        READING, _wire("gemini_interactions")
    ),
    "streamnorm/providers/mistral_conversations/parser.py": Target(
        READING,
        _wire("mistral_conversations", "tests/providers/test_mistral_conversations.py"),
    ),
    "streamnorm/providers/dashscope/parser.py": Target(READING, _DASHSCOPE),
    "streamnorm/providers/dashscope/growth.py": Target(ALL, _DASHSCOPE),
    "streamnorm/providers/dashscope/numbering.py": Target(ALL, _DASHSCOPE),
    "streamnorm/providers/claude_code/parser.py": Target(READING, _CLAUDE_CODE),
    "streamnorm/providers/claude_code/lanes.py": Target(ALL, _CLAUDE_CODE),
    "streamnorm/providers/codex/parser.py": Target(READING, _CODEX),
    "streamnorm/providers/codex/lanes.py": Target(ALL, _CODEX),
    "streamnorm/demultiplexer.py": Target(ALL, (*_CLAUDE_CODE, "tests/providers/test_codex.py")),
    "streamnorm/core/cursor.py": Target(ALL, ("tests/pipe/test_resume.py",)),
    "streamnorm/text/exact.py": Target(CLOSELY, ("tests/text/test_exact.py",)),
    "streamnorm/text/canonical.py": Target(ALL, ("tests/text/test_exact.py",)),
    "streamnorm/text/written.py": Target(ALL, ("tests/text/test_written.py",)),
    "streamnorm/text/balance.py": Target(ALL, ("tests/text/test_balance.py",)),
    "streamnorm/text/halves.py": Target(ALL, ("tests/text/test_halves.py",)),
    "streamnorm/encoding/ids.py": Target(
        CLOSELY, ("tests/encoding/test_ids.py", "tests/encoding/test_pairs.py")
    ),
    "streamnorm/core/mint.py": Target(CLOSELY, ("tests/core/test_mint.py",)),
    "streamnorm/normalizer.py": Target(ALL, BEGINNING),
    "streamnorm/opening.py": Target(ALL, BEGINNING),
    "streamnorm/framing/__init__.py": Target(ALL, FRAMING),
    "streamnorm/framing/sse.py": Target(ALL, ("tests/framing/test_sse.py", *FRAMING)),
    "streamnorm/framing/lines.py": Target(ALL, ("tests/framing/test_lines.py", *FRAMING)),
    "streamnorm/framing/json_array.py": Target(ALL, ("tests/framing/test_json_array.py", *FRAMING)),
    "streamnorm/framing/aws.py": Target(
        ALL, ("tests/framing/test_aws.py", "tests/providers/test_enveloped.py", *FRAMING)
    ),
    "streamnorm/passage.py": Target(ALL, ("tests/pipe/test_passage.py",)),
    "streamnorm/history/settled.py": Target(
        ALL, ("tests/history/test_settled.py", "tests/history/test_history.py")
    ),
    "streamnorm/encoding/pairs.py": Target(
        ALL, ("tests/encoding/test_pairs.py", "tests/encoding/test_repair.py")
    ),
    "streamnorm/agent/consent.py": Target(ALL, ("tests/agent/test_approval.py",)),
}

_CALLS = "streamnorm/core/calls.py"
_COPIES = "streamnorm/core/copies.py"
_GROWTH = "streamnorm/providers/dashscope/growth.py"
_ANTHROPIC = "streamnorm/providers/anthropic/parser.py"
_CHAT = "streamnorm/providers/openai_chat/parser.py"
_PARSER = "streamnorm/core/parser.py"
_BEDROCK = "streamnorm/providers/bedrock/parser.py"
_CLAUDE = "streamnorm/providers/claude_code/parser.py"
_CONVERSATIONS = "streamnorm/providers/mistral_conversations/parser.py"
_DASH = "streamnorm/providers/dashscope/parser.py"
_COHERE = "streamnorm/providers/cohere/parser.py"
_ENTRIES = "streamnorm/providers/openai_chat/entries.py"
_EVEN = "streamnorm/core/even.py"
_EXACT = "streamnorm/text/exact.py"
_GEMINI = "streamnorm/providers/gemini/parser.py"
_OPENING = "streamnorm/opening.py"
_INTERACTIONS = "streamnorm/providers/gemini_interactions/parser.py"
_ITEMS = "streamnorm/providers/openai_responses/items.py"
_RESPONSES_PARSER = "streamnorm/providers/openai_responses/parser.py"
_PLACES = "streamnorm/providers/openai_responses/places.py"
_TEXTS = "streamnorm/providers/openai_responses/texts.py"
_PIPE = "streamnorm/normalizer.py"
_PASSAGE = "streamnorm/passage.py"
_CANONICAL = "streamnorm/text/canonical.py"
_WRITTEN = "streamnorm/text/written.py"
_SSE = "streamnorm/framing/sse.py"
_ARRAY = "streamnorm/framing/json_array.py"
_AWS = "streamnorm/framing/aws.py"
_SHORTER = "a shorter text of the same value says the same: it is read sooner"
_SHORTCUT = "a shortcut: the long way, which is taken then, says the same"
_ENVELOPE = "an envelope that fits no frame costs time: each is read the long way then"
_FOUND = "found all the same, as it would be in a field of another type: see input_of"
_JOINED = "the same, as all that is held is joined anew with every chunk: slower"
_TYPES = "said for the type checker: what it excludes cannot be"
_TWICE = "a field that its type needs: without it the payload is not read, which is a loss as well"
_FAILS = "told as a failure before it is looked up: the row is for the page of this wire"
_AGAIN = "the same, read anew: slower"
_SAME_BYTES = "bytes made of bytes are the very same ones"
_SMALL = "where so little was read, nothing can be too big: measuring finds nothing"
_NO_SEAM = "asked again behind the data, and answered no"
_UNHEARD = "made for nobody: a line that is not listened to is dropped"
_ONE_PIECE = "the same text in one piece, or in several: only how often it is joined"
_IN_VAIN = "asked in vain: such a text is not whole, or nobody watches"
_SOONER = "the same place, asked sooner"
_ASKED = "asked in vain: no wire is inside of any other, and one that is known counts first"
_ONE_MORE = "one more is as good"
_TRIED = "the same number tried again: it is taken, and the next one is free: slower"
_ITS_FRAME = "a failure in the wire's own words came in a frame, whose end is known"
_SET_FIRST = "whoever reads it has set it before"
_NO_HALVES = "without halves of characters joining changes nothing"

# (file, function or table, change) -> why nothing can tell it from the code as it is
EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        _EVEN, "says_twice",
        """never: keys == data.count(b'":') - data.count(b'\\\\":') and (not _hides_a_colon(data))""",
    ): _SHORTCUT,
    (_EVEN, "is_said_once", "never: msgspec.json.encode(_as_object(data)) == data"): _SHORTCUT,
    (
        _EVEN, "_hides_a_colon",
        """always: any((quote in data for quote in (b'" ', b'"\\t', b'"\\n', b'"\\r')))""",
    ): _SHORTCUT,
    (_EVEN, "_hides_a_colon", "without: and spaced"): _SHORTCUT,
    (_EVEN, "_hides_a_colon", "without: and _space_before_colon(data) is not None"): _SHORTCUT,
    (_EVEN, "_fields_once", "without: and len(fields) != len(pairs)"): _SHORTCUT,
    (_PARSER, "Parser._repaired", "without: and repairs.fresh"): _SHORTCUT,
    (_PARSER, "Parser.hear", "without: and not self._loss"): "a loss for either reason",
    (_PARSER, "Parser._may_be_text", "always: isinstance(payload, dict)"): _TYPES,
    (_PARSER, "Parser._changed", "without: and dropped"): "what is unknown is always left aside",
    (_PARSER, "Parser.ask_once", "without: and not even.is_said_once(raw)"): _SHORTCUT,
    (_CHAT, "ChatParser._finish_choice", "without: or held is None"): _TYPES,
    (_CHAT, "ChatParser._full_chunk", "without: and part.message is not None"): _SHORTCUT,
    (_SSE, "SSE.feed", "without: and self._even"): _SHORTCUT,
    (_SSE, "SSE._feed", "never: len(blocks) > 2"): _SHORTCUT,
    (_SSE, "SSE._feed", "boundary: len(blocks) > 2"): _SHORTCUT,
    (_SSE, "SSE._feed", "never: LF not in blocks[1]"): _SHORTCUT,
    (_SSE, "SSE._feed", "always: LF not in blocks[1]"): _SHORTCUT,
    (
        "streamnorm/providers/openai_responses/texts.py", "Texts.told", "always: not self._marks",
    ): "the same, made anew",
    (
        "streamnorm/providers/openai_responses/texts.py", "Texts._told_astray", "always: missing",
    ): _SHORTCUT,
    (
        _INTERACTIONS, "InteractionsParser",
        "without: CALL_TEXTS 'delta.arguments'",
    ): "a fragment without it is neither text nor an object, which is a loss as well",
    (_OPENING, "Opening.all_held", "without: and start in _OUTER"): (
        "asked in vain, and another provider is loaded for it"
    ),
    (
        _OPENING, "Opening.learn_heading",
        "never: at > 1 and block.startswith(head + data[:at])",
    ): _SHORTCUT,
    (
        _OPENING, "Opening.learn_heading",
        "always: at > 1 and block.startswith(head + data[:at])",
    ): _ENVELOPE,
    (_OPENING, "Opening.learn_heading", "without: and at > 1"): _ENVELOPE,
    (
        _OPENING, "Opening.learn_heading",
        "without: and block.startswith(head + data[:at])",
    ): _ENVELOPE,
    (_OPENING, "Opening.learn_heading", "boundary: at > 1"): _ENVELOPE,
    (
        _PLACES, "Places.told_alike",
        "always: not self._alike",
    ): "the same, made anew",
    (
        _PLACES, "Places.may_be_told",
        "boundary: call.ordinal < self._unannounced.get(key, -1)",
    ): "one that is told is not this one",
    (_PLACES, "Places._key", "always: key is None"): _AGAIN,
    (_PLACES, "Places._key", "never: call.state is State.OVER"): _AGAIN,
    (_ITEMS, "is_made_of_nothing", "without: and bool(fields)"): "every such type has fields",
    (
        _ITEMS, "input_of", "without: and not plain or isinstance(item[f], str)",
    ): "where text is meant and something else stands, it was left before",
    (_RESPONSES_PARSER, "ResponsesParser._call_item", "without: or call.taint"): (
        "where something of a call is missing, something was lost"
    ),
    (_ITEMS, "_as_plain", "never: isinstance(value, str)"): _FOUND,
    (
        _ITEMS, "_as_object", "always: not isinstance(item.get(tool.said[1]), dict | list)",
    ): _FOUND,
    (_ITEMS, "_as_object", "without: or first_text(item.get(tool.said[1]))"): _FOUND,
    (_ITEMS, "_as_one_of", "never: item.get(one)"): _FOUND,
    (
        _PIPE, "Normalizer._feed",
        "always: framer is None or self._left < 0 or (not self._calm)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._feed", "without: or framer is None"): _TYPES,
    (_PIPE, "Normalizer._feed", "boundary: self._left < 0"): _SHORTCUT,
    (_PIPE, "Normalizer._feed", "always: blocks"): _SHORTCUT,
    (_PIPE, "Normalizer.feed", "always: type(chunk) is not bytes"): _SAME_BYTES,
    (
        _PIPE, "Normalizer.feed",
        "never: line is not data and LF not in line and (CR not in line) and (len(line) <= SHALLOW)"
        " and (left >= ...",
    ): _SHORTCUT,
    (_PIPE, "Normalizer.feed", "without: or self._is_far(len(chunk))"): _SHORTCUT,
    (
        _PIPE, "Normalizer._is_far",
        "always: self._left < self._long and number % MEASURE_EVERY == 0",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "without: and self._left < self._long"): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "without: and number % MEASURE_EVERY == 0"): _SHORTCUT,
    (_PIPE, "Normalizer._feed", "never: (sse := self._sse) is not None"): _SHORTCUT,
    (_PIPE, "Normalizer._split_by", "never: isinstance(framer, SSE)"): _SHORTCUT,
    (_PIPE, "Normalizer._place", "without: or self._framer is None"): _TYPES,
    (_PIPE, "Normalizer._came_before", "without: or seam is None"): _TYPES,
    (_PIPE, "Normalizer._read_uncut", "always: LF in rest or self._calls.mended"): _SHORTCUT,
    (_PIPE, "Normalizer._read", "always: self._calls.mended"): _SHORTCUT,
    (
        _PIPE, "Normalizer._read",
        "never: rest is not block and (single or LF not in rest) or not head",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._read", "without: or not head"): _SHORTCUT,
    (_PIPE, "Normalizer._read_carefully", "never: calm"): _SHORTCUT,
    (_PIPE, "Normalizer._read_carefully", "without: and not free"): _SMALL,
    (_PIPE, "Normalizer._begin", "without: and self._seam is not None"): _NO_SEAM,
    (_PIPE, "Normalizer._begin", "without: or told"): _SHORTCUT,
    (_PIPE, "Normalizer._begin", "never: self._calm and opening.envelope"): _SHORTCUT,
    (_PIPE, "Normalizer._begin", "without: and self._calm"): _SHORTCUT,
    (_PIPE, "Normalizer._tell_end", "always: self._calls.mended"): _NO_HALVES,
    (
        _PIPE, "Normalizer._tell_end",
        "always: self._scribe.is_on(INFO) or end.kind == 'failed'",
    ): _UNHEARD,
    (_PIPE, "Normalizer.feed", "never: data is not chunk"): _SHORTCUT,
    (_DASH, "DashScopeParser._hear_calls", "without: and call.latches"): "the same, made anew",
    (_CONVERSATIONS, "ConversationsParser._message", "never: type(content) is str"): _SHORTCUT,
    (_DASH, "_is_error", "never: not (p.code or p.message or p.status_code)"): _SHORTCUT,
    (_CLAUDE, "ClaudeCodeParser", "without: CALL_TEXTS 'event.delta.partial_json'"): _TWICE,
    (_CLAUDE, "ClaudeCodeParser._settle", "always: len(copies) > 1"): _SHORTCUT,
    (_CLAUDE, "ClaudeCodeParser._settle", "boundary: len(copies) > 1"): _SHORTCUT,
    (_CLAUDE, "ClaudeCodeParser._sign", "never: self._agent is None"): "the same, made anew",
    ("streamnorm/demultiplexer.py", "Router._heard", "always: not held.heard"): (
        "the same, made anew"
    ),
    (_PIPE, "Normalizer.feed", "boundary: left >= self._near"): _SHORTCUT,
    (_PIPE, "Normalizer.feed", "without: or left >= self._near"): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "boundary: self._left < self._long"): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "boundary: self._left >= 0"): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "boundary: size <= limits.frame_bytes"): _SHORTCUT,
    (_PIPE, "Normalizer._is_far", "boundary: number <= limits.frames"): _SHORTCUT,
    (
        _PIPE, "Normalizer._read_run",
        "never: envelope and (rest := line.removeprefix(envelope)) is not line",
    ): _SHORTCUT,
    (
        _PIPE, "Normalizer._take_run",
        "always: self._left < self._near and self._is_due(frames - len(lines), frames)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._take_run", "without: and self._left < self._near"): _SHORTCUT,
    (
        _PIPE, "Normalizer._take_run", "without: and self._is_due(frames - len(lines), frames)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._take_run", "boundary: self._left < self._near"): _SHORTCUT,
    (
        _PIPE, "Normalizer._take_run", "never: (run := self._run) is not None and (not calls.mended)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._is_due", "without: and self._left < self._long"): _SHORTCUT,
    (
        _PIPE, "Normalizer._is_due",
        "without: and frames // MEASURE_EVERY != before // MEASURE_EVERY",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._is_due", "boundary: self._left < self._long"): _SHORTCUT,
    (_PIPE, "Normalizer._is_due", "boundary: frames > self._limits.frames"): _SHORTCUT,
    (_PIPE, "Normalizer._read", "without: and self._framer is not None"): _TYPES,
    (
        _PIPE, "Normalizer._read",
        "without: or rest is not block and (single or LF not in rest)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._read", "without: or single"): _SHORTCUT,
    (_PIPE, "Normalizer._read", "always: self._calls.mended #2"): _SHORTCUT,
    (
        _PIPE, "Normalizer._look_again",
        "always: not envelope or not block.startswith(lead + envelope)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "without: and rest"): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "without: and head != self._head"): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "never: usual and (not (head and LF in rest))"): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "without: and head"): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "without: and LF in rest"): _SHORTCUT,
    (_PIPE, "Normalizer._look_again", "never: envelope"): _SHORTCUT,
    (_PIPE, "Normalizer._read_carefully", "never: free"): _SHORTCUT,
    (_PIPE, "Normalizer._read_carefully", "boundary: self._left >= self._long"): _SHORTCUT,
    (_PIPE, "Normalizer._odd", "always: self._calls.mended"): _NO_HALVES,
    (
        _PIPE, "Normalizer._take",
        "never: self._calm and self._left >= self._long and (self._frames <= self._limits.frames)",
    ): _SHORTCUT,
    (_PIPE, "Normalizer._take", "boundary: self._left >= self._long"): _SHORTCUT,
    (_PIPE, "Normalizer._take", "boundary: self._frames <= self._limits.frames"): _SHORTCUT,
    (_PIPE, "Normalizer.feed", "never: alone is None"): _SHORTCUT,
    (_PIPE, "Normalizer.feed", "never: self._envelope"): _SHORTCUT,
    (_PIPE, "Normalizer._stop", "always: sum(map(len, self._latest)) > FEW_BYTES"): _SOONER,
    (_PIPE, "Normalizer._stop", "boundary: sum(map(len, self._latest)) > FEW_BYTES"): _SOONER,
    (_PIPE, "Normalizer._read_run", "always: calls.mended"): _SHORTCUT,
    (_PIPE, "Normalizer._read_run", "always: calls.mended #2"): _SHORTCUT,
    (_PIPE, "Normalizer._read_run", "without: and envelope"): _SHORTCUT,
    (
        _PIPE, "Normalizer._read_run",
        "without: and (rest := line.removeprefix(envelope)) is not line",
    ): _SHORTCUT,
    (
        _PIPE, "Normalizer._look_again",
        "without: or not block.startswith(lead + envelope)",
    ): "the head of the one before it is never another then, so each is read the long way",
    (_PIPE, "Normalizer._speak", "never: parser.RUNS_ALONE"): _SHORTCUT,
    (_OPENING, "Opening.all_held", "always: start == 'text'"): _SHORTCUT,
    (_OPENING, "Opening.choose_wire", "never: wire or not self._outer"): _ASKED,
    (_OPENING, "Opening.choose_wire", "without: or wire"): _ASKED,
    (_OPENING, "Opening.choose_wire", "without: or not self._outer"): _ASKED,
    (_GEMINI, "GeminiParser._begin", "without: or call is None"): _TYPES,
    (_INTERACTIONS, "InteractionsParser._call_start", "without: and held is not None"): _TYPES,
    (_GEMINI, "GeminiParser._hot_chunk", "always: p.usage_metadata is not _ABSENT"): (
        "what was counted before is kept: see _count"
    ),
    (
        _GEMINI, "GeminiParser._hot_chunk",
        "always: len(p.usage_metadata) != len(self._usage)",
    ): _SHORTCUT,
    (_GEMINI, "GeminiParser._hot_chunk", "without: or self._choices.get(number)"): _SHORTCUT,
    (_GEMINI, "GeminiParser._hot_chunk", "always: choice.kind is not TextDelta"): _SHORTCUT,
    (
        _GEMINI, "GeminiParser._hot_chunk",
        "never: part.text and part.function_call is None",
    ): _SHORTCUT,
    (
        _GEMINI, "GeminiParser._hot_chunk",
        "always: part.thought is not None or part.thought_signature is not None",
    ): _SHORTCUT,
    (
        _GEMINI, "GeminiParser._hot_chunk",
        "never: (said := part.function_call) is not None",
    ): _SHORTCUT,
    (
        _GEMINI, "GeminiParser._hot_chunk",
        "always: choice.told or part.text or (not said.name)",
    ): _SHORTCUT,
    (
        _GEMINI, "GeminiParser._chunk",
        "always: p.candidates is None or p.prompt_feedback is not None or p.error is not None",
    ): _SHORTCUT,
    (_GEMINI, "GeminiParser._chunk", "always: p.usage_metadata is not _ABSENT"): (
        "what was counted before is kept: see _count"
    ),
    (_GEMINI, "GeminiParser._chunk", "without: or self._choices.get(number)"): _SHORTCUT,
    (_GEMINI, "GeminiParser._server_call", "without: or ServerCalled()"): _TYPES,
    (_SSE, "SSE._single_lines", "without: and self._held[-1][-1:] == b'\\n'"): _SHORTCUT,
    (_SSE, "SSE._ended", "always: held"): _SHORTCUT,
    (
        _SSE, "SSE._ended",
        "always: size > self._limit or len(blocks[0]) > self._limit",
    ): _SHORTCUT,
    (_SSE, "SSE._ended", "boundary: size > self._limit"): _SHORTCUT,
    (_SSE, "SSE._ended", "boundary: len(blocks[0]) > self._limit"): _SHORTCUT,
    (_ARRAY, "JsonArray.feed", "always: self._depth == 1"): (
        "deeper within an element it is not looked at, and set anew behind it"
    ),
    (_ARRAY, "JsonArray.feed", "without: and begin is not None"): _TYPES,
    ("streamnorm/framing/lines.py", "Lines.feed", "never: not others"): _JOINED,
    (_AWS, "Frames.feed", "never: self._size < self._need"): _JOINED,
    (_AWS, "Envelopes.head_of", "always: self._inner is None"): _SHORTCUT,
    (_AWS, "EventStream._told", "without: or self._known.get(heading)"): _SHORTCUT,
    (_AWS, "EventStream._learn", "never: len(self._known) < HEADINGS"): _SHORTCUT,
    (_AWS, "EventStream._learn", "boundary: len(self._known) < HEADINGS"): "one more is kept",
    (_PASSAGE, "Passage.number", "always: self._borders is None"): (
        "wires that number their frames send events"
    ),
    (_PASSAGE, "Passage.feed", "always: type(chunk) is not bytes"): _SAME_BYTES,
    (_PASSAGE, "Passage.feed", "without: or chunk.endswith(_END)"): _SHORTCUT,
    (_PASSAGE, "Passage.feed", "without: or chunk.endswith(_LONG_END)"): _SHORTCUT,
    (_PASSAGE, "Passage.feed", "never: whole"): _SHORTCUT,
    (_PASSAGE, "Passage.close", "without: and self._rest"): "nothing is heard of nothing",
    (_PASSAGE, "Passage.close", "always: self._pipe.frames > frames"): _ITS_FRAME,
    (_PASSAGE, "Passage.close", "boundary: self._pipe.frames > frames"): _ITS_FRAME,
    (_PASSAGE, "Passage._up_to_last", "without: and self._tail"): _SHORTCUT,
    (_PASSAGE, "Passage._up_to_last", "never: len(self._rest) == 1"): _SHORTCUT,
    (_PASSAGE, "Passage._up_to_last", "always: self._rest"): _SHORTCUT,
    (_PASSAGE, "Passage._up_to_last", "always: rest"): _SHORTCUT,
    (_PASSAGE, "Passage._frame", "without: or not whole"): (
        "the pipe reads no frame before it is whole"
    ),
    (_PASSAGE, "Passage._place", "never: behind is None"): _TYPES,
    (_PASSAGE, "Passage._ended", "without: and end is not None"): _ITS_FRAME,
    (_PASSAGE, "_not_to_be_run", "without: or ending.reason"): (
        "an end without a word of its own is a normal one"
    ),
    ("streamnorm/agent/consent.py", "matched", "never: not decisions"): _SHORTCUT,
    (_CALLS, "Calls.open", "without: and self._strays"): _SHORTCUT,
    (_CALLS, "Calls.open", "without: and id"): _TYPES,
    (_CALLS, "Calls.hear", "always: self.mended"): _NO_HALVES,
    (_CALLS, "Calls._compare", "always: self.mended"): _NO_HALVES,
    (_RESPONSES_PARSER, "ResponsesParser._call_of", "always: p.call_id is not None"): _SHORTCUT,
    (_TEXTS, "Texts._told_astray", "always: missing"): _SHORTCUT,
    (_WRITTEN, "safe_json", "always: line.rfind(b'null') >= 0"): _SHORTCUT,
    (
        _WRITTEN, "safe_json",
        "always: _LESS in line or _MORE in line or _AND in line or (_LEAD in line)",
    ): _SHORTCUT,
    (_ENTRIES, "Choice._ordinal", "never: entry.index is None"): _TYPES,
    (_CALLS, "Calls.extend", "never: call.state is OPEN"): _SHORTCUT,
    (_CALLS, "Calls.whole", "without: or not id"): _TYPES,
    (_CALLS, "Calls.whole", "without: or not name"): _TYPES,
    (_CALLS, "Calls.whole", "boundary: len(id) <= limits.id"): _SHORTCUT,
    (_CALLS, "Calls.whole", "boundary: size <= limits.arguments"): _SHORTCUT,
    (_CALLS, "Calls.whole", "boundary: self._told + size <= limits.arguments_total"): _SHORTCUT,
    (_CALLS, "Calls.whole", "without: or not key"): _TYPES,
    (_CALLS, "Calls.whole", "always: self.marks.behind_ripe is None"): _SHORTCUT,
    (_CALLS, "Calls._whole_by_steps", "always: self._doubles"): _SHORTCUT,
    (_CALLS, "Calls._balance", "always: call.balance is None"): _AGAIN,
    (_CALLS, "Calls.void", "without: and call.wire_id is not None"): _TYPES,
    (_CALLS, "Calls._mended", "always: self.mended"): _NO_HALVES,
    (_CALLS, "Calls._doubt", "without: and self.mended"): _SHORTCUT,
    (_CALLS, "Calls._break", "always: self.mended"): _NO_HALVES,
    (_CALLS, "Calls.append", "always: text and text[-1] in self.last"): _IN_VAIN,
    (_CALLS, "Calls.append", "without: and text[-1] in self.last"): _IN_VAIN,
    (_CALLS, "Calls.extend", "always: text[-1] in self.last"): _IN_VAIN,
    (
        _CALLS, "Calls.is_whole",
        "never: call.objects and call.objects == len(call.fragments)",
    ): _AGAIN,
    (_CALLS, "Calls.merge_object", "without: and size == len(text)"): _SHORTCUT,
    (_CALLS, "Calls._whole_by_steps", "without: and known is not None #2"): _TYPES,
    (_CALLS, "Calls._ripen_if_whole", "always: call.reach is None"): _AGAIN,
    (
        _CALLS, "Calls._compare",
        "never: len(call.fragments) > 1 and text == held and (len(text) == self._size(call))",
    ): _ONE_PIECE,
    (_CALLS, "Calls._compare", "without: and len(call.fragments) > 1"): _ONE_PIECE,
    (_CALLS, "Calls._compare", "without: and text == held"): _ONE_PIECE,
    (_CALLS, "Calls._void_of", "always: self._given_up"): _SHORTCUT,
    (_CALLS, "_agrees", "without: and longer"): _SHORTCUT,
    (_CALLS, "_agrees", "always: len(raw) > len(given)"): _SHORTCUT,
    (_CALLS, "_agrees", "boundary: len(raw) > len(given)"): _SHORTCUT,
    (_CALLS, "Calls._compare", "boundary: len(call.fragments) > 1"): _ONE_PIECE,
    (
        _CALLS, "Calls._close",
        "never: call.name and call.fragments and (doubt is None or self.mended)",
    ): _AGAIN,
    (_CALLS, "Calls._close", "without: or doubt is None"): _AGAIN,
    (_CALLS, "Calls._close", "without: or self.mended"): _AGAIN,
    (
        _CALLS, "Calls._close_again",
        "always: len(call.fragments) != 1 or call.fragments[0] is not call.judged",
    ): _AGAIN,
    (
        _CALLS, "Calls._arguments",
        "never: type(value) is dict and len(call.fragments) > 1",
    ): _ONE_PIECE,
    (
        _CALLS, "Calls._arguments",
        "always: type(value) is dict and len(call.fragments) > 1",
    ): _ONE_PIECE,
    (_CALLS, "Calls._arguments", "without: and type(value) is dict"): _ONE_PIECE,
    (_CALLS, "Calls._arguments", "without: and len(call.fragments) > 1"): _ONE_PIECE,
    (_CALLS, "Calls._arguments", "boundary: len(call.fragments) > 1"): _ONE_PIECE,
    (_CALLS, "Calls._over", "always: len(call.fragments) > 1"): "the same, made anew",
    (_CALLS, "Calls._over", "boundary: len(call.fragments) > 1"): "the same, made anew",
    (_CALLS, "Calls._as_sent", "without: call.latches = ()"): (
        "a text that was doubled and is whole has a brace too many when it is doubled again"
    ),
    (
        _CHAT, "ChatParser._chunk",
        "never: function is not None and function.name is None and (entry.id is None) and (not number) "
        "and (len(e...",
    ): _SHORTCUT,
    (
        _CHAT, "ChatParser._chunk",
        "never: call.state is OPEN and text[0] != '{' and (text[-1] not in self.calls.last) and "
        "(first.reason is ...",
    ): _SHORTCUT,
    (_CHAT, "ChatParser._chunk", "always: number"): _SHORTCUT,
    (_CHAT, "ChatParser._chunk", "always: p.usage is not None"): _SHORTCUT,
    (_ENTRIES, "Choice._open", "always: it.place is not None"): _TYPES,
    (
        _ANTHROPIC, "AnthropicParser._block_delta",
        "never: call is not None and call.state is OPEN and text",
    ): _SHORTCUT,
    (_ANTHROPIC, "AnthropicParser._block_delta", "always: self._blocks"): _SHORTCUT,
    (_ANTHROPIC, "AnthropicParser._call_start", "without: and held is not None #2"): _TYPES,
    (_BEDROCK, "BedrockParser._call_start", "without: and held is not None #2"): _TYPES,
    (_ANTHROPIC, "AnthropicParser", "without: CALL_KEYS 'content_block'"): (
        "any value is read there, so none is ever left aside"
    ),
    (_ENTRIES, "Choice._open", "never: call.kind is FUNCTION"): _SHORTCUT,
    (_BEDROCK, "BedrockParser._block_stop", "always: self._pictures"): _SHORTCUT,
    (_BEDROCK, "BedrockParser._agent_text", "always: p.attribution"): _SHORTCUT,
    (
        _BEDROCK, "BedrockParser",
        "without: CALL_TEXTS 'contentBlockDelta.delta.toolUse.input'",
    ): "a fragment without its text is a loss as well",
    (_COHERE, "CohereParser", "without: REASONS 'ERROR'"): _FAILS,
    (_COHERE, "CohereParser", "without: REASONS 'TIMEOUT'"): _FAILS,
    (_COHERE, "CohereParser._call_start", "without: or call is None"): _TYPES,
    (_COHERE, "CohereParser._call_delta", "always: entry.id or function.name"): _SHORTCUT,
    (
        _EXACT, "parse",
        "never: type(value) is dict and len(value) == colons and ('[' not in text) and (max_depth > 1)",
    ): _SHORTCUT,
    (_EXACT, "parse", "never: keys == colons"): _SHORTCUT,
    (_EXACT, "parse", "never: said != keys and '\\\\\\\\\":' not in text"): _SHORTCUT,
    (_EXACT, "parse", "without: and said != keys"): "as many as keys: none of them is escaped",
    (_EXACT, "parse", "always: said != keys or _space_before_colon(text)"): _SHORTCUT,
    (_EXACT, "_judge", "without: and '\\\\u' in text"): _SHORTCUT,
    (_EXACT, "parse", "other: 1 in max_depth > 1"): _SHORTCUT,
    (_EXACT, "parse", """other: said -= text.count('\\\\":')"""): _SHORTCUT,
    (_EXACT, "count_keys", "other: 0 in return 0"): _SHORTCUT,
    (_EXACT, "count_keys", "other: count += count_keys(child, depth - 1)"): _SHORTCUT,
    ("streamnorm/core/mint.py", "Mint.id", "other: 18 in :18"): "fewer of its letters are taken",
    ("streamnorm/core/mint.py", "_new_stand_in", "other: 32 in os.urandom(32)"): _ONE_MORE,
    ("streamnorm/core/mint.py", "_new_stand_in", "other: 32 in :32"): _ONE_MORE,
    ("streamnorm/encoding/ids.py", "Ids._assign", "without: self._seen[call.id] += 1"): _TRIED,
    ("streamnorm/encoding/ids.py", "Ids._assign", "other: self._seen[call.id] += 1"): _TRIED,
    (
        "streamnorm/encoding/ids.py", "Ids._assign", "other: 1 in self._seen[call.id] += 1",
    ): _TRIED,
    ("streamnorm/core/marks.py", "Marks.__init__", "without: self.in_last_chunk = 0"): _SET_FIRST,
    (
        "streamnorm/core/marks.py", "Marks.__init__", "other: 0 in self.in_last_chunk = 0",
    ): _SET_FIRST,
    (_CALLS, "Calls.__init__", "other: True in self.closes = True"): _SET_FIRST,
    (_CALLS, "Calls.whole", "without: _NONE of Call"): "a list of its own: it never grows",
    (
        _CALLS, "Calls.merge_object", "other: 1 in 1:",
    ): "a key and its value are longer than that",
    (
        _CALLS, "Calls._size", "without: call.counted = (len(call.fragments), size)",
    ): _AGAIN,
    (_CALLS, "Calls._compare", "other: 1 in len(call.fragments) > 1"): _ONE_PIECE,
    (_CALLS, "Calls._arguments", "other: 1 in len(call.fragments) > 1"): _ONE_PIECE,
    (_CALLS, "Calls._close", "without: self.replace(call, call.raw)"): _AGAIN,
    (_CALLS, "Calls._close", "without: call.judged = call.fragments[0]"): _AGAIN,
    (_CALLS, "Calls._close_again", "other: 1 in len(call.fragments) != 1"): _AGAIN,
    (
        "streamnorm/providers/mistral/parser.py", "MistralParser._payload", "always: bare",
    ): "it asks for all fields, and the choices are one of them",
    (
        _CALLS, "_goes_on_behind_a_snapshot", "boundary: at > call.latches[0]",
    ): "the news of the first snapshot begin there",
    ("streamnorm/core/mint.py", "Mint.id", "always: not self._key"): "the same key, made anew",
    ("streamnorm/core/mend.py", "_scrubbed", "never: scrubbed == plain"): _SHORTCUT,
    (_CANONICAL, "_number", "boundary: number < 0"): "zero was told before",
    (_CANONICAL, "_written", "never: _is_easy(value, text.isascii())"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "never: kind is dict"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "always: not ascii and (not ''.join(value).isascii())"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "without: and not ascii"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "without: and not ''.join(value).isascii()"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "always: kind is not list"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "never: kind in _EASY"): _SHORTCUT,
    (
        _CANONICAL, "_is_easy",
        "always: type(each) not in _EASY and (not _is_easy(each, ascii))",
    ): _SHORTCUT,
    (_CANONICAL, "_is_easy", "without: and type(each) not in _EASY"): _SHORTCUT,
    (_CANONICAL, "_is_easy", "without: and not _is_easy(each, ascii)"): _SHORTCUT,
    (_CANONICAL, "_digest", "always: _sha256 is None"): "the same, made anew",
    (_WRITTEN, "json_bytes", "always: line.rfind(b'null') >= 0"): _SHORTCUT,
    (_WRITTEN, "made_safe", "always: _LESS in line or _MORE in line or _AND in line"): _SHORTCUT,
    (_WRITTEN, "_without_separators", "always: _LEAD in line"): _SHORTCUT,
    (
        _WRITTEN, "safe_text",
        "always: _LESS in line or _MORE in line or _AND in line or (_LEAD in line)",
    ): _SHORTCUT,
    (_CALLS, "Calls.replace", "other: 0 in (0, '')"): "an empty text is none, however many it is of",
    (_CALLS, "Calls._compare", "never: len(text) != self._size(call)"): _SHORTER,
    (_CALLS, "Calls._compare", "always: len(text) != self._size(call)"): _SHORTER,
    (_CALLS, "_shortest", "never: short and count == len(call.fragments)"): _SHORTER,
    (_CALLS, "_shortest", "without: and short"): "there is none only where nothing is held",
    (_CALLS, "_is_value_of", "without: key=len of min"): _SHORTER,
    (_CALLS, "_is_value_of", "other: min in min(held, text, key=len)"): _SHORTER,
    (
        _CALLS, "_is_value_of",
        "without: call.short = (len(call.fragments), min(held, text, key=len))",
    ): _SHORTER,
    (
        _CALLS, "Calls._announce",
        "never: not first and (balance.refused or not self.is_whole(call))",
    ): _SHORTCUT,
    (_CALLS, "Calls._announce", "without: or balance.refused"): _SHORTCUT,
    (_CALLS, "Calls._announce", "without: or not self.is_whole(call)"): _SHORTCUT,
    (_CALLS, "Calls._announce", "without: or call.taint"): _SHORTCUT,
    (
        _CHAT, "ChatParser.end_of_calls",
        "always: any((choice.copy is not None for choice in self._choices.values()))",
    ): _SHORTCUT,
    (_CHAT, "ChatParser.end_of_calls", "always: copied"): _SHORTCUT,
    (
        "streamnorm/providers/gemini/told.py", "Told.say",
        "never: self.values and path == self.values[-1][0]",
    ): "an equal place, held once more",
    (_INTERACTIONS, "InteractionsParser._reconcile", "boundary: said.keys() >= self._ids"): (
        "it is asked where the final interaction has a call that was not heard: one more"
    ),
    (_COPIES, "begins_with", "never: at >= len(text)"): _SHORTCUT,
    (_COPIES, "begins_with", "boundary: at >= len(text)"): _SHORTCUT,
    (_GROWTH, "Growth._new", "without: and at < 0"): _SHORTCUT,
    (_GROWTH, "Growth._new", "boundary: at < 0"): _SHORTCUT,
    (_GROWTH, "Growth._new", "always: new"): "pieces without text say nothing: slower",
    ("streamnorm/text/balance.py", "Balance.is_whole", "always: self._whole is None"): _AGAIN,
    ("streamnorm/text/halves.py", "join", "never: has_half(text) is None"): _SHORTCUT,
    ("streamnorm/text/halves.py", "masked", "without: or b'\\\\u' not in data"): _SHORTCUT,
    (_SSE, "SSE.run", "never: self._cut is head"): _SHORTCUT,
    (
        _SSE, "SSE.run",
        "always: LF in rest or not lines or LF in (text := b''.join(lines))",
    ): _SHORTCUT,
}  # fmt: skip
