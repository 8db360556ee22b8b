// The frame of the page: the address in, the view that it names out; keys and colours for all views.
// Rule: a view is an object with `element`, `open(rest)` and, if it wants keys, `key(event)`. Each is
// made when it is first seen and kept, so that going back finds everything as it was.

import { h, fill, byId } from "./dom.js";
import { get } from "./api.js";
import { Inspector } from "./inspect.js";
import { Compare } from "./compare.js";
import { Chat } from "./chat.js";

const VIEWS = { inspect: "Inspect", compare: "Compare", chat: "Chat" };
const made = {};
let current = null;

async function show() {
  const [, name = "inspect", ...rest] = location.hash.split("/");
  const view = VIEWS[name] ? name : "inspect";
  const main = byId("main");
  try {
    made[view] ??= await make(view);
  } catch (error) {
    fill(main, h("p", { class: "loading", role: "alert" }, error.message));
    return;
  }
  if (current !== made[view]) current?.close?.();
  current = made[view];
  if (main.firstChild !== current.element) fill(main, current.element);
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[view]} · streamnorm`;
  document.body.dataset.view = view;
  await current.open(rest.map(decodeURIComponent).join("/"));
  document.body.dataset.ready = view;
}

const MAKERS = {
  inspect: async () => new Inspector(await get("/api/takes")),
  compare: async () => new Compare(await get("/api/takes"), (await get("/api/config")).providers),
  chat: async () => new Chat(await get("/api/config")),
};
const make = (view) => MAKERS[view]();

// --- keys -----------------------------------------------------------------------------------------

const TYPES = "input:not([type=range]):not([type=checkbox]), textarea, select, dialog[open] *";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.(TYPES)) return;
  if (event.key === " " && event.target.matches?.("button, a, summary")) return;
  if ((event.key === "Home" || event.key === "End" || event.key.startsWith("Arrow")) && event.target.matches?.("input, .picker *, .picker")) return;
  const view = Object.keys(VIEWS)[Number(event.key) - 1];
  if (view) location.hash = `#/${view}`;
  else if (event.key === "?") byId("keys").showModal();
  else if (!current?.key?.(event)) return;
  event.preventDefault();
});

byId("keys-button").addEventListener("click", () => byId("keys").showModal());

// --- colours --------------------------------------------------------------------------------------

const THEMES = { auto: ["Auto", "as the system"], light: ["Light", "light"], dark: ["Dark", "dark"] };

function setTheme(choice) {
  document.documentElement.dataset.theme = choice;
  const [word, meaning] = THEMES[choice];
  byId("theme-button").textContent = word;
  byId("theme-button").setAttribute("aria-label", `Colours: ${meaning}`);
  try { localStorage.setItem("streamnorm.theme", choice); } catch { /* not kept, then */ }
}

byId("theme-button").addEventListener("click", () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
});
setTheme(THEMES[document.documentElement.dataset.theme] ? document.documentElement.dataset.theme : "auto");

addEventListener("hashchange", show);
// A file dropped beside the view must not replace the page.
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => event.preventDefault());
show();
