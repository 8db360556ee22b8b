"""A provider that another package brings: its files, and a folder with the package installed.

{acme: hello, id, model} -> {acme: text, text}* {acme: use, id, tool, with}* -> {acme: bye, why}
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

__all__ = ["FILES", "installed"]

ROW = '''
    """Acme: the row."""

    from streamnorm.providers import Key, Provider, Refusals

    PROVIDER = Provider(
        name="acme",
        title="Acme Answers",
        serves="answers.acme.example",
        container="talk",
        telemetry="acme.answers",
        base="https://answers.acme.example",
        path="/v1/answers",
        hosts=("answers.acme.example",),
        paths=("/v1/answers",),
        home_paths=("/chat/completions",),
        headers={"acme-version": "7"},
        key=Key(("ACME_KEY", "ACME_TOKEN"), "x-acme-key", ""),
        sdk_modules=("acme_sdk",),
        sdk_fields=("debug",),
        refusals=Refusals(final=("acme_is_closed",), code_header="x-acme-error", delay=("wait",)),
        parser=f"{__name__}.parser",
        encoder=f"{__name__}.encoder",
        messages=f"{__name__}.messages",
        server=f"{__name__}.server",
        script=f"{__name__}.script",
    )
'''

PARSER = '''
    """Acme, the way in."""

    import msgspec

    from streamnorm.core.calls import Evidence
    from streamnorm.core.parser import (
        Failure, Heading, Parser, Payload, StreamFailed, StreamOver, count,
    )
    from streamnorm.core.row import Item
    from streamnorm.events import TextDelta, Usage


    class Hello(Payload, tag_field="acme", tag="hello"):
        id: str
        model: str


    class Text(Payload, tag_field="acme", tag="text"):
        text: str


    class Use(Payload, tag_field="acme", tag="use"):
        tool: str
        id: str | None = None
        arguments: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="with")


    class Bye(Payload, tag_field="acme", tag="bye"):
        why: str
        counts: dict[str, int] = {}


    class Oops(Payload, tag_field="acme", tag="oops"):
        code: str
        message: str = ""


    class AcmeParser(Parser):
        name = "acme"
        END = "bye"
        TYPE_FIELD = "acme"
        REASONS = {"done": "stop", "tools": "tool_calls", "full": "length"}
        EVIDENCE = Evidence("the payload that holds it", "nothing", "bye", "at the payload")
        decode = staticmethod(msgspec.json.Decoder(Hello | Text | Use | Bye | Oops).decode)
        counts: dict[str, int] = {}

        @classmethod
        def looks_like(cls, payload):
            return "acme" in payload

        def heading(self, data):
            said = msgspec.json.decode(data)
            return Heading(said.get("model"), said.get("id") if said["acme"] == "hello" else None)

        def usage(self):
            return Usage(count(self.counts, "in"), count(self.counts, "out"), raw=self.counts)

        def _hello(self, payload, out):
            """The heading has told it."""

        def _text(self, payload, out):
            out.append(TextDelta(payload.text))

        def _use(self, payload, out):
            call = self.calls.open(out, id=payload.id, field="id", name=payload.tool)
            self.calls.append(call, bytes(payload.arguments).decode(), out)
            self.calls.close(call, out)

        def _bye(self, payload, out):
            self.raw_reason, self.counts = payload.why, payload.counts
            self.reason = self.finish_reason(payload.why)
            raise StreamOver

        def _oops(self, payload, out):
            raise StreamFailed(Failure("provider_error", payload.message, payload.code))

        KINDS = {Hello: _hello, Text: _text, Use: _use, Bye: _bye, Oops: _oops}


    PARSER = AcmeParser
    ITEMS = (Item("use", "function", "call", "client", "nullable", "id", "with, an object"),)
'''

ENCODER = '''
    """Acme, the way back."""

    from streamnorm.encoding.encoder import Called, Encoder
    from streamnorm.encoding.ids import Grammar


    class AcmeEncoder(Encoder):
        name = "acme"
        grammar = Grammar("[!-~]{1,64}", needed=True)

        def body(self, talk, system, tools):
            talk = self.entries(talk)
            return {"model": self.options.model, "rule": system, "talk": talk, **tools}

        def user(self, said):
            return [{"role": "user", "content": said.text}]

        def assistant(self, said):
            calls = [part for part in said.parts if isinstance(part, Called)]
            uses = [{"id": c.id, "tool": c.name, "with": c.call.arguments} for c in calls]
            return [{"role": "acme", "content": said.text, "uses": uses}]

        def answers(self, said):
            return [{"role": "tool", "id": a.called.id, "gave": a.text} for a in said.answers]

        def tool(self, tool, name, schema):
            return {"tool": name, "about": tool.description, "takes": schema}

        def choice(self, choice, tools):
            return {} if choice.mode == "auto" else {"must": choice.mode}


    ENCODER = AcmeEncoder
'''

MESSAGES = '''
    """Acme, a body read back."""

    from streamnorm.encoding.messages import Lines


    class AcmeMessages(Lines):
        model = "acme"
        calls = "uses"

        def is_own(self, entry):
            return entry.get("role") == "acme"

        def call(self, block):
            return block.get("id"), block.get("tool")

        def result(self, block):
            return (block.get("id"), None) if block.get("role") == "tool" else None

        def returned(self, block):
            return block.get("gave"), False

        def closed(self, call):
            return {"role": "tool", "id": call.id, "gave": "nobody knows"}

        def name_call(self, block, id):
            block["id"] = id

        def name_result(self, block, id):
            block["id"] = id

        def system(self, body):
            return body.get("rule")

        def told(self, entry):
            yield {"acme": "text", "text": entry["content"]}
            for use in entry["uses"]:
                yield {"acme": "use", **use}
            yield {"acme": "bye", "why": "tools" if entry["uses"] else "done"}


    MESSAGES = AcmeMessages
'''

SERVER = '''
    """Acme, served."""

    from streamnorm.encoding.server import Server
    from streamnorm.text.written import sse


    class AcmeServer(Server):
        name = "acme"

        def opening(self):
            yield sse({"acme": "hello", "id": self.response_id, "model": self.model})

        def text(self, event):
            yield sse({"acme": "text", "text": event.text})

        def reasoning(self, event):
            return ()

        def call_opened(self, call):
            return ()

        def fragment(self, call, text):
            return ()

        def call_closed(self, call):
            yield b'data: {"acme":"use","id":"%s","tool":"%s","with":%s}\\n\\n' % (
                call.id.encode(), call.name.encode(), call.sent.encode()
            )

        def finished(self, finish):
            yield sse({"acme": "bye", "why": "tools" if finish.reason == "tool_calls" else "done"})

        def failed(self, failure):
            yield sse({"acme": "oops", "code": "served", "message": failure.error})


    SERVER = AcmeServer
'''

SCRIPT = '''
    """Acme, told from a script."""

    from streamnorm.encoding.teller import Teller, Told, fragments


    class Acme(Teller):
        name = "acme"
        MODEL = "acme-1"
        REASONS = {"stop": "done", "tool_calls": "tools", "length": "full"}

        def start(self):
            return [{"acme": "hello", "id": self.id("a_"), "model": self.MODEL}]

        def say(self, text):
            return Told(deltas=[{"acme": "text", "text": piece} for piece in fragments(text)])

        def call(self, call):
            self.calls += 1
            key = {"id": call.id or self.id("u_", self.calls)} if call.has_id else {}
            return Told([{"acme": "use", "tool": call.name, **key, "with": call.value()}])

        def finish(self, reason):
            counts = {"in": self.used.input, "out": self.used.output}
            return [{"acme": "bye", "why": self.reason(reason), "counts": counts}]

        def fail(self, error):
            return [{"acme": "oops", "code": self.code(error), "message": self.words(error)}]


    SCRIPT = Acme
'''

FILES = {
    "__init__.py": ROW,
    "parser.py": PARSER,
    "encoder.py": ENCODER,
    "messages.py": MESSAGES,
    "server.py": SERVER,
    "script.py": SCRIPT,
}


@contextmanager
def installed(
    folder: Path, files: dict[str, str], points: str = "acme = acme_answers"
) -> Iterator[None]:
    """The package ``acme_answers`` as an installer leaves it, in a folder on ``sys.path``."""
    package, about = folder / "acme_answers", folder / "acme_answers-1.0.dist-info"
    for place in (package, about):
        place.mkdir()
    for name, text in files.items():
        (package / name).write_text(dedent(text))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-answers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[streamnorm.providers]\n{points}\n")
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n.split(".")[0] in ("acme_answers", "acme_sdk")]:
            del sys.modules[name]
