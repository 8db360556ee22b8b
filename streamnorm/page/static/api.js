// The server: a path in, its answer out; or a path in, the entries of a log with their positions out.
// Rule: whatever goes wrong becomes an Error with one sentence that a person can read.

export async function get(path) {
  return answered(await asked(path));
}

export async function post(path, body) {
  return answered(await asked(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body ?? {}),
  }));
}

/** What comes of work that may take a while: onProgress hears how much is done, signal ends it. */
export async function worked(path, { body, onProgress, signal } = {}) {
  const headers = { accept: "application/x-ndjson" };
  if (body) headers["content-type"] = "application/octet-stream";
  const response = await asked(path, { method: body ? "POST" : "GET", headers, body, signal });
  if (!response.ok || !response.body) return answered(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the server ended its answer too early; is it still running?");
    const lines = value.split("\n");
    for (const rest of lines.slice(0, -1)) {
      const said = JSON.parse(held.join("") + rest);
      held = [];
      if (said.error) throw new Error(said.error.message);
      if (said.answer) return said.answer;
      onProgress?.(said.done, said.of);
    }
    held.push(lines.at(-1));
  }
}

async function asked(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server does not answer; is it still running?");
  }
}

async function answered(response) {
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(said.error?.message || `the server answered ${response.status}`);
  return said;
}

export const takePath = (name) => `/api/takes/${name.split("/").map(encodeURIComponent).join("/")}`;
export const cutPath = (name, at, provider) =>
  `/api/cut/${name.split("/").map(encodeURIComponent).join("/")}?at=${at}${provider ? `&provider=${encodeURIComponent(provider)}` : ""}`;

/** Entries of an SSE stream, each handed on as {id, entry}. Resolves to false for "nothing there". */
export async function entries(path, options, hand) {
  const response = await asked(path, options);
  if (response.status === 204) return false;
  if (!response.ok || !response.body) {
    await answered(response);
    return false;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    held += value;
    const blocks = held.split("\n\n");
    held = blocks.pop();
    for (const block of blocks) handBlock(block, hand);
  }
}

function handBlock(block, hand) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (fields.data) hand({ id: fields.id ?? "", entry: JSON.parse(fields.data) });
}
