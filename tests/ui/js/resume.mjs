// An address comes in as the argument. The AI SDK's transport asks there, drops the connection at the
// first text, comes back, and tells what it was told: one line of words after each step, then JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.STREAMNORM_NPM}/`);
const { DefaultChatTransport, readUIMessageStream } = await import(
  pathToFileURL(require.resolve("ai")).href
);
const api = process.argv[2];
const transport = new DefaultChatTransport({ api, headers: { "x-user": "ann" } });
const messages = [{ id: "m1", role: "user", parts: [{ type: "text", text: "Pay" }] }];
const say = (line) => process.stdout.write(`${line}\n`);

const idle = await transport.reconnectToStream({ chatId: "c1" });
say(idle === null ? "idle" : "not idle");

const leave = new AbortController();
const first = await transport.sendMessages({
  chatId: "c1", messages, trigger: "submit-message", abortSignal: leave.signal,
});
for await (const chunk of first) {
  if (chunk.type === "text-delta") break;
}
leave.abort();
say("dropped");

const again = await transport.reconnectToStream({ chatId: "c1" });
say(again === null ? "nothing" : "reconnected");
let message;
for await (const state of readUIMessageStream({ stream: again })) message = state;
say(JSON.stringify(message));
