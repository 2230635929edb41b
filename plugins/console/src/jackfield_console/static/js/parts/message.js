// A message in the conversation: plain text while it arrives, rendered when it is complete.

import { element, replace, showSanitised } from "../dom.js";
import { CLAIM_STATES } from "./format.js";

const SPEAKER_NAMES = { user: "You", assistant: "Assistant" };

/** How long a button says that a message was copied. */
const COPIED_MS = 2000;

/** One message from either speaker. */
export class MessageEntry {
  /**
   * `decorate` receives the complete message's element, to add citations. `actions` has functions by the label of
   * their button, besides Copy.
   */
  constructor(api, speaker, { mode = "text", decorate = () => {}, actions = {} } = {}) {
    this.speaker = speaker;
    this.#api = api;
    this.#decorate = decorate;
    this.#actions = element("span", { class: "message-actions", hidden: true },
      navigator.clipboard && actionButton("Copy", (button) => this.#copy(button)),
      Object.entries(actions).map(([label, act]) => actionButton(label, () => act(this))));
    this.#body = element("div", { class: "message-text" });
    this.#note = element("span", { class: "note" });
    this.#claims = element("div", { class: "unbacked-claims" });
    this.root = element("li", { class: `message ${speaker}`, data: { speaker } },
      element("div", { class: "speaker" }, SPEAKER_NAMES[speaker], mode === "voice" && element("span", { class: "tag" }, "spoken"),
        this.#note, this.#actions),
      this.#body, this.#claims);
  }

  /** The key of the turn: its session and its number. */
  turn = null;
  #actions;

  #api;
  #decorate;
  #body;
  #note;
  #claims;
  #characters = [];
  #version = 0;
  complete = false;

  get text() {
    return this.#characters.join("");
  }

  /** Writes text at an offset in characters, as the host counts them. */
  write(offset, text) {
    const characters = [...text];
    const existing = this.#characters.slice(offset, offset + characters.length);
    if (existing.join("") === text) return;
    this.#characters = [...this.#characters.slice(0, offset), ...characters];
    this.#show();
  }

  /** Appends text. */
  add(text) {
    this.write(this.#characters.length, text);
  }

  /** Shows the complete message. */
  async finish(text, { interrupted = false, unbackedClaims = [] } = {}) {
    this.#characters = [...text];
    this.complete = true;
    this.#show();
    replace(this.#claims, unbackedClaims.map(unbackedClaim));
    this.#note.textContent = interrupted ? "interrupted" : "";
    this.#actions.hidden = false;
    if (this.speaker === "user") return;
    const version = this.#version;
    try {
      const { html } = await this.#api.post("render", { markdown: text });
      if (version !== this.#version) return;
      showSanitised(this.#body, html);
      this.#body.classList.add("prose");
    } catch {
      // Unrendered Markdown is readable too.
    }
    this.#decorate(this.#body);
  }

  /** Shows a note next to the speaker, such as that the message waits for the connection. */
  setNote(text) {
    this.#note.textContent = text;
  }

  async #copy(button) {
    await navigator.clipboard.writeText(this.text);
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, COPIED_MS);
  }

  #show() {
    this.#version += 1;
    this.#body.classList.remove("prose");
    this.root.hidden = false;
    this.root.classList.toggle("streaming", !this.complete);
    replace(this.#body, this.text || "…");
  }
}

/** Marks something that the assistant says it did, although no call did it. */
function unbackedClaim({ tool, text, state }) {
  const name = element("code", {}, tool);
  const outcome = state === "no_call" ? [name, " was not called."] : ["The call to ", name, ` ${CLAIM_STATES[state] ?? state}.`];
  return element("p", { class: "unbacked-claim", title: text },
    element("span", { class: "tag warn" }, "unbacked claim"), " ", outcome);
}

function actionButton(label, act) {
  const button = element("button", { type: "button", class: "small plain", on: { click: () => act(button) } }, label);
  return button;
}

/** A notice of the host, between the messages. */
export function notice(text, suggestion = "") {
  return element("li", { class: "notice" }, element("p", {}, text, suggestion && ` ${suggestion}`));
}
