// The input field, and the button that starts a call.

import { element } from "../dom.js";
import { MAX_TEXT_LENGTH } from "../protocol.js";
import { icon } from "./icons.js";

/** `send(text)` sends, `call()` starts a call, `stop()` interrupts the answer. */
export class Composer {
  #input;
  #send;

  constructor({ send, call, stop }) {
    this.#input = element("textarea", {
      id: "composer", rows: "1", maxlength: MAX_TEXT_LENGTH, placeholder: "Type a message",
      "aria-label": "Message", autocomplete: "off",
      on: {
        input: () => this.#grow(),
        keydown: (event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            form.requestSubmit();
          }
        },
      },
    });
    this.#send = element("button", { class: "primary icon", "aria-label": "Send", title: "Send (Enter)" }, icon("send"));
    this.stopButton = element("button", {
      type: "button", class: "icon", "aria-label": "Stop generating", title: "Stop generating", hidden: true,
      on: { click: stop },
    }, icon("stop"));
    this.callButton = element("button", {
      type: "button", class: "icon", "aria-label": "Start a voice call", title: "Start a voice call", on: { click: call },
    }, icon("microphone"));
    const form = element("form", {
      class: "composer",
      on: {
        submit: (event) => {
          event.preventDefault();
          const text = this.#input.value.trim();
          if (!text) return;
          this.#input.value = "";
          this.#grow();
          send(text);
        },
      },
    }, this.#input, this.stopButton, this.callButton, this.#send);
    this.root = form;
  }

  /** Enables or disables input. */
  enable(enabled) {
    for (const each of this.root.elements) each.disabled = !enabled;
  }

  focus() {
    this.#input.focus();
  }

  /** Puts a text into the field, to be changed and sent. */
  edit(text) {
    this.#input.value = text;
    this.#grow();
    this.#input.focus();
    this.#input.select();
  }

  #grow() {
    this.#input.style.height = "auto";
    this.#input.style.height = `${Math.min(this.#input.scrollHeight + 2, 180)}px`;
  }
}
