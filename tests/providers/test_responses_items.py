"""OpenAI Responses, what an item says of its call: items in; its input, picture and echo out."""

from __future__ import annotations

from typing import Any

import pytest

from streamnorm.providers.openai_responses.items import (
    TOOLS,
    echo_of,
    input_of,
    is_made_of_nothing,
    picture_of,
)

BY_TYPE = {tool.type: tool for tool in TOOLS}


@pytest.mark.parametrize(
    ("status", "theirs", "ours"),
    [
        ("searching", {"status": "searching"}, None),
        ("completed", None, None),
        (7, None, None),
        ("failed", {"status": "failed"}, {"status": "failed"}),
    ],
)
def test_how_far_an_item_came_goes_back_if_the_provider_runs_it_and_a_failure_always(
    status: Any, theirs: Any, ours: Any
):
    item = {"type": "web_search_call", "status": status}
    assert (echo_of(item, is_theirs=True), echo_of(item)) == (theirs, ours)


@pytest.mark.parametrize(
    ("more", "type_", "echo"),
    [
        ({}, None, {"type": "image_generation_call"}),
        (
            {"id": "ig", "output_format": "png"}, "image/png",
            {"type": "image_generation_call", "id": "ig"},
        ),
    ],
)  # fmt: skip
def test_a_picture_has_its_format_and_goes_back_as_its_item(more: Any, type_: Any, echo: Any):
    item = {"type": "image_generation_call", "result": "aGk=", **more}
    shown = picture_of(BY_TYPE["image_generation_call"], item)
    assert shown is not None
    assert (shown.type, shown.echo) == (type_, echo)


@pytest.mark.parametrize(
    ("type_", "expected"), [("mcp_call", None), ("function_call", None), ("file_search_call", "{}")]
)
def test_an_item_without_its_field_of_json_text_may_lack_something(type_: str, expected: Any):
    assert input_of(BY_TYPE[type_], {"type": type_, "id": "x"}, b"{}") == expected


@pytest.mark.parametrize(
    ("type_", "said", "nothing"),
    [
        ("file_search_call", {}, True),
        ("file_search_call", {"queries": None}, True),
        ("file_search_call", {"queries": []}, False),
        ("mcp_approval_request", {"name": "f"}, False),
        ("web_search_call", {}, False),
    ],
)
def test_an_input_of_several_fields_is_made_of_nothing_if_none_of_them_came(
    type_: str, said: Any, nothing: bool
):
    assert is_made_of_nothing(BY_TYPE[type_], {"type": type_, **said}) is nothing
