"""The table of what the source documents say: where in ours it is true, and which test shows it.

``claims.txt`` lists every claim of the documents by its place and a digest of its words (written by
``python -m tools.seeds --claims`` where the documents are reachable). A row here covers one or more of them.
Rule: every claim has a row; a claim that binds (must, shall, should, do, don't, never, always), a criterion, a
row or a cell has a test. What says nothing that could be true or false of a program is ``BESIDE``, with why.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.providers.test_types import TYPES
from tests.seeds.claims import Claim
from tests.seeds.test_seed_000 import NATURAL, WITHOUT

TITLES = {
    "000": "Ids of calls and results",
    "001": "The matrix of tool calls",
    "002": "The record of a call",
    "003": "Who stores what, and when",
    "004": "The call id of the Responses wire",
}


class Row(NamedTuple):
    """``places``: lines, ranges of lines and claims of a line: ``"12 14.2 20-25"``.

    ``where`` it is true; ``tests`` that show it, one per word; ``otherwise``: what we do instead, and why.
    """

    seed: str
    places: str
    says: str
    where: str = ""
    tests: str = ""
    otherwise: str = ""

    def covers(self, claim: Claim) -> bool:
        return any(_covers(place, claim) for place in self.places.split())


def _covers(place: str, claim: Claim) -> bool:
    first, _, last = place.partition("-")
    if last:
        return int(first) <= claim.line <= int(last)
    return claim.place == place or str(claim.line) == place


BESIDE = "says nothing that a program could do or not do: "

_000 = "tests/seeds/test_seed_000.py::"
_001 = "tests/seeds/test_seed_001.py::"
_002 = "tests/seeds/test_seed_002.py::"
_003 = "tests/seeds/test_seed_003.py::"
_004 = "tests/seeds/test_seed_004.py::"
_ENDING = "tests/agent/test_ending.py::"
_LOOP = "tests/agent/test_loop.py::"
_CRASH = "tests/history/test_keeping_crash.py::"
_SETTLED = "tests/history/test_settled.py::"
_LOG = "tests/pipe/test_logging.py::"
_BACK = "tests/encoding/test_results_go_back.py::"


def _tests(prefix: str, *names: str) -> str:
    return " ".join(f"{prefix}{name}" for name in names)


# --- 000 ------------------------------------------------------------------------------------------

_EACH = (
    "test_a_type_of_the_table_is_told_with_its_family_and_role",
    "test_a_type_of_the_table_has_an_id_that_is_never_missing_and_says_where_it_is_from",
    "test_a_call_and_its_result_share_their_id",
)
_OTHERWISE = {type_.name: type_.why for type_ in TYPES} | {
    "ResponseServerToolUseBlock": "each has the family of its tool (web-search, code-execution, …); one "
    "that nobody knows is server-tool",
    "LocalShellToolCallOutput": "read by either id; sent with call_id beside id, sdk_types=True leaves it out",
}


def _types() -> list[Row]:
    rows = []
    for first, table in ((6, WITHOUT), (39, NATURAL)):
        for number, said in enumerate(table):
            tests = [f"{_000}{name}[{said.type}]" for name in _EACH]
            if said.type == "LocalShellToolCallOutput":
                tests.append(
                    f"{_000}test_the_output_of_a_local_shell_has_the_call_id_that_the_specification_requires"
                )
            if said.type == "ResponseServerToolUseBlock":
                tests.append(
                    "tests/providers/test_families.py::test_a_server_call_of_anthropic_has_the_family_of_its_tool"
                )
            where = f"docs/wires/{said.provider}.md"
            says = f"{said.type}: {said.role}, {said.family}, {_ID[said.id]}"
            rows.append(Row("000", str(first + 2 * number), says, where, " ".join(tests),
                            _OTHERWISE.get(said.type, "")))  # fmt: skip
    return rows


_ID = {
    "none": "no id on the wire", "optional": "its id is optional",
    "own id": "its own id serves as one", "id": "its id is the call's",
    "tool_use_id": "refers to the call's id", "call_id": "call_id",
}  # fmt: skip
_IDS = "streamnorm/core/mint.py, events.Provenance"
_ALWAYS = f"{_000}test_every_call_and_result_has_an_id_and_no_consumer_needs_to_look_for_none"
_MINTED = f"{_000}test_an_id_that_the_wire_never_gave_is_minted_in_one_form_on_every_wire"
_TELLS = f"{_000}test_a_minted_id_is_not_mistaken_for_one_of_the_wire"
_SERVES = f"{_000}test_an_id_of_the_item_that_serves_as_one_says_so"
_TRIP = (
    f"{_000}test_a_minted_id_survives_a_round_trip_inside_and_is_not_sent_to_a_wire_that_has_none"
)
_FOR_CALL = f"{_000}test_a_result_is_made_from_its_call_so_that_the_pair_cannot_differ"
_COUNTS = f"{_000}test_the_tables_have_15_and_43_rows_and_we_know_each"
_GROUPS = f"{_000}test_pairs_share_an_id_in_each_group_that_has_none_of_its_own"

SEED_000 = (
    Row("000", "1.1 1.2", "ids of calls and results are never null, though not every wire has one", _IDS,
        _ALWAYS),
    Row("000", "1.3 36", "15 types have no natural id, the remaining ones do", "docs/wires/README.md", _COUNTS,
        "43 shapes in the second table; the document counts variants of one shape as well"),
    Row("000", "4 37 187", BESIDE + "heads of tables"),
    *_types(),
    Row("000", "125.1", "variants at other borders of an API are the same shape",
        "tests/providers/test_types.py",
        f"{_000}test_variants_of_a_shape_at_other_borders_of_an_api_are_named_with_it"),
    Row("000", "125.2", "how many are natural, fabricated, synthetic, conflated", "docs/wires/README.md",
        "tests/providers/test_types.py::test_15_types_have_no_natural_id_that_is_always_there_by_what_is_said "
        "tests/providers/test_types.py::test_19_types_have_none_by_what_the_wire_carries"),
    Row("000", "125.3", "an adapter must give an id to every call and result", _IDS, _ALWAYS),
    Row("000", "125.4", "where the wire has none it is minted, stable, and the pair shares it", _IDS,
        f"{_MINTED} {_000}test_the_same_stream_read_again_has_the_same_minted_ids {_GROUPS}"),
    Row("000", "125.5 125.6 125.7 138", "consumers never need to look for null", "events.ToolCall.id", _ALWAYS),
    Row("000", "139", "an id is always there for logs, telemetry and matching", "docs/streams.md",
        f"{_ALWAYS} {_LOG}test_every_line_about_a_call_carries_its_id"),
    Row("000", "140 200.3", "minted ids do not survive round trips", "encoding/ids.py", _TRIP,
        "they do: stored with the call, sent to wires that want one, and left out where the wire has none"),
    Row("000", "141.1", "an item's id used as call id loses the distinction", "events.Provenance.id_source",
        _SERVES, "it does not: id_source says conflated, wire_field where it was read"),
    Row("000", "141.2 141.3", "an empty id masks that there is none", "core/calls.py",
        f"{_000}test_an_empty_id_is_a_missing_one", "an empty id is a missing one: minted, and told so"),
    Row("000", "141.4 144.1", "each adapter must mint for itself", "core/mint.py", _MINTED,
        "none does: there is one mint, parsers say only that there was no id"),
    Row("000", "144.2 144.3 144.4 144.5 144.6 160",
        "a nullable id says honestly what the wire has; pairs of functions need one", _IDS,
        f"{_TELLS} {_ALWAYS}", "honest in the provenance (wire_id is null), and the id is never null"),
    Row("000", "161.1 161.2 161.3", "an id that is null at construction is made in one place", "core/mint.py",
        f"{_MINTED} {_FOR_CALL}"),
    Row("000", "189", "fabricated: call and result are told together", "providers/azure_foundry/parser.py",
        f"{_GROUPS}[none]"),
    Row("000", "190 191", "synthetic and nullable: both arrive together, or the result copies the call's id",
        "providers/gemini/parser.py, tools.ToolResult.for_call", f"{_GROUPS}[optional] {_FOR_CALL}"),
    Row("000", "192", "conflated: call and result come of one item", "providers/openai_responses/items.py",
        f"{_000}test_pairs_share_an_id_in_each_group_that_has_none_of_its_own[own] {_SERVES}"),
    Row("000", "193.1 197.2 199", "ids are minted centrally, in one form", "core/mint.py", _MINTED),
    Row("000", "193.2 200.1 200.2", "adapters say that they have no id instead of hiding it", "core/calls.py",
        f"{_TELLS} {_LOG}test_a_missing_id_is_one_warning_with_reason_strategy_and_structure"),
    Row("000", "193.3 193.4 197.1", "the id of a call is always there for consumers", _IDS, _ALWAYS),
    Row("000", "203", "what had no id cannot be told from what was given one", "events.Provenance", _TELLS,
        "it can: id_source is synthetic"),
    Row("000", "204.1 204.2 204.3 204.4", "a result must take the id of its call; a factory could enforce that",
        "tools.ToolResult.for_call", _FOR_CALL),
    Row("000", "204.5 204.6 204.7 204.8 239-242", "leave the id to the types that need one", _IDS,
        f"{_ALWAYS} {_000}test_no_type_of_a_provider_falls_through_to_something_generic "
        f"{_000}test_a_result_whose_call_was_never_heard_keeps_its_id_and_belongs_to_no_call",
        "not done: every type is told with its family and an id, so nothing falls through or needs a cast"),
)  # fmt: skip


# --- 001 ------------------------------------------------------------------------------------------

_WIRES = {
    "anthropic": "Anthropic", "openai_responses": "Responses", "openai_chat": "Chat", "gemini": "Gemini",
}  # fmt: skip
_DECLARED, _CALLED, _ANSWERED, _NAMED = (
    "test_tool_declaration", "test_assistant_tool_call", "test_tool_result_injection",
    "test_the_result_names_the_id_of_its_call",
)  # fmt: skip


def _cell(place: str, wire: str, scenario: str, test: str, says: str, otherwise: str = "") -> Row:
    where = f"providers/{wire}/encoder.py"
    node = f"{_001}{test}[{wire}-{scenario}]"
    return Row("001", place, f"{_WIRES[wire]}, {scenario}: {says}", where, node, otherwise)


def _tables() -> list[Row]:
    """The tables of the six scenarios: by wire, how a tool is declared, called and answered."""
    first = {"shell": 318, "read_file": 327, "read_many_files": 336, "write_file": 345, "replace": 354,
             "grep": 363}  # fmt: skip
    columns = ((2, _DECLARED, "declaration"), (3, _CALLED, "call"), (4, _ANSWERED, "result"))
    rows = []
    for scenario, line in first.items():
        for number, wire in enumerate(_WIRES):
            rows += [
                _cell(f"{line + number}.{column}", wire, scenario, test, says)
                for column, test, says in columns
            ]
    return rows


def _compact() -> list[Row]:
    """The compact table: in each scenario a result names its call in the same way."""
    scenarios = ("shell", "read_file", "read_many_files", "write_file", "replace", "grep")
    return [
        _cell(
            f"{407 + number}.{column}",
            wire,
            scenario,
            _NAMED,
            "the result names the id of its call",
        )
        for number, wire in enumerate(_WIRES)
        for column, scenario in enumerate(scenarios, 2)
    ]


def _fetch() -> list[Row]:
    rows = []
    for number, wire in enumerate(_WIRES):
        line = 105 + number
        rows += [
            _cell(f"{line}.{column}", wire, "web_fetch", test, says)
            for column, test, says in (
                (2, _DECLARED, "available as a function"),
                (3, _DECLARED, "declaration"),
                (4, _CALLED, "call"),
                (5, _ANSWERED, "result"),
            )
        ]
    return rows


def _mapped() -> list[Row]:
    """Which fields tie a result to its call, and where the result stands."""
    rows = []
    for number, wire in enumerate(_WIRES):
        line, where = 372 + number, f"providers/{wire}/encoder.py"
        named, placed = (
            f"{_001}{_NAMED}[{wire}-shell]",
            f"{_001}test_where_the_result_is_placed[{wire}]",
        )
        rows += [
            Row("001", f"{line}.2", f"{_WIRES[wire]}: the field of the call's id", where, named),
            Row(
                "001",
                f"{line}.3",
                f"{_WIRES[wire]}: the field that refers to it",
                where,
                f"{named} {_001}{_ANSWERED}[{wire}-shell]",
            ),
            Row("001", f"{line}.4", f"{_WIRES[wire]}: where the result is placed", where, placed),
        ]
    return rows


def _fields() -> list[Row]:
    """Where system text, messages and tools stand in a body."""
    rows = []
    for number, wire in enumerate(_WIRES):
        for column, test, says in (
            (2, "test_system_text_stands_where_the_wire_has_it", "system text"),
            (3, "test_the_container_of_messages_is_the_wires_own", "container of messages"),
            (4, "test_tools_stand_under_tools", "field of tools"),
        ):
            tests = f"{_001}{test}[{wire}]"
            if wire == "openai_responses" and column == 4:
                tests += f" {_001}test_responses_takes_tools_that_are_no_functions_beside_functions"
            otherwise = "config. is a word of the SDK; on the wire it is the top of the body"
            rows.append(
                Row("001", f"{396 + number}.{column}", f"{_WIRES[wire]}: {says}",
                    f"providers/{wire}/encoder.py", tests,
                    otherwise if wire == "gemini" and column != 3 else "")
            )  # fmt: skip
    return rows


_SHAPES = (
    # line, scenario, wire, which of a declaration, a call and a result the shape has in it
    (26, "shell", "anthropic", "d"), (133, "read_file", "anthropic", "c"), (149, "read_file", "anthropic", "r"),
    (166, "read_file", "openai_responses", "cr"), (187, "read_file", "openai_chat", "c"),
    (201, "read_file", "openai_chat", "r"), (209, "read_file", "gemini", "c"),
    (377, "read_file", "gemini", "r"), (418, "read_many_files", "anthropic", "c"),
    (440, "write_file", "anthropic", "c"), (462, "replace", "anthropic", "c"), (489, "grep", "anthropic", "c"),
    (505, "grep", "anthropic", "r"), (520, "grep", "openai_responses", "cr"), (539, "grep", "openai_chat", "c"),
    (556, "grep", "openai_chat", "r"), (562, "grep", "gemini", "c"), (577, "grep", "gemini", "r"),
    (596, "replace", "anthropic", "r"), (611, "replace", "openai_responses", "cr"),
    (630, "replace", "openai_chat", "c"), (647, "replace", "openai_chat", "r"), (653, "replace", "gemini", "c"),
    (673, "replace", "gemini", "r"), (690, "write_file", "anthropic", "r"),
    (705, "write_file", "openai_responses", "cr"), (724, "write_file", "openai_chat", "c"),
    (738, "write_file", "openai_chat", "r"), (744, "write_file", "gemini", "c"),
    (753, "write_file", "gemini", "r"), (770, "read_many_files", "anthropic", "r"),
    (785, "read_many_files", "openai_responses", "cr"), (804, "read_many_files", "openai_chat", "c"),
    (818, "read_many_files", "openai_chat", "r"), (824, "read_many_files", "gemini", "c"),
    (833, "read_many_files", "gemini", "r"), (867, "shell", "anthropic", "r"),
    (890, "shell", "openai_responses", "d"), (914, "shell", "openai_responses", "cr"),
    (937, "shell", "openai_chat", "d"), (962, "shell", "openai_chat", "c"), (978, "shell", "openai_chat", "r"),
    (988, "shell", "gemini", "d"), (1016, "shell", "gemini", "c"), (1027, "shell", "gemini", "r"),
)  # fmt: skip
_PARTS = {
    "d": (_DECLARED, "declaration"), "c": (_CALLED, "call"), "r": (_ANSWERED, "result"),
}  # fmt: skip
_EVERY_SHAPE = f"{_001}test_every_shape_of_the_document_is_one_that_we_send"


def _shapes() -> list[Row]:
    rows = []
    for line, scenario, wire, parts in _SHAPES:
        tests = [f"{_001}{_PARTS[part][0]}[{wire}-{scenario}]" for part in parts]
        says = " and ".join(_PARTS[part][1] for part in parts)
        row = _cell(str(line), wire, scenario, "", f"the shape of {says}")
        otherwise = (
            "config. is a word of the SDK; on the wire it is the top of the body"
            if line == 988
            else ""
        )
        rows.append(row._replace(tests=" ".join([*tests, _EVERY_SHAPE]), otherwise=otherwise))
    return rows


_PROVIDERS = "providers/*/encoder.py"
_NATIVE_BY_NOW = (
    "native by default, as the wire takes pictures in results by now; "
    'images="summary" is the document\'s way'
)
_SUMMARY = f"{_001}test_a_binary_result_is_a_text_summary_if_asked_for"
_NATIVE = f"{_001}test_pictures_go_natively_where_the_wire_takes_them_today"
_KEEP = f"{_001}test_parameters_keep_their_names"
_BESIDE_CALL = f"{_001}test_a_result_is_neither_assistant_text_nor_in_the_message_of_the_call"
_NO_TOOL_ROLE = f"{_001}test_no_tool_role_but_on_chat"
_MCP = f"{_001}test_an_mcp_tool_is_a_function_with_a_sanitised_qualified_name"
_STREAMED = f"{_001}test_a_streamed_call_is_told_whole"
_SYSTEM = f"{_001}test_system_text_stands_where_the_wire_has_it"
_CONTAINER = f"{_001}test_the_container_of_messages_is_the_wires_own"
_FUNCTIONS_ONLY = f"{_001}test_chat_takes_functions_only"


def _each(test: str, wire: str) -> str:
    """A test of all cells of one wire is named by its shell."""
    return f"{_001}{test}[{wire}-shell]"


SEED_001 = (
    Row("001", "1-16 18.1 18.2", BESIDE + "title, purpose, legend, and that shapes are short"),
    Row("001", "18.3", "field names and containers are the wire's own, exactly", _PROVIDERS,
        f"{_CONTAINER} {_001}{_DECLARED} {_001}{_CALLED} {_001}{_ANSWERED}"),
    Row("001", "20-24 46 48 59 69 79 90 92 101 110 112 116 125 127 131 147 162 164 183 185 205 207",
        BESIDE + "headings"),
    Row("001",
        "218 220 223 226 229 250 257 259 264 266 269 271 284 296 305 312 314 323 332 341 350 359 368",
        BESIDE + "headings"),
    Row("001", "392 401 412-416 432 434 438 454 456 460 481 483 487 503 518 537 560 594 609 628 651",
        BESIDE + "headings"),
    Row("001", "688 703 722 742 768 783 802 822 848 865 880 886 888 912 933 935 960 976 984 986 1014 1025",
        BESIDE + "headings"),
    Row("001", "94 103 316 325 334 343 352 361 370 394 405", BESIDE + "heads of tables"),
    Row("001", " ".join(f"{line}.1" for first in (96, 105, 318, 327, 336, 345, 354, 363, 372, 396, 407)
                        for line in range(first, first + 4)), BESIDE + "names of wires"),
    # Anthropic
    Row("001", "50", "do: tools as name and input_schema, with the right parameter names",
        "providers/anthropic/encoder.py",
        f"{_each(_DECLARED, 'anthropic')} {_KEEP}[anthropic-read_file-absolute_path]"),
    Row("001", "51", "do: results in a new user message, as tool_result", "providers/anthropic/encoder.py",
        f"{_each(_ANSWERED, 'anthropic')} {_001}test_where_the_result_is_placed[anthropic]"),
    Row("001", "52", "do: tool_use_id must match the id of its tool_use", "providers/anthropic/encoder.py",
        f"{_each(_NAMED, 'anthropic')} "
        "tests/encoding/test_encode_pairing.py::test_calls_and_results_pair_on_every_wire"),
    Row("001", "53", "do: global instructions in system", "providers/anthropic/encoder.py",
        f"{_SYSTEM}[anthropic]"),
    Row("001", "54 221", "do: results are text, binary is summarised and not embedded", "docs/way_back.md",
        f"{_SUMMARY}[anthropic] {_NATIVE}[anthropic]", _NATIVE_BY_NOW),
    Row("001", "55", "don't: results as assistant text or in the message of the call",
        "providers/anthropic/encoder.py",
        f"{_BESIDE_CALL}[anthropic]"),
    Row("001", "56", "don't: file_path for read_file", "tools.Tool",
        f"{_KEEP}[anthropic-read_file-absolute_path]"),
    Row("001", "57", "don't: messages of the role tool", "providers/anthropic/encoder.py",
        f"{_NO_TOOL_ROLE}[anthropic]"),
    # Responses
    Row("001", "61", "do: calls as items of input, arguments as JSON text",
        "providers/openai_responses/encoder.py",
        f"{_each(_CALLED, 'openai_responses')} "
        f"{_001}test_arguments_are_json_text_on_responses_and_chat_and_an_object_elsewhere"),
    Row("001", "62", "do: results as function_call_output items", "providers/openai_responses/encoder.py",
        _each(_ANSWERED, "openai_responses")),
    Row("001", "63", "do: functions, and tools that are none (local_shell, web_search)", "tools.Tool.server",
        f"{_001}test_responses_takes_tools_that_are_no_functions_beside_functions"),
    Row("001", "64", "do: instructions for system text", "providers/openai_responses/encoder.py",
        f"{_SYSTEM}[openai_responses]"),
    Row("001", "65", "don't: messages of the role tool", "providers/openai_responses/encoder.py",
        f"{_NO_TOOL_ROLE}[openai_responses]"),
    Row("001", "66 224", "don't: binary in outputs, summarise", "docs/way_back.md",
        f"{_SUMMARY}[openai_responses] {_NATIVE}[openai_responses]", _NATIVE_BY_NOW),
    Row("001", "67", "don't: tools in Chat's shape only", "providers/openai_responses/encoder.py",
        f"{_each(_DECLARED, 'openai_responses')} "
        f"{_001}test_responses_takes_tools_that_are_no_functions_beside_functions"),
    # Chat
    Row("001", "71", "do: tools as type function with name and parameters", "providers/openai_chat/encoder.py",
        _each(_DECLARED, "openai_chat")),
    Row("001", "72", "do: calls in tool_calls of an assistant message, results with tool_call_id",
        "providers/openai_chat/encoder.py",
        f"{_each(_CALLED, 'openai_chat')} {_each(_ANSWERED, 'openai_chat')}"),
    Row("001", "73", "do: arguments as JSON text", "providers/openai_chat/encoder.py",
        f"{_001}test_arguments_are_json_text_on_responses_and_chat_and_an_object_elsewhere"),
    Row("001", "74", "do: system text as the first message", "providers/openai_chat/encoder.py",
        f"{_SYSTEM}[openai_chat]"),
    Row("001", "75", "don't: input or items of Responses", "providers/openai_chat/encoder.py",
        f"{_001}test_chat_has_no_items_of_responses {_CONTAINER}[openai_chat]"),
    Row("001", "76", "don't: tools that are no functions", "encoding/declare.py", _FUNCTIONS_ONLY),
    Row("001", "77 227", "don't: binary in a tool message; summarise, or show it in a turn of its own",
        "docs/way_back.md",
        f"{_001}test_chat_never_has_binary_in_the_message_of_a_tool "
        f"{_001}test_chat_shows_a_picture_in_a_message_of_its_own_if_asked_for"),
    # Gemini
    Row("001", "81", "do: functionDeclarations with parametersJsonSchema", "providers/gemini/encoder.py",
        _each(_DECLARED, "gemini")),
    Row("001", "82", "do: calls are parts with functionCall", "providers/gemini/parser.py",
        f"{_STREAMED}[gemini] {_each(_CALLED, 'gemini')}"),
    Row("001", "83", "do: results as functionResponse of a new user message, with the id of the call",
        "providers/gemini/encoder.py", f"{_each(_ANSWERED, 'gemini')} {_each(_NAMED, 'gemini')}"),
    Row("001", "84 230 232", "do: inlineData beside the functionResponse for binary",
        "providers/gemini/encoder.py",
        f"{_001}test_gemini_has_the_bytes_beside_the_response {_EVERY_SHAPE} "
        f"{_BACK}test_gemini_takes_a_picture_beside_the_response_and_from_the_third_generation_on_inside"),
    Row("001", "85", "do: systemInstruction", "providers/gemini/encoder.py", f"{_SYSTEM}[gemini]"),
    Row("001", "86", "don't: functionResponse in parts of the model", "providers/gemini/encoder.py",
        f"{_001}test_results_of_gemini_come_from_the_user_and_never_from_the_model"),
    Row("001", "87", "don't: messages or input", "providers/gemini/encoder.py", f"{_CONTAINER}[gemini]"),
    Row("001", "88", "don't: rename parameters", "tools.Tool",
        f"{_KEEP}[gemini-read_file-absolute_path] {_KEEP}[gemini-write_file-file_path]"),
    # web search and fetch
    Row("001", "96.2 96.3 96.4", "Anthropic, web_search: not native", "tools.Tool.server",
        f"{_001}test_anthropic_has_a_web_search_of_its_own_by_now",
        "it is by now: declared, read and sent back"),
    _cell("96.5", "anthropic", "web_search", _DECLARED, "a function instead"),
    Row("001", "97.2 97.3", "Responses, web_search: a tool without parameters", "tools.Tool.server",
        f"{_001}test_responses_declares_web_search_without_parameters"),
    Row("001", "97.4", "Responses, web_search: a call in the stream that is no function",
        "providers/openai_responses/items.py",
        f"{_001}test_a_web_search_of_responses_is_a_call_that_the_provider_runs"),
    Row("001", "97.5", "Responses, web_search: begin and end are told, nothing is sent back",
        "events.ToolProgress",
        f"{_001}test_a_web_search_of_responses_tells_its_progress_and_nothing_is_sent_back_for_it"),
    Row("001", "98.2 98.3 98.4", "Chat, web_search: left out", "encoding/declare.py",
        f"{_001}test_a_web_search_of_responses_is_not_declared_on_chat {_FUNCTIONS_ONLY}"),
    _cell("98.5", "openai_chat", "web_search", _DECLARED, "a function if needed"),
    _cell("99.2 99.3", "gemini", "web_search", _DECLARED, "as a function"),
    _cell("99.4", "gemini", "web_search", _CALLED, "call with a query"),
    _cell("99.5", "gemini", "web_search", _ANSWERED, "text with citations in output"),
    *_fetch(),
    Row("001", "108.2 108.3", "Gemini, web_fetch: urlContext, or a function", "tools.Tool.server",
        f"{_001}test_gemini_may_read_addresses_by_itself"),
    # MCP
    Row("001", "113", "MCP tools are functions with sanitised names", "encoding/names.py", _MCP),
    Row("001", "114", "server__tool; odd characters become _; too long ones end with a hash",
        "encoding/names.py",
        f"{_MCP} {_001}test_an_mcp_name_that_is_too_long_is_compacted_with_a_hash",
        "63 on Gemini, 64 elsewhere, as the wires allow; Gemini keeps dots"),
    *(Row("001", str(117 + n), f"{_WIRES[w]}: an MCP tool in its shape of a function",
        f"providers/{w}/encoder.py", f"{_MCP}[{w}]")
      for n, w in enumerate(_WIRES)),
    Row("001", "122", "calls and results of MCP tools go as those of others", "encoding/plan.py",
        f"{_001}test_calls_and_results_of_an_mcp_tool_go_as_those_of_any_other"),
    # scenarios in words
    _cell("129", "anthropic", "read_file", _DECLARED, "input_schema with absolute_path"),
    _cell("436", "anthropic", "write_file", _DECLARED, "input_schema with file_path and content"),
    _cell("458", "anthropic", "replace", _DECLARED, "input_schema with its four parameters"),
    _cell("485", "anthropic", "grep", _DECLARED, "input_schema with pattern and its filters"),
    *_shapes(),
    Row("001", "850 882", "Anthropic, shell: text before a call, and after its result",
        "providers/anthropic/encoder.py",
        f"{_001}test_text_before_a_call_and_after_its_result_are_where_they_were_said {_EVERY_SHAPE}"),
    Row("001", "931 982", "the final answer follows when the result was sent", "agent/run.py",
        f"{_LOOP}test_the_same_loop_serves_every_provider"),
    # summaries
    *(Row("001", str(252 + n), f"{_WIRES[w]}: calls and results, in short", f"providers/{w}/encoder.py",
          f"{_each(_CALLED, w)} {_each(_ANSWERED, w)}") for n, w in enumerate(_WIRES)),
    *(Row("001", str(260 + n), f"{_WIRES[w]}: where one schema goes", f"providers/{w}/encoder.py",
        _each(_DECLARED, w))
      for n, w in enumerate(_WIRES)),
    Row("001", "265", "by which field results name their calls", _PROVIDERS, f"{_001}{_NAMED}"),
    Row("001", "267", "a text summary, and inlineData on Gemini", "docs/way_back.md",
        f"{_SUMMARY} {_001}test_gemini_has_the_bytes_beside_the_response", _NATIVE_BY_NOW),
    *(Row("001", str(line), f"{_WIRES[w]}: a streamed call", f"providers/{w}/parser.py", f"{_STREAMED}[{w}]",
          "the chunks have no id, so one is minted" if w == "openai_chat" else "")
      for line, w in zip((273, 286, 298, 307), _WIRES, strict=True)),
    *_tables(),
    *_mapped(),
    *_fields(),
    Row("001", "403", "ids are wired alike in every scenario", _PROVIDERS, f"{_001}{_NAMED}"),
    *_compact(),
)  # fmt: skip


# --- 002 ------------------------------------------------------------------------------------------

SEED_002 = (
    Row("002", "1 4 6 12.8 16", BESIDE + "titles, and pointers to other pages"),
    Row("002", "8.1 8.2",
        "a record pairs name and validated arguments with what the handler produced, and provenance",
        "history/settled.py",
        f"{_002}test_a_record_pairs_name_and_validated_arguments_with_results_and_provenance "
        "tests/agent/test_checking.py::test_what_does_not_fit_is_an_error_that_says_which_field"),
    Row("002", "8.3", "when a record exists the call has settled", "agent/acting.py",
        f"{_002}test_when_a_record_exists_the_call_has_settled_with_results_or_an_error"),
    Row("002", "8.4", "what is streamed has another shape than what is kept", "events.py, history/settled.py",
        f"{_002}test_what_is_streamed_in_pieces_is_no_record"),
    Row("002", "10.1 10.2", "arguments given as JSON text are always a plain object", "history/settled.py",
        _tests(_SETTLED, "test_arguments_are_an_object_whether_given_as_one_or_as_text",
               "test_arguments_that_are_no_object_are_refused")),
    Row("002", "10.3", "the checksum is a stable hash of name and canonical arguments", "text/canonical.py",
        f"{_002}test_the_checksum_is_sha256_over_the_name_and_the_canonical_arguments "
        f"{_SETTLED}test_equal_calls_have_equal_checksums_whatever_the_order_of_their_keys"),
    Row("002", "10.4", "it counts equal calls, and binds output to the call that produced it",
        "agent/circles.py",
        _tests(_002, "test_an_identical_call_in_a_later_turn_is_counted_as_the_same",
               "test_what_a_tool_gave_is_bound_to_the_call_that_produced_it")),
    Row("002", "10.5", "nobody sets the checksum", "history/settled.py",
        f"{_002}test_nobody_sets_the_checksum"),
    Row("002", "12.1", "results have three shapes", "history/settled.py",
        f"{_SETTLED}test_each_shape_of_results_is_shown"),
    Row("002", "12.2", "a normal tool gives an artifact, or several", "history/spool.py",
        f"{_002}test_what_a_normal_tool_gives_is_an_artifact_or_several"),
    Row("002", "12.3", "an artifact tool gives text, never an artifact", "agent/artifacts.py",
        f"{_002}test_the_answer_of_an_artifact_tool_is_plain_text_and_marked "
        f"{_SETTLED}test_plain_text_is_the_result_of_artifact_tools_only"),
    Row("002", "12.4 12.5", "media are the third shape, and not wrapped", "tools.File",
        f"{_002}test_media_are_not_wrapped_in_artifacts"),
    Row("002", "12.6", "inline by default; else a handle that is read through the artifact tools",
        "docs/loop.md",
        f"{_SETTLED}test_what_is_not_inline_is_shown_as_a_handle "
        f"{_LOOP}test_a_handle_is_read_through_the_artifact_tools"),
    Row("002", "12.7", "the tool decides; there is no threshold of size", "agent/client_tools.py",
        _tests(_002, "test_a_result_is_shown_inline_unless_the_tool_says_otherwise_however_large_it_is",
               "test_the_producing_tool_decides_by_what_it_produced")),
    Row("002", "14", "calls of artifact tools are marked, and never in the enum: nobody greps a grep",
        "agent/artifacts.py",
        f"{_002}test_the_model_cannot_call_an_artifact_tool_on_what_an_artifact_tool_gave "
        "tests/agent/test_artifacts.py::test_calls_of_artifact_tools_are_never_in_the_enum"),
    Row("002", "18", "three identifiers that do not mean the same", "docs/loop.md",
        f"{_002}test_id_checksum_and_the_key_of_an_execution_are_three_and_each_stands_under_its_name"),
    Row("002", "20",
        "the id correlates, the checksum detects circles and tampering, begin and end of an execution share it",
        "history/settled.py, events.ToolStarted",
        _tests(_002, "test_id_checksum_and_the_key_of_an_execution_are_three_and_each_stands_under_its_name",
               "test_begin_and_end_of_an_execution_are_told_under_the_checksum_before_arguments_are_checked",
               "test_a_record_tells_that_it_was_tampered_with")),
    Row("002", "25.1 25.2", "the parameter is callId, its enum is of ids and not of checksums",
        "agent/artifacts.py",
        f"{_002}test_the_enum_is_of_ids_and_not_of_checksums"),
    Row("002", "25.3", BESIDE + "advice on the names of variables"),
    Row("002", "27 29.1 29.2", "the provider's id is unique in a turn and not made anew", "core/calls.py",
        f"{_002}test_the_id_of_the_provider_is_kept_to_the_letter_and_used_once_in_a_turn"),
    Row("002", "29.3", "an id that is minted is unguessable", "core/mint.py",
        "tests/core/test_mint.py::test_an_id_fits_every_wire_and_has_enough_bits "
        "tests/core/test_mint.py::test_two_streams_without_a_seed_have_nothing_in_common "
        "tests/core/test_mint.py::test_two_processes_have_nothing_in_common "
        "tests/core/test_mint.py::test_the_secret_is_all_of_the_systems_generator_and_has_enough_bits"),
    Row("002", "29.4", "no sequential ids and none made of the time", "core/mint.py",
        "tests/core/test_mint.py::test_the_library_has_no_weak_source_of_ids"),
)  # fmt: skip


# --- 003 ------------------------------------------------------------------------------------------

_PER_RUN = (
    f"{_003}test_default_and_default_per_run_at_the_end "
    f"{_CRASH}test_per_run_a_run_that_dies_leaves_nothing_and_one_that_ended_all"
)
_PER_CALL = (
    f"{_003}test_our_stack_and_per_call_after_each_call_under_a_sentinel "
    f"{_CRASH}test_per_call_what_the_service_has_seen_is_there"
)
_TRAILING = (
    f"{_003}test_trailing_results_are_trimmed_if_asked_for_and_per_call_never_stored "
    f"{_ENDING}test_trailing_results_are_kept_or_trimmed_per_run_and_never_stored_per_call"
)
_RESUME = _tests(
    _ENDING,
    "test_the_missing_result_can_be_supplied",
    "test_after_a_limit_the_result_can_be_supplied_however_it_was_stored",
)
_CONSISTENT = (
    f"{_003}test_a_consistency_per_call_the_store_has_what_the_service_has_in_time_and_content"
)
_ATOMIC = f"{_003}test_b_atomicity_a_run_that_fails_midway_leaves_nothing_unless_asked_for"
_BREAKS = f"{_003}test_b_atomicity_nor_does_one_whose_last_answer_breaks_off"
_RECOVERS = f"{_003}test_c_recoverability_progress_survives_per_call_and_nothing_is_run_twice"
_SIMPLE = f"{_003}test_d_simplicity_one_run_is_one_update"
_FLEXIBLE = f"{_003}test_e_flexibility_one_conversation_may_be_kept_either_way_run_by_run"
_KEPT = "docs/history.md"

SEED_003 = (
    Row("003", "1-7", BESIDE + "who decided, and when"),
    Row("003", "8.1", "with tools a model is asked several times before it answers", "agent/run.py",
        f"{_LOOP}test_calls_are_run_and_their_results_given_back_until_the_model_stops"),
    Row("003", "8.2 9.4 9.10", BESIDE + "that two kinds of storing differ; how follows"),
    Row("003", "9.1", "a service keeps what it has seen after each call", _KEPT, _PER_CALL),
    Row("003", "9.2",
        "a history stores once, at the end of a run; and results that were never sent may be left at its end",
        _KEPT, f"{_PER_RUN} {_TRAILING}"),
    Row("003", "9.3 9.7 9.8", "a service never has trailing results, a history kept per run has them",
        _KEPT, _TRAILING),
    Row("003", "9.5 9.6 9.9", "going on must not depend on how it was stored", "agent/ledger.py", _RESUME),
    Row("003", "17.1 17.2 17.3", "per call trailing results are never stored, so there is nothing to trim",
        _KEPT, _TRAILING),
    Row("003", "17.4 17.5", "per run they are trimmed, if asked for, to match a service",
        "ToolLoop(trim=True)", _TRAILING),
    Row("003", "22.1 22.2", "A: what is stored matches what a service would store", _KEPT,
        f"{_CONSISTENT} {_TRAILING}"),
    Row("003", "22.3", "B: a run that fails midway leaves nothing, unless asked for", _KEPT,
        f"{_ATOMIC} {_BREAKS} {_CRASH}test_per_run_a_run_that_dies_leaves_nothing_and_one_that_ended_all"),
    Row("003", "24", "C: progress can be recovered", _KEPT,
        f"{_RECOVERS} tests/history/test_history_crash.py::test_one_machine_dies_in_the_midst_and_another_goes_on"),
    Row("003", "25", "D: the default is easy to understand: one run, one update", _KEPT, _SIMPLE),
    Row("003", "26", "E: the other way can be chosen", "ToolLoop(persist=…)", _FLEXIBLE),
    Row("003", "27 28", "per run is the default; trimming and per call are chosen",
        "ToolLoop(persist=…, trim=…)",
        f"{_PER_RUN} {_TRAILING}"),
    Row("003", "31 70", "runs are atomic", _KEPT, f"{_ATOMIC} {_BREAKS}"),
    Row("003", "32 71", "one run is one update of the history", _KEPT, _SIMPLE),
    Row("003", "33.1 33.2", "trimming matches a service in content, though not in time", _KEPT, _TRAILING),
    Row("003", "35", "per run a crash loses the run", _KEPT,
        f"{_CRASH}test_per_run_a_run_that_dies_leaves_nothing_and_one_that_ended_all"),
    Row("003", "36.1 36.2 36.4 39.1", "a setting stores after each call of the model",
        "ToolLoop(persist=\"call\")", _PER_CALL),
    Row("003", "36.3 44.1", "per call no trimming is needed", _KEPT, _TRAILING),
    Row("003", "39.2 72.1", "per call the store matches the service in time and content", _KEPT, _CONSISTENT),
    Row("003", "42 72.2", "per call progress survives an interruption", _KEPT, _RECOVERS),
    Row("003", "44.2 74.3", "per call a call may be stored without its result if a run fails", _KEPT,
        f"{_ATOMIC} {_LOOP}test_an_unresolved_call_is_closed_in_the_request_and_stays_as_it_is_in_the_store"),
    Row("003", "44.3", "the next run needs the missing result, by hand", "agent/ledger.py",
        f"{_003}test_a_missing_result_is_supplied_by_hand {_RESUME}",
        "it may be supplied by hand and need not: what a tool gave is told from the journal, and a call that "
        "nobody knows of is answered neutrally"),
    Row("003", "44.4", "per call one run is several updates", _KEPT, _SIMPLE),
    Row("003", "50.1 74.4", "either way can be chosen", "ToolLoop(persist=…)", _FLEXIBLE),
    Row("003", "50.2 50.3", "per run stays as it is, and is the default", "agent/loop.py", _PER_RUN),
    Row("003", "50.4 50.5 50.6", "per call is there for those who want it", "ToolLoop(persist=\"call\")",
        f"{_PER_CALL} {_RECOVERS}"),
    Row("003", "50.7", "who stores depends on whose stack it is and on the setting",
        "agent/loop.py, docs/history.md",
        f"{_003}test_default_and_default_per_run_at_the_end"),
    Row("003", "57.1", "our stack, per run: all of a run at its end", "agent/loop.py", _PER_RUN),
    Row("003", "57.2", "our stack, per call: after each call, under a sentinel id", "agent/persist.py",
        _PER_CALL),
    Row("003", "57.3", "a custom stack, per run: at the end, nothing is injected", "agent/loop.py",
        f"{_003}test_a_custom_stack_and_per_run_at_the_end_and_nothing_is_injected"),
    Row("003", "57.4",
        "a custom stack, per call: the user's; without persistence there is a warning, and nothing at the end",
        "agent/loop.py",
        f"{_003}test_a_custom_stack_and_per_call_is_the_users_and_without_persistence_warned_of "
        f"{_CRASH}test_per_call_in_a_stack_that_does_not_persist_nothing_is_stored"),
    Row("003", "74.1", "per call no trimming is needed", _KEPT, _TRAILING),
    Row("003", "74.2", "a conflict of two keepers raises, warns or clears", "agent/persist.py",
        _tests(_003, "test_throw_on_conflict_stores_nothing",
               "test_warn_on_conflict_keeps_both_and_a_run_that_dies_leaves_no_name_but_per_call",
               "test_clear_on_conflict_lets_go_of_the_turns_and_sends_what_is_new") + " " +
        _tests(_CRASH, "test_raise_a_conflict_stores_nothing",
               "test_warn_per_run_nothing_of_a_run_that_dies_remains_not_even_the_services_name",
               "test_warn_per_call_the_services_name_is_stored_with_each_answer",
               "test_clear_per_run_the_turns_are_there_until_the_run_has_ended_and_then_gone",
               "test_clear_per_call_the_services_name_is_updated_after_each_answer")),
    Row("003", "74.5", "per call writes more often", _KEPT, _SIMPLE),
    Row("003", "74.6 74.7", "the service's id is updated after each of its calls", "agent/persist.py",
        _tests(_003, "test_the_name_of_the_service_is_updated_after_each_of_its_calls",
               "test_a_custom_stack_hears_of_the_services_name_itself",
               "test_a_conversation_that_the_service_keeps_is_not_gone_on_with_if_nobody_says_its_next_name")),
    Row("003", "81.1",
        "a sentinel stands for a service's id, so that no call is there twice, with approval neither; "
        "a real id is stored at once",
        "agent/outgoing.py",
        f"{_003}test_the_sentinel_lets_calls_through_once_and_is_sent_to_no_service "
        f"{_003}test_where_calls_are_approved_each_is_stored_and_sent_once "
        f"{_003}test_where_a_person_must_agree_the_call_is_stored_and_sent_once "
        f"{_003}test_the_name_of_the_service_is_updated_after_each_of_its_calls"),
    Row("003", "81.2", "ids in between survive an interruption", "agent/persist.py",
        f"{_CRASH}test_clear_per_call_the_services_name_is_updated_after_each_answer"),
    Row("003", "81.3 81.4", "a service of one thread has one id, and behaves alike", "agent/persist.py",
        f"{_003}test_a_service_of_one_thread_has_one_name_and_nothing_differs"),
)  # fmt: skip


# --- 004 ------------------------------------------------------------------------------------------

_CRITERIA = (
    (15, "1.1", "call_id is extracted from the nested item when it is added",
    "providers/openai_responses/items.py",
     "test_1_1_call_id_is_extracted_from_the_nested_item_when_it_is_added",
     f"{_LOG}test_the_call_id_is_read_from_the_nested_item_and_not_from_the_item_itself"),
    (16, "1.2", "pieces of arguments belong to the call of their call_id",
    "providers/openai_responses/parser.py",
     "test_1_2_pieces_of_arguments_go_to_the_call_of_their_call_id", ""),
    (17, "1.3", "tools are executed under it, and so go their results", "agent/acting.py",
     "test_1_3_a_tool_is_executed_under_its_call_id_and_so_goes_its_result", ""),
    (18, "1.4", "it is in the log at debug and at info", "core/calls.py, agent/acting.py",
     "test_1_4_lines_about_a_call_have_its_call_id_at_debug_and_at_info",
     f"{_LOG}test_every_line_about_a_call_carries_its_id"),
    (26, "2.1", "results have the extracted call_id", "providers/openai_responses/encoder.py",
     "test_2_1_a_result_has_the_extracted_call_id", ""),
    (27, "2.2", "the state of a call is kept by it", "providers/openai_responses/parser.py",
     "test_2_2_the_state_of_a_call_is_kept_by_its_call_id", ""),
    (28, "2.3", "every call that is told has a valid one", "core/calls.py",
     "test_2_3_every_call_that_is_told_has_a_valid_id", ""),
    (29, "2.4", "a missing or empty one is a warning, and another id serves", "core/calls.py, notes.py",
     "test_2_4_a_missing_or_empty_call_id_is_a_warning_and_another_id_serves",
     f"{_LOG}test_a_missing_id_is_one_warning_with_reason_strategy_and_structure"),
    (37, "3.1", "extraction is logged at the right levels", "core/calls.py",
     "test_3_1_where_an_id_was_found_is_logged_at_debug_and_trouble_as_a_warning",
     f"{_LOG}test_a_line_says_where_the_id_was_read"),
    (38, "3.2", "failure is logged with the structure of the event", "notes.py",
     "test_3_2_an_id_that_was_not_found_is_logged_with_the_structure_of_its_event", ""),
    (39, "3.3", "a fallback is logged with reason and strategy", "core/calls.py",
     "test_3_3_a_fallback_is_logged_with_its_reason_and_its_strategy", ""),
    (40, "3.4", "at the end there is a summary of all ids", "normalizer.py",
     "test_3_4_a_stream_ends_with_a_summary_of_all_call_ids",
     f"{_LOG}test_a_stream_ends_with_one_summary_of_every_id"),
)  # fmt: skip

SEED_004 = (
    Row("004", "1 3 7 9 13 20 24 31 35", BESIDE + "headings"),
    Row("004", "5", BESIDE + "what was wrong elsewhere; what is wanted follows"),
    Row("004", "11 22 33", BESIDE + "user stories; their criteria follow"),
    *(Row("004", str(line), f"{number}: {says}", where, f"{_004}{test} {more}".strip())
      for line, number, says, where, test, more in _CRITERIA),
)  # fmt: skip

ROWS = (*SEED_000, *SEED_001, *SEED_002, *SEED_003, *SEED_004)
