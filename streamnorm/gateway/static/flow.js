// The table of exchanges: rows of /gateway/flow in, lines of a table out, once a second while it is seen.
// Rule: elements are made by dom.js alone, so no text of a wire becomes markup.

import { h, fill, byId, say } from "/static/dom.js";

const EVERY = 1000;

async function look() {
  try {
    const answer = await fetch("/gateway/flow");
    if (answer.ok) show(await answer.json());
    else say(byId("status"), `The gateway answers ${answer.status}.`);
  } catch {
    say(byId("status"), "The gateway does not answer.");
  }
  setTimeout(later, EVERY);
}

function later() {
  if (document.hidden) document.addEventListener("visibilitychange", look, { once: true });
  else look();
}

function show({ upstreams, rows }) {
  say(byId("upstreams"), `Goes to ${upstreams.map((one) => `${one.name} (${one.wire})`).join(", ")}.`);
  byId("nothing").hidden = rows.length > 0;
  fill(byId("rows"), rows.map(line));
}

function line(row) {
  const model = row.asked && row.asked !== row.model ? `${row.asked} → ${row.model}` : row.model;
  return h("tr", {},
    h("td", { class: "number" }, String(row.number)),
    h("td", {}, h("span", { class: `state state-${row.state}` }, row.state), row.error && h("span", { class: "error" }, row.error)),
    h("td", {}, row.client),
    h("td", {}, row.passed ? `${row.upstream}, as it is` : row.upstream),
    h("td", {}, model),
    h("td", {}, row.calls.map(call)),
    h("td", { class: "number" }, tokens(row.tokens)),
    h("td", { class: "time" }, seconds(row.first)),
    h("td", { class: "time" }, row.take ? h("a", { href: `/takes#/inspect/${row.take}` }, seconds(row.took)) : seconds(row.took)),
    h("td", {}, Object.entries(row.notes).map(([name, count]) => h("span", { class: "call" }, `${name} ${count}`))),
  );
}

const call = (one) =>
  h("span", { class: `call ${one.broken ? "call-broken" : ""}` }, one.name, " ",
    h("span", { class: one.id_source === "natural" ? "" : "minted", title: one.id_source }, one.id),
    one.broken ? ` ${one.broken}` : "");

const tokens = ({ input, output }) => input === undefined && output === undefined ? "" : `${input ?? "?"} → ${output ?? "?"}`;
const seconds = (value) => value === null ? "" : value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`;

look();
