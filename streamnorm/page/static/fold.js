// Folding: events in, what they amount to out. Pure; knows nothing of the page.
// Rule: a call is "assembling" until an event says that it is whole or broken, however complete its
// text may look. That is the library's promise, and this is where the page keeps it.

/** The state before any event. */
export function nothing() {
  return { provider: "", model: "", text: "", reasoning: "", calls: new Map(), results: [], citations: 0, unrecognized: 0, usage: null, end: null, events: 0 };
}

/** Take one event in; the state is changed and returned. */
export function take(state, event, sums = {}) {
  state.events += 1;
  HEARD[event.kind]?.(state, event, sums);
  return state;
}

const callOf = (state, event) => {
  if (!state.calls.has(event.call)) {
    state.calls.set(event.call, { call: event.call, id: event.id ?? "", name: event.name ?? "", text: "", state: "assembling", runsOn: event.runs_on ?? "client", family: event.family ?? "function", fragments: 0 });
  }
  return state.calls.get(event.call);
};

const HEARD = {
  stream_start(state, event) { state.provider = event.provider; state.model = event.model ?? ""; },
  text_delta(state, event) { state.text += event.text; },
  reasoning_delta(state, event) { state.reasoning += event.text; },
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
