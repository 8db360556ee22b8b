// The strip: frames in, a picture of the wire out: how long each frame is and what it caused.
// Rule: one axis, bytes, shared with the sliders below it. One path per kind, however many frames.

import { svg } from "./dom.js";
import { HUES } from "./cards.js";

const WIDTH = 1000;
const HEIGHT = 34;

/** What a frame is drawn as: the most telling of its events. */
export function drawnAs(events) {
  let found = "other";
  for (const event of events) {
    if (event.kind === "failed") return "failed";
    if (event.kind === "broken_tool_call") return "failed";
    if (event.kind === "tool_call" || event.kind.startsWith("tool_call_")) found = `call-${event.call % HUES}`;
    else if (found === "other" && (event.kind === "text_delta" || event.kind === "media")) found = "text";
    else if (found === "other" && event.kind === "reasoning_delta") found = "reasoning";
    else if (found === "other" && event.kind === "finish") found = "finish";
    else if (found === "other" && (event.kind === "tool_result" || event.kind === "tool_progress")) found = "result";
  }
  return found;
}

export class Strip {
  constructor() {
    this.shadow = svg("rect", { class: "strip-unheard", y: 0, height: HEIGHT, x: 0, width: 0 });
    this.head = svg("line", { class: "strip-head", y1: 0, y2: HEIGHT, x1: 0, x2: 0 });
    this.cutAt = svg("line", { class: "strip-cut", y1: 0, y2: HEIGHT, x1: 0, x2: 0 });
    this.bars = svg("g");
    this.element = svg("svg", { class: "strip", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.bars, this.shadow, this.cutAt, this.head);
  }

  draw(frames, size) {
    this.size = size || 1;
    const paths = new Map();
    let marks = "";
    for (const frame of frames) {
      const from = this.x(frame.start);
      const to = Math.max(from + 0.6, this.x(frame.end) - 0.8);
      const kind = drawnAs(frame.heard);
      paths.set(kind, `${paths.get(kind) ?? ""}M${from} 9H${to}V${HEIGHT}H${from}Z`);
      if (frame.notes.some((note) => note !== "wire.keepalive")) marks += `M${from} 0H${Math.max(to, from + 5)}V5H${from}Z`;
    }
    this.bars.replaceChildren(...[...paths].map(([kind, d]) => svg("path", { class: `bar bar-${kind}`, d })), svg("path", { class: "bar-note", d: marks }));
  }

  x(byte) { return Math.round((byte / this.size) * WIDTH * 10) / 10; }

  place(head, cut) {
    const x = this.x(head);
    this.head.setAttribute("x1", x);
    this.head.setAttribute("x2", x);
    this.shadow.setAttribute("x", x);
    this.shadow.setAttribute("width", WIDTH - x);
    const at = this.x(cut);
    this.cutAt.setAttribute("x1", at);
    this.cutAt.setAttribute("x2", at);
    this.cutAt.classList.toggle("off", cut >= this.size);
  }
}
