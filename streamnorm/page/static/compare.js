// Comparing: one scenario in; the same thing said on several wires, side by side, out.
// Rule: calls are equal if their checksums are, whatever the wires look like. A cut is asked of the
// server for each wire, at the same share of its bytes.

import { h, fill, say, announce } from "./dom.js";
import { get, takePath, cutPath } from "./api.js";
import { nothing, take as fold } from "./fold.js";
import { CallCards, AnswerCard, EndCard } from "./cards.js";
import { Strip } from "./strip.js";
import { WireList } from "./wire.js";
import { readable, shortened } from "./inspect.js";
import { bytes, count, seconds, tell } from "./text.js";

const FIRST = "scenario_shell";
const AT_FIRST = 3; // wires

export class Compare {
  constructor(takes, providers) {
    this.titles = new Map(providers.map((row) => [row.name, row.title]));
    this.scenarios = scenariosOf(takes);
    this.columns = new Map();
    this.share = 100;
    this.build();
  }

  build() {
    const titles = [...this.scenarios.keys()];
    this.select = h("select", { id: "scenario", onchange: () => { location.hash = `#/compare/${this.select.value}`; } }, titles.map((title) => h("option", { value: title }, title.replaceAll("_", " "))));
    this.wires = h("fieldset", { class: "chips" }, h("legend", {}, "Wires"));
    this.slider = h("input", { id: "share", class: "cut", type: "range", min: 0, max: 100, value: 100, step: 1, oninput: () => this.cut(Number(this.slider.value)) });
    this.shareWords = h("output", { for: "share", class: "cut-words" });
    this.verdict = h("p", { class: "verdict", role: "status" });
    this.trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    this.grid = h("div", { class: "wires" });
    this.element = h("div", { class: "compare" },
      h("h1", { class: "unseen" }, "Compare wires"),
      h("div", { class: "compare-head" },
        h("div", { class: "field-row" }, h("label", { for: "scenario" }, "Scenario"), this.select),
        this.wires,
        h("div", { class: "field-row grow" }, h("label", { for: "share" }, "Cut every wire at"), this.slider, this.shareWords)),
      this.trouble, this.verdict, this.grid);
  }

  async open(title) {
    const wanted = this.scenarios.has(title) ? title : this.scenarios.has(FIRST) ? FIRST : [...this.scenarios.keys()][0];
    if (!wanted || wanted === this.title) return;
    this.title = wanted;
    this.select.value = wanted;
    this.slider.value = this.share = 100;
    const providers = this.scenarios.get(wanted);
    fill(this.wires, h("legend", {}, "Wires"), providers.map((name, at) => this.chip(name, at < AT_FIRST)));
    await this.choose();
  }

  chip(name, on) {
    const box = h("input", { type: "checkbox", value: name, checked: on, onchange: () => this.choose() });
    return h("label", { class: "chip" }, box, h("span", {}, name));
  }

  /** Show a column for each wire that is chosen. */
  async choose() {
    const chosen = [...this.wires.querySelectorAll("input:checked")].map((box) => box.value);
    const { title } = this;
    this.trouble.hidden = true;
    try {
      const told = await Promise.all(chosen.map((name) => this.told(`${name}/${title}`)));
      if (title !== this.title) return;
      this.columns = new Map(chosen.map((name, at) => [name, new Column(this.titles.get(name) ?? name, told[at])]));
    } catch (error) {
      tell(this.trouble, error.message);
      this.trouble.hidden = false;
      return;
    }
    fill(this.grid, [...this.columns.values()].map((column) => column.element));
    await this.cut(this.share);
  }

  async told(name) {
    this.known ??= new Map();
    if (!this.known.has(name)) this.known.set(name, readable(await get(takePath(name))));
    return this.known.get(name);
  }

  /** End every wire after the same share of its bytes. */
  async cut(share) {
    this.share = share;
    say(this.shareWords, share === 100 ? "100 %, not cut" : `${share} % of its bytes`);
    if (this.asking) return;
    this.asking = true;
    try {
      for (let asked = -1; asked !== this.share;) {
        asked = this.share;
        await Promise.all([...this.columns.values()].map((column) => column.cut(asked)));
      }
    } catch (error) {
      tell(this.trouble, error.message);
      this.trouble.hidden = false;
    } finally {
      this.asking = false;
    }
    this.judge();
  }

  judge() {
    const states = [...this.columns.values()].map((column) => column.state);
    say(this.verdict, verdictOf(states, this.share));
    announce(this.verdict.textContent);
  }
}

function verdictOf(states, share) {
  if (!states.length) return "Choose the wires to compare.";
  const sums = states.map((state) => [...state.calls.values()].map((call) => (call.state === "whole" ? call.sum : call.state)).join(" "));
  const calls = states.map((state) => [...state.calls.values()]);
  const failed = states.filter((state) => state.end?.kind === "failed").length;
  if (share < 100) {
    const whole = calls.flat().filter((call) => call.state === "whole").length;
    const broken = calls.flat().filter((call) => call.state === "broken").length;
    return `Cut at ${share} %: ${failed} of ${count(states.length, "stream")} told as failed, ${count(whole, "whole call")}, ${count(broken, "broken call")}. No call is reported whole on less than the wire's own word.`;
  }
  const same = new Set(sums).size === 1;
  if (states.length === 1) return `One wire, ${count(calls[0].length, "call")}.`;
  return same && calls[0].length ? `${states.length} wires, ${count(calls[0].length, "call")} each, and they are the same calls: name and arguments have equal checksums. Only the ids differ.` : same ? `${states.length} wires, no calls.` : `${states.length} wires that do not say the same calls.`;
}

/** One wire of the comparison. */
class Column {
  constructor(title, full) {
    this.full = full;
    this.cards = new CallCards();
    this.answer = new AnswerCard();
    this.end = new EndCard();
    this.strip = new Strip();
    this.strip.draw(full.frames, full.size);
    this.wire = new WireList(() => {});
    this.wire.load(full.frames, full.notes);
    this.element = h("section", { class: "wire-column", "aria-label": title },
      h("header", {}, h("h2", {}, title), h("p", { class: "take-facts" }, [count(full.frames.length, "frame"), bytes(full.size), seconds(full.frames.at(-1)?.at ?? 0)].join("  ·  ")), this.strip.element),
      this.end.element, this.cards.element, this.answer.element,
      h("details", { class: "raw" }, h("summary", {}, "The wire"), this.wire.element));
  }

  async cut(share) {
    const at = Math.floor((this.full.size * share) / 100);
    const stream = share === 100 ? this.full : shortened(this.full, await get(cutPath(this.full.name, at)));
    this.state = nothing();
    for (const frame of stream.frames) for (const event of frame.heard) fold(this.state, event, frame.sums);
    for (const event of stream.end.heard) fold(this.state, event, stream.end.sums);
    this.cards.show(this.state.calls);
    this.answer.show(this.state);
    this.end.show(this.state);
    this.strip.place(at, at);
    this.wire.show(this.full.frames.filter((frame) => frame.end <= at).length);
  }
}

/** Titles that more than one provider has, scenarios first. */
function scenariosOf(takes) {
  const by = new Map();
  for (const take of takes) by.set(take.title, [...(by.get(take.title) ?? []), take.provider]);
  const rows = [...by].filter(([, providers]) => providers.length > 1);
  const rank = ([title]) => (title.startsWith("scenario_") ? 0 : 1);
  return new Map(rows.sort((a, b) => rank(a) - rank(b) || b[1].length - a[1].length || a[0].localeCompare(b[0])));
}
