// A call under way: how loud the user is, mute, and hang up.

import { element, replace } from "../dom.js";
import { icon } from "./icons.js";

/** Shown while there is a call. `mute(muted)` and `hangUp()` are the user's. */
export class CallBar {
  #level = element("span", { class: "level-fill" });
  #meter;
  #mute;
  #muted = false;
  #words = element("span", { class: "call-state", role: "status" });

  constructor({ mute, hangUp }) {
    this.#meter = element("span", {
      class: "level", role: "meter", "aria-label": "Loudness of your microphone", "aria-valuemin": "0",
      "aria-valuemax": "100", "aria-valuenow": "0",
    }, this.#level);
    this.#mute = element("button", {
      type: "button", class: "icon",
      on: {
        click: () => {
          this.#muted = !this.#muted;
          mute(this.#muted);
          this.#showMute();
        },
      },
    });
    this.#showMute();
    this.root = element("div", { class: "call-bar", role: "group", "aria-label": "Call" },
      element("span", { class: "call-dot", "aria-hidden": "true" }), this.#words, this.#meter, this.#mute,
      element("button", { type: "button", class: "danger row", on: { click: hangUp } }, icon("hangUp"), "Hang up"));
  }

  /** Says what the call is doing. */
  say(words) {
    if (this.#words.textContent !== words) this.#words.textContent = words;
    this.root.dataset.state = words;
  }

  /** Shows a level from 0 to 1. */
  level(value) {
    const shown = Math.round(100 * Math.min(1, Math.sqrt(value) * 1.6));
    this.#level.style.transform = `scaleX(${shown / 100})`;
    this.#meter.setAttribute("aria-valuenow", String(shown));
  }

  #showMute() {
    replace(this.#mute, icon(this.#muted ? "muted" : "microphone"));
    this.#mute.setAttribute("aria-label", this.#muted ? "Unmute" : "Mute");
    this.#mute.setAttribute("aria-pressed", String(this.#muted));
    this.root?.classList.toggle("muted", this.#muted);
  }
}

/** Explains, before the browser asks, why it will; whether the user wants to go on. */
export async function explainMicrophone(provider) {
  try {
    const { state } = await navigator.permissions.query({ name: "microphone" });
    if (state === "granted") return true;
  } catch {
    // Not every browser tells; then it is explained once more.
  }
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-label": "Microphone" },
      element("form", { method: "dialog", class: "stack" },
        element("h2", {}, "Your microphone"),
        element("p", {}, "To talk, your browser will ask whether this page may use your microphone."),
        element("p", {}, `What you say goes to this host and from there to ${provider}, as long as the call lasts. `,
          "The words are kept as a transcript; the sound is not kept here."),
        element("div", { class: "row end" },
          element("button", { value: "no" }, "Not now"),
          element("button", { value: "yes", class: "primary" }, "Use the microphone"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
