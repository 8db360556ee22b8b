// The report: the address in, the streams that it names out; and what can be sorted, found and opened.
// Rule: the address is the state, `#call=broken&provider=x&find=words`: a number is a link, and every
// list can be sent to somebody. Texts become text nodes; there is no way to make markup of them here.
(() => {
  "use strict";

  const AT_ONCE = 50;
  const FIND = "find";
  const NAMES = {
    provider: "provider", server: "server", model: "model", form: "kind", end: "ended", reason: "reason",
    call: "calls", broken: "broken call", id: "ids", note: "oddity", tokens: "tokens", timed: "times",
    first_event: "first event", first_token: "first token", first_call: "first call", wrong: "affected",
    when: "recorded", part: "streams",
  };
  const TIME_NAMES = { first_event: "first event", first_token: "first token", first_call: "first call" };

  const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);
  const collator = new Intl.Collator("en", { numeric: true });
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const number = (n) => n.toLocaleString("en");
  const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

  function h(tag, props, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  // --- the streams ------------------------------------------------------------------------------

  const numbers = new Map(data.tags.map((tag, at) => [tag, at]));
  const streams = data.streams.map((facts) => {
    const notes = facts.notes || {};
    const odd = Object.values(notes).reduce((sum, count) => sum + count, 0);
    const words = [facts.name, facts.provider, facts.model, facts.host, facts.end, facts.reason, facts.detail,
      facts.response, facts.captured, ...Object.keys(notes), ...Object.keys(facts.reasons || {})];
    return { ...facts, notes, odd, tags: new Set(facts.tags), words: words.filter(Boolean).join("\n").toLowerCase() };
  });
  // How many streams are behind a number: that stands at each link to it.
  const behind = new Map();
  for (const link of document.querySelectorAll("a[data-streams]")) behind.set(link.getAttribute("href"), Number(link.dataset.streams));

  const state = { tags: [], find: "", by: "name", down: false, shown: AT_ONCE, open: new Set() };

  const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

  /** The address -> tags as they stand in it, and words to find. */
  function read() {
    const hash = location.hash.slice(1);
    const parts = hash.includes("=") ? hash.split("&").filter(Boolean) : [];
    const tagged = parts.map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [decoded(part), ""] : [decoded(part.slice(0, at)), decoded(part.slice(at + 1))];
    });
    state.find = tagged.filter(([name]) => name === FIND).map(([, value]) => value).join(" ");
    state.tags = tagged.filter(([name]) => name !== FIND);
    return parts.length > 0;
  }

  // As Python writes it: encodeURIComponent leaves a few more characters as they are.
  const encoded = (text) => {
    try {
      return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
    } catch { return ""; } // half a character, which is in no tag
  };
  const written = ([name, value]) => `${name}=${encoded(value)}`;
  /** What names these streams; an address without tags names all. */
  function address(tags, find) {
    const told = [...tags.map(written), ...(find ? [`${FIND}=${encoded(find)}`] : [])].join("&");
    return told ? `#${told}` : "#streams";
  }

  function matching() {
    const wanted = state.tags.map((tag) => numbers.get(written(tag)));
    const words = state.find.toLowerCase().split(/\s+/).filter(Boolean);
    return streams.filter((one) => wanted.every((tag) => one.tags.has(tag)) && words.every((word) => one.words.includes(word)));
  }

  const KEYS = {
    name: (one) => one.name,
    end: (one) => `${one.end} ${one.reason || ""}`,
    calls: (one) => [one.broken || 0, one.whole || 0],
    odd: (one) => one.odd,
  };

  function compare(left, right) {
    const a = KEYS[state.by](left);
    const b = KEYS[state.by](right);
    if (Array.isArray(a)) return a[0] - b[0] || a[1] - b[1];
    return typeof a === "number" ? a - b : collator.compare(a, b);
  }

  function show() {
    const found = matching().sort(compare);
    if (state.down) found.reverse();
    const rows = found.slice(0, state.shown).flatMap(rowsOf);
    byId("list").tBodies[0].replaceChildren(...rows);
    byId("list").hidden = found.length === 0;
    byId("more").hidden = found.length <= state.shown;
    byId("more").textContent = `Show ${number(Math.min(AT_ONCE, found.length - state.shown))} more of ${number(found.length)}`;
    const said = sentence(found.length);
    byId("found").textContent = said;
    byId("status").textContent = said;
    chips();
    if (byId("find").value.trim() !== state.find) byId("find").value = state.find;
    for (const head of document.querySelectorAll("th[data-by]")) sorted(head, head.dataset.by === state.by ? state.down : null);
    mark();
  }

  function sentence(listed) {
    const all = state.find ? undefined : state.tags.length ? behind.get(address(state.tags, "")) : data.every;
    if (!streams.length) return "There are no streams.";
    if (!listed) return "No stream that is listed here fits.";
    if (all !== undefined && all > listed) return `${number(listed)} of ${plural(all, "stream")} are listed, a fair sample.`;
    return listed === streams.length && !state.tags.length && !state.find ? `All ${plural(listed, "stream")}.` : `${plural(listed, "stream")}.`;
  }

  let followed = false; // a link of this page: there is a way back

  function chips() {
    const named = ([name]) => own(NAMES, name) ?? name;
    const value = ([name, text]) => (name === "provider" ? own(data.said, written([name, text])) ?? text : text);
    const all = state.tags.map((tag, at) => h("li", {}, h("a", {
      class: "chip-off", href: address(state.tags.filter((_, other) => other !== at), state.find), "aria-label": `Remove ${named(tag)}: ${value(tag)}`,
    }, h("span", {}, `${named(tag)}: `), h("b", {}, value(tag)), h("span", { "aria-hidden": "true" }, " ×"))));
    if (all.length && followed) all.push(h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => history.back() }, "Back")));
    byId("filters").replaceChildren(...all);
  }

  /** Which number is it that the list is behind? */
  function mark() {
    const here = state.tags.length ? address(state.tags, "") : null;
    for (const link of document.querySelectorAll("a[data-streams]")) {
      if (link.getAttribute("href") === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  // --- one stream -------------------------------------------------------------------------------

  function rowsOf(one) {
    const open = state.open.has(one);
    const facts = [one.host, own(data.said, written(["provider", one.provider || ""])) ?? one.provider, one.model, one.captured && one.captured.replace("T", " ")];
    const name = h("button", { type: "button", class: "stream", "aria-expanded": String(open), onclick: () => toggle(one) }, one.name);
    const row = h("tr", { class: "stream-row" },
      h("th", { scope: "row" }, name, h("small", {}, facts.filter(Boolean).join(" · "))),
      h("td", {}, h("span", { class: one.end === "finish" ? "mark-good" : "mark-bad" }, one.end === "finish" ? one.reason || "finished" : one.end), one.end === "failed" && one.reason ? h("small", {}, one.reason) : null),
      h("td", { class: "num" }, calls(one)),
      h("td", { class: "num" }, one.odd ? number(one.odd) : h("span", { class: "none" }, "0")));
    return open ? [row, h("tr", { class: "stream-more" }, h("td", { colspan: 4 }, details(one)))] : [row];
  }

  function calls(one) {
    if (!one.whole && !one.broken) return h("span", { class: "none" }, "0");
    return [one.whole ? number(one.whole) : "", one.whole && one.broken ? " + " : "", one.broken ? h("span", { class: "is-bad" }, `${number(one.broken)} broken`) : ""];
  }

  function toggle(one) {
    if (!state.open.delete(one)) state.open.add(one);
    show();
    for (const button of document.querySelectorAll("button.stream")) if (button.textContent === one.name) { button.focus(); break; }
  }

  function details(one) {
    const rows = [
      ["detail", one.detail],
      ["oddities", list(one.notes, (name, count) => [h("code", {}, name), ` × ${number(count)}`, h("small", {}, own(data.noted, name) ?? "")])],
      ["broken calls", list(one.reasons, (name, count) => [`${name} × ${number(count)}`])],
      ["ids", list(one.ids, (name, count) => [`${name} × ${number(count)}`])],
      ["tokens", inLine(one.tokens, (count) => number(count))],
      ["times", inLine(one.times, (s) => `${s.toFixed(3)} s`, TIME_NAMES)],
      ["response", one.response],
      ["host", one.host],
      ["status", one.status],
      ["recorded", one.captured && `${one.captured.replace("T", " ")} UTC`],
      ["size", one.bytes && plural(one.bytes, "byte")],
    ];
    return h("div", { class: "stream-facts" }, command(one),
      h("dl", {}, rows.filter(([, told]) => told).map(([name, told]) => h("div", {}, h("dt", {}, name), h("dd", {}, told)))));
  }

  const list = (counts, told) => {
    const entries = Object.entries(counts || {});
    return entries.length ? h("ul", {}, entries.map(([name, count]) => h("li", {}, told(name, count)))) : null;
  };
  const inLine = (values, told, names = {}) => Object.entries(values || {}).map(([name, value]) => `${own(names, name) ?? name} ${told(value)}`).join(", ");

  /** What to type to look closer. */
  function command(one) {
    const quoted = `'${one.name.replaceAll("'", "'\\''")}'`;
    const text = `streamnorm inspect ${one.name.startsWith("-") ? "-- " : ""}${quoted}`;
    const shown = h("code", {}, text);
    const button = h("button", { type: "button", class: "copy", onclick: () => copy(text, shown, button) }, "Copy");
    return h("p", { class: "command" }, shown, button);
  }

  async function copy(text, shown, button) {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { // not allowed here: it is marked, to be copied by hand
      getSelection().selectAllChildren(shown);
      button.textContent = "Marked";
    }
  }

  // --- tables -----------------------------------------------------------------------------------

  function sorted(head, down) {
    if (down === null) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }

  function sortable(head, act) {
    head.replaceChildren(h("button", { type: "button", class: "sort", onclick: act }, head.textContent));
  }

  function valueIn(row, column) {
    const cell = row.cells[column];
    return cell.dataset.v ?? cell.textContent;
  }

  function sortTable(table, head) {
    const column = [...head.parentElement.children].indexOf(head);
    const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : head.dataset.sort === "number";
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const left = valueIn(a, column);
      const right = valueIn(b, column);
      return (head.dataset.sort === "number" || !Number.isNaN(Number(left) + Number(right)) ? Number(left) - Number(right) : collator.compare(left, right)) * (down ? -1 : 1);
    });
    for (const other of head.parentElement.children) sorted(other, other === head ? down : null);
    body.replaceChildren(...rows);
    fold(table);
  }

  /** Of many rows the first alone, until more are asked for. */
  function fold(table) {
    const most = Number(table.dataset.first) || Infinity;
    const rows = [...table.tBodies[0].rows];
    const whole = table.dataset.whole === "yes" || rows.length <= most + 2;
    rows.forEach((row, at) => { row.classList.toggle("folded", !whole && at >= most); });
    return !whole;
  }

  for (const table of document.querySelectorAll("table.grid:not(.list)")) {
    for (const head of table.querySelectorAll("th[data-sort]")) if (head.textContent) sortable(head, () => sortTable(table, head));
    if (!fold(table)) continue;
    const button = h("button", { type: "button", class: "unfold" }, `Show all ${number(table.tBodies[0].rows.length)}`);
    button.addEventListener("click", () => {
      const first = table.tBodies[0].querySelector(".folded a");
      table.dataset.whole = "yes";
      fold(table);
      button.remove();
      first?.focus();
    });
    table.parentElement.after(button);
  }
  for (const head of document.querySelectorAll("th[data-by]")) {
    sortable(head, () => {
      state.down = state.by === head.dataset.by ? !state.down : head.classList.contains("num");
      state.by = head.dataset.by;
      show();
    });
  }

  // --- the page ---------------------------------------------------------------------------------

  byId("more").addEventListener("click", () => {
    const at = state.shown;
    state.shown += AT_ONCE;
    show();
    document.querySelectorAll("button.stream")[at]?.focus();
  });

  byId("find").addEventListener("input", (event) => {
    const find = event.target.value.trim();
    history.replaceState(null, "", address(state.tags, find));
    state.find = find;
    state.shown = AT_ONCE;
    show();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input, textarea")) return;
    event.preventDefault();
    byId("find").focus();
  });

  function go(mayMove) {
    const named = read();
    state.shown = AT_ONCE;
    show();
    if (named && mayMove) {
      byId("streams").scrollIntoView();
      byId("streams-title").focus({ preventScroll: true });
    }
  }

  // A link moves the page to the list; back and forward return to where it was.
  let isLink = false;
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (!link) return;
    isLink = followed = true;
    if (link.getAttribute("href") !== location.hash) return;
    isLink = false; // the same again: the address does not change
    go(true);
  });
  addEventListener("hashchange", () => { go(isLink); isLink = false; });

  // What scrolls sideways can be reached by keys.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll(".box")) sizes.observe(box);

  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll(".panel details:not(.alt)")) folded.open = true;
  });

  const THEMES = { auto: ["Auto", "as the system"], light: ["Light", "for the day"], dark: ["Dark", "for the night"] };
  const themeButton = byId("theme-button");
  function setTheme(choice) {
    const [word, meaning] = THEMES[choice];
    document.documentElement.dataset.theme = choice;
    themeButton.textContent = word;
    themeButton.setAttribute("aria-label", `${word}: colours ${meaning}`);
    try { localStorage.setItem("streamnorm.theme", choice); } catch { /* not kept, then */ }
  }
  themeButton.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
  });
  themeButton.hidden = false;
  setTheme(THEMES[document.documentElement.dataset.theme] ? document.documentElement.dataset.theme : "auto");

  go(true);
  document.body.dataset.ready = "yes";
})();
