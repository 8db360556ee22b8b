// A chat with useChat of the AI SDK. The server is streamnorm's chat_router(protocol="ai-sdk").
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { Approval } from "./approval.jsx";
import { Composer } from "./composer.jsx";
import { File } from "./file.jsx";
import "./style.css";

const API = "/api/ai-sdk";
const id = (location.hash ||= `#${crypto.randomUUID()}`).slice(1); // the chat outlives the page
const kept = JSON.parse(sessionStorage.getItem(id) ?? "[]");
// The AI SDK has no place for changed arguments: they go into every body, by the id of the approval.
const editedArgs = JSON.parse(sessionStorage.getItem(`${id} edits`) ?? "{}");
const transport = new DefaultChatTransport({ api: API, body: () => ({ editedArgs }) });

function Chat() {
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useChat({
    id,
    messages: kept,
    resume: kept.length > 0, // an answer that is under way is told again, from its start
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const answer = (part) => ({ approved, reason, editedArgs: edited }) => {
    const { id: approval } = part.approval;
    if (edited) editedArgs[approval] = edited;
    else delete editedArgs[approval];
    sessionStorage.setItem(`${id} edits`, JSON.stringify(editedArgs));
    addToolApprovalResponse({ id: approval, approved, reason });
  };
  const busy = status === "submitted" || status === "streaming";
  useEffect(() => {
    const settled = busy ? messages.filter((m, at) => at < messages.length - 1 || m.role === "user") : messages;
    sessionStorage.setItem(id, JSON.stringify(settled));
  }, [messages, busy]);
  const halt = () => fetch(`${API}/${id}/stop`, { method: "POST" }).finally(stop); // leaving is not stopping
  return (
    <>
      <h1>useChat</h1>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, at) => (
            <Part key={at} part={part} onAnswer={message === messages.at(-1) && answer(part)} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <Composer busy={busy} onSend={(text) => sendMessage({ text })} onStop={halt} />
    </>
  );
}

function Part({ part, onAnswer }) {
  if (part.type === "text") return <p>{part.text}</p>;
  if (part.type === "file") return <File url={part.url} mediaType={part.mediaType} />;
  if (!part.type.startsWith("tool-") && part.type !== "dynamic-tool") return null;
  const name = part.toolName ?? part.type.slice("tool-".length);
  return (
    <section className="tool" data-state={part.state}>
      <b>{name}</b> <small>{part.state}</small>
      <pre>{JSON.stringify(part.input ?? part.rawInput)}</pre>
      {part.output !== undefined && <pre>{JSON.stringify(part.output)}</pre>}
      {part.errorText && <p role="alert">{part.errorText}</p>}
      {part.state === "approval-requested" && onAnswer && ( // another message was a no
        <Approval name={name} input={part.input} reason={part.approval.requestReason} onAnswer={onAnswer} />
      )}
    </section>
  );
}

createRoot(document.getElementById("root")).render(<Chat />);
