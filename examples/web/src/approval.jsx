// A tool waits for a person: its arguments, which can be changed, and two buttons.
import { useState } from "react";

export function Approval({ name, input, reason, onAnswer }) {
  const given = JSON.stringify(input);
  const [text, setText] = useState(given);
  const [why, setWhy] = useState("");
  const allow = () => {
    try {
      onAnswer({ approved: true, ...(text === given ? {} : { editedArgs: JSON.parse(text) }) });
    } catch {
      setWhy("These arguments are no JSON.");
    }
  };
  return (
    <fieldset className="approval">
      <legend>May {name} run?</legend>
      {(why || reason) && <p role="status">{why || reason}</p>}
      <input aria-label="Its arguments" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="button" onClick={allow}>Allow</button>
      <button type="button" onClick={() => onAnswer({ approved: false, reason: "not now" })}>Deny</button>
    </fieldset>
  );
}
