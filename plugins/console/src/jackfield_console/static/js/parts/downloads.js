// Downloads that give the host a better provider: button, progress bar, next step.

import { element, replace } from "../dom.js";

const POLL_MS = 1000;

/** The downloads of the host, for operators; they continue when the page is closed. */
export class Downloads {
  root = element("div", { class: "downloads" });
  #api;
  #changed;
  #startOver;
  #reason = null;
  #cards = new Map();
  #timer = null;

  /** `startOver` starts a new conversation; `changed` is called when a download is offered, starts or ends. */
  constructor(api, { startOver, changed }) {
    this.#api = api;
    this.#startOver = startOver;
    this.#changed = changed;
  }

  /** The hints that a button replaces. */
  get hints() {
    return new Set([...this.#cards.values()].map(({ hint }) => hint));
  }

  /** Whether to show a download during a conversation. */
  get active() {
    return [...this.#cards.values()].some(({ state }) => ["running", "failed", "ready"].includes(state));
  }

  /** Shows the downloads; a null `reason` means that the user is not an operator, and hides them. */
  async show(reason) {
    this.#reason = reason;
    clearTimeout(this.#timer);
    if (reason === null) this.#update([]);
    else await this.#poll();
  }

  async #poll() {
    clearTimeout(this.#timer);
    const reason = this.#reason;
    try {
      const { downloads } = await this.#api.get("downloads", { session: null });
      const complete = downloads.some(({ state }) => state === "complete");
      const now = complete ? (await this.#api.get("status", { session: null })).providerChoice?.reason : reason;
      // Another session may be shown by now.
      if (reason !== this.#reason) return;
      this.#update(downloads.map((each) => ({ ...each, state: shownState(each, now !== reason) })));
    } catch {
      // The host may be restarting; the bar stays.
    }
    if ([...this.#cards.values()].some(({ state }) => state === "running")) {
      this.#timer = setTimeout(() => this.#poll(), POLL_MS);
    }
  }

  #update(downloads) {
    const shown = downloads.filter(({ state }) => state !== "used");
    for (const [name, card] of this.#cards) {
      if (shown.some((each) => each.name === name)) continue;
      card.root.remove();
      this.#cards.delete(name);
    }
    for (const download of shown) {
      if (!this.#cards.has(download.name)) {
        const card = new DownloadCard({ start: () => this.#start(download.name), startOver: this.#startOver });
        this.#cards.set(download.name, card);
        this.root.append(card.root);
      }
      this.#cards.get(download.name).update(download);
    }
    this.#changed();
  }

  async #start(name) {
    const card = this.#cards.get(name);
    try {
      await this.#api.post("downloads/start", { name }, { session: null });
    } catch (error) {
      card.showError([error.message, error.suggestion].filter(Boolean).join(" "));
      return;
    }
    await this.#poll();
    card.root.focus();
  }
}

/** The state to show; null for a download that the session already uses. */
function shownState({ state, needsRestart }, isNew) {
  if (state !== "complete") return state;
  if (needsRestart) return "restart";
  return isNew ? "ready" : "used";
}

/** One download. */
class DownloadCard {
  root = element("div", { class: "download", tabindex: "-1", data: { testid: "download" } });
  hint = "";
  state = null;
  #bar = null;
  #progressText = null;
  #start;
  #startOver;

  constructor({ start, startOver }) {
    this.#start = start;
    this.#startOver = startOver;
  }

  /** Shows the progress; an existing bar is updated, so that a screen reader keeps its place. */
  update(download) {
    this.hint = download.hint;
    if (download.state !== this.state || download.state === "failed") {
      this.state = download.state;
      this.root.setAttribute("role", "group");
      this.root.setAttribute("aria-label", `Download of ${download.label}`);
      replace(this.root, this.#content(download));
    }
    if (this.state === "running") this.#showProgress(download);
  }

  /** Shows why it did not start. */
  showError(text) {
    this.root.querySelector("[role=alert]")?.remove();
    this.root.append(element("p", { class: "problem", role: "alert" }, text));
  }

  #content({ state, label, sizeBytes, error }) {
    if (state === "running") {
      this.#bar = element("progress", { max: sizeBytes, "aria-label": `Downloading ${label}` });
      this.#progressText = element("span", { class: "progress-text" });
      return [
        element("p", { role: "status" }, `Downloading ${label}. You can leave this page; the download will continue.`),
        element("div", { class: "progress" }, this.#bar, this.#progressText),
      ];
    }
    if (state === "failed") {
      const [first, ...rest] = error.split("\n");
      return [
        element("p", { class: "problem", role: "alert" },
          `The download of ${label} failed: ${first.replace(/[.:]$/, "")}.`),
        rest.length > 0 && element("details", {}, element("summary", {}, "Details"),
          element("pre", { tabindex: "0", "aria-label": "Error details" }, rest.join("\n"))),
        this.#button("Try again", this.#start),
      ];
    }
    if (state === "ready") {
      return [
        element("p", { role: "status" }, `Download complete. New conversations use ${label}.`),
        this.#button("Start a new conversation", this.#startOver),
      ];
    }
    if (state === "restart") return element("p", { role: "status" }, `Download complete. Restart the host to use ${label}.`);
    return this.#button(`Download ${label} (${size(sizeBytes)})`, this.#start);
  }

  #showProgress({ receivedBytes, sizeBytes }) {
    const received = Math.min(receivedBytes, sizeBytes);
    this.#bar.value = received;
    this.#progressText.textContent = `${Math.floor((100 * received) / sizeBytes)} % · ${megabytes(received)} of ${megabytes(sizeBytes)} MB`;
  }

  #button(label, action) {
    return element("button", { type: "button", class: "primary", on: { click: action } }, label);
  }
}

function megabytes(bytes) {
  return bytes < 10_000_000 ? (bytes / 1_000_000).toFixed(1) : String(Math.round(bytes / 1_000_000));
}

function size(bytes) {
  return bytes < 1_000_000_000 ? `${megabytes(bytes)} MB` : `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}
