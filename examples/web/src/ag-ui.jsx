// A chat with HttpAgent of AG-UI. The server is streamnorm's chat_router(protocol="ag-ui").
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { Approval } from "./approval.jsx";
import { Composer } from "./composer.jsx";
import { File } from "./file.jsx";
import "./style.css";

const API = "/api/ag-ui";
const id = (location.hash ||= `#${crypto.randomUUID()}`).slice(1); // the thread outlives the page
const kept = JSON.parse(sessionStorage.getItem(id) ?? '{"messages":[],"asked":[],"media":[]}');

function Chat() {
  const agent = useRef(null);
  const [messages, setMessages] = useState(kept.messages);
  const [asked, setAsked] = useState(kept.asked); // what the last run waits for
  const answers = useRef({}); // all of them go back together
  const [media, setMedia] = useState(kept.media); // AG-UI tells them beside the messages
  const made = useRef(kept.media);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");

  useEffect(() => {
    agent.current = new HttpAgent({ url: API, threadId: id, initialMessages: kept.messages });
    agent.current.pendingInterrupts = kept.asked;
    const told = agent.current.subscribe({
      onMessagesChanged: ({ messages }) => setMessages([...messages]),
      onRunErrorEvent: ({ event }) => setError(event.message),
      onCustomEvent: ({ event }) => event.name === "streamnorm.media" && setMedia((made.current = [...made.current, event.value])),
    });
    return () => told.unsubscribe();
  }, []);

  async function run(more) {
    setError("");
    setBusy(true);
    setAsked([]);
    answers.current = {};
    await agent.current.runAgent(more).catch((problem) => setError(problem.message));
    setAsked(agent.current.pendingInterrupts);
    setBusy(false);
    const { messages, pendingInterrupts } = agent.current;
    sessionStorage.setItem(id, JSON.stringify({ messages, asked: pendingInterrupts, media: made.current }));
  }

  function send(text) {
    const left = asked.map((interrupt) => ({ interruptId: interrupt.id, status: "cancelled" })); // not agreed to
    agent.current.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    return run(left.length ? { resume: left } : {});
  }

  function answer(interrupt, payload) {
    answers.current[interrupt.id] = { status: "resolved", payload };
    if (asked.every(({ id }) => id in answers.current)) run({ resume: buildResumeArray(asked, answers.current) });
  }
  const halt = () => fetch(`${API}/${agent.current.threadId}/stop`, { method: "POST" });

  return (
    <>
      <h1>HttpAgent</h1>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {typeof message.content === "string" && <p>{message.content}</p>}
          {media.filter((medium) => medium.messageId === message.id).map((medium, at) => <Made key={at} medium={medium} />)}
          {message.toolCalls?.map((call) => (
            <section key={call.id} className="tool">
              <b>{call.function.name}</b>
              <pre>{call.function.arguments}</pre>
              {asked.filter((interrupt) => interrupt.toolCallId === call.id).map((interrupt) => (
                <Approval key={interrupt.id} name={call.function.name} input={JSON.parse(call.function.arguments)}
                  reason={interrupt.message} onAnswer={(payload) => answer(interrupt, payload)} />
              ))}
            </section>
          ))}
        </article>
      ))}
      {error && <p role="alert">{error}</p>}
      <Composer busy={busy} onSend={send} onStop={halt} />
    </>
  );
}

function Made({ medium: { content, mimeType } }) {
  if (!content) return <File url="" mediaType={mimeType ?? "?"} />; // it stays on the server
  const { type, value, mimeType: its } = content.source;
  return <File url={type === "data" ? `data:${its};base64,${value}` : value} mediaType={its} />;
}

createRoot(document.getElementById("root")).render(<Chat />);
