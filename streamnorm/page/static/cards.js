// Cards: a folded call, answer or end in, an element that shows it out.
// Rule: a card is made once and then kept up to date, so that focus and screen readers stay with it.
// Where an id comes from and how a call ended are said in words and shape, never by colour alone.

import { h, say, fill } from "./dom.js";
import { mediumBlock } from "./media.js";
import { argumentsNodes, nodesOf, jsonNodes, laidOut } from "./text.js";

export const SOURCES = {
  natural: ["●", "natural id", "the wire's own correlation id"],
  conflated: ["◐", "conflated id", "another identifier of the item serves as the id"],
  synthetic: ["○", "synthetic id", "the wire gave none; this one was minted here"],
};
const STATES = {
  assembling: ["…", "assembling", "not to be run: the wire has not said that it is whole"],
  whole: ["✓", "whole", "the wire itself said so: it may be run"],
  broken: ["✕", "broken", "never whole: it must not be run"],
};
export const HUES = 6;
export const hueOf = (call) => `hue-${call % HUES}`;

export function badge(kind, [sign, words, title], more = "") {
  return h("span", { class: `badge ${kind}`, title }, h("span", { "aria-hidden": "true" }, sign), ` ${words}${more}`);
}

/** A list of call cards that follows a Map of folded calls. */
export class CallCards {
  constructor() {
    this.element = h("div", { class: "cards" });
    this.cards = new Map();
  }

  show(calls) {
    for (const [key, card] of this.cards) {
      if (!calls.has(key)) { card.element.remove(); this.cards.delete(key); }
    }
    for (const [key, call] of calls) {
      if (!this.cards.has(key)) {
        const card = new CallCard(call);
        this.cards.set(key, card);
        this.element.append(card.element);
      }
      this.cards.get(key).show(call);
    }
  }
}

export class CallCard {
  constructor(call, extra = null, heading = "h3") {
    this.badges = h("div", { class: "badges" });
    this.name = h(heading, { class: "call-name" });
    this.id = h("code", { class: "call-id" });
    this.args = h("pre", { class: "call-args", tabindex: "0", "aria-label": "Arguments" });
    this.why = h("p", { class: "call-why" });
    this.facts = h("p", { class: "call-facts" });
    this.element = h("article", { class: `card call ${hueOf(call.call)}` },
      h("header", {}, this.name, this.badges), this.id, this.args, this.why, this.facts, extra);
    this.seen = "";
  }

  show(call) {
    const now = `${call.state}|${call.text.length}|${call.id}|${call.progress ?? ""}`;
    if (now === this.seen) return;
    const changed = this.seen.split("|")[0] !== call.state;
    this.seen = now;
    this.element.dataset.state = call.state;
    fill(this.name, ...nodesOf(call.name || "(no name)"));
    fill(this.id, ...nodesOf(call.id));
    this.showArguments(call);
    if (changed) this.showState(call);
    if (call.progress) say(this.facts, call.progress);
  }

  showArguments(call) {
    if (call.state === "whole") fill(this.args, ...argumentsNodes(call.text));
    else fill(this.args, ...jsonNodes(call.text), h("span", { class: "caret", "aria-hidden": "true" }));
  }

  showState(call) {
    const source = call.provenance && SOURCES[call.provenance.id_source];
    fill(this.badges,
      badge(call.state, STATES[call.state], call.reason ? `: ${call.reason}` : ""),
      source && badge(call.provenance.id_source, source),
      call.runsOn === "provider" && badge("plain", ["⌂", "runs at the provider", "the provider runs this call itself"]));
    fill(this.why, ...nodesOf(call.state === "broken" ? `Not to be run. ${sentence(call.detail)}` : ""));
    this.why.hidden = call.state !== "broken";
    fill(this.facts, ...nodesOf(factsOf(call)));
  }
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

function factsOf(call) {
  const from = call.provenance;
  const by = call.agent ? `called by ${call.agent}` : "";
  if (!from) return [by, "waiting for the wire's own evidence"].filter(Boolean).join(" · ");
  return [
    by,
    from.wire_field ? `id read from ${from.wire_field}` : "no id on the wire",
    from.boundary === "inferred" ? "boundary inferred" : "",
    call.sum ? `checksum ${call.sum.slice(0, 12)}` : "",
  ].filter(Boolean).join(" · ");
}

/** The visible answer, the reasoning and the results of tools that the provider ran. */
export class AnswerCard {
  constructor() {
    this.text = h("p", { class: "answer-text" });
    this.thought = h("p", { class: "answer-text" });
    this.thinking = h("details", { class: "thinking" }, h("summary", {}, "Reasoning"), this.thought);
    this.media = h("div", { class: "media" });
    this.results = h("div", { class: "results" });
    this.element = h("div", { class: "card answer", role: "group", "aria-label": "Answer" }, this.thinking, this.text, this.media, this.results);
  }

  show(state) {
    fill(this.text, ...nodesOf(state.text));
    fill(this.thought, ...nodesOf(state.reasoning));
    this.thinking.hidden = state.reasoning === "";
    if (this.results.childElementCount !== state.results.length) {
      fill(this.results, state.results.map((result) => outputBlock("Result from the provider", result.output, result.is_error)));
    }
    fill(this.media, state.media.map(mediumBlock));
    this.element.hidden = !state.text && !state.reasoning && !state.results.length && !state.media.length;
  }
}

export function outputBlock(label, output, isError) {
  const text = typeof output === "string" ? output : JSON.stringify(output);
  return h("div", { class: `output${isError ? " is-error" : ""}` },
    h("p", { class: "output-label" }, isError ? `${label}: error` : label),
    h("pre", { tabindex: "0", "aria-label": label }, ...jsonNodes(typeof output === "string" ? text : laidOut(text))));
}

/** How the stream ended; shown only when it has. */
export class EndCard {
  constructor() {
    this.title = h("p", { class: "end-title" });
    this.more = h("p", { class: "end-more" });
    this.element = h("div", { class: "card end", role: "group", "aria-label": "End of the stream" }, this.title, this.more);
  }

  show(state) {
    const end = state.end;
    this.element.hidden = !end;
    if (!end) return;
    const failed = end.kind === "failed";
    this.element.dataset.end = end.kind;
    fill(this.title, h("span", { "aria-hidden": "true" }, failed ? "✕ " : "✓ "), ...nodesOf(failed ? `Failed: ${end.reason}` : `Finished: ${end.reason}`));
    const tokens = state.usage ? `${state.usage.input ?? "?"} tokens in, ${state.usage.output ?? "?"} out.` : "";
    const more = failed ? `${sentence(end.error)}${end.retryable ? " It may be tried again." : ""}` : tokens;
    fill(this.more, ...nodesOf(more));
  }
}
