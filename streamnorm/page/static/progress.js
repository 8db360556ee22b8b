// Progress: what is being read, how far it is, and a button that ends it.
// Rule: work that is over in a moment is not told; one thing is read at a time, and the last one asked for counts.

import { h, say } from "./dom.js";
import { bytes } from "./text.js";

const MOMENT = 250; // milliseconds

export class Progress {
  constructor() {
    this.words = h("span", { class: "progress-words" });
    this.share = h("span", { class: "progress-share" });
    this.bar = h("progress", { class: "progress-bar", max: 1, "aria-label": "How much is read" });
    this.cancel = h("button", { type: "button", class: "quiet progress-cancel", onclick: () => this.running?.stop(true) }, "Cancel");
    this.element = h("div", { class: "progress", role: "status", hidden: true },
      h("div", { class: "progress-line" }, this.words, this.share, this.cancel), this.bar);
  }

  /** Something else is read from here on; what was under way is left. */
  begin(title) {
    this.running?.stop(false);
    const running = new Running(this, title);
    this.running = running;
    return running;
  }
}

class Running {
  constructor(progress, title) {
    this.progress = progress;
    this.title = title;
    this.cancelled = false;
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.timer = setTimeout(() => this.show(), MOMENT);
  }

  show() {
    const { progress } = this;
    say(progress.words, `Reading ${this.title}`);
    progress.element.hidden = false;
    if (this.of) this.tell(this.done, this.of);
    else progress.bar.removeAttribute("value");
  }

  tell(done, of) {
    this.done = done;
    this.of = of;
    if (this.progress.element.hidden || this.progress.running !== this) return;
    this.progress.bar.value = done / of;
    say(this.progress.share, `${Math.floor((100 * done) / of)} %  ·  ${bytes(done)} of ${bytes(of)}`);
  }

  stop(cancelled) {
    this.cancelled = cancelled;
    this.controller.abort();
  }

  end() {
    clearTimeout(this.timer);
    if (this.progress.running !== this) return;
    this.progress.running = null;
    this.progress.element.hidden = true;
    say(this.progress.share, "");
  }
}
