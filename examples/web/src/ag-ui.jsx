// A chat with HttpAgent of AG-UI. The server is streamnorm's chat_router(protocol="ag-ui").
import { useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { HttpAgent } from "@ag-ui/client";
import { Composer } from "./composer.jsx";
import "./style.css";

const API = "/api/ag-ui";

function Chat() {
  const agent = useRef(null);
  const [messages, setMessages] = useState([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");

  useEffect(() => {
    agent.current = new HttpAgent({ url: API, threadId: crypto.randomUUID() });
    const told = agent.current.subscribe({
      onMessagesChanged: ({ messages }) => setMessages([...messages]),
      onRunErrorEvent: ({ event }) => setError(event.message),
    });
    return () => told.unsubscribe();
  }, []);

  async function send(text) {
    setError("");
    setBusy(true);
    agent.current.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    await agent.current.runAgent().catch((problem) => setError(problem.message));
    setBusy(false);
  }
  const halt = () => fetch(`${API}/${agent.current.threadId}/stop`, { method: "POST" });

  return (
    <>
      <h1>HttpAgent</h1>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {typeof message.content === "string" && <p>{message.content}</p>}
          {message.toolCalls?.map((call) => (
            <section key={call.id} className="tool">
              <b>{call.function.name}</b>
              <pre>{call.function.arguments}</pre>
            </section>
          ))}
        </article>
      ))}
      {error && <p role="alert">{error}</p>}
      <Composer busy={busy} onSend={send} onStop={halt} />
    </>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
