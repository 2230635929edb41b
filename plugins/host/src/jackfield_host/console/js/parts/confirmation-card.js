// A call that waits for the user's decision: what exactly would happen, until when, and the two answers.

import { element, readable, replace } from "../dom.js";
import { countdown } from "./countdown.js";

/** What the card says once its call has an outcome, by the call's state. */
const SENTENCES = {
  declined: ["declined", "This was declined. Nothing was run."],
  expired: ["expired", "This has expired, and nothing was run. Ask for it again if you still want it."],
  in_doubt: ["approved", "This was approved. It may or may not have taken effect."],
  never_run: ["approved", "This was approved, but the host stopped before it took effect."],
};

const APPROVED = ["approved", "This was approved. It runs once."];

/** One question; nothing happens unless `decide` is called with a click. */
export class Confirmation {
  state = "open";

  /** `decide(approve)` says whether the word could be sent; `seconds` are left until it expires. */
  constructor(asked, seconds, decide) {
    this.callId = asked.callId;
    this.tool = asked.tool;
    this.#decide = decide;
    this.#foot = element("div", { class: "stack" });
    this.#card = element("div", { class: "confirmation card", role: "group", "aria-label": "Confirmation" },
      element("div", { class: "row spread" },
        element("span", { class: "hint" }, "May I?"), element("code", {}, asked.tool)),
      ...preview(asked.preview),
      details(asked.args),
      this.#foot);
    this.root = element("li", {}, this.#card);
    if (seconds > 0) this.#ask(seconds);
    else this.#expire();
  }

  #decide;
  #card;
  #foot;
  /** Whether the user's decision was sent, and the host has neither taken nor refused it. */
  #unanswered = false;

  /** The decision has arrived, from here or from elsewhere. */
  settle(approved) {
    this.#unanswered = false;
    this.#end(approved ? "approved" : "declined",
      approved ? "You approved this. It runs once." : "You declined this. Nothing was run.");
  }

  /** The call has an outcome: nobody has to decide any more. What the user decided here stays. */
  conclude(state) {
    if (this.state === "approved" || this.state === "declined") return;
    this.#end(...(SENTENCES[state] ?? APPROVED));
  }

  /** The host did not accept the decision; a card that is closed already says why. */
  refuse(message, suggestion) {
    if (!this.#unanswered) return false;
    this.#unanswered = false;
    if (this.state === "sent") this.#end("refused", `${message}${suggestion ? ` ${suggestion}` : ""}`);
    return true;
  }

  #ask(seconds) {
    const approve = element("button", { type: "button", class: "primary", on: { click: () => this.#say(true) } }, "Approve");
    const decline = element("button", { type: "button", on: { click: () => this.#say(false) } }, "Decline");
    replace(this.#foot, element("div", { class: "row" }, approve, decline,
      element("span", { class: "hint" }, "Expires in ", countdown(seconds, () => this.#expire()))));
  }

  #say(approve) {
    if (this.state !== "open") return;
    if (!this.#decide(approve)) {
      this.#foot.append(element("p", { class: "hint", role: "status" }, "There is no connection. Decide again when it is back."));
      return;
    }
    this.state = "sent";
    this.#unanswered = true;
    for (const button of this.#foot.querySelectorAll("button")) button.disabled = true;
  }

  #expire() {
    if (this.state === "open") {
      // Whether it was run is the host's to say: another window may have approved it in time.
      this.#end("expired", "The time to decide is over. Ask for it again if you still want it.");
    }
  }

  #end(state, sentence) {
    this.state = state;
    this.#card.dataset.state = state;
    replace(this.#foot, element("p", { role: "status", class: "outcome" }, sentence));
  }
}

/** The question, and below it whatever else the tool says about what would happen. */
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
      rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, readable(value))])));
}
