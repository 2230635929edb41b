// Calls in doubt, and the two ways to settle them.

import { ApiError } from "../api.js";
import { element, replace } from "../dom.js";
import { formatJson, formatTime } from "./format.js";

const EXPLANATION = "A call is in doubt if its host stopped while the call was running. Such a call may or may not have taken effect, and "
  + "it will not be run again automatically. Find out what happened, for example in the system that the tool writes to, and record it here.";

const OUTCOMES = { true: "run", false: "not run" };

/** The list of calls in doubt; hidden while there are none. */
export class InDoubtCalls {
  /** Takes up no space without children. */
  root = element("div", { class: "stack" });

  #api;
  #items = element("ul", { class: "plain-list stack" });
  #note = element("p", { class: "hint" });
  #result = null;
  #dialog = element("dialog", { "aria-labelledby": "settle-title" });
  #section = element("section", { class: "card stack", "aria-labelledby": "in-doubt-title" },
    element("h2", { id: "in-doubt-title" }, "Calls in doubt"), element("p", {}, EXPLANATION), this.#items, this.#note, this.#dialog);

  constructor(api) {
    this.#api = api;
  }

  async refresh({ forced = false } = {}) {
    // The list is not updated while it has the focus, because a rebuilt button would lose the focus.
    if (!forced && this.#section.contains(document.activeElement)) return;
    const { calls, complete } = await this.#api.get("calls");
    if (!forced && this.#dialog.open) return;
    replace(this.#items, calls.map((call) => this.#item(call)));
    this.#note.textContent = complete ? "" : `Only the ${calls.length} oldest calls are shown.`;
    this.#note.hidden = complete;
    replace(this.root, calls.length > 0 && this.#section, this.#result);
  }

  #item(call) {
    return element("li", { class: "stack in-doubt-call", data: { key: call.key } },
      element("div", { class: "row spread" },
        element("div", { class: "row" }, element("code", { class: "tool-name" }, call.tool),
          element("span", { class: "tag warn" }, "in doubt")),
        element("span", { class: "hint" }, `${call.user ?? "anonymous"}, started ${formatTime(call.beganAt)}, session `,
          element("code", { title: call.session }, call.session.slice(0, 8)))),
      callArguments(call),
      element("div", { class: "row" }, [true, false].map((ran) =>
        element("button", { type: "button", class: "small", on: { click: () => this.#confirm(call, ran) } },
          `Record as ${OUTCOMES[ran]}`))));
  }

  /** Asks for confirmation, because the record is final. */
  #confirm(call, ran) {
    const record = element("button", { type: "button", class: "primary", on: { click: () => this.#settle(call, ran, record) } },
      `Record as ${OUTCOMES[ran]}`);
    replace(this.#dialog, element("div", { class: "stack" },
      element("h2", { id: "settle-title" }, "Record the call to ", element("code", {}, call.tool), ` as ${OUTCOMES[ran]}?`),
      callArguments(call),
      element("p", {}, "Your choice becomes the outcome of the call, and the assistant will see it too. "
        + "The audit log records it under your name. You cannot change it later."),
      element("div", { class: "row end" },
        element("button", { type: "button", on: { click: () => this.#dialog.close() } }, "Cancel"), record)));
    this.#dialog.showModal();
  }

  async #settle(call, ran, button) {
    button.disabled = true;
    try {
      await this.#api.post("calls/settle", { key: call.key, ran });
      this.#showResult(element("span", {}, "The call to ", element("code", {}, call.tool), ` was recorded as ${OUTCOMES[ran]}.`));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#showResult(element("span", {}, element("code", {}, call.tool), `: ${error.message}`));
    }
    this.#dialog.close();
    await this.refresh({ forced: true }).catch((error) => {
      // The next update shows what is wrong.
      if (!(error instanceof ApiError)) throw error;
    });
  }

  #showResult(content) {
    this.#result = element("p", { class: "card", role: "status" }, content);
    replace(this.root, this.#section, this.#result);
  }
}

function callArguments(call) {
  const label = `Arguments of ${call.tool}`;
  return element("pre", { tabindex: "0", role: "group", "aria-label": label }, formatJson(call.arguments));
}
