"""The promises: what holds, which tests show it, what others do with the same.

Rule: a test that is named here exists (``test_promises.py``), and a promise has a patch that takes its
protection away, at which one of them turns red (``tests/sabotage``). ``docs/promises.md`` is made of this.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GROUPS", "PROMISES", "Promise"]

GROUPS = {
    "A": "Framing",
    "B": "Cut streams, and when a call is whole",
    "C": "Calls and their ids",
    "D": "Values of arguments",
    "E": "Limits",
    "F": "The life of a stream",
    "G": "Histories",
    "H": "Streams for pages",
    "I": "Recordings",
    "J": "What is shown",
}


class Promise(NamedTuple):
    """``tests``: files and names, those of a file behind its path. ``peers``: the same elsewhere."""

    id: str
    says: str
    tests: str
    peers: str = ""

    @property
    def nodes(self) -> list[str]:
        """The tests, each with its file."""
        found, file = [], ""
        for word in self.tests.split():
            if word.endswith(".py"):
                file = f"tests/{word}"
            else:
                found.append(f"{file}::{word}")
        return found


PROMISES = (
    Promise(
        "A1", "Any chunking of the same bytes gives the same events.",
        """pipe/test_laws.py test_any_chunking_of_any_take_gives_the_same_events
        framing/test_sse.py test_any_chunking_gives_the_same_blocks_and_rest
        test_every_cut_into_two_gives_the_same_blocks""",
        "the decoder of two SDKs gave other text in other chunks in 19 of 20,000 streams",
    ),
    Promise(
        "A2", "Server-sent events are read by the WHATWG specification: one byte order mark, any line "
        "ends, always UTF-8, nothing dispatched without data.",
        """framing/test_sse.py test_a_body_dispatches_what_the_specification_says
        test_any_body_in_any_chunking_dispatches_what_the_reference_does
        test_a_byte_order_mark_cut_in_three_is_dropped
        pipe/test_laws.py test_a_frame_is_read_by_the_specification_whatever_stood_before_it""",
        "of random streams httpx-sse read 10 % otherwise, httpx2 12 %, the SDKs 31 %",
    ),
    Promise(
        "A3", "No exception but ours, whatever the bytes are; while a stream is read there is none at all: "
        "`Failed` is an event.",
        """pipe/test_laws.py test_any_bytes_end_in_one_end_and_raise_nothing
        test_any_data_ends_in_one_end_and_raises_nothing test_a_take_with_any_value_changed_raises_nothing
        test_a_take_with_any_bytes_changed_raises_nothing
        pipe/test_bad_input.py test_json_of_any_depth_in_a_payload_never_crashes
        test_bytes_that_are_not_utf_8_never_raise_wherever_they_stand""",
        "SDKs raise AttributeError, IndexError, TypeError, AssertionError, KeyError, RecursionError",
    ),
    Promise(
        "A4", "Comments, unknown events, types and fields never change a call; each is told or counted.",
        """pipe/test_laws.py test_a_comment_anywhere_changes_nothing_and_is_counted
        test_an_unknown_event_anywhere_never_changes_the_calls_and_is_told
        test_unknown_fields_in_known_payloads_never_change_the_calls
        providers/test_bad_wires.py test_a_payload_of_a_kind_that_nobody_knows_is_passed_on_wherever_it_comes""",
        "comments end in an `AssertionError` of one SDK and lose all calls in a framework",
    ),
    Promise(
        "B1", "Wherever a stream is cut, with or without a broken connection, no `ToolCall` is told whose "
        "arguments were not complete on the wire, and its text is that of the whole stream.",
        """pipe/test_laws.py test_every_cut_gives_no_wrong_call_and_one_end
        test_every_cut_tells_what_the_whole_tells_up_to_there
        test_no_cut_of_any_interleaving_gives_a_wrong_call
        core/test_calls.py test_parsable_is_not_finished
        test_a_whole_object_that_was_not_closed_does_not_count_by_another_end
        core/test_evidence.py test_a_call_without_text_that_was_never_closed_is_broken_where_calls_are_closed""",
        "clean cuts: wrong arguments, or calls missing without a word, in most SDKs and frameworks (table below)",
    ),
    Promise(
        "B2", "Each stream has exactly one terminal event, `Finish` or `Failed`, and it is the last one; each "
        "call that was started ends once.",
        """pipe/test_laws.py test_every_cut_gives_no_wrong_call_and_one_end
        pipe/test_bad_input.py test_closing_twice_and_feeding_after_the_close_is_calm
        test_whatever_follows_the_end_is_counted_and_not_told
        core/test_calls.py test_whatever_is_said_each_started_call_ends_once""",
        "one framework invents `stop`; an SDK returns `stop_reason=None`",
    ),
    Promise(
        "B3", "A failure has one of our reasons (truncated, transport, provider_error, limit, idle, cancelled, "
        "protocol), and an error that came inside of a stream the provider's own code and whether it may be "
        "tried again.",
        """providers/test_endings.py test_a_failure_before_the_end_mark_fails_the_turn_and_its_calls
        pipe/test_bad_input.py test_an_error_in_the_stream_is_the_providers_with_its_code
        edge/test_stream.py test_every_failure_has_an_exception""",
        "an SDK raises an error whose status is 200; another hands the error on as an ordinary event",
    ),
    Promise(
        "B4", "The length limit, or an early `[DONE]`, inside of arguments never gives `{}` nor a whole call.",
        """pipe/test_laws.py test_an_early_end_of_the_turn_never_gives_arguments_that_were_not_sent
        core/test_calls.py test_end_of_another_turn_never_invents_arguments
        core/test_evidence.py test_no_empty_object_is_invented_once_anything_was_lost""",
        "an SDK and a framework tell `{}`",
    ),
    Promise(
        "B5", "One event that is no JSON fails the stream; with `on_bad_event=\"skip\"` it breaks the calls that "
        "were open.",
        """pipe/test_bad_input.py test_an_event_that_is_not_json_fails_the_stream_and_keeps_what_was_heard
        test_a_bad_event_can_be_skipped_and_breaks_the_calls_that_were_open
        providers/test_bad_wires.py test_an_event_that_is_no_json_can_be_skipped_and_breaks_only_what_was_open""",
        "a framework swallows it and loses a call",
    ),
    Promise(
        "B6", "However a stream is damaged, no call is told that neither it nor the conversation says.",
        """proof/test_mutants.py test_no_mutant_makes_the_engine_tell_what_nobody_said
        proof/test_finds.py test_nothing_is_told_that_the_plain_reader_does_not_find""",
        "wrong calls in 1 to 12 % of mutants, in 64 % with one framework",
    ),
    Promise(
        "B7", "What is shown of a call before it is whole is no value that can be run, copied or answered.",
        """ui/test_preview.py test_nothing_takes_a_preview_for_arguments
        test_no_result_can_be_given_to_a_preview test_a_preview_is_no_mapping_and_no_list""",
        "a partial parser makes `12` of `120000`",
    ),
    Promise(
        "C1", "Calls may be interleaved in any way, up to 128 at once: they stay the same.",
        """pipe/test_laws.py test_any_interleaving_gives_the_same_calls
        test_a_hundred_and_twenty_eight_calls_at_once_are_kept_apart""",
        "one framework shuffles the texts of two calls; one SDK raises",
    ),
    Promise(
        "C2", "Servers without an index, with index 0 for all, with ids on every piece: the right calls, or a "
        "broken one; calls are never merged.",
        "providers/test_quirks.py test_a_quirk_gives_what_its_row_says",
        "all four merge calls where every index is 0",
    ),
    Promise(
        "C3", "Ids are unique within a turn: a repeated one gives way to a minted one, with a note; the same id "
        "in another turn is another call.",
        """core/test_calls.py test_a_duplicate_id_is_made_distinct_and_the_wires_is_kept
        history/test_history.py test_an_id_that_is_used_again_is_another_call""",
        "nobody notices",
    ),
    Promise(
        "C4", "Nothing that comes late changes a call that was told: it makes the open ones doubtful.",
        """core/test_calls.py test_append_after_the_close_is_late_and_adds_nothing
        test_settle_after_the_end_is_compared_and_changes_nothing
        core/test_evidence.py test_text_for_a_call_that_was_told_taints_the_open_ones""",
        "a framework appends it to the finished arguments",
    ),
    Promise(
        "C5", "Minted ids have 132 bits of a secret of the system's generator; a replay mints the same ones.",
        """core/test_mint.py test_an_id_fits_every_wire_and_has_enough_bits
        test_two_streams_without_a_seed_have_nothing_in_common test_two_processes_have_nothing_in_common
        test_the_stand_in_is_what_a_recording_needs_and_mints_the_same_again
        test_the_library_has_no_weak_source_of_ids""",
        "uuid4: random, and another one at each replay",
    ),
    Promise(
        "C6", "A result is bound to its call: one for a call that the conversation does not have is refused.",
        """encoding/test_encode_pairing.py test_a_result_for_an_unknown_call_is_refused
        test_a_result_of_another_call_with_the_same_id_is_refused
        test_two_results_for_one_call_are_refused
        history/test_history.py test_a_result_for_another_conversations_call_is_refused""",
    ),
    Promise(
        "C7", "An id that a wire does not take is rewritten for it, always the same way, two never to one, for "
        "call and result alike.",
        """encoding/test_ids.py test_foreign_ids_become_legal_and_stay_apart
        test_a_rewritten_id_is_the_same_one_as_ever test_rewritten_ids_stay_apart_in_one_turn_and_between_turns
        encoding/test_encode_pairing.py test_calls_and_results_pair_on_every_wire""",
        "known failures in several gateways",
    ),
    Promise(
        "D1", "`raw` is the argument text of the wire, character by character.",
        """core/test_calls.py test_any_fragmentation_of_any_text_gives_its_value
        pipe/test_laws.py test_any_interleaving_gives_the_same_calls""",
    ),
    Promise(
        "D2", "`arguments` is exact: big integers stay integers; NaN, infinities, a key said twice, 128 levels "
        "and more, half characters and what is no object break that call alone.",
        """text/test_exact.py test_json_is_read_exactly test_what_is_not_exact_json_is_refused_with_a_reason
        test_big_integers_keep_every_digit test_any_text_is_judged_as_by_a_strict_reader
        test_a_key_said_twice_is_always_found
        pipe/test_bad_input.py test_arguments_of_any_depth_break_their_call_and_no_other""",
        "2**64 becomes a float, NaN goes to the tool, of two keys the last one wins",
    ),
    Promise(
        "D3", "A character that was cut into two pieces is one character again, and all that is told can be "
        "encoded.",
        """text/test_halves.py test_a_pair_split_over_argument_fragments_is_one_character
        test_everything_told_can_be_encoded test_any_cut_of_any_text_gives_what_the_uncut_text_gives""",
        "all hand on text that cannot be encoded, or raise",
    ),
    Promise(
        "E1", "Each limit ends the stream as `Failed(\"limit\")` at the same byte or frame in any chunking, and "
        "closes the connection.",
        """pipe/test_limits.py test_the_size_of_a_frame test_the_arguments_of_one_call
        test_the_arguments_of_all_calls test_the_number_of_calls test_the_number_of_frames
        test_the_bytes_of_the_stream test_names_and_ids test_the_defaults_are_those_promised
        edge/test_stream.py test_a_limit_ends_the_stream_and_closes_the_connection""",
        "no limit in two SDKs and httpx-sse",
    ),
    Promise(
        "E2", "No input needs more memory than its limits allow.",
        """pipe/test_memory.py test_no_input_needs_more_memory_than_its_limits_allow
        pipe/test_limits.py test_an_endless_event_is_not_kept_beyond_its_limit
        framing/test_sse.py test_an_endless_line_is_given_up_and_not_kept
        edge/test_stream.py test_memory_does_not_grow_with_the_stream""",
        "262 MB for one event of 50 MB",
    ),
    Promise(
        "E3", "Time is linear in the bytes, however odd they are.",
        "pipe/test_growth.py test_much_more_takes_as_much_longer",
        "the SDK decoders are quadratic: 0.5, 1.6, 5.2 s for 8, 16, 32 MB",
    ),
    Promise(
        "E4", "What is unpacked is bounded while it is unpacked, and nothing is unpacked twice.",
        """framing/test_inflate.py test_a_bomb_ends_at_the_ratio_and_no_piece_of_it_is_large
        test_a_body_that_is_packed_twice_is_refused
        edge/test_packed.py test_no_bomb_needs_more_memory_than_48_mib_whatever_client_reads_it
        edge/test_stream.py test_a_body_that_unpacks_to_a_thousand_times_its_size_is_refused""",
        "both SDKs unpack all of a bomb",
    ),
    Promise(
        "F1", "Cancelled, closed, left or failed in the reader's code: what a stream wraps is closed, and no "
        "task, socket or warning is left.",
        """edge/test_stream.py test_leaving_the_scope_closes test_an_exception_of_the_reader_closes
        test_cancelling_closes_and_goes_on_upwards test_cancelling_a_task_closes
        pipe/test_lifecycle.py test_five_hundred_cycles_leave_nothing_open""",
    ),
    Promise(
        "F2", "A stream that is dropped is closed at once, with a `ResourceWarning`; it is in no reference cycle.",
        """edge/test_stream.py test_dropping_closes_and_warns test_a_stream_is_in_no_reference_cycle
        pipe/test_lifecycle.py test_what_is_dropped_is_closed_within_a_second""",
        "two stay open until a garbage collection",
    ),
    Promise(
        "F3", "A reader that stops stops the wire; a recorder that cannot write never slows or breaks a stream.",
        """edge/test_stream.py test_a_reader_that_stops_stops_the_wire test_nothing_is_read_before_it_is_asked_for
        takes/test_recorder.py test_a_full_disk_ends_the_recording_and_not_the_stream""",
    ),
    Promise(
        "F4", "Idle time counts events: keep-alives do not reset it, and a slow reader does not run it.",
        """edge/test_stream.py test_keep_alives_do_not_hold_the_idle_timer
        test_a_slow_reader_does_not_run_the_idle_timer test_an_idle_connection_is_closed""",
        "a drip of comments holds every peer for ever",
    ),
    Promise(
        "F5", "No scope or task group is open while the reader has control; another task may close a stream.",
        """edge/test_stream.py test_another_task_may_close_and_the_reader_hears_it
        test_opening_and_closing_in_different_tasks_is_safe test_two_readers_are_told_what_to_do_instead""",
    ),
    Promise(
        "F6", "The same events from responses of httpx, httpx2, aiohttp and urllib, from SDK objects and plain "
        "bytes.",
        """edge/test_sources.py test_every_take_gives_the_same_events_from_a_response
        test_every_take_gives_the_same_events_from_an_iterable""",
    ),
    Promise(
        "G1", "What was acknowledged survives `kill -9` at any moment, and no commit is half there.",
        """history/test_history_crash.py
        test_per_run_a_crash_at_any_moment_of_any_step_leaves_all_of_the_run_or_nothing
        test_per_call_a_crash_at_any_moment_of_any_step_leaves_what_the_service_has_seen
        test_killed_at_random_nothing_acknowledged_is_lost_and_nothing_is_half""",
    ),
    Promise(
        "G2", "Per run: all of a run or nothing. Per call: after each answer the history is what the service saw.",
        """history/test_keeping_crash.py test_per_run_a_run_that_dies_leaves_nothing_and_one_that_ended_all
        test_per_call_what_the_service_has_seen_is_there""",
    ),
    Promise(
        "G3", "A call without a result is answered neutrally (\"result unavailable; may or may not have run\") and "
        "told; stored rows stay as they are.",
        """encoding/test_encode_pairing.py test_a_call_without_a_result_is_answered_neutrally_and_told
        encoding/test_repair.py test_an_orphan_is_closed_neutrally test_any_history_can_be_sent_to_any_provider
        history/test_history.py test_each_call_is_answered_settled_or_unresolved""",
        "sessions that are stuck for ever, in six programs that we know of",
    ),
    Promise(
        "G4", "A commit that is sent again is stored once.",
        """history/test_history.py test_a_commit_sent_again_is_stored_once
        test_a_cancelled_commit_is_stored_whole_or_not_at_all_and_can_be_sent_again""",
    ),
    Promise(
        "G5", "The same bytes come back: NUL, half characters, big integers, the order of keys.",
        "history/test_history.py test_bytes_come_back_exactly test_any_turn_comes_back",
    ),
    Promise(
        "G6", "Eight processes may write one file: nobody hears that it is locked, and nothing is missing.",
        """history/test_history_crash.py test_eight_processes_write_one_store_without_gaps
        history/test_history.py test_a_commit_that_reads_first_keeps_others_from_writing_in_between""",
    ),
    Promise(
        "G7", "A full disk, a file that can only be read, a damaged page: an error with a name, and earlier turns "
        "can be read.",
        """history/test_history.py test_a_flipped_bit_is_found_by_the_digest
        test_a_damaged_page_has_a_name_and_earlier_turns_are_readable
        test_a_disk_that_takes_no_more_has_a_name_and_earlier_turns_are_readable
        test_a_file_that_may_only_be_read_is_read""",
    ),
    Promise(
        "G8", "A history waits for the disk at each commit, and its settings can be read back.",
        "history/test_history.py test_a_file_is_durable_by_default",
    ),
    Promise(
        "H1", "Whoever comes back after a position gets exactly what follows it.",
        """ui/test_event_log.py test_every_position_gives_exactly_the_rest
        test_a_reader_that_leaves_at_any_point_misses_nothing
        ui/test_router.py test_after_any_position_comes_exactly_the_rest
        ui/test_client.py test_a_cut_after_any_byte_loses_and_doubles_nothing""",
        "positions that count characters, over a channel that forgets",
    ),
    Promise(
        "H2", "A position that is not kept, or never was, is told: `Gap` with what is there, or `Gone`.",
        """ui/test_event_log.py test_a_trimmed_position_is_a_gap test_a_position_that_never_was_is_a_gap
        test_an_expired_stream_is_gone""",
        "Redis skips 189 entries without a word",
    ),
    Promise(
        "H3", "A producer that died is told within its lease; nobody waits for ever.",
        "ui/test_event_log.py test_a_producer_without_a_lease_is_lost test_kill_9_of_the_producer",
    ),
    Promise(
        "H4", "The id of a stream cannot be guessed (256 bits); for anybody but its owner it is as gone as none.",
        """ui/test_event_log.py test_somebody_elses_stream_is_as_gone_as_none test_stream_ids_cannot_be_guessed
        ui/test_router.py test_the_owner_check_must_be_given test_somebody_else_hears_what_nobody_hears""",
    ),
    Promise(
        "H5", "An append whose answer was lost can be repeated: nothing is doubled.",
        """ui/test_event_log.py test_the_same_append_again_changes_nothing
        test_any_batches_with_any_repeats_read_the_same""",
    ),
    Promise(
        "I1", "No secret of a request is in a take, a log, an exception or a repr, however it is written or cut.",
        """takes/test_recorder.py test_no_canary_is_found_wherever_it_was_planted
        takes/test_redact.py test_no_canary_is_found_in_any_encoding_byte_by_byte
        edge/test_stream.py test_a_refusal_does_not_show_the_key""",
        "URLs with keys in logs and error texts",
    ),
    Promise(
        "I2", "Headers are kept by a list; of all others the name and the length.",
        "takes/test_redact.py test_headers_are_kept_by_an_allow_list_and_others_by_name_and_length",
    ),
    Promise(
        "I3", "A redacted take replays to the same events but for the letters.",
        """takes/test_recorder.py test_a_redacted_recording_replays_to_the_same_events_apart_from_the_letters
        takes/test_redact.py test_json_stays_json test_a_secret_over_several_lines_keeps_the_lines""",
    ),
    Promise(
        "I4", "A killed process leaves a readable beginning; a take is 0600, new, and no link is followed.",
        """takes/test_recorder.py test_a_killed_process_leaves_a_readable_beginning
        test_the_file_is_private_whatever_the_umask test_a_file_is_never_overwritten
        test_a_symbolic_link_is_not_followed""",
    ),
    Promise(
        "I5", "Names of takes are ours; a label is plain letters, and what a provider says forms no path.",
        """takes/test_recorder.py test_a_label_that_could_lead_elsewhere_is_refused
        test_what_a_provider_says_never_forms_a_path""",
    ),
    Promise(
        "J1", "No control, direction or line character of a wire reaches a log line or a terminal as it is.",
        """pipe/test_logging.py test_hostile_text_reaches_no_line_as_it_is
        test_any_text_of_the_wire_gives_one_clean_line_each
        cli/test_cli.py test_no_control_or_hidden_character_of_the_wire_reaches_the_terminal""",
        "two of four log renderers print ESC",
    ),
    Promise(
        "J2", "Log lines carry ids, sizes and kinds, never the values of arguments.",
        "pipe/test_logging.py test_argument_values_are_never_logged test_a_long_text_of_the_wire_is_cut",
    ),
    Promise(
        "J3", "A name that is none (`^[A-Za-z0-9_.:-]{1,128}$`) is told as such (`name_valid`), and the tool loop "
        "runs only what was declared under that very name.",
        """values/test_events.py test_a_name_that_no_tool_should_have_is_said_to_be_none
        core/test_guards.py test_names_are_looked_at_once_each
        agent/test_loop.py test_what_a_handler_raises_is_told_to_the_model""",
        "hand on an ANSI escape as the name",
    ),
    Promise(
        "J4", "What goes to pages is JSON without `<`, `>`, `&` and line separators, under `nosniff` and a policy "
        "without inline scripts.",
        """text/test_written.py test_each_character_that_a_page_would_take_for_its_own_is_escaped_alone
        test_safe_json_says_the_same_without_a_character_of_html_or_a_line_break
        page/test_page_app.py test_every_answer_says_how_it_may_be_used
        test_json_never_holds_what_html_would_take_for_its_own""",
    ),
)  # fmt: skip
