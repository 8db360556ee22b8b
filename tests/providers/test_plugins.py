"""What other packages bring cannot break what is ours: told once, left out, and explained by name."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from streamnorm import Normalizer, provider, repair
from streamnorm.errors import UnknownProvider, UsageError
from streamnorm.providers import PROGRAMS, PROVIDERS, parsers_of, provider_row
from streamnorm.providers.detect import by_address, by_module
from streamnorm.testing import say, script
from tests.conftest import text_of
from tests.providers.acme import FILES, installed

OURS = list(PROVIDERS)
HELLO = script(say("Hi")).bytes("openai_chat")

# files of the package, its entry points, and what is said when it is asked for by name
BROKEN = {
    "that raises": ({"__init__.py": "1 / 0"}, "acme = acme_answers", "ZeroDivisionError: division by zero"),
    "that is no Python": ({"__init__.py": "def"}, "acme = acme_answers", "SyntaxError"),
    "that is not there": ({}, "acme = acme_answers.nothing", "ModuleNotFoundError"),
    "without a row": ({"__init__.py": ""}, "acme = acme_answers", "neither a row nor has PROVIDER"),
    "with another row": (FILES, "acme = acme_answers:__name__", "it is a str"),
    "under another name": (FILES, "acme = streamnorm.providers.ollama", "its row is 'ollama'"),
    "with an unknown field": (
        {"__init__.py": FILES["__init__.py"].replace("title=", "tittle=")}, "acme = acme_answers",
        "Unexpected keyword argument 'tittle'",
    ),
}  # fmt: skip


def broken_lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if "provider.broken" in r.getMessage()]


@pytest.mark.parametrize("which", BROKEN)
def test_a_package_breaks_nothing_and_says_why_when_it_is_asked_for(tmp_path, caplog, which):
    files, points, why = BROKEN[which]
    caplog.set_level(logging.WARNING, "streamnorm")
    with installed(tmp_path, files, points):
        assert list(PROVIDERS) == OURS
        pipe = Normalizer("auto")
        assert text_of(pipe.feed(HELLO)) == "Hi"
        assert by_address("https://api.openai.com/v1/responses").name == "openai_responses"
        assert by_module("anthropic.types") is PROVIDERS["anthropic"]
        for ask in (Normalizer, provider, provider_row):
            with pytest.raises(UnknownProvider) as raised:
                ask("acme")
            what = points.removeprefix("acme = ")
            said = f"no provider 'acme'; {what} of acme-answers cannot be used: "
            assert str(raised.value).startswith(said)
            assert why in str(raised.value)
    assert len(broken_lines(caplog)) == 1


def test_nobody_takes_the_place_of_ours(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "streamnorm")
    with installed(tmp_path, FILES, "anthropic = acme_answers"):
        assert list(PROVIDERS) == OURS
        assert provider_row("anthropic").title == "Anthropic Messages"
    (line,) = broken_lines(caplog)
    assert "there is a provider 'anthropic' already" in line


def test_a_row_object_is_as_good_as_its_module(tmp_path):
    with installed(tmp_path, FILES, "acme = acme_answers:PROVIDER"):
        assert list(PROVIDERS) == [*OURS, "acme"]


def test_a_parser_that_fails_is_left_out_of_auto_and_explained_by_name(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "streamnorm")
    with installed(tmp_path, FILES | {"parser.py": "import no_such_library"}):
        assert len(parsers_of("auto")) == len(parsers_of("auto")) == len(OURS) + len(PROGRAMS)
        assert list(PROVIDERS) == OURS
        with pytest.raises(
            UsageError, match=r"acme_answers\.parser fails with ModuleNotFoundError"
        ):
            Normalizer("acme")
    assert len(broken_lines(caplog)) == 1


def test_messages_that_fail_do_not_hinder_others(tmp_path):
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    with installed(tmp_path, FILES | {"messages.py": "1 / 0"}):
        assert repair("auto", body).body is body
        assert Normalizer("acme").provider == "acme"
        with pytest.raises(
            UsageError, match=r"acme_answers\.messages fails with ZeroDivisionError"
        ):
            repair("acme", body)


def test_another_module_that_fails_is_explained_when_it_is_used(tmp_path):
    with installed(tmp_path, FILES | {"script.py": "1 / 0"}):
        assert Normalizer("acme").provider == "acme"
        with pytest.raises(UsageError, match=r"acme_answers\.script fails with ZeroDivisionError"):
            script(say("Hi")).bytes("acme")


def test_what_a_row_does_not_name_cannot_be_done(tmp_path):
    row = FILES["__init__.py"].replace('script=f"{__name__}.script",', "")
    with installed(tmp_path, FILES | {"__init__.py": row}):
        assert PROVIDERS["acme"].can == ("read", "write", "repair", "serve", "connect", "tools")
        with pytest.raises(
            UsageError, match="acme cannot script; it can read, write, repair, serve"
        ):
            script(say("Hi")).bytes("acme")


def test_importing_streamnorm_and_reading_by_name_look_for_no_package(tmp_path):
    code = (
        "import sys, streamnorm; pipe = streamnorm.Normalizer('anthropic');"
        "pipe.feed(b'data: {}\\n\\n'); print('importlib.metadata' in sys.modules);"
        "print('acme_answers' in sys.modules); list(streamnorm.PROVIDERS);"
        "print('acme_answers' in sys.modules)"
    )
    with installed(tmp_path, FILES):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
    assert done.stdout.split() == ["False", "False", "True"]
