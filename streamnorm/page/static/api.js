// The server: a path in, its answer out; or a path in, the entries of a log with their positions out.
// Rule: whatever goes wrong becomes an Error with one sentence that a person can read.

export async function get(path) {
  return answered(await asked(path));
}

export async function post(path, body) {
  const raw = body instanceof Blob;
  return answered(await asked(path, {
    method: "POST",
    headers: { "content-type": raw ? "application/octet-stream" : "application/json" },
    body: raw ? body : JSON.stringify(body ?? {}),
  }));
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
