// Streams come in on stdin, one {"name", "body"} per line; what `ai` made of each goes out, likewise.
// The real transport reads them, as useChat does; only the network is replaced.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.STREAMNORM_NPM}/`);
const { DefaultChatTransport, readUIMessageStream } = await import(
  pathToFileURL(require.resolve("ai")).href
);

async function read({ name, body }) {
  const seen = { name, protocolErrors: [], told: [], chunks: 0 };
  const fetch = async () =>
    new Response(body, { headers: { "content-type": "text/event-stream" } });
  const transport = new DefaultChatTransport({ api: "http://127.0.0.1/chat", fetch });
  let message;
  try {
    const chunks = await transport.sendMessages({ chatId: "c", messages: [], trigger: "submit-message" });
    const counted = chunks.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          seen.chunks += 1;
          if (chunk.type === "error") seen.told.push(chunk.errorText);
          if (chunk.type === "abort") seen.aborted = true;
          if (chunk.type === "finish") seen.finish = chunk.finishReason;
          controller.enqueue(chunk);
        },
      }),
    );
    const onError = (error) => {
      if (!seen.told.includes(error?.message)) seen.protocolErrors.push(String(error));
    };
    for await (const state of readUIMessageStream({ stream: counted, onError })) message = state;
  } catch (error) {
    seen.protocolErrors.push(String(error));
  }
  return { ...seen, message };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await read(JSON.parse(line)))}\n`);
}
