"""Media at an address: said where a wire has a place for them, told in words elsewhere, fetched by nobody."""

from __future__ import annotations

import pytest

from streamnorm import Conversation, EncodeError, Link, Turn, provider
from streamnorm import read_request as read
from streamnorm.providers import PROVIDERS

CAT = Link("https://example.org/cat.png", "image/*")
PAPER = Link("https://example.org/paper.pdf", "application/*")
FILM = Link("https://example.org/film", "video/*")
UNTOLD = Link("https://example.org/picture", "image/*")


def blocks(wire: str, link: Link):
    """What the user said, and why it is not said as it was."""
    said = provider(wire).prepare(Conversation().user("Look:", link), model="m")
    return _user_of(said.body), [row.why for row in said.dropped if row.what == "address"]


def _user_of(body):
    held = body.get("messages") or body.get("contents") or body.get("input") or body.get("inputs")
    if isinstance(held, dict):
        held = held["messages"]
    entry = held[-1] if isinstance(held, list) else held
    content = entry.get("content", entry.get("parts")) if isinstance(entry, dict) else entry
    return content[-1] if isinstance(content, list) else content


def chat(url: str):
    return {"type": "image_url", "image_url": {"url": url}}


def anthropic(kind: str, url: str):
    return {"type": kind, "source": {"type": "url", "url": url}}


SAID = {
    ("anthropic", CAT): anthropic("image", CAT.url),
    ("anthropic", UNTOLD): anthropic("image", UNTOLD.url),
    ("anthropic", PAPER): anthropic("document", PAPER.url),
    ("openai_chat", CAT): chat(CAT.url),
    ("openai_responses", CAT): {"type": "input_image", "image_url": CAT.url, "detail": "auto"},
    ("openai_responses", PAPER): {"type": "input_file", "file_url": PAPER.url},
    ("azure_foundry", CAT): {"type": "input_image", "image_url": CAT.url, "detail": "auto"},
    ("gemini", CAT): {"fileData": {"mimeType": "image/png", "fileUri": CAT.url}},
    ("gemini", PAPER): {"fileData": {"mimeType": "application/pdf", "fileUri": PAPER.url}},
    ("gemini", FILM): {"fileData": {"fileUri": FILM.url}},
    ("gemini_interactions", CAT): {"type": "image", "uri": CAT.url, "mime_type": "image/png"},
    ("gemini_interactions", UNTOLD): {"type": "image", "uri": UNTOLD.url},
    ("gemini_interactions", PAPER): {
        "type": "document", "uri": PAPER.url, "mime_type": "application/pdf",
    },
    ("mistral", CAT): {"type": "image_url", "image_url": CAT.url},
    ("mistral", PAPER): {"type": "document_url", "document_url": PAPER.url},
    ("mistral_conversations", CAT): {"type": "image_url", "image_url": CAT.url},
    ("mistral_conversations", PAPER): {"type": "document_url", "document_url": PAPER.url},
    ("cohere", CAT): chat(CAT.url),
    ("dashscope", CAT): {"image": CAT.url},
}  # fmt: skip


@pytest.mark.parametrize(("wire", "link"), SAID, ids=lambda v: getattr(v, "url", v))
def test_what_is_at_an_address_is_said_in_the_words_of_the_wire_and_read_again(wire, link):
    said, why = blocks(wire, link)
    assert (said, why) == (SAID[wire, link], [])
    prepared = provider(wire).prepare(Conversation().user("Look:", link), model="m")
    again = read(wire, prepared.body)
    assert [part.url for part in again.conversation.turns[0].parts[1:]] == [link.url]
    assert again.report == ()
    assert again.prepare().body == prepared.body


@pytest.mark.parametrize("wire", PROVIDERS)
@pytest.mark.parametrize("link", [CAT, PAPER, FILM, UNTOLD], ids=lambda link: link.url)
def test_a_wire_without_a_place_for_it_is_told_in_words_and_the_report_says_so(wire, link):
    if (wire, link) in SAID or (wire, link) in SHARED:
        return
    said, why = blocks(wire, link)
    assert link.url in str(said)
    assert f"[{link.modality}: {link.url}]" in str(said)
    assert len(why) == 1
    assert "in words" in why[0]


# Of wires that take as much as another does.
SHARED = {
    ("openai_chat", UNTOLD), ("openai_responses", UNTOLD), ("azure_foundry", UNTOLD),
    ("azure_foundry", PAPER), ("mistral", UNTOLD), ("mistral_conversations", UNTOLD),
    ("cohere", UNTOLD), ("dashscope", UNTOLD), ("gemini_interactions", FILM),
}  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "link"), sorted(SHARED, key=str), ids=lambda v: getattr(v, "url", v)
)
def test_what_a_wire_takes_at_an_address_is_not_told_in_words(wire, link):
    said, why = blocks(wire, link)
    assert why == []
    assert isinstance(said, dict)
    assert link.url in str(said)
    assert link.words not in str(said)


def test_a_picture_of_a_chat_client_reaches_messages_and_gemini_as_a_picture():
    body = {"model": "m", "messages": [{"role": "user", "content": [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/cat.jpg?w=2", "detail": "low"}},
    ]}]}  # fmt: skip
    asked = read("openai_chat", body)
    assert [row.what for row in asked.report] == ["detail"]
    [_, shown] = asked.prepare("anthropic", model="m").body["messages"][0]["content"]
    assert shown == anthropic("image", "https://example.org/cat.jpg?w=2")
    [_, shown] = asked.prepare("gemini", model="m").body["contents"][0]["parts"]
    assert shown == {
        "fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/cat.jpg?w=2"}
    }


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("gemini", {"contents": [{"role": "user", "parts": [{"fileData": {
            "mimeType": "image/png",
            "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}}]}]}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"fileData": {
            "mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}]}]}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"fileData": {
            "mimeType": 5, "fileUri": "https://example.org/a.png"}}]}]}),
        ("gemini_interactions", {"input": [{"type": "user_input", "content": [{
            "type": "image", "uri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}]}]}),
        ("anthropic", {"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "url", "url": 5}}]}]}),
        ("anthropic", {"messages": [{"role": "user", "content": [
            {"type": "search_result", "source": {"type": "url", "url": "https://example.org/"}}]}]}),
        ("openai_chat", {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]}),
        ("openai_chat", {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png,%89"}}]}]}),
        ("openai_responses", {"input": [{"role": "user", "content": [
            {"type": "input_file", "file_url": "https://example.org/a.pdf", "filename": 5}]}]}),
        ("dashscope", {"input": {"messages": [{"role": "user", "content": [
            {"image": "oss://bucket/a.png"}]}]}}),
    ],
)  # fmt: skip
def test_what_nobody_else_can_open_and_what_is_no_address_is_left_out_with_a_row(wire, body):
    asked = read(wire, body)
    assert [part for turn in asked.conversation for part in turn.parts] == []
    assert any(row.what == "left_out" for row in asked.report)


def test_an_address_in_a_result_stays_as_it_is_written():
    block = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    body = {"messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [block]}]},
    ]}  # fmt: skip
    [result] = read("anthropic", body).conversation.turns[-1].results
    assert result.value == [block]


@pytest.mark.parametrize(
    "link", [lambda: Link("cat.png"), lambda: Link("data:image/png;base64,aGk="), lambda: Link(b"x")]
)  # fmt: skip
def test_what_is_no_address_on_the_web_is_refused_with_what_to_pass(link):
    with pytest.raises(EncodeError, match=r"Link\('https://…/cat\.png', 'image/png'\)"):
        link()


def test_a_link_survives_being_stored():
    talk = Conversation().user("Look:", Link("https://example.org/a.png", "image/png", "a.png"))
    assert Conversation.from_json(talk.to_json()) == talk


def test_only_a_user_shows_what_is_at_an_address():
    turn = Turn("assistant", (CAT,))
    with pytest.raises(EncodeError, match="an assistant turn cannot have a Link"):
        provider("anthropic").request(Conversation().user("Hi").add(turn), model="m")


def test_a_title_is_said_of_a_document_alone():
    titled = Link(PAPER.url, "application/pdf", "A paper")
    assert blocks("anthropic", titled)[0]["title"] == "A paper"
    assert "title" not in blocks("anthropic", Link(CAT.url, "image/png", "A cat"))[0]
