// Text of the wire: a string in; text nodes that hide nothing, or well-set JSON, out.
// Rule: what cannot be seen (controls, direction marks, zero widths, tags) is shown as an escape, and
// the digits of a number are never touched: JSON is laid out by its text, not by its values.

import { h, fill } from "./dom.js";

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu;

/** The nodes for a text: text, and marks where something is hidden in it. */
export function nodesOf(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found[0] === "\r") { // a line end of the wire: shown, but quietly
      nodes.push(text.slice(from, found.index), h("span", { class: "hidden-char quiet-char" }, "␍"));
    } else {
      nodes.push(text.slice(from, found.index), h("span", { class: "hidden-char", title: "a character that cannot be seen" }, escaped(found[0])));
    }
    from = found.index + found[0].length;
  }
  nodes.push(text.slice(from));
  return nodes.filter((node) => node !== "");
}

/** Show a text that came from elsewhere. */
export const tell = (element, text) => fill(element, ...nodesOf(String(text)));

function escaped(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;

/** JSON text with line breaks. */
export function laidOut(json) {
  let out = "";
  let depth = 0;
  const tokens = json.match(TOKEN) || [];
  tokens.forEach((token, at) => {
    const next = tokens[at + 1];
    if (token === "{" || token === "[") {
      const empty = next === "}" || next === "]";
      depth += 1;
      out += token + (empty ? "" : "\n" + "  ".repeat(depth));
    } else if (token === "}" || token === "]") {
      depth -= 1;
      const empty = tokens[at - 1] === "{" || tokens[at - 1] === "[";
      out += (empty ? "" : "\n" + "  ".repeat(Math.max(0, depth))) + token;
    } else if (token === ",") out += ",\n" + "  ".repeat(depth);
    else if (token === ":") out += ": ";
    else out += token;
  });
  return out;
}

function isJson(text) {
  try { JSON.parse(text); return true; } catch { return false; }
}

/** Nodes for JSON: keys, strings and the rest, told apart by a tone. */
export function jsonNodes(json) {
  const nodes = [];
  let from = 0;
  for (const found of json.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/gs)) {
    nodes.push(...nodesOf(json.slice(from, found.index)));
    const key = found[1] !== undefined;
    const text = key ? found[0].slice(0, found[0].length - found[1].length) : found[0];
    nodes.push(h("span", { class: key ? "j-key" : "j-string" }, ...nodesOf(text)));
    if (key) nodes.push(found[1]);
    from = found.index + found[0].length;
  }
  nodes.push(...nodesOf(json.slice(from)));
  return nodes;
}

/** The arguments of a whole call, well set. */
export const argumentsNodes = (raw) => jsonNodes(isJson(raw) ? laidOut(raw) : raw);

export const bytes = (n) => (n < 10000 ? `${n.toLocaleString("en")} bytes` : `${(n / 1024).toFixed(1)} KiB`);
export const seconds = (s) => `${s.toFixed(2)} s`;
export const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
