// What is wrong with the line, and what the user can do about it.

import { element, replace } from "../dom.js";

/** One sentence above the conversation, with a button. */
export class LineBanner {
  root = element("div", { role: "status" });
  #kind = null;

  /** The line is being taken up again. */
  lost(retry) {
    if (!this.#kind) this.#show("lost", "The connection is lost. Trying again; nothing you wrote is lost.", "Try now", retry);
  }

  /** There is no place: said once, however often the line asks again by itself. */
  full(message, retry) {
    if (this.#kind === "full") return;
    const wayOut = "Close another window of this console, or wait: this one goes on as soon as there is a place.";
    this.#show("full", `${message} ${wayOut}`, "Try now", retry);
  }

  /** The line is closed, until the user wants it again. */
  closed(sentence, again, goOn) {
    this.#show("closed", sentence, again, () => {
      this.clear();
      goOn();
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
