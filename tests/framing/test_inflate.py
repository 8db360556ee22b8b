"""Packed bytes are unpacked in bounded steps, and what grows too much ends before it is in memory."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm import Limits
from streamnorm.errors import FrameError, UsageError
from streamnorm.framing.inflate import Inflater, NotInflated, packing_of
from tests.conftest import bytewise

brotli = pytest.importorskip("brotli")
zstandard = pytest.importorskip("zstandard")

MIB = 1024 * 1024
LARGEST_PIECE = 3 * MIB  # of zstd: 64 bytes end at most 17 blocks of 128 KiB
PLAIN = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n' * 20
ANY_RATIO = Limits(ratio=10**9)


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its wrapping": ("deflate", raw_deflate),
    "br": ("br", partial(brotli.compress, quality=5)),
    "zstd": ("zstd", zstandard.compress),
}
every_way = pytest.mark.parametrize("how", PACKERS)
once = pytest.mark.parametrize("how", ["gzip", "deflate", "br", "zstd"])


def unpacked(encoding: str, packed: bytes, size: int = 0, limits: Limits | None = None) -> bytes:
    inflater = Inflater(encoding, limits=limits)
    chunks = [packed[at : at + size] for at in range(0, len(packed), size)] if size else [packed]
    return b"".join(piece for chunk in chunks for piece in inflater.feed(chunk))


@every_way
@pytest.mark.parametrize("size", [0, 1, 7])
def test_what_was_packed_comes_out(how: str, size: int):
    encoding, pack = PACKERS[how]
    assert unpacked(encoding, pack(PLAIN), size) == PLAIN


@every_way
@given(data=st.binary(max_size=3000), sizes=st.lists(st.integers(1, 400), max_size=20))
def test_any_bytes_in_any_chunking_come_out(how: str, data: bytes, sizes: list[int]):
    encoding, pack = PACKERS[how]
    packed, inflater, at, out = pack(data), Inflater(encoding, limits=ANY_RATIO), 0, b""
    for size in [*sizes, len(packed)]:
        out += b"".join(inflater.feed(packed[at : at + size]))
        at += size
    assert out == data
    assert inflater.ended
    assert (inflater.received, inflater.given) == (len(packed), len(data))


@once
def test_a_cut_body_gives_what_is_there_and_has_not_ended(how: str):
    encoding, pack = PACKERS[how]
    packed = pack(PLAIN)
    inflater = Inflater(encoding)
    assert PLAIN.startswith(b"".join(inflater.feed(packed[:-3])))
    assert not inflater.ended


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_members_behind_one_another_are_one_body(how: str):
    encoding, pack = PACKERS[how]
    packed = pack(b"Hello ") + pack(b"") + b"\0" * 5 + pack(b"there")
    assert unpacked(encoding, packed) == unpacked(encoding, packed, 1) == b"Hello there"


def test_each_flush_of_a_server_comes_out_at_once():
    packer = zlib.compressobj(wbits=31)
    inflater = Inflater("gzip")
    for text in (b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"):
        sent = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(inflater.feed(sent)) == text


# --- bombs ----------------------------------------------------------------------------------------


@once
def test_a_bomb_ends_at_the_ratio_and_no_piece_of_it_is_large(how: str):
    encoding, pack = PACKERS[how]
    packed = pack(b"\0" * (32 * MIB))
    inflater = Inflater(encoding)
    sizes: list[int] = []
    with pytest.raises(NotInflated, match="more than 100 times as long") as caught:
        sizes.extend(len(piece) for piece in inflater.feed(packed))
    assert (caught.value.code, caught.value.is_limit) == ("ratio", True)
    assert isinstance(caught.value, FrameError)
    assert max(sizes, default=0) <= LARGEST_PIECE
    assert sum(sizes) <= max(MIB, 100 * inflater.received) + LARGEST_PIECE


@once
def test_all_of_a_bomb_comes_in_small_pieces_if_the_limits_allow_it(how: str):
    encoding, pack = PACKERS[how]
    pieces = Inflater(encoding, limits=ANY_RATIO).feed(pack(b"\0" * (32 * MIB)))
    sizes = [len(piece) for piece in pieces]
    assert sum(sizes) == 32 * MIB
    assert max(sizes, default=0) <= LARGEST_PIECE


def test_many_members_of_which_none_is_large_are_a_bomb_as_well():
    member = gzip.compress(b"\0" * 100_000)
    with pytest.raises(NotInflated, match="100 times"):
        unpacked("gzip", member * 50)


def test_the_ratio_is_a_limit():
    assert Limits().ratio == 100
    body = b"\0" * (2 * MIB)
    with pytest.raises(NotInflated, match="more than 1000 times"):
        unpacked("zstd", zstandard.compress(body), limits=Limits(ratio=1000))
    assert unpacked("gzip", gzip.compress(body), limits=Limits(ratio=2000)) == body


@once
def test_so_many_bytes_and_no_more(how: str):
    encoding, pack = PACKERS[how]
    noise = random.Random(1).randbytes(5000)
    inflater = Inflater(encoding, most=5000)
    assert b"".join(inflater.feed(pack(noise))) == noise
    with pytest.raises(NotInflated, match="more than 4999 bytes") as caught:
        list(Inflater(encoding, most=4999).feed(pack(noise)))
    assert (caught.value.code, caught.value.is_limit) == ("inflated", True)


def test_zstd_may_not_look_back_further_than_http_allows():
    long = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=long).compressobj()
    packed = packer.compress(b"x" * 10) + packer.flush()
    with pytest.raises(NotInflated, match="not the zstd that its headers say"):
        unpacked("zstd", packed)


def test_a_brotli_without_limits_of_its_own_is_fed_byte_by_byte(monkeypatch):
    class Old:
        """Before 1.2: it gives all that it can."""

        def __init__(self) -> None:
            self.inner = brotli.Decompressor()
            self.fed: list[int] = []

        def process(self, data: bytes) -> bytes:
            self.fed.append(len(data))
            return self.inner.process(data)

        def is_finished(self) -> bool:
            return self.inner.is_finished()

    made: list[Old] = []

    class Library:
        error = brotli.error

        @staticmethod
        def Decompressor() -> Old:
            made.append(Old())
            return made[-1]

    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    monkeypatch.setitem(sys.modules, "brotli", Library)
    assert unpacked("br", brotli.compress(PLAIN)) == PLAIN
    assert max(made[0].fed) == 1


# --- what is refused ------------------------------------------------------------------------------


@once
def test_damage_is_told(how: str):
    encoding, _ = PACKERS[how]
    with pytest.raises(NotInflated, match=f"not the {how} that its headers say") as caught:
        unpacked(encoding, b"\x07data: this was never packed\n\n" * 9)
    assert (caught.value.code, caught.value.is_limit) == ("damaged", False)


@every_way
def test_flipped_bits_raise_nothing_else(how: str):
    encoding, pack = PACKERS[how]
    dice = random.Random(how)
    packed = pack(PLAIN)
    for _ in range(300):
        body = bytearray(packed)
        for _ in range(dice.randint(1, 4)):
            body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
        try:
            unpacked(encoding, bytes(body), dice.choice([0, 1, 5]))
        except NotInflated:
            continue


@pytest.mark.parametrize("word", ["", "identity", "Identity ", "none"])
def test_a_body_that_is_not_packed(word: str):
    assert packing_of(word) == ""
    with pytest.raises(UsageError, match="not packed"):
        Inflater(word)


@pytest.mark.parametrize("word", ["gzip, gzip", "gzip,br", "identity, gzip", "br, zstd, gzip"])
def test_a_body_that_is_packed_twice_is_refused(word: str):
    with pytest.raises(NotInflated, match="packed more than once") as caught:
        Inflater(word)
    assert caught.value.code == "encoding"


@pytest.mark.parametrize("word", ["compress", "exi", "aws-chunked", "gzip;q=1", "\x1b[2Jx"])
def test_an_encoding_that_nobody_knows_is_refused(word: str):
    with pytest.raises(NotInflated, match="gzip, deflate, br, zstd") as caught:
        Inflater(word)
    assert caught.value.code == "encoding"
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(("word", "library"), [("br", "brotli"), ("zstd", "zstandard")])
def test_a_missing_library_is_named_with_what_to_install(word: str, library: str, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "brotlicffi", None)
    with pytest.raises(NotInflated, match=rf"needs {library}: pip install 'streamnorm\[packed\]'"):
        Inflater(word)


def test_a_chunk_of_one_byte_is_a_chunk():
    packed = gzip.compress(PLAIN)
    inflater = Inflater("gzip")
    assert b"".join(p for byte in bytewise(packed) for p in inflater.feed(byte)) == PLAIN
