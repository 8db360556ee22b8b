// Media: what a model made in, an element that shows it out.
// Rule: bytes of a picture that cannot act are shown; anything else is named. Nothing is loaded from
// another place: an address is a link to follow, and only one of http or https is that.

import { h } from "./dom.js";
import { nodesOf } from "./text.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const WEB = /^https?:\/\/[^\s"'<>\\]+$/i;

/** A folded medium: its part, its type, its bytes in base64 piece by piece, or its address. */
export function mediumBlock(medium) {
  const name = [medium.type, medium.agent].filter(Boolean).join(" · ");
  const label = h("figcaption", {}, ...nodesOf(name), ...nodesOf(sizeOf(medium)));
  return h("figure", { class: "medium" }, shown(medium), label);
}

function shown(medium) {
  const [data] = medium.pieces;
  if (PICTURES.has(medium.type) && medium.pieces.length === 1 && BASE64.test(data)) {
    return h("img", { src: `data:${medium.type};base64,${data}`, alt: `A picture (${medium.type})` });
  }
  if (medium.url && WEB.test(medium.url)) {
    return h("a", { href: medium.url, rel: "noopener noreferrer nofollow", target: "_blank" }, ...nodesOf(medium.url));
  }
  return null;
}

function sizeOf(medium) {
  const size = medium.pieces.reduce((sum, piece) => sum + bytesOf(piece), 0);
  return size ? ` · ${size.toLocaleString("en")} bytes` : "";
}

const bytesOf = (text) => Math.floor((text.replace(/=+$/, "").length * 3) / 4);
