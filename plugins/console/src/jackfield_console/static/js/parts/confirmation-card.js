// The card of a call that waits for confirmation: preview, arguments, deadline and two buttons.

import { element, replace } from "../dom.js";
import { countdown } from "./countdown.js";
import { formatValue } from "./format.js";

/** How a card is closed and what follows the decision in its text, by the state of its call. */
const OUTCOMES = {
  declined: ["declined", ". It was not run."],
  in_doubt: ["approved", ". It may or may not have taken effect."],
  never_run: ["approved", ", but the host stopped before the call took effect."],
};

const APPROVED = ["approved", ". The approval applies to this call only."];

/** One confirmation; only a click calls `decide`. */
export class ConfirmationCard {
  /** One of open, sent, approved, declined, expired, refused. */
  state = "open";

  /** `decide(approve)` returns whether the decision was sent; it expires in `seconds`. `changed()` is optional. */
  constructor(required, seconds, decide, changed = () => {}) {
    this.callId = required.callId;
    this.tool = required.tool;
    this.#decide = decide;
    this.#changed = changed;
    this.#footer = element("div", { class: "stack" });
    this.root = element("div", { class: "confirmation stack", role: "group", "aria-label": "Confirmation" },
      ...preview(required.preview), details(required.args), this.#footer);
    if (seconds > 0) this.#showButtons(seconds);
    else this.#expire();
  }

  #decide;
  #changed;
  #footer;
  /** Whether the decision was sent and the host has not answered yet. */
  #awaitingHost = false;
  /** The decision that was sent from here: "approved" or "declined". */
  #sent = null;

  /** The host has recorded a decision, from this page or elsewhere. */
  settle(approved) {
    this.#awaitingHost = false;
    this.#end(approved ? "approved" : "declined",
      approved ? "You approved this call. The approval applies to this call only." : "You declined this call. It was not run.");
  }

  /** The call has an outcome. A decision that the user made here stays visible. */
  conclude(state) {
    if (this.state === "approved" || this.state === "declined") return;
    if (state === "expired") {
      this.#end("expired", "This confirmation request has expired. The tool was not run. Ask again if you still want it to run.");
      return;
    }
    const [decision, rest] = OUTCOMES[state] ?? APPROVED;
    // A host that was killed may not have confirmed the decision, but its outcome shows that it got it.
    const text = this.#sent === decision ? `You ${decision} this call` : `The call was ${decision}`;
    this.#end(decision, text + rest);
  }

  /** The host did not accept the decision; a card that is closed already says why. */
  refuse(message, suggestion) {
    if (!this.#awaitingHost) return false;
    this.#awaitingHost = false;
    if (this.state === "sent") this.#end("refused", `${message}${suggestion ? ` ${suggestion}` : ""}`);
    return true;
  }

  #showButtons(seconds) {
    const approve = element("button", { type: "button", class: "primary", on: { click: () => this.#send(true) } }, "Approve");
    const decline = element("button", { type: "button", on: { click: () => this.#send(false) } }, "Decline");
    replace(this.#footer, element("div", { class: "row" }, approve, decline,
      element("span", { class: "hint" }, "Expires in ", countdown(seconds, () => this.#expire()))));
  }

  #send(approve) {
    if (this.state !== "open") return;
    if (!this.#decide(approve)) {
      this.#footer.append(element("p", { class: "hint", role: "status" }, "Your decision was not sent because there is no connection. Try again when the connection is restored."));
      return;
    }
    this.state = "sent";
    this.#sent = approve ? "approved" : "declined";
    this.#awaitingHost = true;
    for (const button of this.#footer.querySelectorAll("button")) button.disabled = true;
    this.#changed();
  }

  #expire() {
    if (this.state === "open") {
      // Another window may have approved it in time; only the host knows whether it ran.
      this.#end("expired", "This confirmation request has expired. Ask again if you still want the tool to run.");
    }
  }

  #end(state, text) {
    this.state = state;
    this.root.dataset.state = state;
    replace(this.#footer, element("p", { role: "status", class: "outcome" }, text));
    this.#changed();
  }
}

/** The question, and below it the rest of the preview. */
function preview(text) {
  const [question, ...more] = text.split("\n");
  return [element("p", { class: "preview" }, question),
    more.length > 0 && element("p", { class: "preview-more" }, more.join("\n").trim())];
}

function details(args) {
  const rows = Object.entries(args ?? {});
  if (!rows.length) return null;
  return element("details", {}, element("summary", {}, "Arguments"),
    element("dl", { class: "facts" },
      rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, formatValue(value))])));
}
