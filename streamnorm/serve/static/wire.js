// The wire and the events: frames in, two lists out that point at each other.
// Rule: both lists are made once per stream; the playhead and the cut only change marks on them.

import { h, fill, keepInView } from "./dom.js";
import { gist } from "./fold.js";
import { hueOf } from "./cards.js";
import { nodesOf, jsonNodes, laidOut, seconds } from "./text.js";

const MANY = 400; // frames; from here on those out of sight are not laid out
const MOST_SHOWN = 4000; // characters of a frame, and of an event's gist

/** The frames as they came, each with the oddities that it raised. */
export class WireList {
  constructor(onSeek) {
    this.onSeek = onSeek;
    this.element = h("ol", { class: "frames", tabindex: "0", "aria-label": "The wire, frame by frame" });
    this.rows = [];
  }

  load(frames, notes) {
    const words = new Map(notes.map((note) => [note.name, note]));
    this.rows = frames.map((frame, index) => frameRow(frame, index, words, () => this.onSeek(index + 1)));
    fill(this.element, this.rows);
    this.element.classList.toggle("many", frames.length > MANY);
    this.now = null;
  }

  /** The first `at` frames are heard; after them the wire is cut, if `cut` says so. */
  show(at) {
    this.rows.forEach((row, index) => row.classList.toggle("unheard", index >= at));
    const now = this.rows[at - 1];
    if (now !== this.now) {
      this.now?.removeAttribute("aria-current");
      now?.setAttribute("aria-current", "step");
      this.now = now;
    }
    if (now) keepInView(this.element, now);
    else this.element.scrollTop = 0;
  }

  point(index) {
    this.rows.forEach((row, at) => row.classList.toggle("pointed", at === index));
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
    this.rows = [];
  }

  load(events) {
    this.rows = events.map((event) => this.row(event));
    fill(this.element, this.rows.map((row) => row.element));
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
    return { element, frame };
  }

  /** Events of the first `at` frames; those of the end only when everything was heard. */
  show(at, all) {
    let last = null;
    for (const { element, frame } of this.rows) {
      const heard = frame === null ? all : frame < at;
      element.hidden = !heard;
      if (heard) last = element;
    }
    if (last) keepInView(this.element, last);
  }
}

function toneOf(event) {
  if (event.kind === "failed" || event.kind === "broken_tool_call") return "tone-bad";
  if (event.kind === "finish") return "tone-good";
  return event.kind.startsWith("tool_call") ? `tone-call ${hueOf(event.call)}` : "";
}
