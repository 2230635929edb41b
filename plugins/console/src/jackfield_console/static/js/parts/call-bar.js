// The bar of a call: microphone level, mute, hang up.

import { element, replace } from "../dom.js";
import { icon } from "./icons.js";

/** Shown during a call. `mute(muted)` and `hangUp()` are called for the user. */
export class CallBar {
  #level = element("span", { class: "level-fill" });
  #meter;
  #mute;
  #muted = false;
  #state = element("span", { class: "call-state", role: "status" });

  constructor({ mute, hangUp }) {
    this.#meter = element("span", {
      class: "level", role: "meter", "aria-label": "Microphone level", "aria-valuemin": "0",
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
      element("span", { class: "call-dot", "aria-hidden": "true" }), this.#state, this.#meter, this.#mute,
      element("button", { type: "button", class: "danger row", on: { click: hangUp } }, icon("hangUp"), "Hang up"));
  }

  /** Shows the state of the call. */
  setState(label) {
    if (this.#state.textContent !== label) this.#state.textContent = label;
    this.root.dataset.state = label;
  }

  /** Shows a level from 0 to 1. */
  setLevel(value) {
    const percent = Math.round(100 * Math.min(1, Math.sqrt(value) * 1.6));
    this.#level.style.transform = `scaleX(${percent / 100})`;
    this.#meter.setAttribute("aria-valuenow", String(percent));
  }

  #showMute() {
    replace(this.#mute, icon(this.#muted ? "muted" : "microphone"));
    this.#mute.setAttribute("aria-label", this.#muted ? "Unmute" : "Mute");
    this.#mute.setAttribute("aria-pressed", String(this.#muted));
    this.root?.classList.toggle("muted", this.#muted);
  }
}

/** Explains why the browser asks for the microphone; resolves to whether the user continues. */
export async function explainMicrophone(provider) {
  try {
    const { state } = await navigator.permissions.query({ name: "microphone" });
    if (state === "granted") return true;
  } catch {
    // Some browsers do not support this query; then the dialog is shown each time.
  }
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-label": "Microphone" },
      element("form", { method: "dialog", class: "stack" },
        element("h2", {}, "Your microphone"),
        element("p", {}, "To start the call, your browser will ask whether this page may use your microphone."),
        element("p", {}, `During the call, your speech is sent to this host, which passes it on to ${provider}. `,
          "The host keeps a transcript, not the audio."),
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
