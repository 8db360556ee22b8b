// Plays come in on stdin, one {"name", "wire", "url", "steps"} per line; what `ai` did in each goes out, likewise.
// A tool leaves its word when it runs. The old release (wire "openai_chat_early") takes a call for whole as
// soon as its text parses, and runs it then.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.STREAMNORM_NPM}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const now = await load("ai");
const early = await load("ai-old");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createOpenAICompatible: createEarly } = await load("openai-compatible-old");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = await load("@ai-sdk/google");

const apiKey = "none";
const MODELS = {
  openai_chat: (baseURL) => createOpenAICompatible({ name: "gateway", baseURL, apiKey })("m"),
  openai_chat_early: (baseURL) => createEarly({ name: "gateway", baseURL, apiKey })("m"),
  openai_responses: (baseURL) => createOpenAI({ baseURL, apiKey }).responses("m"),
  anthropic: (baseURL) => createAnthropic({ baseURL, apiKey })("m"),
  gemini: (baseURL) => createGoogleGenerativeAI({ baseURL, apiKey })("m"),
};

async function play({ name, wire, url, steps }) {
  const seen = { name, ran: [], errors: [], text: "" };
  const { streamText, tool, jsonSchema, stepCountIs } = wire === "openai_chat_early" ? early : now;
  const properties = { word: { type: "string" } };
  const leave = tool({
    description: "Leave a word",
    inputSchema: jsonSchema({ type: "object", properties, required: ["word"] }),
    execute: async ({ word }) => {
      seen.ran.push(word);
      return "left";
    },
  });
  const result = streamText({
    model: MODELS[wire](`${url}/v1`), tools: { leave }, prompt: "Go.", maxRetries: 0, onError() {},
    stopWhen: stepCountIs(steps),
  });
  try {
    for await (const part of result.fullStream) {
      if (part.type === "error") seen.errors.push(String(part.error?.message ?? part.error));
      if (part.type === "text-delta") seen.text += part.text;
      if (part.type === "finish") seen.finish = part.finishReason;
    }
  } catch (error) {
    seen.errors.push(String(error?.message ?? error));
  }
  return seen;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await play(JSON.parse(line))));
}
