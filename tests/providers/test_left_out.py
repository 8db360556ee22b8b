"""A provider of another package that leaves something out: each thing we do with it works, or says why.

Every part of ``acme`` is left out in turn, and everything is tried that can be done with a provider.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import httpx
import pytest

from streamnorm import (
    Conversation,
    Normalizer,
    StreamnormError,
    Tool,
    ToolResult,
    connect,
    from_messages,
    normalize,
    provider,
    repair,
    to_messages,
)
from streamnorm.cli import main
from streamnorm.core.complete import lacking
from streamnorm.core.parser import Parser
from streamnorm.encoding.encoder import Encoder
from streamnorm.encoding.messages import Messages
from streamnorm.encoding.server import Server
from streamnorm.encoding.teller import Teller
from streamnorm.errors import UsageError
from streamnorm.events import Finish, TextDelta, ToolCall
from streamnorm.providers import PROVIDERS
from streamnorm.providers.detect import by_address, by_module
from streamnorm.testing import call, error, say, script, think
from tests.providers.acme import FILES, installed
from tests.providers.test_acme import BODY, URL

BASES = {
    "parser": Parser, "encoder": Encoder, "messages": Messages, "server": Server, "script": Teller,
}  # fmt: skip
WIRE = (
    b'data: {"acme":"hello","id":"a","model":"m"}\n\ndata: {"acme":"text","text":"Hi"}\n\n'
    b'data: {"acme":"use","id":"u1","tool":"tides","with":{"a":1}}\n\n'
    b'data: {"acme":"bye","why":"tools","counts":{"in":1}}\n\n'
)
CALL = ToolCall(0, "u1", "tides", {"a": 1}, '{"a":1}')
TALK = Conversation().user("Hi").assistant([TextDelta("I look."), CALL, Finish("tool_calls")])
TALK = TALK.results([ToolResult.for_call(CALL, "04:12")])


# --- what can be left out -------------------------------------------------------------------------


def parts() -> Iterator[tuple[str, str, str]]:
    """File, what is left out of it, and the text that is left."""
    for file, text in FILES.items():
        tree = ast.parse(dedent(text))
        for holder, field, at, what in list(_removable(tree)):
            left = getattr(holder, field)
            gone = left.pop(at)
            if isinstance(holder, ast.Dict):
                value = holder.values.pop(at)
            yield file, what, ast.unparse(ast.fix_missing_locations(tree))
            left.insert(at, gone)
            if isinstance(holder, ast.Dict):
                holder.values.insert(at, value)


def _removable(tree: ast.Module) -> Iterator[tuple[Any, str, int, str]]:
    for at, node in enumerate(tree.body):
        if isinstance(node, ast.Assign):
            if ast.unparse(node.targets[0]) != "PROVIDER":  # test_plugins.py has that
                yield tree, "body", at, ast.unparse(node.targets[0])
            if isinstance(node.value, ast.Call):
                for number, keyword in enumerate(node.value.keywords):
                    yield node.value, "keywords", number, f"the row's {keyword.arg}"
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Acme"):
            for number, inner in enumerate(node.body):
                if isinstance(inner, ast.FunctionDef | ast.Assign):  # the others are its own
                    yield node, "body", number, f"{node.name}.{_name(inner)}"
                if isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Dict):
                    for key, said in enumerate(inner.value.keys):
                        yield inner.value, "keys", key, f"{_name(inner)}[{ast.unparse(said)}]"


def _name(node: ast.FunctionDef | ast.Assign) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0])


LEFT_OUT = {f"{file} without {what}": {file: left} for file, what, left in parts()}


# --- what can be done -----------------------------------------------------------------------------


def read(name: str) -> list[Any]:
    pipe = Normalizer(name)
    return pipe.feed(WIRE) + pipe.close()


def read_response() -> list[Any]:
    request = httpx.Request("POST", URL)
    with normalize(httpx.Response(200, content=WIRE, request=request)) as stream:
        return list(stream)


async def connected() -> list[Any]:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=WIRE))
    async with (
        httpx.AsyncClient(transport=transport) as client,
        connect("acme", json={"talk": []}, client=client) as stream,
    ):
        return [event async for event in stream]


async def observed() -> None:
    from tests.ui.test_telemetry import Kit, all_of, told

    await all_of(Kit().telemetry.observe(told(*read("acme"))))


async def paged() -> None:
    from streamnorm.page.app import create_app
    from streamnorm.page.live import live_models
    from streamnorm.page.takes import Takes

    live = live_models(["acme=acme-1"], {"ACME_KEY": "k"}, ())
    transport = httpx.ASGITransport(create_app(Takes(None), live=live))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
        assert (await client.get("/api/config")).status_code == 200


def recorded(tmp_path: Any) -> None:
    with script(say("Hi")).server("openai_chat") as server:
        args = ["record", server.url, "--provider", "acme", "--data", "{}", "-o", str(tmp_path)]
        assert main(args) in (0, 2, 3)


def listed() -> None:
    for args in ([], ["--json"], ["--types"], ["--provider", "acme", "--types"]):
        assert main(["providers", *args]) in (0, 2)


ENTRIES: dict[str, Callable[..., Any]] = {
    "read": lambda: read("acme"),
    "read what tells itself": lambda: read("auto"),
    "read payloads": lambda: Normalizer("acme").feed_payload({"acme": "text", "text": "Hi"}),
    "read a response": read_response,
    "connect": connected,
    "detect": lambda: (by_address(URL), by_module("acme_sdk.types")),
    "tools": lambda: provider("acme").tools([Tool("tides", "High and low water")]),
    "choice": lambda: provider("acme").tool_choice("required", [Tool("tides")]),
    "request": lambda: provider("acme").request(TALK, tools=[Tool("tides")], tool_choice="auto"),
    "calls": lambda: provider("acme").calls([CALL]),
    "results": lambda: provider("acme").results([ToolResult.for_call(CALL, "04:12")]),
    "path": lambda: (provider("acme").path("m"), provider("acme").container),
    "serve": lambda: list(provider("acme").serve(script(say("a"), call("f", a=1)).events("gemini"))),
    "messages": lambda: from_messages("acme", BODY),
    "messages that tell themselves": lambda: from_messages("auto", BODY),
    "to messages": lambda: to_messages("acme", TALK),
    "repair": lambda: repair("acme", {**BODY, "talk": BODY["talk"][:2]}),
    "repair what tells itself": lambda: repair("auto", {**BODY, "talk": BODY["talk"][:2]}),
    "script": lambda: script(say("Hi"), call("tides", a=1)).bytes("acme"),
    "script thoughts": lambda: script(think("Hm"), say("Hi")).bytes("acme"),
    "script an error": lambda: script(say("Hi"), error("overloaded")).events("acme"),
    "observe": observed,
    "page": paged,
    "record": recorded,
    "list": listed,
    "facts": lambda: [(row.can, row.cannot, row.items, row.address("m")) for row in PROVIDERS.values()],
}  # fmt: skip


# Where a body that is nobody's may be the reason.
NOBODYS = {"messages that tell themselves", "repair", "repair what tells itself"}


@pytest.mark.parametrize("which", LEFT_OUT)
async def test_whatever_is_left_out_things_work_or_are_explained(which, tmp_path_factory, capsys):
    told = {}
    with installed(tmp_path_factory.mktemp("site"), FILES | LEFT_OUT[which]):
        for entry, ask in ENTRIES.items():
            given = (tmp_path_factory.mktemp("takes"),) if ask is recorded else ()
            try:
                answer = ask(*given)
                if hasattr(answer, "__await__"):
                    await answer
            except StreamnormError as error:
                if "acme" not in str(error) and entry not in NOBODYS:
                    told[entry] = f"does not say whose fault it is: {error}"
            except Exception as error:  # noqa: BLE001  this is what must not be
                told[entry] = f"{type(error).__name__}: {error}"
    assert told == {}
    assert "Traceback" not in "".join(capsys.readouterr())


def test_nothing_is_left_out_of_what_we_try():
    assert len(LEFT_OUT) > 80
    assert "parser.py without AcmeParser.decode" in LEFT_OUT


# --- how it is said -------------------------------------------------------------------------------

SAID = {
    "parser.py without PARSER": "acme_answers.parser has no PARSER",
    "parser.py without AcmeParser.KINDS": "PARSER of acme_answers.parser lacks KINDS",
    "parser.py without AcmeParser.decode": "PARSER of acme_answers.parser lacks decode",
    "parser.py without AcmeParser.looks_like": "PARSER of acme_answers.parser lacks looks_like",
    "parser.py without KINDS[Use]": "PARSER of acme_answers.parser lacks KINDS[Use]",
    "encoder.py without ENCODER": "acme_answers.encoder has no ENCODER",
    "encoder.py without AcmeEncoder.body": "ENCODER of acme_answers.encoder lacks body",
    "encoder.py without AcmeEncoder.grammar": "ENCODER of acme_answers.encoder lacks grammar",
    "messages.py without AcmeMessages.closed": "MESSAGES of acme_answers.messages lacks closed",
    "messages.py without AcmeMessages.calls": "MESSAGES of acme_answers.messages lacks calls",
    "server.py without AcmeServer.opening": "SERVER of acme_answers.server lacks opening",
    "script.py without SCRIPT": "acme_answers.script has no SCRIPT",
}


@pytest.mark.parametrize("which", SAID)
def test_the_sentence_names_the_provider_the_module_and_what_is_missing(tmp_path, which):
    part = which.partition(".py")[0]
    with (
        installed(tmp_path, FILES | LEFT_OUT[which]),
        pytest.raises(UsageError, match=f"^acme cannot be used: {re.escape(SAID[which])}$"),
    ):
        PROVIDERS["acme"].part(part, BASES[part])


@pytest.mark.parametrize(
    "said", ["ENCODER = 7", "class ENCODER: pass", "def ENCODER(options): pass"]
)
def test_what_is_no_encoder_is_not_taken_for_one(tmp_path, said):
    with (
        installed(tmp_path, FILES | {"encoder.py": said}),
        pytest.raises(
            UsageError,
            match=r"ENCODER of acme_answers\.encoder is no class that builds on "
            r"streamnorm\.encoding\.encoder\.Encoder",
        ),
    ):
        provider("acme")


ROWS = {
    'hosts="answers.acme.example"': "Expected `array`, got `str` - at `$.hosts`",
    'key="ACME_KEY"': "Expected `array | null`, got `str` - at `$.key`",
    "headers=None": "Expected `object`, got `null` - at `$.headers`",
    'path="/v1/{modle}"': "its path '/v1/{modle}' may hold {model} and nothing else",
    "parser=None": "Expected `str`, got `null` - at `$.parser`",
    "lines=1": "Expected `bool`, got `int` - at `$.lines`",
}


@pytest.mark.parametrize(("given", "why"), ROWS.items())
def test_a_row_with_a_value_of_another_type_says_which(tmp_path, given, why):
    field = given.partition("=")[0]
    row = re.sub(rf"\n +{field}=.*,\n", "\n", FILES["__init__.py"])
    row = row.replace('title="Acme Answers",', f'title="Acme Answers", {given},')
    with (
        installed(tmp_path, FILES | {"__init__.py": row}),
        pytest.raises(StreamnormError, match=re.escape(why)),
    ):
        Normalizer("acme")


@pytest.mark.parametrize(("name", "row"), PROVIDERS.items())
def test_nothing_is_missing_from_ours(name, row):
    for part, base in BASES.items():
        if getattr(row, part) is not None:
            assert lacking(row.part(part, base), base) == ()
