"""Tool names: within each wire's limits, never two alike, and always to be found again."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Conversation, EncodeError, Tool, ToolCall, ToolResult, Turn
from streamnorm.encoding.names import DOTTED, IDENTIFIER, PLAIN, RULES, Names
from streamnorm.wire import provider
from tests.conftest import CALLING

LIMITS = {
    PLAIN: r"[a-zA-Z0-9_-]{1,64}",
    DOTTED: r"[a-zA-Z_][a-zA-Z0-9_.-]{0,62}",
    IDENTIFIER: r"[a-zA-Z_][a-zA-Z0-9_]{0,63}",
}
anything = st.text(min_size=1, max_size=100)
odd = st.text(alphabet="ab._- /é0", min_size=1, max_size=70)


@pytest.mark.parametrize("rule", RULES, ids=["plain", "dotted", "identifier"])
@given(names=st.lists(anything | odd, unique=True, max_size=12))
def test_names_fit_differ_and_lead_back(rule, names):
    known = Names(rule)
    known.declare(names)
    wire = [known.wire(name) for name in names]
    assert len(set(wire)) == len(names)
    assert all(re.fullmatch(LIMITS[rule], name) for name in wire)
    assert [known.original(name) for name in wire] == names


@given(names=st.lists(odd, unique=True, min_size=2, max_size=6), seed=st.randoms())
def test_the_order_of_tools_does_not_matter(names, seed):
    shuffled = list(names)
    seed.shuffle(shuffled)
    one, other = Names(PLAIN), Names(PLAIN)
    one.declare(names)
    other.declare(shuffled)
    assert [one.wire(n) for n in names] == [other.wire(n) for n in names]


def test_a_name_that_fits_is_left_alone():
    names = Names(PLAIN)
    names.declare(["a.b", "a_b"])
    assert names.wire("a_b") == "a_b"
    assert names.wire("a.b").startswith("a_b_")


@pytest.mark.parametrize("target", CALLING)
def test_a_long_mcp_name_comes_back_to_its_tool(target):
    tools = [Tool.mcp("a server", f"{'long' * 30} {n}") for n in range(3)]
    wire = provider(target)
    wire.tools(tools)
    for tool in tools:
        name = wire.names.wire(tool.name)
        assert len(name) <= 64
        assert wire.names.original(name) == tool.name
        assert wire.tool(name) is tool


@pytest.mark.parametrize("target", CALLING)
@pytest.mark.parametrize("source", CALLING)
def test_a_call_by_the_name_of_one_wire_has_the_name_of_the_other_there(source, target):
    tool = Tool.mcp("files", "read & write " * 8)
    heard = provider(source)
    heard.tools([tool])
    call = ToolCall(0, "call_1", heard.names.wire(tool.name), {}, "{}")
    talk = Conversation().user("Go").add(Turn("assistant", (call,)))
    talk.results([ToolResult.for_call(call, "ok")])
    wire = provider(target)
    body = str(wire.request(talk, [tool]))
    name = wire.names.wire(tool.name)
    assert body.count(name) >= 2  # the declaration and the call
    assert name == call.name or call.name not in body.replace(name, "")


def test_names_can_be_left_exact():
    wire = provider("openai_chat", names="exact")
    with pytest.raises(EncodeError, match="rename the tool"):
        wire.tools([Tool("x" * 65)])


def test_a_tool_needs_a_name():
    with pytest.raises(EncodeError, match="needs a name"):
        provider("openai_chat").tools([Tool("")])
