// The picker: the list of takes in, the chosen name out.
// Rule: a list like any other: type to narrow it, arrow keys to walk it, Enter to choose.

import { h, fill, say } from "./dom.js";
import { count, nodesOf } from "./text.js";

const nice = (title) => title.replaceAll("_", " ");

export class Picker {
  constructor(takes, onChoose, onFile) {
    this.takes = takes;
    this.onChoose = onChoose;
    this.chosen = "";
    this.open = new Set();
    this.input = h("input", { id: "find", type: "search", placeholder: "Find a take", "aria-label": "Find a take", autocomplete: "off", spellcheck: "false", oninput: () => this.draw() });
    this.found = h("p", { class: "found", role: "status" });
    this.list = h("div", { class: "takes" });
    const file = h("input", { type: "file", id: "file", class: "unseen", tabindex: "-1", "aria-hidden": "true", onchange: () => { if (file.files[0]) onFile(file.files[0]); file.value = ""; } });
    this.element = h("aside", { class: "picker", "aria-label": "Takes" },
      h("div", { class: "picker-top" }, this.input,
        h("button", { type: "button", class: "quiet", onclick: () => file.click(), title: "any saved response body; or drop it on the page" }, "Open a file"), file),
      this.found, this.list);
    this.element.addEventListener("keydown", (event) => this.walk(event));
    this.draw();
  }

  choose(name) {
    this.chosen = name;
    this.open.add(name.split("/")[0]);
    this.draw();
    this.list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  draw() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (take) => words.every((word) => `${take.name} ${nice(take.title)} ${take.proves}`.toLowerCase().includes(word));
    const found = this.takes.filter(fits);
    say(this.found, words.length ? `${count(found.length, "take")} found` : `${count(this.takes.length, "take")}, each shows one thing`);
    const groups = Map.groupBy ? Map.groupBy(found, (take) => take.provider) : grouped(found);
    fill(this.list, [...groups].map(([provider, takes]) => this.group(provider, takes, words.length > 0)));
  }

  group(provider, takes, all) {
    const details = h("details", { open: all || this.open.has(provider) },
      h("summary", {}, h("span", {}, provider), takes[0].program ? h("span", { class: "kind" }, "program") : null, h("span", { class: "tally" }, String(takes.length))),
      h("ul", {}, takes.map((take) => this.row(take))));
    details.addEventListener("toggle", () => { if (details.open) this.open.add(provider); else this.open.delete(provider); });
    return details;
  }

  row(take) {
    const chosen = take.name === this.chosen;
    return h("li", {}, h("button", { type: "button", class: "take", "data-name": take.name, "aria-current": chosen ? "true" : null, onclick: () => this.onChoose(take.name) },
      h("span", { class: "take-title" }, nice(take.title)), h("span", { class: "take-proves" }, ...nodesOf(take.proves))));
  }

  walk(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const rows = [...this.list.querySelectorAll("summary, details[open] .take")];
    const at = rows.indexOf(document.activeElement);
    const next = event.target === this.input ? rows[0] : rows[at + (event.key === "ArrowDown" ? 1 : -1)] ?? this.input;
    event.preventDefault();
    next?.focus();
  }
}

function grouped(takes) {
  const groups = new Map();
  for (const take of takes) groups.set(take.provider, [...(groups.get(take.provider) ?? []), take]);
  return groups;
}
