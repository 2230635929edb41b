// The state of the connection, and what the user can do about it.

import { element, replace } from "../dom.js";

/** A banner above the conversation, with a button. */
export class ConnectionBanner {
  root = element("div", { role: "status" });
  #kind = null;

  /** The socket is reconnecting. */
  lost(retry) {
    if (!this.#kind) this.#show("lost", "Connection lost. Reconnecting; your messages are kept.", "Try now", retry);
  }

  /** The host has no free session: shown once, however often the socket retries. */
  full(message, retry) {
    if (this.#kind === "full") return;
    const wayOut = "Close another window of this console, or wait: this one connects as soon as a session is free.";
    this.#show("full", `${message} ${wayOut}`, "Try now", retry);
  }

  /** The socket is closed until the user reconnects. */
  closed(sentence, label, reconnect) {
    this.#show("closed", sentence, label, () => {
      this.clear();
      reconnect();
    });
  }

  clear() {
    this.#kind = null;
    replace(this.root);
  }

  #show(kind, sentence, words, click) {
    this.#kind = kind;
    replace(this.root, element("div", { class: "banner calm" }, element("span", {}, sentence),
      element("button", { type: "button", class: "small", on: { click } }, words)));
  }
}
