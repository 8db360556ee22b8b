"""Answers on loopback come in; files of the programs that captured them go out, into tests/captures/files.

    python -m tools.captures                 all of them
    python -m tools.captures curl vcrpy      some

Each is written by its own tool, which must be there: curl and gzip; vcrpy and betamax (PyPI); the gems vcr
and webmock (Debian: ruby-vcr ruby-webmock); mitmdump; and, for a browser's HAR, node with playwright-core
in STREAMNORM_NPM and a Chromium. What is answered is made by ``streamnorm.testing``. Ports are written as
8080, so that a file does not change with each run more than it must.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from streamnorm.testing import call, finish, say, script

FILES = Path(__file__).resolve().parent.parent / "tests" / "captures" / "files"
ASKED = '{"model":"m","stream":true,"messages":[{"role":"user","content":"The weather?"}]}'
KEY = "sk-test-0123456789abcdefghijklmnop"
WEATHER = script(say("I look it up — "), call("get_weather", city="Oslo"), finish())
REFUSED = b'{"error":{"message":"Slow down","type":"rate_limit_error","code":"rate_limit"}}'
PAGE = b"""<!doctype html><title>chat</title><script>
async function ask(path, body) { await (await fetch(path, {method: "POST", body})).text() }
</script>"""


def _body(provider: str) -> list[bytes]:
    return [
        WEATHER.bytes(provider)[at : at + 200] for at in range(0, len(WEATHER.bytes(provider)), 200)
    ]


class _Handler(BaseHTTPRequestHandler):
    """One path for each kind of answer."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "loopback", ""

    def do_POST(self) -> None:
        """An answer."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("expect"):
            self.close_connection = False
        status, kind, chunks, extra = _ROUTES[self.path.partition("?")[0]]
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("request-id", "req_1")
        self.send_header("set-cookie", f"session={KEY}; Path=/")
        for name, value in extra:
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


_SSE = "text/event-stream"
_ROUTES: dict[str, tuple[int, str, list[bytes], list[tuple[str, str]]]] = {
    "/v1/chat/completions": (200, _SSE, _body("openai_chat"), []),
    "/v1/messages": (
        200, _SSE, [gzip.compress(WEATHER.bytes("anthropic"), mtime=0)], [("content-encoding", "gzip")],
    ),
    "/v1/responses": (429, "application/json", [REFUSED], [("retry-after", "7")]),
    "/api/chat": (200, "application/x-ndjson", _body("ollama"), []),
    "/model/m/converse-stream": (
        200, "application/vnd.amazon.eventstream", _body("bedrock"), [],
    ),
    "/v1/models": (200, "application/json", [b'{"data":[{"id":"m"}]}'], []),
    "/moved": (307, "text/plain", [b"elsewhere"], [("location", "/v1/chat/completions")]),
    "/": (200, "text/html", [PAGE], []),
    "/favicon.ico": (404, "text/plain", [b"no"], []),
}  # fmt: skip
ASKS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat",
        "/model/m/converse-stream", "/v1/models")  # fmt: skip


@contextmanager
def serving() -> Iterator[str]:
    """The server, by its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _keep(name: str, data: bytes) -> None:
    """Into the folder, without ports."""
    FILES.mkdir(parents=True, exist_ok=True)
    data = re.sub(rb"(127\.0\.0\.1|localhost):\d{4,5}", rb"\1:8080", data)
    (FILES / name).write_bytes(data)
    print(f"{name}: {len(data)} bytes")


# --- the tools ------------------------------------------------------------------------------------


def _curl(*options: str) -> bytes:
    headers = ["-H", f"Authorization: Bearer {KEY}", "-H", "Content-Type: application/json"]
    return subprocess.run(
        ["curl", "-s", *headers, *options], check=True, stdout=subprocess.PIPE
    ).stdout


def curl(at: str) -> None:
    """What curl prints: -i, --raw, -L, an error, several answers in one file; and gzip of one."""
    chat = f"{at}/v1/chat/completions"
    _keep("curl.txt", _curl("-iN", "-d", ASKED, chat))
    _keep("curl_raw.txt", _curl("-iN", "--raw", "-d", ASKED, chat))
    _keep("curl_redirect.txt", _curl("-iNL", "-d", ASKED, f"{at}/moved"))
    _keep("curl_continue.txt", _curl("-iN", "-H", "Expect: 100-continue", "-d", ASKED, chat))
    _keep("curl_error.txt", _curl("-i", "-d", ASKED, f"{at}/v1/responses"))
    _keep("curl_gzip.txt", _curl("-i", "-d", ASKED, f"{at}/v1/messages"))
    _keep("curl_ndjson.txt", _curl("-iN", "-d", ASKED, f"{at}/api/chat"))
    _keep("curl_aws.txt", _curl("-iN", "-d", ASKED, f"{at}/model/m/converse-stream"))
    _keep("curl_several.txt", b"".join(_curl("-iN", "-d", ASKED, at + path) for path in ASKS))
    _keep("body.sse", _curl("-N", "-d", ASKED, chat))
    _keep("body.ndjson", _curl("-N", "-d", ASKED, f"{at}/api/chat"))
    _keep("body.aws", _curl("-N", "-d", ASKED, f"{at}/model/m/converse-stream"))
    zipped = subprocess.run(
        ["gzip", "-nc", str(FILES / "curl_several.txt")], check=True, stdout=subprocess.PIPE
    ).stdout
    (FILES / "curl_several.txt.gz").write_bytes(zipped)


def vcrpy(at: str) -> None:
    """Cassettes of Python's vcrpy, in YAML and in JSON, asked with httpx."""
    import httpx
    import vcr

    for kind in ("yaml", "json"):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cassette.{kind}"
            with vcr.use_cassette(path, serializer=kind):
                for ask in ASKS:
                    if kind == "json" and ask.startswith(("/model", "/v1/messages")):
                        continue  # vcrpy does not write binary bodies as JSON
                    httpx.post(at + ask, content=ASKED, headers={"authorization": f"Bearer {KEY}"})
            _keep(f"vcrpy.{kind}", Path(path).read_bytes())


def betamax(at: str) -> None:
    """A cassette of betamax, asked with requests."""
    import betamax as recorder
    import requests

    with tempfile.TemporaryDirectory() as folder:
        session = requests.Session()
        session.headers["authorization"] = f"Bearer {KEY}"
        with recorder.Betamax(session, cassette_library_dir=folder).use_cassette(
            "cassette", preserve_exact_body_bytes=True
        ):
            for ask in ASKS:
                session.post(at + ask, data=ASKED)
        _keep("betamax.json", Path(folder, "cassette.json").read_bytes())


_RUBY = """
require 'vcr'
require 'net/http'
VCR.configure do |c|
  c.cassette_library_dir = ARGV[1]
  c.hook_into :webmock
end
exact = ARGV[2] == 'exact'
VCR.use_cassette('cassette', preserve_exact_body_bytes: exact) do
  ARGV[3..].each do |path|
    uri = URI(ARGV[0] + path)
    ask = Net::HTTP::Post.new(uri, 'authorization' => 'Bearer KEY', 'accept-encoding' => 'identity')
    ask.body = '{"stream":true}'
    Net::HTTP.start(uri.host, uri.port) { |http| http.request(ask) }
  end
end
""".replace("KEY", KEY)


def ruby(at: str) -> None:
    """Cassettes of Ruby's vcr: bodies as texts, and as base64."""
    for exact in ("texts", "exact"):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["ruby", "-e", _RUBY, at, folder, exact, *ASKS], check=True)
            name = "ruby_vcr.yaml" if exact == "texts" else "ruby_vcr_base64.yaml"
            _keep(name, Path(folder, "cassette.yml").read_bytes())


def mitmproxy(at: str) -> None:
    """The HAR of mitmdump, in front of the server."""
    import socket

    import httpx

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        har = f"{folder}/dump.har"
        command = [os.environ.get("MITMDUMP", "mitmdump"), "-q", "--mode", f"reverse:{at}", "--listen-host",
                   "127.0.0.1", "-p", str(port), "--set", f"hardump={har}", "--set", f"confdir={folder}",
                   "--set", "termlog_verbosity=error"]  # fmt: skip
        with subprocess.Popen(command) as proxy:
            with httpx.Client(transport=httpx.HTTPTransport(retries=20)) as client:
                for ask in ASKS:
                    client.post(
                        f"http://127.0.0.1:{port}{ask}", content=ASKED,
                        headers={"authorization": f"Bearer {KEY}"},
                    )  # fmt: skip
            proxy.terminate()
        _keep("mitmproxy.har", Path(har).read_bytes())


_BROWSE = """
const { chromium } = require(process.argv[2] + '/node_modules/playwright-core');
const [at, socket, har, binary, asked, ...paths] = process.argv.slice(3);
(async () => {
  const browser = await chromium.launch({ executablePath: binary, args: ['--no-sandbox'] });
  const context = await browser.newContext({ recordHar: { path: har, content: 'embed' } });
  const page = await context.newPage();
  await page.goto(at + '/');
  for (const path of paths)
    await page.evaluate(([path, body]) => ask(path, body), [path, asked]);
  await page.evaluate(([url, asks]) => new Promise((done) => {
    const socket = new WebSocket(url);
    socket.onopen = () => socket.send(asks.shift());
    socket.onmessage = (message) => {
      const kind = JSON.parse(message.data).type;
      if (kind === 'response.completed') asks.length ? socket.send(asks.shift()) : socket.close();
    };
    socket.onclose = done;
  }), [socket, ['{"type":"response.create","model":"m"}', '{"type":"response.create","model":"m"}']]);
  await context.close();
  await browser.close();
})();
"""


def browser(at: str) -> None:
    """The HAR of a Chromium, written by Playwright, with the messages of a WebSocket."""
    from streamnorm.testing import turns

    binary = shutil.which("chromium") or "chromium"
    both = turns(WEATHER, script(say("7 degrees."), finish()))
    with tempfile.TemporaryDirectory() as folder, both.websocket("openai_responses") as socket:
        program = Path(folder, "browse.js")
        program.write_text(_BROWSE)
        har = f"{folder}/page.har"
        subprocess.run(
            ["node", str(program), os.environ["STREAMNORM_NPM"], at, socket.url + "/v1/responses", har,
             binary, ASKED, *ASKS],
            check=True,
        )  # fmt: skip
        _keep("browser.har", Path(har).read_bytes())


TOOLS: dict[str, Callable[[str], None]] = {
    "curl": curl, "vcrpy": vcrpy, "betamax": betamax, "ruby": ruby, "mitmproxy": mitmproxy,
    "browser": browser,
}  # fmt: skip


def main(names: list[str]) -> None:
    """Run them."""
    with serving() as at:
        for name in names or TOOLS:
            TOOLS[name](at)


if __name__ == "__main__":
    main(sys.argv[1:])
