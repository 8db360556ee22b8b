"""The floor plan holds: imports point upwards, ``_names`` stay at home, and so do providers' words.

The plan is the table in ``tools/rooms.py``; ``docs/architecture.md`` draws it.
"""

from __future__ import annotations

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.conftest import ROOT
from tools.rooms import LOADERS, TYPED, House

# Files that break a law today. An entry that is not needed any more must go.
KNOWN: dict[str, set[str]] = {
    "down": set(),
    "private": set(),
    "spelled": set(),
    "told": set(),
    "writes": set(),
}  # fmt: skip
LAWS = ["down", "private", "spelled", "told", "writes"]


@functools.cache
def the_house() -> House:
    return House()


def offences(house: House, law: str) -> dict[str, list[str]]:
    found = {m: sorted(getattr(house, law)(m)) for m in house.modules}
    return {m: [f"{m}:{line} {what}" for line, what in rows] for m, rows in found.items() if rows}


def test_every_file_has_its_place_in_the_plan_and_every_place_its_file():
    assert set(the_house().plan) == set(the_house().modules)


@pytest.mark.parametrize("law", LAWS)
def test_every_file_keeps_the_law(law: str):
    found = offences(the_house(), law)
    assert [row for m, rows in found.items() if m not in KNOWN[law] for row in rows] == []
    assert KNOWN[law] - set(found) == set(), "in order by now: off the list"


def test_the_tables_of_exceptions_name_modules_that_need_them():
    for module in LOADERS:
        computed = [
            c for c in the_house().importers(module) if not isinstance(c.args[0], ast.Constant)
        ]
        assert computed, f"{module or 'streamnorm'} imports by no computed name: off the list"
    for module in TYPED:
        assert "msgspec.json.encode" in the_house().text(module), f"{module}: off the list"


def test_providers_that_build_on_each_other_form_no_ring():
    assert set(TopologicalSorter(the_house().builds_on()).static_order()) == the_house().providers


# --- the laws can be broken -----------------------------------------------------------------------

# A file and what stands in it, the law that this breaks, and how that is told.
BROKEN = [
    ("text/exact.py", "from .shown import clean", "down", "1 imports text.shown"),
    ("text/exact.py", "def f():\n    from ..events import Event", "down", "2 imports events"),
    ("core/calls.py", "if T:\n    from streamnorm.edge import stream", "down", "2 imports edge.stream"),
    ("edge/stream.py", "import streamnorm.cli", "down", "1 imports cli"),
    ("normalizer.py", "from .edge import stream", "down", "1 imports edge.stream"),
    ("providers/acme/parser.py", "from .encoder import X", "down", "1 imports providers.acme.encoder"),
    ("edge/stream.py", "from ..core.calls import _end", "private", "1 imports core.calls._end"),
    ("edge/stream.py", "from ..core import calls\ncalls._end()", "private", "2 uses calls._end"),
    ("cli/serve.py", "from ..ui import _pace", "private", "1 imports ui._pace"),
    ("core/calls.py", "import_module('streamnorm.edge.stream')", "down", "1 imports edge.stream"),
    ("core/calls.py", "importlib.import_module('..events', __name__)\nimport_module('..cli', __name__)",
     "down", "2 imports cli"),
    ("core/calls.py", "import importlib as i\ni.import_module('streamnorm.cli')", "down", "2 imports cli"),
    ("core/calls.py", "from importlib import import_module as i\ni('streamnorm.cli')", "down",
     "2 imports cli"),
    ("core/calls.py", "def f():\n    __import__('streamnorm.cli')", "down", "2 imports cli"),
    ("core/calls.py", "import_module(name)", "down", "1 imports by a computed name: import_module(name)"),
    ("providers/__init__.py", "LATE = {'X': 'acme.parser'}\nY = 'detect'", "down",
     "2 imports providers.detect"),
    ("edge/stream.py", "getattr(calls, '_end', None)", "private", "1 uses calls._end"),
    ("edge/stream.py", "setattr(self.calls, '_end', 1)", "private", "1 uses self.calls._end"),
    ("edge/stream.py", "import json\njson.dumps(1)", "writes", "2 writes with json.dumps"),
    ("edge/stream.py", "from orjson import dumps", "writes", "1 writes with orjson.dumps"),
    ("edge/stream.py", "x = msgspec.json.encode", "writes", "1 writes with msgspec.json.encode"),
    ("edge/connect.py", "KEY = 'ACME_API_KEY'", "spelled", "1 spells 'ACME_API_KEY'"),
    ("edge/connect.py", "A = f'https://acme.example/{x}'", "spelled", "1 spells 'https://acme.example/'"),
    ("edge/connect.py", "A = {'toolThing': 1}", "spelled", "1 spells 'toolThing'"),
    ("edge/connect.py", "A = b'toolThing'", "spelled", "1 spells 'toolThing'"),
    ("edge/connect.py", "A = {'Tool-Version': 1}", "spelled", "1 spells 'Tool-Version'"),
    ("edge/connect.py", "def f():\n    import acme.types", "spelled", "2 imports acme.types"),
    ("edge/connect.py", "from boto3 import client", "spelled", "1 imports boto3"),
    ("edge/connect.py", "A = 'Claude'", "spelled", "1 spells 'Claude'"),
    ("providers/other/parser.py", "A = 'acme'", "spelled", "1 spells 'acme'"),
    ("edge/connect.py", "# as in content_block", "told", "1 tells 'content_block'"),
    ("providers/acme/parser.py", "toolUse = 1", "told", "1 tells 'toolUse'"),
]  # fmt: skip


def a_house(root, name: str, text: str) -> House:
    """A small one: a provider, and empty files in other rooms, one of which is given."""
    files = {
        "providers/acme/parser.py": "WORD = 'toolThing'\nHEADER = 'tool-version'",
        "providers/acme/encoder.py": "X = 1",
        "core/calls.py": "", "edge/stream.py": "", "events.py": "", "text/shown.py": "",
        "cli/__init__.py": "", "ui/_pace.py": "", "providers/detect.py": "",
    }  # fmt: skip
    for path, said in (files | {name: text}).items():
        (root / "streamnorm" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "streamnorm" / path).write_text(said)
    return House(root)


@pytest.mark.parametrize(("name", "text", "law", "told"), BROKEN)
def test_a_broken_law_is_told(tmp_path, name: str, text: str, law: str, told: str):
    house = a_house(tmp_path, name, text)
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert offences(house, law) == {module: [f"{module}:{told}"]}
    assert all(offences(house, other) == {} for other in LAWS if other != law)


def test_what_the_page_sends_to_a_browser_names_no_provider():
    names = re.compile("|".join(sorted({p.partition("_")[0] for p in the_house().providers})), re.I)
    files = [p for p in (ROOT / "streamnorm" / "page" / "static").iterdir() if p.suffix != ".png"]
    assert len(files) > 10
    assert [p.name for p in files if names.search(p.read_text())] == []


def test_a_ring_of_providers_is_found(tmp_path):
    a_house(tmp_path, "providers/other/parser.py", "from ..acme.parser import WORD")
    house = a_house(tmp_path, "providers/acme/encoder.py", "from ..other import parser")
    assert house.builds_on() == {"acme": {"other"}, "other": {"acme"}}
    with pytest.raises(CycleError):
        TopologicalSorter(house.builds_on()).prepare()


def test_every_room_says_first_what_comes_in_what_goes_out_and_its_rule():
    rooms = [
        p
        for p in (ROOT / "streamnorm").rglob("__init__.py")
        if (p.parent / "parser.py").exists() is False
    ]
    for path in rooms:
        said = ast.get_docstring(ast.parse(path.read_text())) or ""
        if path.parent.name not in ("streamnorm", "cli"):
            first = said.partition("Rule:")[0].lower()
            assert "Rule:" in said, path.parent.name
            assert {" in", " out"} <= {word for word in (" in", " out") if word in first}, path
