"""streamnorm.text.shown: nothing that commands a terminal or hides itself is shown as it is."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.text.shown import clean, display_width, escape_json, shorten

# Format characters that are drawn: signs over Arabic, Syriac and Kaithi numbers.
DRAWN = set(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
COMMANDING = {"Cc", "Cf", "Cs", "Zl", "Zp"}

any_text = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("naïve 日本 👍 ❤️", "naïve 日本 👍 ❤️"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\x00b\x7fc", r"a\x00b\x7fc"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("abc\u202edcba", r"abc\u202edcba"),
        ("\u2066x\u2069\u200e\u200f\u061c", r"\u2066x\u2069\u200e\u200f\u061c"),
        ("one\u2028two\u2029three", r"one\u2028two\u2029three"),
        ("zero\u200bwidth\ufeff\u2060", r"zero\u200bwidth\ufeff\u2060"),
        ("tag\U000e0041\U000e007f", r"tag\U000e0041\U000e007f"),
        ("half\ud83d", r"half\ud83d"),
    ],
)
def test_commanding_and_hidden_characters_are_written_as_escapes(text, shown):
    assert clean(text) == shown


def test_line_feeds_and_tabs_stay_when_lines_are_wanted():
    assert clean("a\n\tb\r\x0b\x1b", newlines=True) == "a\n\tb\\r\\x0b\\x1b"


def test_plain_text_comes_back_as_the_same_object():
    text = "nothing to see here, " * 1000
    assert clean(text) is text


@pytest.mark.parametrize("newlines", [False, True])
def test_every_commanding_character_of_unicode_is_escaped(newlines):
    kept = DRAWN | ({"\n", "\t"} if newlines else set())
    loose = {
        char
        for char in map(chr, range(0x110000))
        if unicodedata.category(char) in COMMANDING and clean(char, newlines=newlines) == char
    }
    assert loose == kept


@given(any_text)
def test_cleaned_text_is_one_line_that_any_terminal_can_encode(text):
    shown = clean(text)
    shown.encode()
    assert len(shown.splitlines()) <= 1
    assert clean(shown) == shown


@given(any_text)
def test_escaping_json_changes_no_value(text):
    line = escape_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(line) == {"text": text}
    assert clean(line) == line


def test_an_astral_character_is_escaped_as_a_pair_in_json():
    assert escape_json('"\U000e0041\x7f"') == r'"\udb40\udc41\u007f"'


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("short", 5, "short"),
        ("a long sentence", 7, "a long…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
        ("", 0, ""),
    ],
)
def test_text_is_shortened_by_the_columns_it_takes(text, width, shown):
    assert shorten(text, width) == shown


@given(st.text(), st.integers(0, 20))
def test_shortened_text_never_takes_more_columns_than_asked(text, width):
    assert display_width(shorten(clean(text), width)) <= width
