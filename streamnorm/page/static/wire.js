// The wire and the events: frames in, two lists out that point at each other.
// Rule: a row is made once; the playhead only changes marks, and which rows are there.

import { h, fill, keepInView } from "./dom.js";
import { gist } from "./fold.js";
import { hueOf } from "./cards.js";
import { nodesOf, jsonNodes, laidOut, seconds } from "./text.js";

const MANY = 600; // frames; a longer wire is shown in pages around the playhead
const PAGE = 200;
const MOST_EVENTS = 600; // the latest ones
const MOST_SHOWN = 4000; // characters of a frame, and of an event's gist

/** A long list of which a part is shown. Rows are made when they are first needed, and kept. */
class Window {
  constructor(element) {
    this.element = element;
    this.reset(0, () => null);
  }

  reset(length, make) {
    this.make = make;
    this.rows = new Array(length);
    this.from = this.to = 0;
    fill(this.element);
  }

  row(index) { return (this.rows[index] ??= this.make(index)); }

  /** Show these rows; where the list only grows or shrinks at its end, the rest is not touched. */
  show(from, to) {
    if (from !== this.from || to < this.from) {
      fill(this.element, this.range(from, to));
    } else {
      for (let at = this.to; at > to; at -= 1) this.row(at - 1).remove();
      this.element.append(...this.range(this.to, to));
    }
    [this.from, this.to] = [from, to];
  }

  range(from, to) { return Array.from({ length: Math.max(0, to - from) }, (_, at) => this.row(from + at)); }
}

/** The frames as they came, each with the oddities that it raised. */
export class WireList {
  constructor(onSeek) {
    this.onSeek = onSeek;
    this.element = h("ol", { class: "frames", tabindex: "0", "aria-label": "The wire, frame by frame" });
    this.window = new Window(this.element);
  }

  load(frames, notes) {
    const words = new Map(notes.map((note) => [note.name, note]));
    this.frames = frames;
    this.now = this.pointed = null;
    this.window.reset(frames.length, (index) => frameRow(frames[index], index, words, () => this.onSeek(index + 1)));
  }

  /** The first `at` frames are heard. Of a long wire only what is near the playhead is laid out. */
  show(at) {
    const many = this.frames.length > MANY;
    const page = many ? Math.floor(Math.max(0, at - 1) / PAGE) * PAGE : 0;
    const [from, to] = many ? [Math.max(0, page - PAGE), Math.min(this.frames.length, page + 2 * PAGE)] : [0, this.frames.length];
    this.window.show(from, to);
    for (let index = from; index < to; index += 1) this.window.row(index).classList.toggle("unheard", index >= at);
    const now = at ? this.window.row(at - 1) : null;
    if (now !== this.now) {
      this.now?.removeAttribute("aria-current");
      now?.setAttribute("aria-current", "step");
      this.now = now;
    }
    if (now) keepInView(this.element, now);
    else this.element.scrollTop = 0;
  }

  /** Mark the frame that caused an event. */
  point(index) {
    this.pointed?.classList.remove("pointed");
    this.pointed = index === null ? null : this.window.row(index);
    this.pointed?.classList.add("pointed");
  }
}

function frameRow(frame, index, words, seek) {
  const raw = frame.raw.length > MOST_SHOWN ? `${frame.raw.slice(0, MOST_SHOWN)} … (${frame.raw.length} characters)` : frame.raw;
  return h("li", { class: `frame${frame.partial ? " partial" : ""}`, "data-frame": index },
    h("button", { type: "button", class: "frame-number", onclick: seek, title: `go to this frame, at ${seconds(frame.at)}` },
      h("span", {}, h("span", { class: "unseen" }, "frame "), String(index + 1)), h("span", { class: "frame-time" }, frame.at.toFixed(2))),
    h("div", { class: "frame-body" },
      h("pre", {}, ...wireNodes(raw.replace(/\s+$/, ""))),
      frame.partial && h("p", { class: "cut-line" }, "✂ the wire ends here, inside a frame"),
      notesOf(frame.notes).map(([name, times]) => noteRow(words.get(name), name, times))));
}

/** Field names of SSE in a quiet tone, the rest as it is. */
function wireNodes(raw) {
  return raw.split("\n").flatMap((line, at) => {
    const field = /^(data|event|id|retry): ?/.exec(line);
    const rest = field ? line.slice(field[0].length) : line;
    return [at ? "\n" : "", field && h("span", { class: "field" }, field[0]), h("span", { class: field?.[1] === "event" ? "kind" : "" }, ...nodesOf(rest))];
  });
}

function notesOf(names) {
  const tally = new Map();
  for (const name of names) tally.set(name, (tally.get(name) ?? 0) + 1);
  return [...tally];
}

export function noteRow(note, name, times = 1) {
  return h("p", { class: `note note-${note?.level ?? "info"}` },
    h("span", { class: "note-sign", "aria-hidden": "true" }, note?.level === "warning" ? "▲" : "△"),
    h("span", {}, h("code", {}, name), times > 1 ? ` ×${times}` : "", ` ${note?.sentence ?? ""}`));
}

/** The events, each with the number of the frame that caused it. */
export class EventList {
  constructor(onPoint) {
    this.onPoint = onPoint;
    this.element = h("ol", { class: "events", tabindex: "0", "aria-label": "The events" });
    this.window = new Window(this.element);
  }

  load(events) {
    this.events = events;
    this.window.reset(events.length, (index) => this.row(events[index]));
  }

  row({ event, json, frame }) {
    const said = gist(event);
    const body = h("pre", { class: "event-json" });
    const details = h("details", { class: "event" },
      h("summary", {}, h("span", { class: "event-frame", title: "the frame that caused it" }, frame === null ? "end" : String(frame + 1)),
        h("span", { class: `event-kind ${toneOf(event)}` }, event.kind),
        h("span", { class: "event-gist" }, ...nodesOf(said.length > 300 ? `${said.slice(0, 300)}…` : said))), body);
    details.addEventListener("toggle", () => { if (details.open && !body.childNodes.length) fill(body, ...jsonNodes(laidOut(json))); });
    const element = h("li", { "data-kind": event.kind }, details);
    element.addEventListener("pointerenter", () => this.onPoint(frame));
    element.addEventListener("pointerleave", () => this.onPoint(null));
    element.addEventListener("focusin", () => this.onPoint(frame));
    return element;
  }

  /** Events of the first `at` frames; those of the end only when everything was heard. */
  show(at, all) {
    const heard = all ? this.events.length : firstAfter(this.events, at);
    const from = Math.max(0, Math.ceil((heard - MOST_EVENTS) / PAGE) * PAGE);
    this.window.show(from, heard);
    if (heard) keepInView(this.element, this.window.row(heard - 1));
  }
}

/** How many events the first `at` frames caused; they stand in the order of their frames. */
function firstAfter(events, at) {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { frame } = events[middle];
    if (frame !== null && frame < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function toneOf(event) {
  if (event.kind === "failed" || event.kind === "broken_tool_call") return "tone-bad";
  if (event.kind === "finish") return "tone-good";
  return event.kind.startsWith("tool_call") ? `tone-call ${hueOf(event.call)}` : "";
}
