"""What is looked at before a release: lowest versions, Pythons, links, and the table that is built."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.conftest import ROOT
from tools.lowest import lowest
from tools.pythons import VERSIONS, project, pythons
from tools.release import FREE, STEPS, relative_links


def test_the_lowest_versions_are_those_of_all_extras_that_users_install():
    table = {
        "name": "ours",
        "dependencies": ["one>=1.2", "Two[a,b]>=3", "none"],
        "optional-dependencies": {
            "x": ["three>=4.0,<5", "one>=1.10", "ours[y]", "four >= 2 ; python_version<'4'"],
            "dev": ["five>=9"],
        },
    }
    assert lowest(table) == {"one": "1.10", "two": "3", "three": "4.0", "four": "2"}


def test_every_dependency_has_a_lowest_version():
    table = project()
    extras: Any = table["optional-dependencies"]
    lists: Any = [table["dependencies"], *extras.values()]
    wanted = [one for some in lists for one in some]
    bare = [one for one in wanted if ">=" not in one and not one.startswith("streamnorm[")]
    assert bare == []
    assert {"httpx", "msgspec", "psycopg", "redis", "starlette"} <= set(lowest())


def test_this_python_is_found():
    assert set(pythons()) <= set(VERSIONS)
    assert f"Programming Language :: Python :: {VERSIONS[0]}" in project()["classifiers"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[a](docs/a.md)", ["docs/a.md"]),
        ("![a](docs/img/a.png) [b](https://x.y) [c](#c) [d](mailto:a@b)", ["docs/img/a.png"]),
        ("```\n[a](docs/a.md)\n```", []),
    ],
)
def test_links_that_lead_nowhere_from_elsewhere_are_found(text: str, links: list[str]):
    assert relative_links(text) == links


def test_the_readme_of_an_index_has_absolute_links_and_pictures():
    """The substitutions of the build, as it makes them."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]
    text = (ROOT / "README.md").read_text()
    assert len(relative_links(text)) > 10
    for one in tool["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    assert relative_links(text) == []
    assert (
        "](https://raw.githubusercontent.com/streamnorm/streamnorm/main/docs/img/page.png)" in text
    )


def test_every_step_says_what_it_does():
    assert all(step.__doc__ for step in STEPS.values())
    assert next(iter(STEPS)) == "build"
    assert "MIT" in FREE


def test_the_threats_of_the_security_page_name_promises_that_there_are():
    from tests.promises.rows import PROMISES

    page = (ROOT / "SECURITY.md").read_text()
    named = set(re.findall(r"\b[A-J]\d\b", page))
    assert len(named) > 25
    assert named <= {promise.id for promise in PROMISES}
