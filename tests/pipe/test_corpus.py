"""Recorded streams of real servers, if STREAMNORM_CORPUS names a folder of them.

``expected.jsonl`` says of each stream what two independent readers agreed on; the rules of the
comparison are those of the scorer that comes with the corpus, in short form.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from streamnorm.events import Event
from streamnorm.providers import PROVIDERS
from tests.conftest import at_random, broken_of, calls_of, run, text_of

CORPUS = Path(os.environ.get("STREAMNORM_CORPUS") or "/nowhere")
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(
        not (CORPUS / "expected.jsonl").is_file() or not (CORPUS / "manifest.jsonl").is_file(),
        reason="STREAMNORM_CORPUS names no folder with expected.jsonl and manifest.jsonl",
    ),
]


def rows() -> dict[str, list[dict[str, Any]]]:
    """The undisputed streams by provider."""
    by_provider: dict[str, list[dict[str, Any]]] = defaultdict(list)
    path = CORPUS / "expected.jsonl"
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        row = json.loads(line)
        if row["trust"] in ("agreed", "adjudicated") and row["streamnorm_provider"] in PROVIDERS:
            by_provider[row["streamnorm_provider"]].append(row)
    return by_provider


ROWS = rows()
# A stream of thousands of events is cut in fewer places.
LONG = 150_000


# --- comparing ------------------------------------------------------------------------------------


def equal(a: Any, b: Any) -> bool:
    """1 is 1.0, but true is not 1; "*" stands for anything."""
    if a == "*":
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return (numbers or type(a) is type(b)) and a == b


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [leaf for v in inner for leaf in leaves(v)]
    return [] if value is None else [value]


def arguments_agree(wanted: dict[str, Any], call: Any) -> bool:
    mode = wanted.get("mode", "exact")
    if wanted["arguments"] == "*":
        return True
    if mode == "exact":
        return equal(wanted["arguments"], call.arguments)
    have = leaves(call.arguments)
    if mode == "text":
        return all(leaf in have or leaf == call.raw for leaf in leaves(wanted["arguments"]))
    return all(
        any(equal(leaf, h) for h in have)
        or str(leaf) in call.raw
        or json.dumps(leaf)[1:-1] in call.raw
        for leaf in leaves(wanted["arguments"])
    )


def bare(name: str | None) -> str:
    return re.sub(r"(_preview)?(_call)?$", "", (name or "").lower().replace("-", "_"))


def name_agrees(wanted: dict[str, Any], call: Any) -> bool:
    if call.name == wanted["name"]:
        return True
    if wanted.get("mode", "exact") == "exact" or wanted.get("type") == "custom_tool_call":
        return False
    return wanted.get("runs_on") == "provider" or bare(call.name) in (
        bare(wanted["name"]),
        bare(wanted.get("type")),
    )


def id_agrees(wanted: dict[str, Any], call: Any) -> bool:
    if wanted.get("id") is None:
        return call.provenance.id_source == "synthetic"
    natural = call.id == wanted["id"] or call.id in (wanted.get("id_any") or ())
    return natural and call.provenance.id_source != "synthetic"


def finishes_of(row: dict[str, Any], told: str) -> list[str]:
    """The reasons that are right; any is, where the expectation names none."""
    right = row.get("finish_any") or [row.get("finish") or told]
    return [*right, "other"] if "unknown" in right else right  # a word that nobody knows


def differences(row: dict[str, Any], events: list[Event]) -> list[str]:
    """What of this expectation is not so."""
    wrong: list[str] = []
    left = calls_of(events)
    for wanted in row["calls"]:
        fits = (
            c for c in left
            if name_agrees(wanted, c) and arguments_agree(wanted, c) and id_agrees(wanted, c)
        )  # fmt: skip
        call = next(fits, None)
        if call is None:
            wrong.append(
                f"no {wanted['name']}({json.dumps(wanted['arguments'])[:80]}) id {wanted.get('id')}"
            )
            continue
        left = [c for c in left if c is not call]
        if wanted.get("runs_on") not in (None, call.runs_on):
            wrong.append(f"{call.name} runs on {call.runs_on}")
    for wanted in row.get("optional_calls") or ():
        extra = next((c for c in left if c.id == wanted.get("id") or name_agrees(wanted, c)), None)
        left = [c for c in left if c is not extra]
    wrong += [f"extra {c.name}({c.raw[:80]}) id {c.id}" for c in left]
    if len(broken_of(events)) != row["n_broken"]:
        wrong.append(f"{len(broken_of(events))} broken calls, not {row['n_broken']}")
    last = events[-1]
    if last.kind not in (row.get("terminal_any") or [row["terminal"]]):
        wrong.append(f"ended {last}")
    elif last.kind == "finish" and last.reason not in finishes_of(row, last.reason):
        wrong.append(f"finished {last.reason}, not {row['finish']}")
    if not row.get("multi_choice"):
        digest = hashlib.sha256(text_of(events).encode()).hexdigest()
        if digest not in (row["text_sha256"], *(row.get("text_alt_sha256") or ())):
            wrong.append(
                f"another text, {len(text_of(events))} characters instead of {row['text_len']}"
            )
    return wrong


def said_by(row: dict[str, Any], events: list[Event]) -> list[str]:
    """The differences to the expectation, or to the alternative that comes closest."""
    candidates = [row, *({**row, **other} for other in row.get("alternatives") or ())]
    return min((differences(c, events) for c in candidates), key=len)


def keys(events: list[Event]) -> Counter[Any]:
    return Counter((c.choice, c.id, c.name, json.dumps(c.arguments)) for c in calls_of(events))


def cut_wrong(row: dict[str, Any], body: bytes, whole: list[Event]) -> list[str]:
    """Cuts that give a call which the whole stream lacks, or not one end."""
    wrong: list[str] = []
    provider, known = row["streamnorm_provider"], keys(whole)
    cuts = row.get("cuts") or []
    if len(body) > LONG:
        cuts = random.Random(row["path"]).sample(cuts, min(len(cuts), 8))
    soft, hard = row.get("marker_soft"), row.get("marker_hard")
    for cut in sorted(cuts):
        events = run(provider, [body[:cut]])
        ends = [i for i, e in enumerate(events) if e.kind in ("finish", "failed")]
        if ends != [len(events) - 1]:
            wrong.append(f"cut at {cut}: ends at {ends} of {len(events)}")
        if keys(events) - known:
            wrong.append(f"cut at {cut}: {list(keys(events) - known)}")
        if soft is not None and cut < soft and events[-1].kind != "failed":
            wrong.append(f"cut at {cut}, before the end mark at {soft}: {events[-1]}")
        if hard is not None and cut >= hard and events[-1].kind != whole[-1].kind:
            wrong.append(f"cut at {cut}, after the end mark at {hard}: {events[-1]}")
    return wrong


@pytest.mark.parametrize("provider", [name for name in PROVIDERS if ROWS[name]])
def test_recorded_streams_give_the_calls_text_and_end_that_were_agreed_on(provider: str):
    failures = []
    for row in ROWS[provider]:
        body = (CORPUS / row["path"]).read_bytes()
        whole = run(provider, [body])
        wrong = said_by(row, whole)
        for top in (97, 1500) if len(body) <= LONG else (1500, 9000):
            if run(provider, at_random(body, top, len(body))) != whole:
                wrong.append(f"other events in chunks of up to {top} bytes")
        wrong += cut_wrong(row, body, whole)
        failures += [f"{row['path']}: {w}" for w in wrong]
    assert not failures, f"{len(failures)} differences\n" + "\n".join(failures)
