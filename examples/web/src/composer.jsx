// A line to type in, and a button that sends, or stops while an answer is under way.
import { useState } from "react";

export function Composer({ busy, onSend, onStop }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event.preventDefault();
    if (!text.trim() || busy) return;
    onSend(text);
    setText("");
  };
  return (
    <form onSubmit={submit} data-busy={busy}>
      <input aria-label="Your message" value={text} onChange={(event) => setText(event.target.value)} placeholder="What is the weather in Oslo and Lima?" />
      {busy ? <button type="button" onClick={onStop}>Stop</button> : <button>Send</button>}
    </form>
  );
}
