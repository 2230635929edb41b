// Countdowns, and the banner of a ban.

import { clock, element, replace } from "../dom.js";

/** `<jf-countdown>`: shows the time until `until` (in milliseconds) and dispatches `over` at its end. */
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
    const left = (this.until - Date.now()) / 1000;
    this.textContent = clock(left);
    if (left > 0) return;
    clearInterval(this.#timer);
    this.dispatchEvent(new Event("over"));
  }
}

customElements.define("jf-countdown", Countdown);

/** A countdown of so many seconds. */
export function countdown(seconds, over = () => {}) {
  const made = element("jf-countdown", { role: "timer", on: { over } });
  made.until = Date.now() + seconds * 1000;
  return made;
}

/** Shows that the user is banned, and for how long. */
export class BanBanner {
  #root;
  #over;
  #said = "The assistant has ended the conversation.";

  /** `over` is called when the ban has ended. */
  constructor(root, over) {
    this.#root = root;
    this.#over = over;
  }

  show(message, seconds) {
    // The assistant's own message stays when the host only repeats the ban.
    if (message && !message.startsWith("You are banned")) this.#said = message;
    const end = () => {
      this.hide();
      this.#over();
    };
    replace(this.#root, element("div", { class: "banner" },
      element("strong", {}, "You are banned"),
      element("span", {}, this.#said),
      element("span", {}, "You may come back in ", countdown(seconds ?? 60, end), ".")));
    document.body.dataset.banned = "";
  }

  hide() {
    replace(this.#root);
    delete document.body.dataset.banned;
  }
}
