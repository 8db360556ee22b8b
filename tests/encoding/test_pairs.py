"""Who answers which call: one decision, one policy, one default."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import ToolLoop, mend, repair, to_messages
from streamnorm.cli import main
from streamnorm.encoding.pairs import NO_CALL, SECOND, Asked, Given, paired
from streamnorm.wire import Wire


def test_a_result_answers_the_call_of_its_id():
    asked = [Asked(0, "a", "f"), Asked(0, "b", "f")]
    assert paired(asked, [Given(1, 0, "b", None), Given(1, 0, "a", None)]).answers == [1, 0]


def test_a_result_answers_the_latest_call_of_its_id_before_it():
    asked = [Asked(0, "a", "f"), Asked(2, "a", "f"), Asked(4, "a", "f")]
    assert paired(asked, [Given(3, 2, "a", None)]).answers == [None, 0, None]


def test_calls_of_one_id_in_one_place_are_answered_in_order():
    asked = [Asked(0, "a", "f"), Asked(0, "a", "f")]
    assert paired(asked, [Given(1, 0, "a", None), Given(2, 0, "a", None)]).answers == [0, 1]


def test_a_result_that_does_not_fit_the_latest_call_is_for_an_earlier_one():
    asked = [Asked(0, "a", "f"), Asked(2, "a", "f")]
    found = paired(asked, [Given(3, 2, "a", None)], fits=lambda call, result: call == 0)
    assert found.answers == [0, None]


def test_a_result_before_its_call_and_one_for_nobody_are_strays():
    found = paired([Asked(1, "a", "f")], [Given(0, -1, "a", None), Given(2, 1, "x", None)])
    assert found == ([None], {0: NO_CALL, 1: NO_CALL})


def test_a_second_result_is_a_stray():
    found = paired([Asked(0, "a", "f")], [Given(1, 0, "a", None), Given(1, 0, "a", None)])
    assert found == ([0], {1: SECOND})


def test_without_ids_results_answer_by_name_and_then_by_place():
    asked = [Asked(0, None, "f"), Asked(0, None, "g"), Asked(0, None, "f")]
    given = [Given(1, 0, None, "g"), Given(1, 0, None, None), Given(1, 0, None, "f")]
    assert paired(asked, given).answers == [2, 0, 1]


def test_an_id_counts_before_a_place():
    asked = [Asked(0, None, "f"), Asked(0, "b", "f")]
    assert paired(asked, [Given(1, 0, "b", None), Given(1, 0, None, None)]).answers == [1, 0]


def test_a_result_with_another_id_answers_no_call_that_has_one():
    assert paired([Asked(0, "a", "f")], [Given(1, 0, "b", "f")]).answers == [None]


def test_without_an_id_only_the_turn_before_is_meant():
    asked = [Asked(0, None, "f")]
    assert paired(asked, [Given(2, 1, None, "f")]).answers == [None]
    assert paired(asked, [Given(1, 0, None, "f")], by_place=False).answers == [None]


ids = st.sampled_from(["a", "b", None])


@given(
    st.lists(
        st.one_of(
            st.lists(st.tuples(ids, st.sampled_from("fg")), min_size=1, max_size=3),
            st.tuples(ids, st.sampled_from(["f", "g", None])),
        ),
        max_size=12,
    )
)
def test_every_result_answers_one_call_before_it_or_is_a_stray(said):
    asked, given_, after = [], [], -1
    for place, one in enumerate(said):
        if isinstance(one, list):
            after = place
            asked += [Asked(place, *call) for call in one]
        else:
            given_.append(Given(place, after, *one))
    answers, strays = paired(asked, given_)
    used = [n for n in answers if n is not None]
    assert sorted([*used, *strays]) == list(range(len(given_)))
    for call, number in zip(asked, answers, strict=True):
        if number is not None:
            result = given_[number]
            assert call.place < result.place
            by_id = call.id and call.id == result.id
            by_place = not (call.id and result.id) and result.after == call.place
            assert by_id or by_place
    for number in strays:  # nobody that it could answer is left
        result = given_[number]
        assert not any(
            answer is None and call.id and call.id == result.id and call.place == result.after
            for call, answer in zip(asked, answers, strict=True)
        )


@pytest.mark.parametrize("entry", [mend, repair, to_messages, Wire.prepare, ToolLoop])
def test_every_way_in_has_the_same_policy_and_the_same_default(entry):
    assert inspect.signature(entry).parameters["orphans"].default == "error"


def test_the_command_has_it_too(tmp_path, capsys):
    file = tmp_path / "session.json"
    file.write_text('{"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}')
    assert main(["repair", str(file), "--check"]) == 3
    assert "entry 0: closed" in capsys.readouterr().err


def test_the_command_refuses_what_is_no_json_number(tmp_path, capsys):
    file = tmp_path / "session.json"
    file.write_text(
        '{"top_p": NaN, "messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}'
    )
    assert main(["repair", str(file)]) == 2
    assert "is no JSON: NaN is no number of JSON" in capsys.readouterr().err
