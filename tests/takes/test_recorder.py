"""streamnorm.takes.recorder: what is recorded replays; what is secret is not in it; nothing here breaks
the stream that is watched."""

import base64
import json
import logging
import os
import random
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import weakref
from collections import deque
from itertools import count, pairwise
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamnorm import Normalizer
from streamnorm.captures import read_take
from streamnorm.errors import RecordingError, UsageError
from streamnorm.framing.aws import write_frame
from streamnorm.framing.sse import SSE, read
from streamnorm.takes.format import parse_take
from streamnorm.takes.recorder import MOST, Recorder
from streamnorm.takes.writer import WRITER, Writer
from streamnorm.testing import call, say, script, think
from tests.conftest import CALLING, over_takes, some

CHAT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'


def clock(step: float = 0.25):
    ticks = count()
    return lambda: next(ticks) * step


def record(path, chunks, *, provider="openai_chat", finished=True, **options) -> Recorder:
    tape = Recorder.open(path, provider=provider, seed="s", **({"clock": clock()} | options))
    for chunk in chunks:
        tape.chunk(chunk)
    tape.close(finished=finished)
    assert tape.failed is None
    return tape


def events_of(provider, wire, seed="s"):
    pipe = Normalizer(provider, seed=seed)
    return pipe.feed(wire) + pipe.close()


def cut_up(data: bytes, top: int) -> list[bytes]:
    dice = random.Random(f"{top}/{len(data)}")
    chunks = []
    while data:
        size = dice.randint(1, top)
        chunks.append(data[:size])
        data = data[size:]
    return chunks


def undisguised(wire: bytes) -> bytes:
    return wire.replace(b":  +", b": +").replace(b":  streamnorm ", b": streamnorm ")


# --- what is recorded replays ---------------------------------------------------------------------


@over_takes(quick=100)
def test_a_recording_of_any_take_replays_to_the_same_events(path, tmp_path):
    take = read_take(path)
    provider = take.provider or "auto"
    expected = events_of(provider, take.wire)
    ways = [[c for _, c in take.chunks], [take.wire], cut_up(take.wire, 40), cut_up(take.wire, 1)]
    for number, chunks in enumerate(ways):
        tape = record(tmp_path / f"{number}.sse", chunks, provider=provider)
        again = read_take(tape.path)
        assert again.finished
        assert (again.provider, again.seed) == (take.provider, "s")
        assert undisguised(again.wire) == undisguised(take.wire)
        assert events_of(provider, again.wire) == expected


def test_the_file_is_a_take_with_a_header_times_and_a_last_line(tmp_path):
    tape = record(
        tmp_path / "a.sse",
        [CHAT, CHAT[:20], CHAT[20:]],
        url="https://me:opensesame@host/v1/chat?key=verysecret",
        headers={"Content-Type": "text/event-stream", "X-Odd": "12345"},
        status=200,
    )
    first, *lines = Path(tape.path).read_text().splitlines()
    header = json.loads(first.removeprefix(": streamnorm "))
    assert len(header.pop("captured")) == len("2026-11-15")
    assert header == {
        "provider": "openai_chat", "seed": "s", "made": "captured by streamnorm",
        "url": "https://host/v1/chat", "status": 200,
        "headers": {"content-type": "text/event-stream"}, "other_headers": {"x-odd": 5},
    }  # fmt: skip
    body = CHAT.decode().strip()
    size = 2 * len(CHAT)
    assert lines == [
        ": +0.250", body, "", ": +0.500", body, ": +0.750", "",
        f': streamnorm {{"finished":true,"seconds":1.0,"bytes":{size}}}',
    ]  # fmt: skip


def test_a_header_of_bytes_that_are_no_text_can_be_read_by_any_reader_of_json(tmp_path):
    tape = record(
        tmp_path / "a.sse", [CHAT], headers={"Content-Type": "caf\udce9", "x-\udce9": "1"}
    )
    header = orjson.loads(
        Path(tape.path).read_bytes().splitlines()[0].removeprefix(b": streamnorm ")
    )
    assert (header["headers"], header["other_headers"]) == ({"content-type": "caf?"}, {"x-?": 1})


def test_a_stream_of_another_framing_is_kept_chunk_by_chunk(tmp_path):
    chunks = script(say("Hi"), call("f", a=1)).chunks("bedrock")
    take = read_take(record(tmp_path / "a.sse", chunks, provider="bedrock").path)
    assert take.header["container"] == "chunks"
    assert [chunk for _, chunk in take.chunks] == chunks
    assert [at for at, _ in take.chunks] == [0.25 * n for n in range(1, len(chunks) + 1)]


@pytest.mark.parametrize("provider", ["openai_chat", "anthropic", "ollama", "bedrock"])
def test_payloads_of_an_sdk_are_recorded_as_well(tmp_path, provider):
    s = script(say("Hi"), call("f", a=1))
    pipe = Normalizer(provider, seed="s")
    events = []
    tape = Recorder.open(tmp_path / "a.sse", provider=provider, seed="s")
    for payload in payloads(s, provider):
        events += pipe.feed_payload(payload)
        tape.payload(payload)
    tape.close(finished=True)
    assert tape.failed is None
    assert events_of(provider, read_take(tape.path).wire) == events + pipe.close()


def payloads(s, provider):
    if provider == "ollama":
        return [json.loads(line) for line in s.bytes(provider).splitlines()]
    framer = Normalizer(provider)._parser.framer("aws" if provider == "bedrock" else "text", 10**6)
    data = [framer.read(frame).data for frame in framer.feed(s.bytes(provider))]
    return [json.loads(d) for d in data if d and d != b"[DONE]"]


@pytest.mark.parametrize("end", [b"data: {", b"data: {}", b"data: {}\r", b"data: {}\n", b"x", b""])
def test_a_wire_that_ends_inside_a_line_ends_there_in_the_take(tmp_path, end):
    for number, finished in enumerate([True, False]):
        tape = record(tmp_path / f"{number}.sse", [CHAT, end], finished=finished)
        take = read_take(tape.path)
        assert (take.wire, take.finished) == (CHAT + end, finished)


def test_a_stream_without_bytes_is_a_take_without_chunks(tmp_path):
    for name, chunks in (("a", []), ("b", [b""]), ("c", [b"\n"]), ("d", [b"\xef\xbb"])):
        take = read_take(record(tmp_path / name, chunks).path)
        assert (take.wire, take.finished) == (b"".join(chunks), True)


lines = st.sampled_from(
    [b"data: 1", b": +0.5", b": +", b": keep-alive", b": streamnorm {}", b":", b": s", b"data: : +1",
     b': streamnorm {"finished":true}', b': streamnorm {"leg":2}', b"",
     b": streamnor", b"event: x", b"data: \xff", b" : +1"]
)  # fmt: skip
endings = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(st.lists(st.tuples(lines, endings)), lines, st.data())
def test_any_lines_in_any_chunking_are_read_back(tmp_path_factory, rows, last, data):
    wire = b"data: begin\n" + b"".join(line + end for line, end in rows) + last
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    chunks = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    folder = tmp_path_factory.mktemp("takes")
    tape = Recorder.open(folder, provider="openai_chat", seed="s", clock=clock())
    for chunk in chunks:
        tape.chunk(chunk)
        if data.draw(st.booleans()):
            tape.flush()
    tape.close(finished=True)
    file = Path(tape.path)
    take = read_take(file)
    assert undisguised(take.wire) == undisguised(wire)
    assert take.finished
    if wire.endswith((b"\n", b"\r")):  # for any reader of SSE the file says what the wire said
        assert data_of(file.read_bytes()) == data_of(wire)


@pytest.mark.parametrize(
    "first", [b"data: begin\n", b"[", b"\x00\x00\x01"], ids=["sse", "json", "aws"]
)
@given(
    legs=st.lists(st.lists(st.tuples(lines, endings), max_size=4), min_size=2, max_size=4),
    data=st.data(),
)
def test_any_lines_of_several_connections_are_read_back_each_for_itself(
    tmp_path_factory, first, legs, data
):
    wires = [
        b"".join(line + end for line, end in leg)[: data.draw(st.integers(0, 80))] for leg in legs
    ]
    wires[0] = first + wires[0]
    tape = Recorder.open(tmp_path_factory.mktemp("takes"), provider="auto", seed="s", clock=clock())
    for number, wire in enumerate(wires):
        if number:
            tape.leg()
        for chunk in cut_up(wire, 9):
            tape.chunk(chunk)
    tape.close(finished=True)
    take = read_take(tape.path)
    edges = [0, *take.legs, len(take.wire)]
    read_back = [take.wire[a:b] for a, b in pairwise(edges)]
    assert [undisguised(leg) for leg in read_back] == [undisguised(wire) for wire in wires]
    assert take.finished


def test_the_first_line_of_a_connection_is_its_own_though_the_one_before_ended_in_a_line(tmp_path):
    with Recorder.open(tmp_path, provider="auto", seed="s", clock=clock()) as tape:
        tape.chunk(b"data: begin\ndata: hal")
        tape.leg()
        tape.chunk(b": +0.5\ndata: 2\n")
    take = read_take(tape.path)
    assert undisguised(take.wire) == b"data: begin\ndata: hal: +0.5\ndata: 2\n"
    assert take.legs == (len(b"data: begin\ndata: hal"),)


@pytest.mark.parametrize("end", [b"sk-abcdefghijklmnopqrstuvwx123456789", b"Bearer "])
def test_a_connection_that_was_lost_inside_a_key_takes_nothing_from_the_next_one(tmp_path, end):
    news = b"data-0123456789abcdef: 1\n\n"
    with Recorder.open(tmp_path, provider="auto", seed="s", secrets=["hunter22xx"]) as tape:
        tape.chunk(b'data: {"a":"' + end)
        tape.leg({}, [])
        tape.chunk(news)
    take = read_take(tape.path)
    assert take.wire[take.legs[0] :] == news


pieces = st.sampled_from(
    [b"data: 1\n", b"\n", b"\r\n", b"\r", b":", b": ", b": st", b" ping\n\n", b"", b"data: ",
     b"x" * 75, b"event: y\n\n:"]
)  # fmt: skip
# Seconds between two chunks: marks have three decimals, and times on both sides of a half collide.
pauses = st.sampled_from([0.0, 0.0001, 0.0004995, 0.0005, 0.0005005, 0.001, 0.25])
arrivals = st.lists(
    st.tuples(pauses, st.lists(pieces, max_size=3).map(b"".join), st.booleans()), max_size=12
)


@example([(0.001, b"data: 1\n\n:", False), (0.0004995, b" ping\n\n", False), (0.0, b"\n", False)])
@given(arrivals)
def test_any_chunks_at_any_times_are_read_back_in_their_order_each_line_at_its_time(
    tmp_path_factory, arrivals
):
    now = 0.0
    folder = tmp_path_factory.mktemp("takes")
    tape = Recorder.open(folder, provider="openai_chat", seed="s", clock=lambda: now)
    wire, came = b"", []
    for pause, data, flushed in [(0.0, b"data: begin\n" + b"." * 75 + b"\n", False), *arrivals]:
        now += pause
        tape.chunk(data)
        wire += data
        came += [now] * len(data)
        if flushed:
            tape.flush()
    tape.close(finished=True)
    take = read_take(tape.path)
    assert take.wire == wire
    told = [at for at, chunk in take.chunks for _ in chunk]
    for at in (line.start() for line in LINE.finditer(wire)):
        assert abs(told[at] - came[at]) <= 0.0005 + 1e-9


LINE = re.compile(rb"(?:\A|(?<=\n)|(?<=\r)(?!\n))(?s:.)")


def data_of(body: bytes) -> list[bytes]:
    framer = SSE()
    frames = [*framer.feed(body), *framer.rest()]
    return [fields.data for frame in frames if (fields := read(frame)).data is not None]


# --- what is secret is not in it ------------------------------------------------------------------

SECRETS = [f"canary{n:03}-{random.Random(n).getrandbits(64):016x}" for n in range(200)]
WAYS = [
    str, lambda s: quote(s, safe=""), lambda s: json.dumps(s)[1:-1],
    lambda s: "".join(f"%{byte:02x}" for byte in s.encode()),
    *(lambda s, n=n: base64.b64encode(b"0" * n + s.encode() + b"zz").decode() for n in range(3)),
]  # fmt: skip
# Where the recorder learns of a secret: the options of Recorder.open
LEARNT = [
    lambda s: {"request_headers": {"Authorization": f"Bearer {s}"}},
    lambda s: {"request_headers": {"X-Api-Key": s}},
    lambda s: {"request_headers": [("api-key", s)]},
    lambda s: {"request_headers": [(b"X-Goog-Api-Key", s.encode())]},
    lambda s: {"request_headers": {"Cookie": f"a=b; session={s}"}},
    lambda s: {"headers": {"Set-Cookie": f"session={s}; Path=/"}},
    lambda s: {"request_headers": {"Proxy-Authorization": f"Basic {b64('me:' + s)}"}},
    lambda s: {"url": f"https://host/v1/{s}?alt=sse&key={s}"},
    lambda s: {"url": f"https://host/v1?access_token={quote(s)}"},
    lambda s: {"url": f"https://me:{s}@host/v1"},
    lambda s: {"secrets": [s]},
]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def told_everywhere(secret: str) -> bytes:
    """Bodies, errors, ids, redirects: each way of writing it, in each place."""
    written = [way(secret) for way in WAYS]
    frames = [
        f'data: {{"error":{{"message":"bad key {w}","location":"/?k={w}"}}}}' for w in written
    ]
    frames += [f"event: {w}\nid: {w}\n: {w}\ndata: {w}" for w in written[:2]]
    call = {"id": secret, "function": {"name": secret, "arguments": json.dumps({"k": secret})}}
    frames.append("data: " + json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}))
    return "".join(frame + "\n\n" for frame in frames).encode()


class Odd:
    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __bytes__(self) -> bytes:
        raise ValueError(f"not with {self.secret}")


def leaks(data: bytes, secret: str) -> bool:
    forms = [secret.encode()] + [way(secret).encode()[4:-6] for way in WAYS[4:]]
    return any(form in data for form in forms)


@pytest.mark.parametrize("number", range(len(SECRETS)))
def test_no_canary_is_found_wherever_it_was_planted(tmp_path, caplog, number):
    secret, learnt = SECRETS[number], LEARNT[number % len(LEARNT)]
    wire = told_everywhere(secret)
    assert leaks(wire, secret)
    caplog.set_level(logging.DEBUG, "streamnorm")
    options = learnt(secret)
    options.setdefault(
        "headers", {"x-request-id": secret, "Location": f"/?k={secret}", secret: "1"}
    )
    tape = Recorder.open(tmp_path, provider="openai_chat", seed="s", **options)
    for at in range(len(wire)):
        tape.chunk(wire[at : at + 1])
        if number % 3 == 0 or (number % 3 == 1 and at % 7 == 0):
            tape.flush()  # a secret may begin in what is written and end in what is not
    tape.chunk(Odd(secret))  # the recording fails, and the error names the value
    assert tape.failed
    assert "recorder.failed" in caplog.text
    seen = repr(tape) + tape.failed + caplog.text
    tape.close(finished=True)
    record(tmp_path, [wire], **options)
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    for file in files:
        assert not leaks(file.read_bytes() + file.name.encode(), secret)
    assert not leaks(seen.encode(), secret)


def test_a_secret_too_short_to_be_found_is_warned_of(tmp_path, caplog):
    caplog.set_level(logging.WARNING, "streamnorm")
    record(tmp_path, [CHAT], secrets=["x"])
    assert "recorder.secret_too_short" in caplog.text


@pytest.mark.parametrize("provider", CALLING)
def test_a_redacted_recording_replays_to_the_same_events_apart_from_the_letters(tmp_path, provider):
    secret = "call-sesame-opens"
    said = script(think("Hm."), say("Look."), call("f", city="Oslo", k=[1]).with_id(secret))
    filled = script(*(said.steps[:-1]), call("f", city="Oslo", k=[1]).with_id("x" * len(secret)))
    for name, chunks in (("a", said.chunks(provider)), ("b", cut_up(said.bytes(provider), 1))):
        tape = record(tmp_path / name, chunks, provider=provider, secrets=[secret])
        assert secret.encode() not in Path(tape.path).read_bytes()
        assert secret.encode() not in read_take(tape.path).wire
        assert events_of(provider, read_take(tape.path).wire) == filled.events(provider, seed="s")


def test_a_frame_with_a_wrong_checksum_is_recorded_with_it(tmp_path):
    good = write_frame({":event-type": "ping"}, b'"opensesame"')
    bad = good[:-4] + b"\0\0\0\0"
    tape = record(tmp_path / "a", cut_up(good + bad, 7), provider="bedrock", secrets=["opensesame"])
    clean = write_frame({":event-type": "ping"}, b'"xxxxxxxxxx"')
    assert read_take(tape.path).wire == clean + clean[:-4] + b"\0\0\0\0"


def test_bytes_that_only_begin_like_aws_frames_are_redacted_as_well(tmp_path):
    wire = b"\0\0" + b"\xff" * 30 + b"opensesame" + b"\0" * 30
    tape = record(tmp_path / "a", cut_up(wire, 5), provider="bedrock", secrets=["opensesame"])
    assert read_take(tape.path).wire == wire.replace(b"opensesame", b"x" * 10)


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_the_file_is_private_whatever_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        tape = record(tmp_path / "a.sse", [CHAT])
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tape.path).st_mode) == 0o600


def test_a_file_is_never_overwritten(tmp_path):
    file = tmp_path / "a.sse"
    file.write_bytes(b"precious")
    with pytest.raises(RecordingError, match=r"never overwritten\. Name a new file"):
        record(file, [CHAT])
    assert file.read_bytes() == b"precious"


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_symbolic_link_is_not_followed(tmp_path, target):
    (tmp_path / "there").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / target)
    with pytest.raises(RecordingError, match="cannot be recorded to"):
        record(tmp_path / "link", [CHAT])
    assert (tmp_path / "there").read_bytes() == b"precious"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere/a.sse", "Make the folder first"), ("a\0b", "null"), ("a" * 300, "too long"),
        ("file/a.sse", "what should be its folder is a file"), ("\x1b[31m/a", r"\\x1b\[31m/a cannot"),
    ],
)  # fmt: skip
def test_a_place_that_cannot_be_written_is_refused_with_a_sentence(tmp_path, name, says):
    (tmp_path / "file").touch()
    with pytest.raises(RecordingError, match=says):
        record(f"{tmp_path}/{name}", [CHAT])


def test_in_a_folder_the_name_is_ours(tmp_path):
    names = [Path(record(tmp_path, [CHAT], label="weather").path) for _ in range(3)]
    assert {name.parent for name in names} == {tmp_path}
    assert len(set(names)) == 3
    for name in names:
        utc, random_part, label = name.stem.split("-")
        assert (len(utc), len(random_part), label, name.suffix) == (16, 12, "weather", ".sse")


@pytest.mark.parametrize(
    "label",
    ["../up", "/etc/passwd", "a/b", "a\\b", "", ".", "..", ".hidden", "a\0b", "a" * 65, "a b", "a\n",
     "\u2024\u2024", "..\u2215", "na\u00efve", "\u202e", "C:", "~", "*", "$HOME", "`id`", "a;b"],
)  # fmt: skip
def test_a_label_that_could_lead_elsewhere_is_refused(tmp_path, label):
    with pytest.raises(UsageError, match="cannot be part of a file name"):
        record(tmp_path, [CHAT], label=label)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("label", ["CON", "a", "A.b_c-1", "-x", "a" * 64, "nul.sse"])
def test_a_label_of_plain_letters_stays_in_its_folder(tmp_path, label):
    tape = record(tmp_path, [CHAT], label=label)
    assert list(tmp_path.iterdir()) == [Path(tape.path)]
    assert Path(tape.path).name.endswith(f"-{label}.sse")


def test_what_a_provider_says_never_forms_a_path(tmp_path):
    wire = b'data: {"id":"../../up","model":"/etc/passwd","choices":[]}\n\n'
    record(tmp_path, [wire], headers={"x-request-id": "../../up"}, url="http://h/../../../up")
    (file,) = tmp_path.iterdir()
    assert file.name.count(".") == 1


# --- what goes wrong ------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from streamnorm import Recorder
from streamnorm.testing import script, say, call
chunks = script(say("Hello there"), call("f", city="Oslo")).chunks(sys.argv[2])
tape = Recorder.open(sys.argv[1], provider=sys.argv[2], seed="s", secrets=["opensesame"])
for chunk in chunks[: int(sys.argv[3])]:
    tape.chunk(chunk)
tape.flush()
for chunk in chunks[int(sys.argv[3]) :]:
    tape.chunk(chunk)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("chunks", [0, 1, 2, 4])
@pytest.mark.parametrize("provider", ["anthropic", "ollama", "bedrock"])
def test_a_killed_process_leaves_a_readable_beginning(tmp_path, provider, chunks):
    file = tmp_path / "a.sse"
    done = subprocess.run([sys.executable, "-c", KILLED, file, provider, str(chunks)], check=False)
    assert done.returncode == -signal.SIGKILL
    take = read_take(file)
    said = script(say("Hello there"), call("f", city="Oslo")).chunks(provider)
    assert not take.finished
    assert take.wire.startswith(b"".join(said[:chunks]))  # what was flushed, and perhaps more
    assert b"".join(said).startswith(take.wire)
    if take.wire != b"".join(said):
        assert events_of(provider, take.wire)[-1].kind == "failed"


HELD = """
import sys, threading
from streamnorm import Recorder
writing, forever = threading.Event(), threading.Event()
def hold(frame, event, _):
    if frame.f_code.co_name == "_write":  # the thread that writes is slow to do so
        writing.set()
        forever.wait(0.2)
threading.settrace(hold)
tape = Recorder.open(sys.argv[1], provider="anthropic", seed="s")
tape.chunk(b'data: {"type":"ping"}\\n\\n')
writing.wait()
tape.flush()
print(open(sys.argv[1]).read())
"""


def test_a_flush_waits_for_what_the_writer_has_taken(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HELD, tmp_path / "a.sse"], capture_output=True, text=True, check=True
    )
    assert 'data: {"type":"ping"}' in done.stdout


ENDED = """
import os, sys, threading
from streamnorm import Recorder
from streamnorm.testing import script, say, call
chunks = script(say("Hello there"), call("f", city="Oslo")).chunks("anthropic")
tape = Recorder.open(sys.argv[1], provider="anthropic", seed="s")
for chunk in chunks[:3]:
    tape.chunk(chunk)
if sys.argv[2] == "exit":  # with somebody who holds it to the last
    threading.Thread(target=lambda: threading.Event().wait(tape and None), daemon=True).start()
    sys.exit(0)
if sys.argv[2] == "error":
    raise KeyError
child = os.fork()  # as multiprocessing does: both would write what waits
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
for chunk in chunks[3:]:
    tape.chunk(chunk)
"""


@pytest.mark.parametrize("how", ["exit", "error", "fork"])
def test_a_process_that_ends_leaves_all_that_came(tmp_path, how):
    file = tmp_path / "a.sse"
    command = [sys.executable, "-c", ENDED, file, how]
    subprocess.run(command, check=False, capture_output=True, timeout=60)
    said = script(say("Hello there"), call("f", city="Oslo")).chunks("anthropic")
    take = read_take(file)
    assert take.wire == b"".join(said if how == "fork" else said[:3])
    assert not take.finished


FORKED = """
import os, sys, threading
from streamnorm.takes.writer import WRITER

class Owner:
    def __init__(self):
        self.flushed = threading.Event()
    def flush(self):
        self.flushed.set()
    def unlock(self):
        pass

before = Owner()
WRITER.soon(before)  # from here on it has a thread, which a fork leaves behind
child = os.fork()
if child == 0:
    mine = Owner()
    WRITER.soon(mine)
    os._exit(0 if mine.flushed.wait(20) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_in_a_forked_process_what_waits_is_written_by_a_thread_of_its_own():
    assert subprocess.run([sys.executable, "-c", FORKED], check=False, timeout=60).returncode == 0


STILL_READ = """
import os, sys
from streamnorm import normalize
from streamnorm.testing import call, say, script

chunks = script(say("Hello there"), call("f", city="Oslo")).chunks("anthropic")
with normalize(iter(chunks), "anthropic", record=sys.argv[1]) as stream:
    next(stream)
    child = os.fork()
    for _ in stream:  # both of them
        pass
if child == 0:
    print(stream.summary["recording"]["failed"], flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_stream_that_two_processes_read_after_a_fork_is_recorded_by_the_first(tmp_path):
    file = tmp_path / "a.sse"
    command = [sys.executable, "-c", STILL_READ, file]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    said = script(say("Hello there"), call("f", city="Oslo")).chunks("anthropic")
    take = read_take(file)
    assert (take.wire, take.finished) == (b"".join(said), True)
    assert file.read_bytes().count(b'"finished":true') == 1
    assert told == "forked: it goes on in the process that began it\n"


# --- when it is written ---------------------------------------------------------------------------


class Told(Recorder):
    """Says when it was flushed, and by whom."""

    flushed: threading.Event
    by: str

    def flush(self) -> None:
        super().flush()
        self.by = threading.current_thread().name
        self.flushed.set()


def test_what_came_is_written_a_moment_later_by_another_thread(tmp_path):
    tape = Told.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    for _ in range(2):  # … and so is what comes after that
        tape.flushed = threading.Event()
        tape.chunk(CHAT)
        assert tape.flushed.wait(60)
        assert tape.by == "streamnorm-takes"
    assert read_take(tape.path).wire == CHAT * 2
    tape.close(finished=True)


def test_what_waits_is_bounded(tmp_path):
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    chunk = b"data: " + b"x" * 8000 + b"\n\n"
    for n in range(1, 40):
        tape.chunk(chunk)
        assert len(read_take(tape.path).wire) >= n * len(chunk) - MOST
    tape.close(finished=True)


class Interrupted(deque):
    """Chunks that wait. While the first one is taken, something else happens."""

    meanwhile = None

    def popleft(self):
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        return super().popleft()


def asks_of(monkeypatch) -> list[Recorder]:
    """Who asks the writer from here on; it does nothing."""
    asked: list[Recorder] = []
    monkeypatch.setattr(WRITER, "soon", asked.append)
    return asked


def test_what_comes_while_others_are_taken_is_written_a_moment_later_as_well(tmp_path, monkeypatch):
    asked = asks_of(monkeypatch)
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape._waiting = Interrupted()
    tape.chunk(CHAT)
    assert asked == [tape]
    tape.chunk(CHAT)
    assert asked == [tape]  # one flush is enough for both
    tape._waiting.meanwhile = lambda: tape.chunk(CHAT)
    tape.flush()
    assert asked == [tape, tape]
    tape.flush()
    assert read_take(tape.path).wire == CHAT * 3
    tape.close(finished=True)


def test_a_burst_is_written_in_batches_and_asks_the_writer_once(tmp_path, monkeypatch):
    asked = asks_of(monkeypatch)
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    burst = [CHAT] * (3 * MOST // len(CHAT))
    for chunk in burst:
        tape.chunk(chunk)
    assert asked == [tape]
    written = os.path.getsize(tape.path)
    assert len(CHAT) * len(burst) - MOST <= written
    tape.flush()  # the writer comes
    tape.chunk(CHAT)
    assert asked == [tape, tape]
    tape.close(finished=True)
    assert read_take(tape.path).wire == CHAT * (len(burst) + 1)


def test_the_writer_is_asked_again_after_a_flush_that_found_nothing(tmp_path, monkeypatch):
    asked = asks_of(monkeypatch)
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape.chunk(CHAT)
    tape.leg()  # writes it
    tape.flush()
    tape.chunk(CHAT)
    assert asked == [tape, tape]
    tape.close(finished=True)


def test_a_flush_inside_of_a_flush_leaves_the_bytes_in_their_order(tmp_path):
    chunks = [b"data: %d\n\n" % n for n in range(20)]
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape._waiting = Interrupted()
    for chunk in chunks:
        tape.chunk(chunk)
    tape._waiting.meanwhile = tape.flush
    tape.flush()
    tape.close(finished=True)
    assert tape.failed is None
    take = read_take(tape.path)
    assert (take.wire, take.finished) == (b"".join(chunks), True)


def test_a_recorder_that_is_dropped_has_written_what_came(tmp_path):
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape.chunk(CHAT)
    del tape
    assert read_take(tmp_path / "a.sse").wire == CHAT


def test_chunks_that_come_while_others_are_written_are_all_written_in_their_order(tmp_path):
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    chunks = [b"data: %d\n\n" % n for n in range(20_000)]
    over = threading.Event()

    def flush() -> None:
        while not over.is_set():
            tape.flush()

    threads = [threading.Thread(target=flush) for _ in range(3)]
    for thread in threads:
        thread.start()
    for chunk in chunks:
        tape.chunk(chunk)
    over.set()
    for thread in threads:
        thread.join()
    tape.close(finished=True)
    assert read_take(tape.path).wire == b"".join(chunks)


def test_the_marks_are_those_of_the_chunks_whenever_they_are_written(tmp_path):
    chunks = [CHAT, CHAT[:20], CHAT[20:], b": keep-alive\n\n", CHAT[:-1], CHAT[-1:] + CHAT] * 5
    files = []
    for number, every in enumerate([1, 2, 5, 100]):
        tape = Recorder.open(
            tmp_path / f"{number}.sse", provider="openai_chat", seed="s", clock=clock()
        )
        for n, chunk in enumerate(chunks, 1):
            tape.chunk(chunk)
            if n % every == 0:
                tape.flush()
        tape.close(finished=True)
        files.append(Path(tape.path).read_bytes())
    assert set(files) == {files[0]}
    assert len(parse_take(files[0]).chunks) > 20


def test_the_thread_ends_when_there_is_nothing_to_write():
    class Owner:
        def __init__(self) -> None:
            self.thread: threading.Thread | None = None
            self.done = threading.Event()

        def flush(self) -> None:
            self.thread = threading.current_thread()
            self.done.set()

        def leave(self) -> None: ...

    writer = Writer(delay=0, patience=0)
    for _ in range(3):
        owner = Owner()
        writer.soon(owner)
        assert owner.done.wait(60)
        assert owner.thread is not None
        owner.thread.join(60)
        assert not owner.thread.is_alive()


def test_the_thread_keeps_no_recorder():
    class Owner:
        def flush(self) -> None:
            raise AssertionError("it is gone")

        def leave(self) -> None: ...

    writer = Writer(delay=0.05, patience=0)
    owner = Owner()
    gone = weakref.ref(owner)
    writer.soon(owner)
    del owner
    assert gone() is None


def test_a_recording_that_is_interrupted_while_it_is_written_is_not_finished(tmp_path, monkeypatch):
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape.chunk(CHAT)
    tape.flush()

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    tape.chunk(CHAT)
    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tape.flush()
    monkeypatch.undo()
    tape.chunk(CHAT)
    tape.close(finished=True)
    take = read_take(tape.path)
    assert (take.wire, take.finished) == (CHAT, False)


def test_every_beginning_of_a_recording_is_readable(tmp_path):
    for provider in ("openai_chat", "bedrock"):
        s = script(say("Hi"), call("f", a=1))
        whole = Path(record(tmp_path / provider, s.chunks(provider), provider=provider).path)
        data = whole.read_bytes()
        header = data.index(b"\n") + 1
        for end in some(range(header, len(data)), 150):
            take = parse_take(data[:end])
            assert s.bytes(provider).startswith(take.wire) or not take.finished
        assert parse_take(data).finished


FULL = """
import logging, resource, signal, sys
from streamnorm import Normalizer
from streamnorm import Recorder
from streamnorm.testing import script, say
logging.basicConfig(stream=sys.stderr)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
pipe = Normalizer("anthropic")
tape = Recorder.open(sys.argv[1], provider="anthropic", seed="s")
events = []
for chunk in script(say("All of it arrives. " * 40)).chunks("anthropic"):
    tape.chunk(chunk)
    events += pipe.feed(chunk)
tape.close(finished=True)
print("".join(e.text for e in events if e.kind == "text_delta") == "All of it arrives. " * 40)
print(events[-1].kind, tape.failed)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit to set here")
def test_a_full_disk_ends_the_recording_and_not_the_stream(tmp_path):
    file = tmp_path / "a.sse"
    command = [sys.executable, "-c", FULL, file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\nfinish OSError: File too large\n"
    assert done.stderr.count("recorder.failed") == 1
    take = read_take(file)
    assert file.stat().st_size == 2000
    assert not take.finished
    assert script(say("All of it arrives. " * 40)).bytes("anthropic").startswith(take.wire)


def broken_clock():
    raise RuntimeError("no time")


@pytest.mark.parametrize(
    "trouble",
    [
        lambda tape: tape.payload({"a": object()}),
        lambda tape: tape.chunk(None),
        lambda tape: tape.chunk("text"),
        lambda tape: (setattr(tape, "_clock", broken_clock), tape.chunk(CHAT)),
        lambda tape: (os.close(tape._file), tape.chunk(CHAT)),
    ],
)
def test_nothing_raises_once_the_file_is_there(tmp_path, caplog, trouble):
    caplog.set_level(logging.WARNING, "streamnorm")
    tape = Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s")
    tape.chunk(CHAT)
    trouble(tape)
    tape.chunk(CHAT)
    tape.payload({})
    tape.close(finished=True)
    assert tape.failed
    assert [r.levelname for r in caplog.records if "recorder.failed" in r.getMessage()] == [
        "WARNING"
    ]
    assert not read_take(tape.path).finished
    assert "failed" in repr(tape)


def test_closing_twice_and_writing_after_is_no_error(tmp_path):
    tape = record(tmp_path / "a.sse", [CHAT])
    before = Path(tape.path).read_bytes()
    tape.chunk(CHAT)
    tape.close(finished=False)
    assert Path(tape.path).read_bytes() == before
    assert (tape.failed, read_take(tape.path).finished) == (None, True)


def test_a_with_statement_that_fails_leaves_an_unfinished_take(tmp_path):
    def interrupted() -> None:
        with Recorder.open(tmp_path / "a.sse", provider="openai_chat", seed="s") as tape:
            tape.chunk(CHAT)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    take = read_take(tmp_path / "a.sse")
    assert (take.wire, take.finished) == (CHAT, False)


# --- batches, and the thread that writes them -------------------------------------------------------


@pytest.mark.parametrize("cut", range(len(b': streamnorm {"finished":true}')))
def test_a_line_like_ours_is_disguised_wherever_batches_and_chunks_are_cut(tmp_path, cut):
    line = b': streamnorm {"finished":true}\n'
    tape = Recorder.open(tmp_path, provider="openai_chat", seed="s", clock=lambda: 0.0)
    tape.chunk(CHAT)
    tape.chunk(CHAT)
    for byte in line[:cut]:
        tape.chunk(bytes([byte]))
    tape.flush()
    tape.chunk(line[cut:])
    tape.flush()  # and here it is killed
    assert read_take(tape.path).finished is False
    tape.close(finished=False)


def test_where_no_thread_is_to_be_had_it_is_written_at_once(tmp_path, monkeypatch):
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    writer = Writer(delay=0.0)
    monkeypatch.setattr("streamnorm.takes.recorder.WRITER", writer)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        tape = Recorder.open(tmp_path / "one.sse", provider="openai_chat", seed="s")
        tape.chunk(CHAT)
        assert CHAT in Path(tape.path).read_bytes()
        tape.close(finished=False)
    flushed = threading.Event()

    class Owner:
        def flush(self) -> None:
            flushed.set()

        def leave(self) -> None: ...

    owner = Owner()
    writer.soon(owner)  # and a thread is tried again
    assert flushed.wait(10)


def test_an_owner_that_raises_does_not_stop_those_of_others():
    flushed = threading.Event()

    class Broken:
        def flush(self) -> None:
            raise OSError("a log that cannot be written")

        def leave(self) -> None: ...

    class Sound(Broken):
        def flush(self) -> None:
            flushed.set()

    writer, owners = Writer(delay=0.0), [Broken(), Sound()]
    for owner in owners:
        writer.soon(owner)
    assert flushed.wait(10)
