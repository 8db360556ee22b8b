"""Bytes that came as text: exact, or none."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.text.media import SIGNS, bytes_of, contents_of, is_web, type_of
from streamnorm.text.written import data_uri


@given(st.binary())
def test_base64_of_either_alphabet_padded_or_not_gives_the_bytes(data: bytes):
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(data).decode()
        assert bytes_of(text) == data
        assert bytes_of(text.rstrip("=")) == data
    assert bytes_of(base64.encodebytes(data).decode()) == data


@pytest.mark.parametrize("text", ["a", "a?==", "aGk=aGk=", "aGk =", "ä", "=", "aG=k", "\ud800"])
def test_what_is_no_base64_gives_no_bytes_at_all(text: str):
    assert bytes_of(text) is None


@given(st.binary())
def test_a_data_url_gives_back_what_it_was_made_of(data: bytes):
    assert contents_of(data_uri(data, "image/png")) == (data, "image/png")


@pytest.mark.parametrize(
    ("url", "contents"),
    [
        ("data:,a%20b", (b"a b", None)),
        ("DATA:Image/PNG;charset=x;BASE64,aGk=", (b"hi", "image/png")),
        ("data:image/png;base64,aGk%3D", (b"hi", "image/png")),
        ("data:image/png;base64,a?", None),
        ("data:image/png", None),
        ("https://example.org/a.png", None),
    ],
)
def test_a_data_url_is_read_whole_or_not_at_all(url: str, contents: object):
    assert contents_of(url) == contents


@pytest.mark.parametrize(
    ("data", "type"),
    [
        (b"\x89PNG\r\n\x1a\n..", "image/png"),
        (b"\xff\xd8\xff\xe0..", "image/jpeg"),
        (b"GIF87a..", "image/gif"),
        (b"RIFF\n\0\0\0WEBPVP8", "image/webp"),
        (b"RIFF\n\0\0\0WAVEfmt", "audio/wav"),
        (b"ID3\x04", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"OggS\0", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"\0\0\0 ftypisom", "video/mp4"),
        (b"%PDF-1.7", "application/pdf"),
        (b"<svg onload=alert(1)>", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_first_bytes_say_what_it_is_where_the_wire_does_not(data: bytes, type: str):
    assert type_of(data) == type
    assert type_of(data, "image/x-own") == "image/x-own"
    assert type_of(data, "not a type") == type
    assert {type for type, _ in SIGNS} >= {type} - {"application/octet-stream"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.org/a.png?b=c", True),
        ("HTTP://example.org", True),
        ("javascript:alert(1)", False),
        ("data:text/html,<script>", False),
        ("file:///etc/passwd", False),
        ("gs://bucket/a", False),
        (" https://example.org", False),
        ("https://example.org/\n", False),
        ('https://example.org/"onload="', False),
        ("//example.org/a", False),
    ],
)
def test_only_addresses_of_the_web_reach_a_page(url: str, shown: bool):
    assert is_web(url) is shown
