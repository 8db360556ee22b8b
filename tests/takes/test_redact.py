"""streamnorm.takes.redact: no secret leaves, and nothing else changes."""

import base64
import html
import json
import random
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamnorm.takes.redact import (
    Redactor,
    bare_url,
    kept_headers,
    secrets_in_headers,
    secrets_in_url,
)
from tests.conftest import some

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ODD = ["/+=", "\"'", "\\", "é💥", "%&?", " :@", "-_.~", "<>"]


def canary(number: int) -> str:
    """A secret that is found nowhere by chance; every fourth has odd characters in it."""
    dice = random.Random(f"canary {number}")
    letters = "".join(dice.choices(ALPHABET, k=24))
    return letters[:12] + (ODD[number // 4 % len(ODD)] if number % 4 == 0 else "") + letters[12:]


CANARIES = some([canary(number) for number in range(200)], 40)


def as_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


# name -> how a secret may be written on a wire
ENCODINGS = {
    "plain": lambda s: s,
    "json": as_json,
    "json, utf-8": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "json, slashes": lambda s: as_json(s).replace("/", "\\/"),
    "json in json": lambda s: as_json(as_json(s)),
    "json, all escaped": lambda s: "".join(
        f"\\u{u:04x}" for u in memoryview(s.encode("utf-16-le")).cast("H")
    ),
    "json of Go": lambda s: as_json(s).translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&"}),
    "json of Gson": lambda s: as_json(s).translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&='"}),
    "html": html.escape,
    "url": lambda s: quote(s, safe=""),
    "url, slashes": quote,
    "url, form": quote_plus,
    "url, lower case": lambda s: quote(s, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "url, of a browser": lambda s: quote(s, safe="-_.!~*'()"),
    "mixed": lambda s: as_json(s[:9]) + quote(s[9:15], safe="") + html.escape(s[15:]),
    "base64 0": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 1": lambda s: base64.b64encode(b"k" + s.encode() + b"tail").decode(),
    "base64 2": lambda s: base64.b64encode(b"me" + s.encode() + b":").decode(),
    "base64 in a url": lambda s: quote(base64.b64encode(s.encode()).decode(), safe=""),
    "json in a url": lambda s: quote(json.dumps(s)[1:-1], safe=""),
    "base64 url": lambda s: base64.urlsafe_b64encode(b"k=" + s.encode()).decode(),
}


def cores(secret: str) -> list[bytes]:
    """What must not be found: the secret, and its middle in base64, in any alignment."""
    raw = secret.encode()
    plain = (write for name, write in ENCODINGS.items() if "base64" not in name)
    found = [write(secret).encode() for write in plain]
    for shift in (0, 1, 2):
        found.append(base64.b64encode(b"\0" * shift + raw)[4:-4])
    return found


def fed(redactor: Redactor, chunks: list[bytes]) -> bytes:
    return b"".join([*map(redactor.feed, chunks), redactor.flush()])


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_canary_is_found_in_any_encoding_byte_by_byte(encoding):
    write = ENCODINGS[encoding]
    lines = [f'data: {{"error":"no such key: {write(secret)}!"}}\n\n' for secret in CANARIES]
    body = "".join(lines).encode()
    assert write(CANARIES[7]).encode() in body
    clean = fed(Redactor(CANARIES), bytewise(body))
    assert len(clean) == len(body)
    assert [s for s in CANARIES if any(core in clean for core in cores(s))] == []
    assert clean.count(b"data: {") == clean.count(b'!"}\n\n') == len(CANARIES)


text = st.text(st.sampled_from('abcAB/+"\\é%nu0 '), min_size=1, max_size=12)
secret = st.text(st.sampled_from('abAB/+"\\é%nu0'), min_size=4, max_size=12)


@given(st.lists(secret, min_size=1, max_size=4), st.lists(text | secret), st.data())
def test_any_chunking_gives_the_same_bytes_without_the_secrets(secrets, pieces, data):
    body = json.dumps(
        {"said": "".join(pieces), "key": data.draw(st.sampled_from(secrets))}
    ).encode()
    whole = fed(Redactor(secrets), [body])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6)))
    chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert fed(Redactor(secrets), chunks) == fed(Redactor(secrets), bytewise(body)) == whole
    assert len(whole) == len(body)
    for value in secrets:
        assert set(value) <= set("x1") or value.encode() not in whole


@given(st.binary())
def test_what_holds_no_secret_is_not_changed(data):
    assert fed(Redactor(["a secret that is not in there"]), bytewise(data)) == data
    assert fed(Redactor(), [data]) == data


@pytest.mark.parametrize(
    ("secret", "wire"),
    [
        ("nabc1234", rb'{"t":"one\nabc1234 two"}'),  # the n belongs to the line end
        ("u00e9bcd", rb'{"t":"\u00e9bcd"}'),
        ("abcd\\", rb'{"t":"abcd\"quoted\""}'),  # the backslash belongs to the quote
        ("abcd\\", rb'{"t":"abcd\\"}'),
        ('say "hi"', rb'{"t":"he will say \"hi\" again"}'),
        ("12345678", b'{"n":1234567890,"m":[12345678]}'),
        ("11111111", b'{"n":11111111}'),
        ("tab\tulator", rb'{"t":"a tab\tulator"}'),
        ("päss/wörd", '{"t":"päss/wörd"}'.encode()),
    ],
)
def test_json_stays_json(secret, wire):
    json.loads(wire)
    clean = fed(Redactor([secret]), bytewise(wire))
    assert clean != wire
    assert len(clean) == len(wire)
    json.loads(clean)


# --- many bytes at once ---------------------------------------------------------------------------

EVENT = b'data: {"id":"chatcmpl-1","choices":[{"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
BLOCK = 2148
PLANTED = [
    ("opensesame", []),
    ("opensesame", ["opensesame"]),
    ('"quoted', ['"quoted']),
    ('op"en"sesame', ['op"en"sesame']),
    ("\\u006fpensesame", ["opensesame"]),
    ("sk-proj-" + "a1" * 20, []),
    ("Bearer " + "Zm9vYmFyYmF6cXV4", []),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", ["opensesame"]),
]


def redacted(secrets: list[str], wire: bytes, size: int) -> bytes:
    redactor = Redactor(secrets)
    blocks = [wire[at : at + size] for at in range(0, len(wire), size)]
    return b"".join(map(redactor.feed, blocks)) + redactor.flush()


@pytest.mark.parametrize(("text", "secrets"), PLANTED)
@pytest.mark.parametrize("where", ["start", "end of a block", "beginning of a block", "middle"])
def test_many_bytes_at_once_are_redacted_like_few(text, secrets, where):
    places = {
        "start": range(3), "end of a block": range(BLOCK - len(text) - 5, BLOCK, 2),
        "beginning of a block": range(BLOCK - 3, BLOCK + 9, 2), "middle": range(1000, 1030, 7),
    }  # fmt: skip
    filler = EVENT * (2 * BLOCK // len(EVENT))
    for at in places[where]:
        wire = filler[:at] + b" " + text.encode() + b" " + filler[at:]
        few = redacted(secrets, wire, 100)
        assert redacted(secrets, wire, BLOCK) == few
        assert len(few) == len(wire)
        if secrets or text != "opensesame":
            assert text.encode() not in few


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_canary_is_found_in_any_encoding_among_many_bytes(encoding):
    filler = EVENT * (2 * BLOCK // len(EVENT))
    for secret in CANARIES[:2]:
        written = ENCODINGS[encoding](secret).encode()
        wire = filler[: BLOCK - 10] + written + filler[BLOCK - 10 :]
        few = redacted([secret], wire, 40)
        assert few != wire
        assert redacted([secret], wire, BLOCK) == few


@pytest.mark.parametrize("secret", ["hunter22-of-the-moon-and-its-sea", 'a b/é"+\\&中.x', "sesame"])
@pytest.mark.parametrize("form", ["\\u{:04x}", "\\\\u{:04x}", "%{:02x}", "&#{};"])
def test_one_character_written_in_another_way_among_many_bytes_hides_nothing(secret, form):
    filler = EVENT * (2 * BLOCK // len(EVENT))
    for at, char in enumerate(secret):
        if ord(char) > 0x7F or (form == "&#{};" and char.isalnum()):
            continue
        written = (secret[:at] + form.format(ord(char)) + secret[at + 1 :]).encode()
        for place in (1000, BLOCK - len(written), BLOCK - 7, BLOCK - 1):
            wire = filler[:place] + written + filler[place:]
            assert written not in (clean := redacted([secret], wire, BLOCK))
            assert clean == redacted([secret], wire, 40)


def test_an_escape_before_a_secret_stays_one_wherever_many_bytes_end():
    secret = "nobody-knows-this-one"
    wire = EVENT * 30 + b'{"t":"' + rb"a \nobody-knows-this-one" + b'"}\n\n' + EVENT * 30
    clean = redacted([secret], wire, 40)
    assert rb'{"t":"a \nxxxxxxxxxxxxxxxxxxxx"}' in clean
    start = wire.index(secret.encode())
    for behind in range(60):
        assert redacted([secret], wire, start + behind) == clean


@pytest.mark.parametrize("text", [
    "a task-force of 20 hk_ sf- xoi bop rez error AII ya2 eyJ classes",
    "hk_" + "a1" * 20, "task-" + "a1" * 20, "AKz" + "A1" * 10, "xap-" + "a1" * 20,
])  # fmt: skip
def test_what_only_resembles_the_beginning_of_a_key_is_left_alone(text):
    wire = EVENT * 20 + text.encode() + b"\n\n" + EVENT * 20
    assert redacted(["opensesame"], wire, BLOCK) == wire


def test_only_what_may_begin_a_secret_is_held_back():
    redactor = Redactor(["open sesame"])
    assert redactor.feed(b"data: nothing here\n\n") == b"data: nothing here\n\n"
    assert redactor.feed(b"data: it opens\n\n") == b"data: it opens\n\n"
    assert redactor.feed(b"data: open ses") == b"data: "
    assert redactor.feed(b"sion") == b"open session"
    assert redactor.flush() == b""


def test_secrets_that_overlap_are_both_gone():
    clean = Redactor(["abcdefgh", "efghijkl", "cdef"]).whole(b"(abcdefghijkl) (cdef)")
    assert clean == b"(xxxxxxxxxxxx) (xxxx)"


def test_a_stream_that_is_cut_inside_a_secret_does_not_end_with_its_beginning():
    redactor = Redactor(["sesame-open-sesame"])
    assert fed(redactor, [b"key: sesame-open-ses"]) == b"key: xxxxxxxxxxxxxxx"


@pytest.mark.parametrize(
    "end", [b"a sk-abcdefghijklmnopqrstuvwx123456789", b"Authorization: Bearer ", b"hunter22-mo"]
)
def test_what_follows_a_flush_is_another_stream(end):
    redactor = Redactor(["hunter22-moon"])
    redactor.feed(end)
    redactor.flush()
    after = b"data-0123456789abcdef: on the moon\n"
    assert redactor.feed(after) + redactor.flush() == after


def test_a_secret_over_several_lines_keeps_the_lines():
    assert Redactor(["-----KEY\nabc\n-----"]).whole(b"a -----KEY\nabc\n----- b") == (
        b"a xxxxxxxx\nxxx\nxxxxx b"
    )


@pytest.mark.parametrize("short", ["a", "abc", "é", "x"])
def test_what_is_too_short_to_be_told_from_text_is_left_alone_and_counted(short):
    redactor = Redactor([short, "", "long enough"])
    assert redactor.too_short == 1
    assert redactor.clean_text(f"{short}, but not long enough") == f"{short}, but not xxxxxxxxxxx"


def test_the_line_end_of_a_key_file_is_not_part_of_the_key():
    assert Redactor(["opensesame\n"]).clean_text("key opensesame.") == "key xxxxxxxxxx."


def test_the_values_are_not_in_the_repr():
    assert repr(Redactor(CANARIES[:2])) == "Redactor(2 secrets)"


# --- the second net

SHAPES = [
    "sk-proj-4f9aB2c8D1e7F3a6b5C4d9E8f7A2",
    "sk-ant-api03-Qx7Yp2Lm9Nk4Rt6Vw8Zb1Cd3Ef5Gh",
    "AIzaSyD4x7Kp2Lm9Nq4Rt6Vw8Zb1Cd3Ef5GhJkL",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "sk_live_4f9aB2c8D1e7F3a6b5C4",
    "gho_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_4f9aB2c8D1e7F3a6b5C4d9E8f7A2_Qx7Yp2Lm9Nk4Rt",
    "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "xai-4f9aB2c8D1e7F3a6b5C4d9E8f7A2Qx7Yp2Lm",
    "xoxb-4f9aB2c8D1e7F3a6b5C4d9E8",
    "xoxp-4f9aB2c8D1e7F3a6b5C4d9E8",
    "ya29.a0AfB4f9aB2c8D1e7F3a6b5C4",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "gsk_4f9aB2c8D1e7F3a6b5C4d9E8f7A2Qx7Yp2Lm",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]


@pytest.mark.parametrize("key", SHAPES)
@pytest.mark.parametrize("around", ['"{}"', "key={}&x=1", "it is {}. Or not", r'"a\n{}"', "{}"])
def test_what_looks_like_a_key_is_gone_though_nobody_named_it(key, around):
    wire = around.format(key).encode()
    for chunks in ([wire], bytewise(wire), [wire[:9], wire[9:20], wire[20:]]):
        clean = fed(Redactor(), chunks)
        assert key.encode()[4:] not in clean
        assert len(clean) == len(wire)
        assert clean == fed(Redactor(), [wire])


def test_a_bearer_token_is_gone_and_its_scheme_stays():
    wire = b"got header: Bearer abcDEF0123456789.-_~+/== from you"
    clean = fed(Redactor(), bytewise(wire))
    assert clean == b"got header: Bearer xxxxxxxxxxxxxxxxxxxxxxxx from you"


def test_a_key_longer_than_what_is_held_back_is_gone_to_its_end():
    wire = b'"sk-1' + b"Ab3" * 2000 + b'" sk-learn'
    assert fed(Redactor(), bytewise(wire)) == b'"' + b"x" * 6004 + b'" sk-learn'


@pytest.mark.parametrize(
    "harmless",
    [
        "risk-assessment-procedures-and-1-more-thing", "task-4f9aB2c8D1e7F3a6b5C4d9E8f7A2",
        "sk-learn", "toolu_01A09q90qw90lq917835lq9", "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f",
        "the bearer of bad news", "eyJustOneWord", "AIzadora",
    ],
)  # fmt: skip
def test_what_only_resembles_a_key_stays(harmless):
    assert fed(Redactor(), bytewise(harmless.encode())) == harmless.encode()


# --- where secrets stand


def test_secrets_are_found_in_headers_whole_and_in_parts():
    basic = base64.b64encode(b"someone:opensesame").decode()
    found = secrets_in_headers(
        [
            ("Authorization", "Bearer token-one"), ("X-Api-Key", "key-two-2"), ("api-key", "three-3"),
            ("X-Goog-Api-Key", "AIza-four"), ("Cookie", "id=cookie-five; theme=dark-six"),
            ("Set-Cookie", "session=cookie-seven; Path=/; HttpOnly"),
            ("Proxy-Authorization", f"Basic {basic}"), (b"X-Amz-Security-Token", b"token-eight"),
            ("Content-Type", "text/event-stream"), ("x-ratelimit-limit-tokens", "40000000"),
        ]
    )  # fmt: skip
    expected = {
        "token-one", "key-two-2", "three-3", "AIza-four", "cookie-five", "dark-six", "cookie-seven",
        "opensesame", "someone:opensesame", basic, "token-eight",
    }  # fmt: skip
    assert expected <= found
    assert not found & {"text/event-stream", "40000000", "/"}


def test_secrets_are_found_in_urls():
    url = "https://someone:open%20sesame@host:8443/v1?key=AIza-four&access_token=tok%2Fen&alt=sse"
    assert secrets_in_url(url) == {
        "someone", "open sesame", "open%20sesame", "AIza-four", "tok/en"
    }  # fmt: skip
    assert bare_url(url) == "https://host:8443/v1"


@pytest.mark.parametrize("url", ["", "http://[", "http://host:port/", None, "not a url"])
def test_an_odd_url_is_no_error(url):
    assert secrets_in_url(url) == set()
    assert "@" not in bare_url(url)


def test_headers_are_kept_by_an_allow_list_and_others_by_name_and_length():
    headers = [
        ("Content-Type", "text/event-stream"), ("request-id", "req_1"), ("Set-Cookie", "a=b"),
        ("Set-Cookie", "cc=dd"), ("anthropic-ratelimit-tokens-remaining", "9"), ("X-New", "abcdef"),
        ("x-request-id", "has-a-secret-in-it"),
    ]  # fmt: skip
    assert kept_headers(headers, Redactor(["a-secret-in"])) == (
        {
            "content-type": "text/event-stream", "request-id": "req_1",
            "anthropic-ratelimit-tokens-remaining": "9", "x-request-id": "has-xxxxxxxxxxx-it",
        },
        {"set-cookie": 8, "x-new": 6},
    )  # fmt: skip


def test_text_that_makes_ever_new_states_is_redacted_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("streamnorm.takes.redact.MOST_STATES", 20)
    secret = "aba%61a" * 3
    dice = random.Random(4)
    body = "".join(dice.choice(["a", "b", "%61", "\\u0061", secret]) for _ in range(3000)).encode()
    redactor = Redactor([secret])
    clean = fed(redactor, [body[at : at + 7] for at in range(0, len(body), 7)])
    assert clean == fed(Redactor([secret]), [body])
    assert secret.encode() not in clean
    assert len(redactor._automaton._known) <= 22
