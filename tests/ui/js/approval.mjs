// A person at a page, with a real client: commands come in on stdin, one JSON object per line; what the
// page knows after each goes out, likewise. The arguments are the protocol and the address of the server.
//
//   {"say": text}          a message
//   {"answer": {...}}      an answer to everything that is asked: approved, reason, editedArgs
//   {"answers": [{...}]}   one for each, in order
//   {"again": true}        what was sent last, once more
//   {"reload": true}       the page is gone, and made again of what it had kept
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.STREAMNORM_NPM}/`);
const [protocol, api] = process.argv.slice(2);
process.on("unhandledRejection", () => {}); // of HttpAgent, where the connection is lost: it tells twice

// --- the AI SDK: the chat of useChat, without React ------------------------------------------------

async function aiSdk() {
  const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } =
    await import(pathToFileURL(require.resolve("ai")).href);
  const state = (messages) => ({
    status: "ready", error: undefined, messages,
    pushMessage(message) { this.messages = [...this.messages, message]; },
    popMessage() { this.messages = this.messages.slice(0, -1); },
    replaceMessage(at, message) { this.messages = this.messages.with(at, message); },
    snapshot: (thing) => structuredClone(thing),
  });
  class Chat extends AbstractChat {
    constructor(messages) {
      super({
        id: "c1", state: state(messages),
        transport: new DefaultChatTransport({ api, body: () => ({ editedArgs }) }),
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
        onError: (error) => errors.push(error.message),
      });
    }
  }
  const editedArgs = {}; // by approval, with every body: the client sends when the last one is answered
  let errors = [];
  let chat = new Chat([]);
  const tools = () => chat.messages.flatMap((m) => m.parts).filter((p) => p.type.startsWith("tool-"));
  const asked = () => tools().filter((part) => part.state === "approval-requested");
  const quiet = async () => { // an answer is sent by the chat itself, some ticks after the last approval
    for (let ticks = 0; ticks < 50; ticks += 1) {
      await new Promise((go) => { setTimeout(go, 2); });
      if (chat.status === "submitted" || chat.status === "streaming") ticks = 0;
    }
  };
  return {
    say: (text) => chat.sendMessage({ text }),
    async answer(answers) {
      for (const [at, part] of asked().entries()) {
        const { approved, reason, editedArgs: edited } = answers[at];
        if (edited) editedArgs[part.approval.id] = edited;
        else delete editedArgs[part.approval.id];
        await chat.addToolApprovalResponse({ id: part.approval.id, approved, reason });
      }
      await quiet();
    },
    again: () => chat.sendMessage(undefined),
    reload() { chat = new Chat(JSON.parse(JSON.stringify(chat.messages))); },
    seen() {
      const parts = chat.messages.flatMap((m) => m.parts);
      const told = {
        asked: asked().map((p) => ({ id: p.approval.id, tool: p.type.slice(5), input: p.input, reason: p.approval.requestReason })),
        tools: tools().map((p) => ({ id: p.toolCallId, state: p.state, input: p.input, output: p.output, error: p.errorText })),
        text: parts.filter((p) => p.type === "text").map((p) => p.text).join("\n"),
        messages: chat.messages.map((m) => m.role), errors,
      };
      errors = [];
      return told;
    },
  };
}

// --- AG-UI: HttpAgent ------------------------------------------------------------------------------

function agUi() {
  const { HttpAgent, buildResumeArray } = require("@ag-ui/client");
  let errors = [];
  let agent = new HttpAgent({ url: api, threadId: "c1" });
  const run = async (more) => {
    try {
      await agent.runAgent(more, { onRunErrorEvent: ({ event }) => void errors.push(event.message) });
    } catch (error) {
      if (!errors.includes(error.message)) errors.push(error.message);
    }
  };
  let last;
  return {
    say(text) {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
      return run({});
    },
    answer(answers) {
      const payloads = agent.pendingInterrupts.map((interrupt, at) => [interrupt.id,
        answers[at].cancelled ? { status: "cancelled" } : { status: "resolved", payload: answers[at] }]);
      last = buildResumeArray(agent.pendingInterrupts, Object.fromEntries(payloads));
      return run({ resume: last });
    },
    again: () => run({ resume: last }),
    reload() {
      const kept = JSON.parse(JSON.stringify({ messages: agent.messages, asked: agent.pendingInterrupts }));
      agent = new HttpAgent({ url: api, threadId: "c1", initialMessages: kept.messages });
      agent.pendingInterrupts = kept.asked;
    },
    seen() {
      const calls = agent.messages.flatMap((m) => m.toolCalls ?? []);
      const results = Object.fromEntries(agent.messages.filter((m) => m.role === "tool").map((m) => [m.toolCallId, m]));
      const input = (id) => JSON.parse(calls.find((c) => c.id === id).function.arguments);
      const told = {
        asked: agent.pendingInterrupts.map((i) => ({ id: i.id, tool: calls.find((c) => c.id === i.toolCallId).function.name, input: input(i.toolCallId), reason: i.message })),
        tools: calls.map((c) => ({ id: c.id, state: results[c.id] ? "output-available" : "input-available", input: input(c.id), output: results[c.id]?.content })),
        text: agent.messages.filter((m) => m.role === "assistant").map((m) => m.content).filter(Boolean).join("\n"),
        messages: agent.messages.map((m) => m.role), errors,
      };
      errors = [];
      return told;
    },
  };
}

const page = protocol === "ai-sdk" ? await aiSdk() : agUi();
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if ("say" in command) await page.say(command.say);
  if ("answer" in command) await page.answer(page.seen().asked.map(() => command.answer));
  if ("answers" in command) await page.answer(command.answers);
  if ("again" in command) await page.again();
  if ("reload" in command) page.reload();
  process.stdout.write(`${JSON.stringify(page.seen())}\n`);
}
