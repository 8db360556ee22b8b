"""Server-sent events: bytes in any chunking in, blocks out, by the WHATWG rules.

Rule: a block is what stands between two blank lines, in bytes. Lines end with CR, LF or CRLF, also
when the chunk border falls inside; a byte order mark at the very start is dropped once; text is
UTF-8 whatever a header says. Nothing here reads JSON.

Why not httpx-sse: it works on decoded text of an httpx response, keeps the byte order mark, has no
size limit and reads line by line. Splitting bytes at blank lines costs a third of it (``make
bench``); the tests use it and a small reference reader as judges.
"""

from __future__ import annotations

from ..framing import CR, LF, Fields

__all__ = ["SSE", "Uncut", "read"]

_BOM = b"\xef\xbb\xbf"
_NO_JSON = (b"event:", b"data:", b":")  # beginnings of blocks that no value begins with
_IGNORED = {b"retry"}  # a field of the specification that says nothing to us


class Uncut(bytes):
    """A block with its head, between others without theirs."""


class SSE:
    """An incremental splitter.

    >>> sse = SSE()
    >>> sse.feed(b"data: 1\\r"), sse.feed(b"\\n\\r\\nda"), sse.feed(b"ta: 2\\n\\n")
    ([], [b'data: 1'], [b'data: 2'])
    """

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self.overflow = False
        self.single_lines = False  # the frames of the last chunk have one line each, for sure
        self.end = b""  # what ended the last frame, if nothing came behind it yet
        self._usual_end = b"\n\n"
        self._mixed = 0  # heads are of many kinds: so many chunks are not taken for runs
        self._even = True  # those before had: every other line was blank
        self._limit = limit
        self._held: list[bytes] = []  # pieces of the block that has not ended …
        self._cut: bytes | None = None  # … without this head, if a run ended inside its line
        self._joint = b""  # of two blocks of that head: an end and a head
        self._size = 0
        self._cr = False  # the last chunk ended with a CR, already taken for a line end
        self._start: bytes | None = b""  # may be the beginning of a byte order mark

    def feed(self, chunk: bytes) -> list[bytes]:
        """The blocks that ended in this chunk."""
        self._uncut()
        # Where every other line is blank, as on most wires, the lines tell it: finding one byte takes
        # less than half the time of finding two (``make bench``).
        if self._even and not self._cr and self._start is None and CR not in chunk:
            lines = chunk.split(b"\n")
            held = self._held
            if (
                len(lines) & 1
                and len(lines) > 1
                and not any(lines[1::2])
                and not (held and held[-1][-1:] == b"\n")
            ):
                self.single_lines = True
                return self._ended(lines[::2], len(chunk))
        return self._feed(chunk)

    def _feed(self, chunk: bytes) -> list[bytes]:
        if self._start is not None:
            chunk = self._without_bom(chunk)
            return [] if self._start is not None else self.feed(chunk)
        if self._cr or CR in chunk:
            if not self._cr and (blocks := self._single_lines(chunk)) is not None:
                return blocks
            chunk = self._only_lf(chunk)
        held = self._held
        if held and chunk[:1] == b"\n" == held[-1][-1:]:  # the blank line itself was cut in two
            held[-1], chunk = held[-1][:-1], b"\n" + chunk
        self.single_lines = False
        blocks = chunk.split(b"\n\n")  # the search is the split: looking first would scan twice
        if len(blocks) > 2:
            self._even = LF not in blocks[1]  # the first may be the end of one
        return self._hold(chunk) if len(blocks) == 1 else self._ended(blocks, len(chunk))

    def run(self, chunk: bytes, head: bytes) -> list[bytes] | None:
        """As ``feed``, for blocks of ``head`` and one line: these lines. None: feed it instead.

        The search for the end of a block is the comparison of the next head, so that both cost one.
        Between the lines a block of another head is ``Uncut``; it cannot be taken for JSON.
        """
        if self._size + len(chunk) > self._limit:
            return None
        if self._cut is head:  # the last chunk was a run, too, and ended inside a line
            lines = chunk.split(self._joint)
            lines[0] = self._held[0] + lines[0]  # no end is cut in two: it is a part of a line
        elif len(self._held) > 1:
            return None  # a long block that is held in pieces, to be joined once
        elif self._mixed or self._cr or self._start is not None:
            self._mixed = max(0, self._mixed - 1)
            return None
        else:
            self._uncut()
            whole = self._held[0] + chunk if self._held else chunk
            chunk = whole.removeprefix(head)
            if chunk is whole:
                return None
            self._joint = self._usual_end + head
            lines = chunk.split(self._joint)
        rest = lines.pop()
        if LF in rest or not lines or LF in (text := b"".join(lines)):
            return self._run_oddly(lines, rest, head)
        if CR in text or CR in rest:
            return None
        self._held, self._cut, self._size, self.end = [rest], head, len(head) + len(rest), b""
        return lines

    def _run_oddly(self, lines: list[bytes], rest: bytes, head: bytes) -> list[bytes] | None:
        """The same where the chunk does not end inside a line, or a block has another head."""
        end = self._usual_end
        if end in rest:
            line, _, rest = rest.rpartition(end)
            lines.append(line)
            head = b""
        if LF in rest and end != b"\n\n":
            return None
        rest = head + rest
        text = b"".join(lines)
        if not lines or CR in text or CR in rest:
            return None
        if LF in text:
            alike = len(lines)
            if end != b"\n\n" or not _part(lines):
                return None
            if len(lines) > alike + max(3, alike // 8):  # a call ends and another begins in three
                self._mixed = 4
        self._held, self._size, self.end = ([rest], len(rest), b"") if rest else ([], 0, end)
        self._cut = None
        return lines

    def _uncut(self) -> None:
        """What is held gets its head back."""
        if self._cut is not None:
            self._held[0], self._cut = self._cut + self._held[0], None

    def _single_lines(self, chunk: bytes) -> list[bytes] | None:
        """Blocks of one line each, all ended by CR LF: split as they are.

        Making every CR LF even first costs three times as much, and a whole provider sends so.
        """
        if self._held and self._held[-1][-1:] == b"\n":
            return None  # a line has ended: this may be the second half of a blank one
        blocks = chunk.split(b"\r\n\r\n")
        lines = b"".join(blocks)
        if LF in lines or CR in lines:
            return None
        self.single_lines = True
        return self._ended(blocks, len(chunk), b"\r\n\r\n")

    def _ended(self, blocks: list[bytes], size: int, end: bytes = b"\n\n") -> list[bytes]:
        """Of the blocks of so many bytes the first began in what is held; the last has not ended."""
        held = self._held
        if held:
            blocks[0] = b"".join((*held, blocks[0]))
            self.single_lines = self.single_lines and LF not in blocks[0]
        rest = blocks.pop()
        self._usual_end = end
        if rest:
            self._held, self._size, self.end = [rest], len(rest), b""
        else:
            self._held, self._size, self.end = [], 0, b"" if self._cr else end
        if size > self._limit or len(blocks[0]) > self._limit:
            return self._up_to_limit(blocks)
        return blocks

    def rest(self) -> list[bytes]:
        """The last block, if the input ended without its blank line."""
        self.single_lines = False
        self._uncut()
        if self._start:
            self._held.append(self._start)
        block = b"".join(self._held).strip(b"\n")
        self._held, self._start = [], None
        return [block] if block else []

    def head_of(self, frame: bytes) -> bytes:
        """What stands before the data of a block of one data line, perhaps after an event line."""
        at = 0
        if frame[:6] == b"event:":
            at = frame.find(b"\n") + 1
        if frame[at : at + 5] != b"data:":
            return frame
        at += 6 if frame[at + 5 : at + 6] == b" " else 5
        return frame[:at]

    def instead_of(self, other: SSE) -> SSE:
        """Itself, from here on: it holds what the other one held."""
        vars(self).update(vars(other))
        return self

    def read(self, frame: bytes) -> Fields:
        """Any block, by the specification."""
        return read(frame)

    def _hold(self, piece: bytes) -> list[bytes]:
        if piece:
            self.end = b""
            self._held.append(piece)
            self._size += len(piece)
            if self._too_long():
                self.overflow = True
                self._held.clear()
        return []

    def _too_long(self) -> bool:
        """A line end may still turn out to be the first half of the blank line: not counted yet."""
        line_end = bool(self._held) and self._held[-1][-1:] == b"\n"
        return self._size - line_end > self._limit

    def _up_to_limit(self, blocks: list[bytes]) -> list[bytes]:
        """A limit falls at the same block in any chunking."""
        for number, block in enumerate(blocks):
            if len(block) > self._limit:
                self.overflow = True
                return blocks[:number]
        self.overflow = self._too_long()
        return blocks

    def _only_lf(self, chunk: bytes) -> bytes:
        if self._cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        elif not chunk:
            return chunk
        self._cr = chunk[-1:] == b"\r"
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < 3 and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)


def _part(lines: list[bytes]) -> bool:
    """Part lines that have blocks of other heads behind them; False: there is more to be found out."""
    parted: list[bytes] = []
    done = 0
    for at in [at for at, line in enumerate(lines) if LF in line]:
        first, *others = lines[at].split(b"\n\n")
        if LF in first or not all(other.startswith(_NO_JSON) for other in others):
            return False
        parted += [*lines[done:at], first, *map(Uncut, others)]
        done = at + 1
    lines[:done] = parted
    return True


def read(block: bytes) -> Fields:
    """One block by the specification: fields, comments, several data lines.

    ``error:`` is no field of the specification, but a server was seen to report errors so. A line
    of any other name is to be ignored, and is counted: it may be the data of a damaged stream.

    >>> read(b": hi\\nevent: x\\ndata: 1\\ndata:2\\ndat: 3")
    Fields(data=b'1\\n2', event='x', comments=1, error=None, strays=1, id=b'')
    """
    data: list[bytes] = []
    event, comments, error, strays, id = b"", 0, None, 0, b""
    for line in block.split(b"\n"):
        field, colon, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if field == b"data":
            data.append(value)
        elif field == b"event":
            event = value
        elif field == b"error":
            error = value
        elif field == b"id":
            id = value
        elif not field and colon:
            comments += 1
        elif line and field not in _IGNORED:
            strays += 1
    joined = b"\n".join(data) if data else None
    return Fields(joined, event.decode("utf-8", "replace"), comments, error, strays, id)
