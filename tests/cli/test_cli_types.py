"""``streamnorm providers --types``: the rows of every provider, as a table and as JSON."""

from __future__ import annotations

import json

import pytest

from streamnorm.cli import main
from streamnorm.providers import PROVIDERS
from tests.conftest import CALLING

HEAD = ["provider", "wire", "type", "family", "role", "runs", "on", "id", "source", "id", "field"]


def printed(capsys, *args: str) -> list[str]:
    assert main(["providers", *args]) == 0
    return capsys.readouterr().out.splitlines()


def test_types_are_the_rows_of_every_provider(capsys):
    head, *rows = printed(capsys, "--types")
    assert head.split() == HEAD
    wanted = [(row.name, item.type.split()[0]) for row in PROVIDERS.values() for item in row.items]
    assert [tuple(row.split()[:2]) for row in rows] == wanted


def test_types_of_one_provider(capsys):
    _, *rows = printed(capsys, "--types", "--provider", "gemini")
    assert [row.split() for row in rows] == [
        ["gemini", "functionCall", "function", "call", "client", "nullable", "functionCall.id"],
        ["gemini", "functionResponse", "function", "output", "client", "nullable", "functionResponse.id"],
        ["gemini", "executableCode", "code-execution", "call", "provider", "nullable", "executableCode.id"],
        ["gemini", "codeExecutionResult", "code-execution", "output", "provider", "nullable",
         "codeExecutionResult.id"],
        ["gemini", "toolCall", "generic-server-tool", "call", "provider", "nullable", "toolCall.id"],
        ["gemini", "toolResponse", "generic-server-tool", "output", "provider", "nullable",
         "toolResponse.id"],
    ]  # fmt: skip


def test_types_as_json_have_a_name_for_each_column(capsys):
    first, *_ = printed(capsys, "--types", "--provider", "anthropic", "--json")
    assert json.loads(first) == {
        "provider": "anthropic",
        "wire_type": "tool_use",
        "family": "function",
        "role": "call",
        "runs_on": "client",
        "id_source": "natural",
        "id_field": "content_block.id",
    }


def test_types_as_json_are_as_many_as_there_are_rows(capsys):
    rows = [json.loads(line) for line in printed(capsys, "--types", "--json")]
    assert len(rows) == sum(len(row.items) for row in PROVIDERS.values())
    assert {row["provider"] for row in rows} == set(CALLING)


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_column_but_the_id_field_is_filled(name, capsys):
    for line in printed(capsys, "--types", "--provider", name, "--json"):
        row = json.loads(line)
        assert row.pop("id_field") or row["id_source"] == "synthetic"
        assert all(row.values()), row


@pytest.mark.parametrize("name", PROVIDERS)
def test_columns_use_the_words_that_events_use(name, capsys):
    for line in printed(capsys, "--types", "--provider", name, "--json"):
        row = json.loads(line)
        assert row["role"] in {"call", "output", "call+output"}
        assert row["runs_on"] in {"client", "provider"}
        assert row["id_source"] in {"natural", "conflated", "synthetic", "nullable"}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_wire_type_has_one_row(name):
    types = [item.type for item in PROVIDERS[name].items]
    assert len(set(types)) == len(types)


def test_providers_can_be_filtered_and_written_as_json_too(capsys):
    (line,) = printed(capsys, "--provider", "ollama", "--json")
    assert json.loads(line)["name"] == "ollama"


def test_a_provider_that_is_none_is_a_usage_error_that_lists_those_there_are(capsys):
    assert main(["providers", "--types", "--provider", "nobody"]) == 2
    assert "no provider 'nobody'; there are: anthropic, " in capsys.readouterr().err
