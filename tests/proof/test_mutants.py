"""Damaged streams: nothing is told that neither the conversation nor the plain reader has.

A few thousand with a fixed seed, and some with a fresh one that a failure names. ``python -m
tests.proof.run`` makes as many as you like.
"""

from __future__ import annotations

import secrets

import pytest

from tests.proof.damage import BYTEWISE, FRAMEWISE
from tests.proof.readers import WIRES
from tests.proof.run import Figures, run_all

FRESH = secrets.token_hex(4)
FIXED_MUTANTS, FRESH_MUTANTS = 500, 10


def report(figures: Figures, seed: str) -> str:
    """What was found, and how to see it again."""
    finds = "\n\n".join(
        f"{f['kind']} after {f['operators']} (number {f['number']}, {f['options']}): "
        f"{f['sentence']}\n{f['text']}"
        for f in sorted(figures.kept, key=lambda f: len(f["text"]))[:3]
    )
    wire = next(iter(figures.wires), "")
    again = f"python -m tests.proof.run --seed {seed} --wire {wire} --mutants {figures.mutants}"
    return f"{dict(figures.finds)}; again: {again}\n\n{finds}"


def test_there_are_more_than_twenty_ways_to_damage_a_stream() -> None:
    assert len(FRAMEWISE) + len(BYTEWISE) > 20


@pytest.mark.parametrize("wire", WIRES)
def test_no_mutant_makes_the_engine_tell_what_nobody_said(wire: str) -> None:
    figures = run_all([wire], "fixed", FIXED_MUTANTS, jobs=1, quiet=True)
    assert figures.mutants == FIXED_MUTANTS
    assert not figures.finds, report(figures, "fixed")
    # where nothing is told nothing is wrong: what damage left whole must still be told
    told, missed = (figures.calls[wire, name] for name in ("told", "missed"))
    assert told > 0.4 * FIXED_MUTANTS
    assert missed < 0.5 * told


@pytest.mark.parametrize("wire", WIRES)
def test_no_fresh_mutant_makes_the_engine_tell_what_nobody_said(wire: str) -> None:
    figures = run_all([wire], FRESH, FRESH_MUTANTS, jobs=1, quiet=True)
    assert figures.mutants == FRESH_MUTANTS
    assert not figures.finds, report(figures, FRESH)
