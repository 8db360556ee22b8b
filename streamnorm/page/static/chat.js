// The chat: what a person types in, a run of the tool loop out, with its tools and questions.
// Rule: the log on the server is the truth. Each answer is a stream of numbered entries; the page takes
// the next number or the first one of the next stream and no other, so that after a reload, a lost
// connection or a restart of the server nothing is lost and nothing doubled.

import { h, fill, say, announce } from "./dom.js";
import { get, post, entries } from "./api.js";
import { nothing, take as fold } from "./fold.js";
import { CallCard, outputBlock, badge } from "./cards.js";
import { mediumBlock } from "./media.js";
import { nodesOf, tell } from "./text.js";

const RETRIES = 7; // in a row without an entry: some twenty seconds, in which a server can be started again
const PAUSE = 160; // milliseconds, doubled each time

export class Chat {
  constructor(config) {
    this.config = config;
    this.build();
    this.fresh();
  }

  build() {
    const { providers, live, suggestions } = this.config;
    this.model = h("select", { id: "model" },
      h("optgroup", { label: "Scripted, offline" }, providers.filter((row) => row.scripted).map((row) => h("option", { value: row.name }, row.title))),
      live.length ? h("optgroup", { label: "Live" }, live.map((name) => h("option", { value: `live:${name}` }, `${name}, live`))) : null);
    this.log = h("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "polite", tabindex: "0" });
    this.box = h("textarea", { id: "say", rows: 1, placeholder: "Say something", "aria-label": "Your message", onkeydown: (event) => this.typed(event) });
    this.send = h("button", { type: "submit", class: "main-action" }, "Send");
    this.stopButton = h("button", { type: "button", class: "stop", hidden: true, onclick: () => this.stop() }, "Stop");
    this.state = h("p", { class: "chat-state", role: "status" });
    this.drop = h("button", { type: "button", class: "quiet", title: "close the connection in the middle; the run goes on, and so does the page", onclick: () => this.lose() }, "Drop the connection");
    this.earlier = h("select", { class: "earlier", "aria-label": "Earlier chats", hidden: true, onchange: () => { location.hash = `#/chat/${this.earlier.value}`; } });
    this.chips = h("div", { class: "suggestions", "aria-label": "Suggestions" }, suggestions.map((text) => h("button", { type: "button", class: "chip-button", onclick: () => this.ask(text) }, text)));
    this.trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    this.element = h("div", { class: "chat" },
      h("h1", { class: "unseen" }, "Chat"),
      h("div", { class: "chat-head" }, h("label", { for: "model" }, "Speaks"), this.model, this.state, this.drop,
        this.earlier,
        h("button", { type: "button", class: "quiet", onclick: () => { location.hash = `#/chat/${newId()}`; } }, "New")),
      this.log, this.trouble, this.chips,
      h("form", { class: "composer", onsubmit: (event) => { event.preventDefault(); this.ask(this.box.value); } }, this.box, this.stopButton, this.send));
  }

  fresh() {
    this.last = ""; // the position of the last entry taken: its stream and its number there
    this.count = 0;
    this.running = false;
    this.turn = null;
    this.calls = new Map();
    fill(this.log, h("p", { class: "welcome" }, "Ask for something. The model is a script that speaks the wire you choose, so all of this works offline: the calls, the approvals, the broken ones too."));
    this.chips.hidden = false;
    this.showState("ready");
  }

  /** Show the conversation of this id: everything in its log, and what is still to come. */
  open(id) {
    const wanted = id || this.id || newId();
    if (location.hash !== `#/chat/${wanted}`) history.replaceState(null, "", `#/chat/${wanted}`);
    if (wanted === this.id) return;
    this.abort?.abort();
    this.id = wanted;
    this.fresh();
    this.list();
    this.follow(this.path("log"), {});
  }

  path(what) { return `/api/chat/${encodeURIComponent(this.id)}/${what}`; }

  /** The chats that the server has kept, to be taken up again. */
  async list() {
    const { id } = this;
    const chats = await get("/api/chats").catch(() => []);
    if (id !== this.id) return;
    const others = chats.filter((chat) => chat.id !== id);
    fill(this.earlier, h("option", { value: id }, "Earlier chats"), ...others.map((chat) => h("option", { value: chat.id }, ...nodesOf(chat.title))));
    this.earlier.value = id;
    this.earlier.hidden = !others.length;
  }

  // --- asking -------------------------------------------------------------------------------------

  typed(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.ask(this.box.value);
  }

  async ask(text) {
    if (!text.trim() || this.running) return;
    this.box.value = "";
    await this.post({ messages: [{ role: "user", text }] });
  }

  /** Say or decide something, and follow what is told then. */
  async post(said) {
    const live = this.model.value.startsWith("live:");
    const provider = live ? this.model.value.slice(5) : this.model.value;
    await this.follow("/api/chat", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ id: this.id, messages: [], ...said, provider, live }) });
  }

  async stop() {
    await this.attempt(() => post(this.path("stop")));
  }

  /** A person's answer; `text` is what the arguments are to be, if that is not what they are. */
  async decide(approval, approved, text = null) {
    if (text === null) return this.post({ approvals: { [approval]: approved } });
    try { JSON.parse(text); } catch { return this.complain(new Error("the arguments are no JSON: correct them, or reload the page")); }
    return this.post({ approvals: { [approval]: { approved, editedArgs: JSON.parse(text) } } });
  }

  async attempt(act) {
    try { await act(); } catch (error) { this.complain(error); }
  }

  // --- following the log --------------------------------------------------------------------------

  /** Read entries until the run is over; if the connection is lost, go on after the last one. */
  async follow(path, options) {
    const { id } = this;
    this.trouble.hidden = true;
    for (let tries = 0; tries <= RETRIES; tries += 1) {
      const before = this.count;
      this.abort = new AbortController();
      try {
        const heard = await entries(path, { ...options, signal: this.abort.signal }, (told) => { if (id === this.id) this.take(told); });
        if (!heard || !this.running) return;
      } catch (error) {
        if (id !== this.id) return;
        if (!this.running && error.name !== "AbortError") return void this.complain(error);
      }
      if (id !== this.id) return;
      this.showState("connection lost; going on after the last entry");
      if (this.count > before) tries = 0;
      await new Promise((go) => { setTimeout(go, PAUSE * 2 ** tries); });
      if (id !== this.id) return;
      path = this.path("log");
      options = { headers: this.last ? { "last-event-id": this.last } : {} };
    }
    this.complain(new Error("the connection is lost; reload the page to go on where you are"));
  }

  /** Lose the connection on purpose, to see that nothing is lost with it. */
  lose() { this.abort?.abort(); }

  take({ id, entry }) {
    if (id && !follows(this.last, id)) throw new Error("entries are missing; reload the page");
    this.last = id || this.last; // what the server says of a stream that was cut off has no position
    this.count += 1;
    this.running = entry.kind !== "end";
    const near = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
    (TAKERS[entry.kind] ?? hear)(this, entry);
    this.showState(this.running ? "answering" : "ready");
    if (near) this.log.scrollTop = this.log.scrollHeight;
  }

  showState(word) {
    say(this.state, this.count ? `${word} · ${this.count} entries` : word);
    this.state.dataset.entries = this.count;
    this.stopButton.hidden = !this.running;
    this.send.hidden = this.running;
    this.drop.hidden = !this.running;
    this.chips.hidden = this.running;
    this.element.dataset.running = this.running;
  }

  complain(error) {
    if (error.name === "AbortError") return;
    tell(this.trouble, error.message);
    this.trouble.hidden = false;
  }
}

/** One answer of the model: its text, its reasoning and the calls in it. */
class Turn {
  constructor(provider) {
    this.state = nothing();
    this.text = h("p", { class: "answer-text" });
    this.voices = h("div", { class: "voices" });
    this.spoken = new Map();
    this.thinker = "";
    this.media = h("div", { class: "media" });
    this.thought = h("p", { class: "answer-text" });
    this.thinking = h("details", { class: "thinking", hidden: true }, h("summary", {}, "Reasoning"), this.thought);
    this.calls = h("div", { class: "cards" });
    this.end = h("p", { class: "turn-end", hidden: true });
    this.cards = new Map();
    this.element = h("article", { class: "turn", "aria-label": `Answer, ${provider}` }, this.thinking, this.text, this.voices, this.media, this.calls, this.end);
  }

  think({ text, agent }) {
    if ((agent ?? "") !== this.thinker) this.thought.append(...nodesOf(`${this.thought.childNodes.length ? "\n" : ""}${agent ?? "–"}: `));
    this.thinker = agent ?? "";
    this.thought.append(...nodesOf(text));
    this.thinking.hidden = false;
  }

  /** Where the words of a speaker go: one place for each, under his name. */
  voice(agent) {
    if (!agent) return this.text;
    if (!this.spoken.has(agent)) {
      const said = h("p", { class: "answer-text" });
      this.spoken.set(agent, said);
      this.voices.append(h("section", { class: "voice" }, h("h2", { class: "speaker" }, ...nodesOf(agent)), said));
    }
    return this.spoken.get(agent);
  }

  hear(event, known) {
    fold(this.state, event);
    if (event.kind === "text_delta") this.voice(event.agent).append(...nodesOf(event.text));
    else if (event.kind === "media") fill(this.media, this.state.media.map(mediumBlock));
    else if (event.kind === "reasoning_delta") this.think(event);
    else if (event.kind === "failed") this.fail(event);
    for (const call of this.state.calls.values()) this.card(call, known);
  }

  card(call, known) {
    if (!this.cards.has(call.call)) {
      const place = h("div", { class: "after-call" });
      const card = new CallCard(call, place, "h2");
      this.cards.set(call.call, { card, place });
      this.calls.append(card.element);
    }
    const { card, place } = this.cards.get(call.call);
    card.show(call);
    if (call.id) known.set(call.id, { place, name: call.name, text: call.text });
  }

  fail(event) {
    this.end.hidden = false;
    const cancelled = event.reason === "cancelled";
    fill(this.end, cancelled ? badge("plain", ["■", "cancelled", "somebody said stop"]) : badge("broken", ["✕", `stream failed: ${event.reason}`, "what was not whole is not run"]), " ", ...nodesOf(cancelled ? "" : event.error));
  }
}

function hear(chat, event) {
  chat.turn?.hear(event, chat.calls);
  if (event.kind === "tool_call") announce(`call ${event.name} is whole`);
}

const TAKERS = {
  said(chat, entry) {
    if (chat.count === 1) fill(chat.log);
    for (const id of chat.calls.keys()) answered(chat, id, "✕ Not answered");
    chat.calls = new Map();
    chat.failed = chat.turn = null;
    chat.log.append(h("article", { class: "said", "aria-label": "You" }, h("p", {}, ...nodesOf(entry.text)), h("p", { class: "said-to" }, `to ${entry.to}`)));
  },
  stream_start(chat, event) {
    chat.turn = new Turn(event.provider);
    chat.log.append(chat.turn.element);
    chat.turn.hear(event, chat.calls);
  },
  approval(chat, entry) {
    const { place, name, text } = chat.calls.get(entry.id) ?? {};
    if (!place) return;
    place.querySelector(".approval")?.remove(); // it is asked again
    const edited = h("textarea", { class: "edited", rows: 3, hidden: true, "aria-label": "The arguments to run it with", spellcheck: "false" }, text);
    const change = () => (edited.hidden || edited.value === text ? null : edited.value);
    const answer = (approved) => () => { if (!chat.running) chat.decide(entry.approval, approved, approved ? change() : null); };
    const buttons = [
      h("button", { type: "button", class: "main-action approve", onclick: answer(true) }, "Allow"),
      h("button", { type: "button", class: "edit", onclick: () => { edited.hidden = false; edited.focus(); } }, "Edit"),
      h("button", { type: "button", class: "deny", onclick: answer(false) }, "Deny"),
    ];
    const asked = h("p", {}, "May ", h("code", {}, ...nodesOf(name)), " run with these arguments?", ...nodesOf(entry.reason ? ` (${entry.reason})` : ""));
    place.append(h("div", { class: "approval", role: "group", "aria-label": `May ${name} run?` }, asked, h("div", { class: "buttons" }, buttons), edited));
    announce(`${name} asks for approval`);
  },
  denied(chat, entry) { answered(chat, entry.id, "✕ Not allowed"); },
  client_tool_result(chat, entry) {
    answered(chat, entry.id, "✓ Allowed");
    chat.calls.get(entry.id)?.place.append(outputBlock("Result", entry.output, entry.is_error));
  },
  failed(chat, event) {
    chat.failed = event;
    hear(chat, event);
  },
  end(chat) {
    chat.running = false;
    if (!chat.failed) return;
    for (const id of chat.calls.keys()) answered(chat, id, "✕ Not answered");
    const words = chat.failed.reason === "cancelled" ? "Stopped." : "The answer failed.";
    chat.log.append(h("p", { class: "run-end" }, `${words} Nothing that was not whole was run. `, ...nodesOf(chat.turn ? "" : chat.failed.error)));
  },
};

/** The question about a call is answered; what was answered before stays. */
function answered(chat, id, words) {
  const asked = chat.calls.get(id)?.place.querySelector(".approval");
  if (asked?.querySelector("button")) fill(asked, h("p", {}, words));
}

/** Is this the position right after that one: the next of its stream, or the first of another? */
function follows(last, id) {
  const at = id.lastIndexOf(".");
  const [stream, number] = [id.slice(0, at), Number(id.slice(at + 1))];
  return last.startsWith(`${stream}.`) ? number === Number(last.slice(at + 1)) + 1 : number === 1;
}

/** An id that nobody can guess; also where the page is not a secure context. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
