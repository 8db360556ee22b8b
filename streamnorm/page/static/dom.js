// Elements: a tag, properties and children in, an element out.
// Rule: children are elements or strings, and a string becomes a text node. There is no way to make
// markup of text here, and no other module makes elements.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "x", type: "button", onclick: f}, "Go") */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Put other children in the place of all there are. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Change text only where it differs, so that readers of the screen are not told twice. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const byId = (id) => document.getElementById(id);

/** One sentence for those who hear the page instead of seeing it. */
export function announce(sentence) {
  say(byId("status"), sentence);
}

/** Keep a child in view inside its own scrolling box, without moving the page. */
export function keepInView(box, child) {
  const margin = box.clientHeight * 0.25;
  const top = child.offsetTop; // the box is positioned, so this counts from its own top
  if (top < box.scrollTop + 8) box.scrollTop = Math.max(0, top - margin);
  else if (top + child.offsetHeight > box.scrollTop + box.clientHeight - 8) {
    box.scrollTop = Math.min(top - 8, top + child.offsetHeight - box.clientHeight + margin);
  }
}
