// What somebody said: plain while it comes, rendered when it is complete.

import { element, replace, showSanitised } from "../dom.js";

const NAMES = { user: "You", assistant: "Assistant" };

/** One thing that was said. */
export class Message {
  /** `decorate` is given the element when it is complete, to make citations of it. */
  constructor(api, speaker, { mode = "text", decorate = () => {} } = {}) {
    this.speaker = speaker;
    this.#api = api;
    this.#decorate = decorate;
    this.#body = element("div", { class: "said" });
    this.#note = element("span", { class: "note" });
    this.root = element("li", { class: `message ${speaker}`, data: { speaker } },
      element("div", { class: "who" }, NAMES[speaker], mode === "voice" && element("span", { class: "tag" }, "spoken"),
        this.#note),
      this.#body);
  }

  #api;
  #decorate;
  #body;
  #note;
  #characters = [];
  #version = 0;
  complete = false;

  get text() {
    return this.#characters.join("");
  }

  /** Adds a piece that begins at a character, as the host counts them; what is there already stays. */
  write(at, text) {
    const piece = [...text];
    const there = this.#characters.slice(at, at + piece.length);
    if (there.join("") === text) return;
    this.#characters = [...this.#characters.slice(0, at), ...piece];
    this.#show();
  }

  /** Adds a piece behind what is there. */
  add(text) {
    this.write(this.#characters.length, text);
  }

  /** Shows what was said as a whole. */
  async finish(text, { interrupted = false } = {}) {
    this.#characters = [...text];
    this.complete = true;
    this.#show();
    this.#note.textContent = interrupted ? "interrupted" : "";
    if (this.speaker === "user") return;
    const version = this.#version;
    try {
      const { html } = await this.#api.post("render", { markdown: text });
      if (version !== this.#version) return;
      showSanitised(this.#body, html);
      this.#body.classList.add("prose");
    } catch {
      // It can be read as it was written, too.
    }
    this.#decorate(this.#body);
  }

  /** Says beside it what has become of it: that it waits for the connection, for instance. */
  remark(words) {
    this.#note.textContent = words;
  }

  #show() {
    this.#version += 1;
    this.#body.classList.remove("prose");
    this.root.hidden = false;
    this.root.classList.toggle("coming", !this.complete);
    replace(this.#body, this.text || "…");
  }
}

/** A sentence of the host, between what was said. */
export function notice(text, suggestion = "") {
  return element("li", { class: "notice" }, element("p", {}, text, suggestion && ` ${suggestion}`));
}
