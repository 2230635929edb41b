// The state of the connection, and what the user can do about it.

import { element, replace } from "../dom.js";

/** A banner above the conversation, with a button. */
export class ConnectionBanner {
  root = element("div", { role: "status" });
  #kind = null;

  /** The socket is reconnecting. */
  showLost(retry) {
    if (!this.#kind) this.#show("lost", "Connection lost. Reconnecting… Unsent messages will be sent when the connection is restored.", "Try now", retry);
  }

  /** The host has no free session: shown once, however often the socket retries. */
  showFull(message, retry) {
    if (this.#kind === "full") return;
    const advice = "Close another console window, or wait: this one connects automatically when another session ends.";
    this.#show("full", `${message} ${advice}`, "Try now", retry);
  }

  /** The socket is closed until the user reconnects. */
  showClosed(text, label, reconnect) {
    this.#show("closed", text, label, () => {
      this.clear();
      reconnect();
    });
  }

  clear() {
    this.#kind = null;
    replace(this.root);
  }

  #show(kind, text, label, click) {
    this.#kind = kind;
    replace(this.root, element("div", { class: "banner calm" }, element("span", {}, text),
      element("button", { type: "button", class: "small", on: { click } }, label)));
  }
}
