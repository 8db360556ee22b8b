// Streams come in on stdin, one {"name", "body"} per line; what an AG-UI client made of each goes out.
// The first argument names the package; its HttpAgent reads them, only the network is replaced.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.STREAMNORM_NPM}/`);
const { HttpAgent } = require(process.argv[2]);
let body = "";
globalThis.fetch = async () =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

async function read(take) {
  const seen = { name: take.name, protocolErrors: [], told: [], events: 0 };
  console.warn = (...words) => seen.protocolErrors.push(words.join(" "));
  console.error = (...words) => seen.protocolErrors.push(words.join(" "));
  body = take.body;
  const agent = new HttpAgent({ url: "http://127.0.0.1/agent", threadId: "t" });
  agent.messages = [{ id: "u1", role: "user", content: "Hello" }];
  const watch = {
    onEvent: () => void (seen.events += 1),
    onRunErrorEvent: ({ event }) => void seen.told.push(event.message),
    onRunFinishedEvent: ({ event }) => void (seen.finished = event),
  };
  try {
    await agent.runAgent({ runId: "r" }, watch);
  } catch (error) {
    if (!seen.told.includes(error?.message)) seen.protocolErrors.push(String(error));
  }
  return { ...seen, messages: agent.messages };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await read(JSON.parse(line)))}\n`);
}
