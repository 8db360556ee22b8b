// Folding: events in, what they amount to out. Pure; knows nothing of the page.
// Rule: a call is "assembling" until an event says that it is whole or broken, however complete its
// text may look. That is the library's promise, and this is where the page keeps it.

/** The state before any event. */
export function nothing() {
  return { provider: "", model: "", text: "", reasoning: "", calls: new Map(), results: [], media: [], speakers: {}, citations: 0, unrecognized: 0, usage: null, end: null, events: 0 };
}

/** Take one event in; the state is changed and returned. */
export function take(state, event, sums = {}) {
  state.events += 1;
  HEARD[event.kind]?.(state, event, sums);
  return state;
}

const callOf = (state, event) => {
  if (!state.calls.has(event.call)) {
    state.calls.set(event.call, { call: event.call, id: event.id ?? "", name: event.name ?? "", text: "", state: "assembling", runsOn: event.runs_on ?? "client", agent: event.agent ?? "", family: event.family ?? "function", fragments: 0 });
  }
  return state.calls.get(event.call);
};

/** A text of another speaker than the one before it begins with his name. */
const spoken = (state, field, event) => {
  const [before, now] = [state.speakers[field] ?? "", event.agent ?? ""];
  state.speakers[field] = now;
  if (before === now) state[field] += event.text;
  else state[field] += `${state[field] ? "\n" : ""}${now || "–"}: ${event.text}`;
};

const HEARD = {
  stream_start(state, event) { state.provider = event.provider; state.model = event.model ?? ""; },
  text_delta(state, event) { spoken(state, "text", event); },
  reasoning_delta(state, event) { spoken(state, "reasoning", event); },
  media(state, event) {
    const last = state.media.findLast((medium) => medium.part === event.part && medium.choice === event.choice);
    const medium = last ?? { part: event.part, choice: event.choice, type: event.mime_type, url: event.url, agent: event.agent ?? "", pieces: [] };
    if (!last) state.media.push(medium);
    if (event.data) medium.pieces.push(event.data);
  },
  tool_call_start(state, event) { callOf(state, event); },
  tool_call_delta(state, event) {
    const call = callOf(state, event);
    call.text += event.text;
    call.fragments += 1;
  },
  tool_call(state, event, sums) {
    Object.assign(callOf(state, event), { state: "whole", id: event.id, name: event.name, text: event.raw, provenance: event.provenance, sum: sums[event.call] ?? "" });
  },
  broken_tool_call(state, event) {
    Object.assign(callOf(state, event), { state: "broken", id: event.id, name: event.name, text: event.raw, provenance: event.provenance, reason: event.reason, detail: event.detail });
  },
  tool_progress(state, event) { const call = state.calls.get(event.call); if (call) call.progress = event.status; },
  tool_result(state, event) { state.results.push(event); },
  citation(state) { state.citations += 1; },
  unrecognized(state) { state.unrecognized += 1; },
  usage(state, event) { state.usage = event; },
  finish(state, event) { state.end = event; },
  failed(state, event) { state.end = event; },
};

/** One line that says what an event is about. */
export function gist(event) {
  const say = GISTS[event.kind];
  return say ? say(event) : "";
}

const GISTS = {
  stream_start: (e) => [e.provider, e.model].filter(Boolean).join(" · "),
  text_delta: (e) => e.text,
  reasoning_delta: (e) => e.text,
  media: (e) => [e.mime_type, e.url].filter(Boolean).join(" "),
  tool_call_start: (e) => e.name,
  tool_call_delta: (e) => e.text,
  tool_call: (e) => `${e.name} ${e.raw}`,
  broken_tool_call: (e) => `${e.name}: ${e.reason}`,
  tool_progress: (e) => e.status,
  tool_result: (e) => JSON.stringify(e.output),
  citation: (e) => JSON.stringify(e.payload),
  usage: (e) => `${e.input ?? "?"} in, ${e.output ?? "?"} out`,
  finish: (e) => e.reason,
  failed: (e) => `${e.reason}: ${e.error}`,
  unrecognized: (e) => e.wire_kind,
};
