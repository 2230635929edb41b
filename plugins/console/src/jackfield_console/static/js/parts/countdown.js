// Countdowns, and the banner of a ban.

import { element, replace } from "../dom.js";
import { formatClock } from "./format.js";

/** `<jf-countdown>`: shows the time until `until` (in milliseconds) and dispatches `end` at its end. */
class Countdown extends HTMLElement {
  until = 0;
  #timer = null;

  connectedCallback() {
    this.#timer = setInterval(() => this.#show(), 250);
    this.#show();
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }

  #show() {
    const seconds = (this.until - Date.now()) / 1000;
    this.textContent = formatClock(seconds);
    if (seconds > 0) return;
    clearInterval(this.#timer);
    this.dispatchEvent(new Event("end"));
  }
}

customElements.define("jf-countdown", Countdown);

/** Creates a countdown; `end` is called at its end. */
export function countdown(seconds, end = () => {}) {
  const node = element("jf-countdown", { role: "timer", on: { end } });
  node.until = Date.now() + seconds * 1000;
  return node;
}

/** Shows that the user is banned, and for how long. */
export class BanBanner {
  #root;
  #onEnd;
  #message = "The assistant has ended the conversation.";

  /** `onEnd` is called when the ban has ended. */
  constructor(root, onEnd) {
    this.#root = root;
    this.#onEnd = onEnd;
  }

  show(message, seconds) {
    // The assistant's own message stays when the host only repeats the ban.
    if (message && !message.startsWith("You are banned")) this.#message = message;
    const end = () => {
      this.hide();
      this.#onEnd();
    };
    replace(this.#root, element("div", { class: "banner" },
      element("strong", {}, "You are banned"),
      element("span", {}, this.#message),
      element("span", {}, "You can continue in ", countdown(seconds ?? 60, end), ".")));
    document.body.dataset.banned = "";
  }

  hide() {
    replace(this.#root);
    delete document.body.dataset.banned;
  }
}
