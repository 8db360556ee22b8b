"""Wire text in, text that is safe to show out.

Rule: no character that moves a cursor, starts an escape sequence, turns the reading direction,
ends a line or hides itself reaches a terminal or a log line as it is; each is shown as an escape.
Whatever was talked into the model's answer comes through here before a person reads it.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "display_width", "escape_json", "shorten", "words_of"]

# Everything invisible or commanding, by range. What a person needs to see emoji right
# (U+FE0E and U+FE0F) is left alone; joiners are not, since words can be hidden between them.
_UNSAFE = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: cursor, colours, clipboard, title
    "\u00ad\u034f\u061c\u180b-\u180f"  # soft hyphen, grapheme joiner, Arabic mark, Mongolian
    "\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # fillers and vowels drawn as nothing
    "\u200b-\u200f\u2028-\u202e"  # zero width, direction marks, line separators, bidi
    "\u2060-\u206f"  # invisible operators, bidi isolates, deprecated format
    "\ud800-\udfff"  # lone surrogates: no encoding has them
    "\ufe00-\ufe0d\ufeff\ufff0-\ufffb"  # variation selectors, BOM, annotation marks
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format of odd scripts
    "\U000e0000-\U000e0fff"  # tags and variation selectors: a whole hidden alphabet
)
_ANY = re.compile(f"[{_UNSAFE}]")
_BUT_LINES = re.compile(f"(?![\n\t])[{_UNSAFE}]")

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_BYTE, _BMP = 0x100, 0x10000
HALF = 120  # characters


def clean(text: str, *, newlines: bool = False) -> str:
    r"""``text`` with everything invisible or commanding written as an escape.

    With ``newlines=True`` line feeds and tabs stay what they are. Plain text costs one search and
    comes back as the same object.

    >>> clean("red: \x1b[31m and hidden: \u202e")
    'red: \\x1b[31m and hidden: \\u202e'
    >>> clean("two\nlines"), clean("two\nlines", newlines=True)
    ('two\\nlines', 'two\nlines')
    """
    unsafe = _BUT_LINES if newlines else _ANY
    if (text.isascii() and text.isprintable()) or unsafe.search(text) is None:
        return text
    return unsafe.sub(_visible, text)


def escape_json(line: str) -> str:
    r"""A line of JSON that says the same in safe characters.

    Control characters are escaped by any JSON writer; DEL, C1, bidi and the hidden ones are not.

    >>> escape_json('{"text":"\u202e"}')
    '{"text":"\\u202e"}'
    """
    return line if _ANY.search(line) is None else _ANY.sub(_json_escape, line)


def words_of(error: Exception) -> str:
    """What a library says of a text that it could not read, and may have put into its words: of those
    the beginning and, as the place is named there, the end.

    >>> words_of(ValueError("Invalid value '" + "x" * 1000 + "' - at `$.kind`"))[-20:]
    "xxxxx' - at `$.kind`"
    """
    words = clean(str(error))
    return words if len(words) <= 2 * HALF else f"{words[:HALF]}…{words[-HALF:]}"


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` terminal columns, ending in ``…`` if it was cut.

    Wide characters count as two columns, combining ones as none. Clean the text first.

    >>> shorten("a long sentence", 7), shorten("short", 7)
    ('a long…', 'short')
    """
    if len(text) <= width and text.isascii():
        return text
    if width < 1:
        return ""
    columns = fits = 0
    for position, char in enumerate(text):
        columns += _columns(char)
        if columns > width:
            return text[:fits] + "…"
        if columns < width:
            fits = position + 1
    return text


def display_width(text: str) -> int:
    """How many terminal columns ``text`` takes.

    >>> display_width("naïve"), display_width("日本")
    (5, 4)
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if char < "\u0300" or char == "\ufe0f":  # it makes the sign before it an emoji, which is wide
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _visible(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _BMP else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < _BMP:
        return f"\\u{code:04x}"
    high, low = divmod(code - _BMP, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
