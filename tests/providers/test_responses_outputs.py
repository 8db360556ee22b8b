"""providers.openai_responses.outputs: which output answers which call."""

from __future__ import annotations

from streamnorm.core.calls import Call, Calls
from streamnorm.core.mint import Mint
from streamnorm.events import Event, IdSource
from streamnorm.limits import Limits
from streamnorm.notes import Scribe
from streamnorm.providers.openai_responses.outputs import Outputs


class Desk:
    def __init__(self) -> None:
        self.calls = Calls(Scribe("openai_responses"), Mint("tests"), Limits())
        self.types: dict[int, str] = {}
        self.outputs = Outputs(self.calls, lambda call: self.types[call.ordinal])
        self.out: list[Event] = []

    def call(self, type_: str, id: str, source: IdSource) -> Call:
        call = self.calls.open(self.out, id=id, name="f", source=source)
        self.types[call.ordinal] = type_
        return call


def test_an_output_is_of_the_call_that_it_names():
    desk = Desk()
    first = desk.call("shell_call", "a", "natural")
    second = desk.call("shell_call", "b", "natural")
    assert desk.outputs.call_of("shell_call_output", "b") is second
    assert desk.outputs.call_of("shell_call_output", "a") is first


def test_an_output_that_names_none_is_of_the_first_of_its_type_that_has_no_id_of_its_own():
    desk = Desk()
    desk.call("program", "p", "conflated")
    first = desk.call("shell_call", "a", "conflated")
    second = desk.call("shell_call", "b", "conflated")
    assert desk.outputs.call_of("shell_call_output", None) is first
    assert (desk.outputs.answer(first), desk.outputs.answer(first)) == (True, False)
    assert desk.outputs.call_of("shell_call_output", "unknown") is second


def test_a_call_with_an_id_of_its_own_waits_for_an_output_that_names_it():
    desk = Desk()
    desk.call("shell_call", "a", "natural")
    assert desk.outputs.call_of("shell_call_output", None) is None
