// The bar of a call: microphone level, mute, hang up.

import { element, replace } from "../dom.js";
import { icon } from "./icons.js";

/** Shown during a call. `mute(muted)`, `useMicrophone(deviceId)` and `hangUp()` are called for the user. */
export class CallBar {
  #level = element("span", { class: "level-fill" });
  #meter;
  #mute;
  #muted = false;
  #state = element("span", { class: "call-state", role: "status" });

  #devices;

  constructor({ mute, useMicrophone, hangUp }) {
    this.#devices = element("select", {
      "aria-label": "Microphone", hidden: true, on: { change: ({ target }) => useMicrophone(target.value) },
    });
    this.#meter = element("span", {
      class: "level", role: "meter", "aria-label": "Microphone level", "aria-valuemin": "0",
      "aria-valuemax": "100", "aria-valuenow": "0",
    }, this.#level);
    this.#mute = element("button", {
      type: "button", class: "icon", "aria-label": "Mute",
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
      element("span", { class: "call-dot", "aria-hidden": "true" }), this.#state, this.#meter, this.#devices, this.#mute,
      element("button", { type: "button", class: "danger row", on: { click: hangUp } }, icon("hangUp"), "Hang up"));
  }

  /** Offers the microphones, if there are several. */
  showMicrophones(devices) {
    replace(this.#devices, devices.map(({ deviceId, label, used }, index) =>
      element("option", { value: deviceId, selected: used }, label || `Microphone ${index + 1}`)));
    this.#devices.hidden = devices.length < 2;
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
    this.#mute.setAttribute("aria-pressed", String(this.#muted));
    this.root?.classList.toggle("muted", this.#muted);
  }
}

/** Explains why the browser asks for the microphone; resolves to whether the user continues. */
export async function explainMicrophone(provider) {
  try {
    const { state } = await navigator.permissions.query({ name: "microphone" });
    if (state === "granted") return true;
    if (state === "denied") return ask(BLOCKED, [["no", "Close"]]);
  } catch {
    // Some browsers do not support this query; then the dialog is shown each time.
  }
  return ask([
    element("h2", {}, "Your microphone"),
    element("p", {}, "Before the call starts, your browser will ask whether this page may use your microphone."),
    element("p", {}, `During the call, your speech is sent to the model provider${provider ? ` (${provider})` : ""}. `,
      "The host keeps a transcript, but not the audio."),
  ], [["no", "Not now"], ["yes", "Use the microphone"]]);
}

const BLOCKED = [
  element("h2", {}, "The microphone is blocked"),
  element("p", {}, "Your browser does not let this page use the microphone, and it will not ask again."),
  element("p", {}, "To allow it, open the site settings in the address bar, set Microphone to Allow, ",
    "and start the call again. If that does not help, check your system's privacy settings."),
];

/** Shows a dialog; resolves to whether the user chose `yes`. */
function ask(content, choices) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-label": "Microphone" },
      element("form", { method: "dialog", class: "stack" }, content,
        element("div", { class: "row end" }, choices.map(([value, label]) =>
          element("button", { value, class: value === "yes" ? "primary" : null }, label)))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
