// The inspector: a take in; its wire, its events and its calls out, at any moment and cut anywhere.
// Rule: what a cut stream reports is asked of the server, where the real pipe reads the cut bytes.
// The page never decides by itself whether a call is whole.

import { h, svg, fill, say, announce } from "./dom.js";
import { worked, takePath, cutPath } from "./api.js";
import { nothing, take as fold } from "./fold.js";
import { CallCards, AnswerCard, EndCard } from "./cards.js";
import { Player, SPEEDS } from "./player.js";
import { Strip } from "./strip.js";
import { WireList, EventList, noteRow } from "./wire.js";
import { Picker } from "./picker.js";
import { Progress } from "./progress.js";
import { bytes, count, seconds, tell } from "./text.js";

const FIRST = "/interleaved_calls"; // of whichever wire has it

export class Inspector {
  constructor(takes) {
    this.takes = takes;
    this.wire = new WireList((at) => { this.player.pause(); this.player.seek(at); });
    this.events = new EventList((frame) => this.wire.point(frame));
    this.cards = new CallCards();
    this.answer = new AnswerCard();
    this.end = new EndCard();
    this.strip = new Strip();
    this.player = new Player((at) => this.moved(at), (on) => this.playing(on));
    this.picker = new Picker(takes, (name) => { location.hash = `#/inspect/${name}`; }, (file) => this.openFile(file));
    this.build();
  }

  // --- the parts of the view ----------------------------------------------------------------------

  build() {
    this.title = h("h1", { class: "take-name" });
    this.proves = h("p", { class: "take-about" });
    this.facts = h("p", { class: "take-facts" });
    this.trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    this.bound = h("p", { class: "bound", role: "note", hidden: true });
    this.progress = new Progress();
    this.noteList = h("div", { class: "notes" });
    this.noteBox = h("details", { class: "card note-box" }, h("summary", {}, "Oddities"), this.noteList);
    this.outcome = h("p", { class: "outcome", role: "status" });
    const columns = h("div", { class: "columns" },
      column("Wire", "what the provider sent", this.wire.element),
      column("Events", "what your program hears", this.events.element),
      column("Calls", "what may be run, and what may not", h("div", { class: "result-list", tabindex: "0", "aria-label": "Calls and answer" }, this.outcome, this.end.element, this.cards.element, this.answer.element, this.noteBox)));
    this.element = h("div", { class: "inspect" }, this.picker.element,
      h("div", { class: "stage" },
        h("div", { class: "stage-head" }, h("div", {}, this.title, this.proves), this.facts), this.progress.element, this.trouble, this.bound, this.controls(), columns));
    this.element.addEventListener("dragover", (event) => { event.preventDefault(); this.element.classList.add("dropping"); });
    this.element.addEventListener("dragleave", (event) => { if (event.target === this.element) this.element.classList.remove("dropping"); });
    this.element.addEventListener("drop", (event) => this.dropped(event));
  }

  controls() {
    this.playButton = h("button", { type: "button", class: "play", "aria-label": "Play", onclick: () => this.player.toggle() }, icon("play"));
    this.speed = h("select", { id: "speed", "aria-label": "Speed", onchange: () => { this.player.speed = Number(this.speed.value); } }, SPEEDS.map((speed) => h("option", { value: speed }, `${speed}×`)));
    this.speed.value = "1";
    this.clock = h("output", { class: "clock", for: "scrub" });
    this.scrub = h("input", { id: "scrub", class: "scrub", type: "range", min: 0, value: 0, step: 1, "aria-label": "Playhead", oninput: () => this.scrubbed(), onkeydown: (event) => this.scrubKey(event) });
    this.cutSlider = h("input", { id: "cut", class: "cut", type: "range", min: 0, value: 0, step: 1, "aria-label": "Cut the wire after this byte", oninput: () => this.cutTo(Number(this.cutSlider.value)) });
    this.cutWords = h("output", { class: "cut-words", for: "cut" });
    this.cutReset = h("button", { type: "button", class: "quiet", onclick: () => this.cutTo(this.full.size) }, "Mend");
    return h("section", { class: "controls", "aria-label": "Timeline" },
      h("div", { class: "transport" },
        h("button", { type: "button", class: "quiet icon", "aria-label": "One frame back", onclick: () => this.player.step(-1) }, icon("back")),
        this.playButton,
        h("button", { type: "button", class: "quiet icon", "aria-label": "One frame on", onclick: () => this.player.step(1) }, icon("on")),
        this.speed),
      h("div", { class: "tracks" }, h("div", { class: "track-strip" }, this.strip.element), this.scrub,
        h("div", { class: "cut-track" }, this.cutSlider)),
      h("div", { class: "readings" }, this.clock, h("div", { class: "cut-line-words" }, this.cutWords, this.cutReset)));
  }

  // --- what is shown ------------------------------------------------------------------------------

  /** Show the take of this name; without one, the first that is worth seeing. */
  async open(name) {
    const wanted = name || (this.takes.find((take) => take.name.endsWith(FIRST)) ?? this.takes[0])?.name;
    if (!wanted || wanted === this.full?.name) return;
    await this.load(takePath(wanted), wanted.split("/").slice(1).join("/").replaceAll("_", " "));
  }

  async openFile(file) {
    await this.load("/api/uploads", file.name, file);
    if (this.full?.name.startsWith("upload/")) history.replaceState(null, "", `#/inspect/${this.full.name}`);
  }

  dropped(event) {
    event.preventDefault();
    this.element.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (file) this.openFile(file);
  }

  /** One at a time: what is asked for last is what is shown. A file is sent, a take is asked for. */
  async load(path, title, body) {
    this.trouble.hidden = true;
    this.player.pause();
    const running = this.progress.begin(title);
    try {
      this.full = readable(await worked(path, { body, signal: running.signal, onProgress: (done, of) => running.tell(done, of) }));
    } catch (error) {
      if (error.name !== "AbortError") this.complain(error);
      else if (running.cancelled) announce(`reading ${title} was cancelled`);
      return;
    } finally {
      running.end();
    }
    this.label = body ? title : undefined;
    tell(this.bound, this.full.bound?.sentence ?? "");
    this.bound.hidden = !this.full.bound;
    this.picker.choose(this.full.name);
    this.head();
    this.scrub.max = this.cutSlider.max = this.full.size; // a value beyond the old end would be lost
    this.cutSlider.value = this.full.size;
    this.strip.draw(this.full.frames, this.full.size);
    this.cutAt = this.full.size;
    this.use(this.full, this.full.frames.length);
  }

  head() {
    const { full } = this;
    tell(this.title, this.label ?? full.name.split("/").slice(1).join("/").replaceAll("_", " "));
    tell(this.proves, typeof full.header.proves === "string" ? full.header.proves : "");
    tell(this.facts, [full.provider, full.header.model, count(full.frames.length, "frame"), bytes(full.size), full.timed ? seconds(full.frames.at(-1)?.at ?? 0) : "no times recorded"].filter((fact) => typeof fact === "string" && fact).join("  ·  "));
  }

  /** Another stream: the whole one, or what is left of it after a cut. */
  use(stream, at) {
    this.stream = stream;
    this.wire.load(stream.frames, stream.notes);
    this.events.load(stream.events);
    this.player.load(stream.frames.map((frame) => frame.at));
    this.state = null;
    fill(this.noteList, stream.notes.map((note) => noteRow(note, note.name, note.count)));
    this.noteBox.hidden = stream.notes.length === 0;
    this.noteBox.open = stream.notes.some((note) => note.level === "warning");
    this.player.seek(at);
  }

  moved(at) {
    const { stream } = this;
    const all = at >= stream.frames.length;
    this.refold(at, all);
    this.wire.show(at);
    this.events.show(at, all);
    this.cards.show(this.state.calls);
    this.answer.show(this.state);
    this.end.show(this.state);
    const here = stream.frames[at - 1]?.end ?? 0;
    this.scrub.value = here;
    this.scrub.setAttribute("aria-valuetext", `frame ${at} of ${stream.frames.length}`);
    this.strip.place(here, this.cutAt);
    say(this.clock, `frame ${at} of ${stream.frames.length}  ·  ${seconds(stream.frames[at - 1]?.at ?? 0)}`);
    this.sayCut();
    this.tellOutcome(all);
  }

  /** Fold on from where we are, or from the start if the playhead went back. */
  refold(at, all) {
    if (!this.state || at < this.foldedTo || this.foldedEnd) {
      this.state = nothing();
      this.foldedTo = 0;
    }
    const { frames, end } = this.stream;
    for (; this.foldedTo < at; this.foldedTo += 1) {
      const frame = frames[this.foldedTo];
      for (const event of frame.heard) this.hear(event, frame.sums);
    }
    this.foldedEnd = all;
    if (all) for (const event of end.heard) this.hear(event, end.sums);
  }

  hear(event, sums) {
    fold(this.state, event, sums);
    if (this.player.playing && SPOKEN[event.kind]) announce(SPOKEN[event.kind](event));
  }

  tellOutcome(all) {
    const calls = [...this.state.calls.values()];
    const tally = (word) => calls.filter((call) => call.state === word).length;
    const parts = [[tally("whole"), "whole"], [tally("broken"), "broken"], [tally("assembling"), "assembling"]].filter(([n]) => n).map(([n, word]) => `${n} ${word}`);
    const text = calls.length ? `${count(calls.length, "call")}: ${parts.join(", ")}` : "No calls";
    say(this.outcome, all ? text : `${text} so far`);
  }

  playing(on) {
    fill(this.playButton, icon(on ? "pause" : "play"));
    this.playButton.setAttribute("aria-label", on ? "Pause" : "Play");
    this.element.classList.toggle("is-playing", on);
  }

  // --- scrubbing and cutting ----------------------------------------------------------------------

  scrubbed() {
    this.player.pause();
    const byte = Number(this.scrub.value);
    this.player.seek(this.stream.frames.filter((frame) => frame.end <= byte).length);
  }

  scrubKey(event) {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.player.step(by);
  }

  /** The wire ends after so many bytes. Only the latest wish is asked for; older answers are left. */
  async cutTo(at) {
    this.cutAt = Math.max(0, Math.min(at, this.full.size));
    this.cutSlider.value = this.cutAt;
    this.player.pause();
    this.sayCut();
    if (this.cutAt === this.full.size) return this.use(this.full, this.full.frames.length);
    if (this.asking) return undefined;
    this.asking = true;
    try {
      for (let asked = -1; asked !== this.cutAt && this.cutAt < this.full.size;) {
        asked = this.cutAt;
        const { full } = this;
        const told = await worked(cutPath(full.name, asked));
        if (full === this.full && asked === this.cutAt) {
          const stream = shortened(full, told);
          this.use(stream, stream.frames.length);
          announce(`cut after ${asked} bytes: ${this.outcome.textContent}`);
        }
      }
    } catch (error) {
      this.complain(error);
    } finally {
      this.asking = false;
    }
    return undefined;
  }

  sayCut() {
    const cut = this.cutAt < this.full.size;
    say(this.cutWords, cut ? `✂ cut at ${this.cutAt.toLocaleString("en")} of ${this.full.size.toLocaleString("en")}` : "✂ not cut");
    this.cutReset.hidden = !cut;
    this.element.classList.toggle("is-cut", cut);
    this.cutSlider.setAttribute("aria-valuetext", cut ? `${this.cutAt} of ${this.full.size} bytes` : "not cut");
  }

  complain(error) {
    tell(this.trouble, error.message);
    this.trouble.hidden = false;
  }

  // --- keys ---------------------------------------------------------------------------------------

  key(event) {
    const act = KEYS[event.key];
    if (!act || !this.full) return false;
    act(this, event);
    return true;
  }

  cutFrame(by) {
    const ends = [0, ...this.full.frames.map((frame) => frame.end)];
    const next = by < 0 ? ends.filter((end) => end < this.cutAt).at(-1) : ends.find((end) => end > this.cutAt);
    this.cutTo(next ?? this.cutAt);
  }

  cutHere() {
    const here = this.stream.frames[this.player.at - 1]?.end ?? 0;
    this.cutTo(this.cutAt < this.full.size ? this.full.size : here);
  }

  setSpeed(by) { this.speed.value = String(this.player.faster(by)); announce(`speed ${this.player.speed}`); }
}

const KEYS = {
  " ": (view) => view.player.toggle(),
  ArrowLeft: (view) => view.player.step(-1),
  ArrowRight: (view) => view.player.step(1),
  Home: (view) => { view.player.pause(); view.player.seek(0); },
  End: (view) => { view.player.pause(); view.player.seek(view.player.length); },
  "[": (view) => view.cutTo(view.cutAt - 1),
  "]": (view) => view.cutTo(view.cutAt + 1),
  "{": (view) => view.cutFrame(-1),
  "}": (view) => view.cutFrame(1),
  x: (view) => view.cutHere(),
  "+": (view) => view.setSpeed(1),
  "-": (view) => view.setSpeed(-1),
  "/": (view) => view.picker.input.focus(),
};

const SPOKEN = {
  tool_call_start: (event) => `call ${event.name} begins`,
  tool_call: (event) => `call ${event.name} is whole`,
  broken_tool_call: (event) => `call ${event.name} is broken: ${event.reason}`,
  finish: (event) => `finished: ${event.reason}`,
  failed: (event) => `failed: ${event.reason}`,
};

const ICONS = {
  play: "M4 2.5 13 8l-9 5.5z",
  pause: "M4 2.5h3v11H4zM9.5 2.5h3v11h-3z",
  back: "M11 3v10L5 8zM4 3.5h1.4v9H4z",
  on: "M5 3v10l6-5zM10.6 3.5H12v9h-1.4z",
};
const icon = (name) => svg("svg", { class: "sign", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

function column(title, about, body) {
  return h("section", { class: `column column-${title.toLowerCase()}`, "aria-label": title },
    h("h2", {}, title, h("span", { class: "about" }, about)), body);
}

/** Parse the events of an answer; their text is kept beside them, since it is exact. */
export function readable(told) {
  const events = [];
  told.frames.forEach((frame, index) => { frame.heard = parsed(frame.events, index, events); });
  told.end.heard = parsed(told.end.events, null, events);
  told.events = events;
  return told;
}

function parsed(lines, frame, events) {
  return lines.map((json) => {
    const event = JSON.parse(json);
    events.push({ event, json, frame });
    return event;
  });
}

/** What is left of a stream after a cut: whole frames, half a frame, and another end. */
export function shortened(full, told) {
  const frames = full.frames.slice(0, told.frames);
  const from = frames.at(-1)?.end ?? 0;
  const torn = full.frames[told.frames];
  if (torn && told.at > from) frames.push({ ...torn, raw: beginning(torn, told.at - from), end: told.at, events: [], heard: [], notes: [], sums: {}, partial: true });
  const events = full.events.filter(({ frame }) => frame !== null && frame < told.frames);
  const end = { events: told.tail, notes: told.raised, sums: told.sums };
  end.heard = parsed(told.tail, null, events);
  return { ...full, frames, end, events, notes: told.notes };
}

/** The first bytes of a frame as text; where the text is not the bytes (binary), by proportion. */
function beginning(frame, size) {
  const encoded = new TextEncoder().encode(frame.raw);
  const exact = encoded.length === frame.end - frame.start;
  const part = exact ? size : Math.round((encoded.length * size) / (frame.end - frame.start));
  return new TextDecoder().decode(encoded.slice(0, part));
}
