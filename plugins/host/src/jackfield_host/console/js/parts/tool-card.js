// One call of a tool, from its beginning to its end.

import { duration, element, readable, readableJson, replace } from "../dom.js";
import { decisionList } from "./policy-order.js";
import { OUTCOMES } from "./words.js";

/** What the kinds of errors mean, and which policy said no where it was one. */
const MEANINGS = {
  VALIDATION: "The arguments did not fit; the assistant was told what is wrong with them.",
  NOT_FOUND: "There is no such tool here.",
  INTERNAL: "The tool itself failed.",
  MODE_RESTRICTED: "The policy on modes refused it: the tool is not for this kind of session.",
  BUDGET_EXCEEDED: "The policy on budgets refused it: this turn has used up its calls.",
  CONFIRMATION_REQUIRED: "The policy on confirmation holds it back until you have decided.",
  LOOP_DETECTED: "The policy on loops refused it: the assistant was going round in circles.",
  SESSION_INACTIVE: "The session it needs is over.",
  SESSION_ACTIVE: "The session it would begin is there already.",
  TRANSIENT: "It did not work this time; it may work later.",
  PERMANENT: "It cannot work as it was asked for.",
  CONFLICT: "Something has changed in the meantime.",
  AUTH: "It may not do that.",
  RATE_LIMIT: "It was called too often.",
};

const STATES = {
  running: ["running", "accent"],
  waiting: ["waits for you", "warn"],
  done: ["done", "good"],
  failed: ["failed", "bad"],
  declined: ["declined", ""],
  expired: ["expired", ""],
  in_doubt: ["in doubt", "warn"],
  never_run: ["not run", ""],
  unknown: ["not known now", "warn"],
};

/** What a user can expect of a call in doubt. */
const DOUBT = "The host stopped while it ran. It is not run again; an operator can find out what happened and settle it.";

/** What is known about a call; shown as a card in the flow and as a line on the timeline. */
export class Call extends EventTarget {
  state = "running";
  progress = null;
  result = undefined;
  error = null;
  durationMs = null;
  /** What each policy decided, once it is told; a page that comes later does not learn it. */
  decisions = null;

  constructor(started, mode) {
    super();
    this.tool = started.tool;
    this.callId = started.callId;
    this.description = started.description;
    this.arguments = started.arguments;
    this.budgetMs = started.budgetMs;
    this.at = started.at;
    this.mode = mode;
  }

  /** Takes an event about the call. */
  take(event) {
    if (event.type === "tool_progress") {
      this.progress = event;
    } else if (event.type === "tool_decisions") {
      this.decisions = event.decisions;
    } else if (event.type === "confirmation_settled") {
      this.state = event.approved ? "running" : "declined";
      this.error = null;
    } else {
      this.durationMs = event.durationMs;
      this.error = event.type === "tool_error" ? event : null;
      this.result = event.data;
      this.state = this.error ? stateOf(this.error) : "done";
    }
    this.dispatchEvent(new Event("change"));
  }

  /** Whether the time it took says something: of a call that ran to its end. */
  get timed() {
    return this.durationMs !== null && (this.state === "done" || this.state === "failed");
  }

  /** The state in words, and the colour it has. */
  get words() {
    return STATES[this.state];
  }
}

/** What an event `tool_error` says about its call; one of a newer host may have a state that is not known here. */
function stateOf({ errorType, state }) {
  if (errorType === "CONFIRMATION_REQUIRED") return "waiting";
  return state in STATES ? state : "failed";
}

/** A call in the flow; `cancel` is called when the user does not want to wait. */
export function toolCard(call, cancel) {
  const root = element("li", { class: "tool card", data: { tool: call.tool } });
  const show = () => {
    const open = root.querySelector("details")?.open ?? false;
    root.dataset.state = call.state;
    replace(root, head(call, cancel), call.state === "running" && progress(call), problem(call), inside(call, open));
  };
  call.addEventListener("change", show);
  show();
  return root;
}

function head(call, cancel) {
  const [words, colour] = call.words;
  return element("div", { class: "row spread" },
    element("div", { class: "row" },
      element("code", { class: "tool-name" }, call.tool),
      element("span", { class: `tag ${colour}` }, words),
      call.timed && spent(call)),
    call.state === "running" && call.callId &&
      element("button", { type: "button", class: "small plain", on: { click: cancel } }, "Cancel"));
}

function spent(call) {
  const over = call.budgetMs && call.durationMs > call.budgetMs;
  const words = call.budgetMs ? `${duration(call.durationMs)} of ${duration(call.budgetMs)}` : duration(call.durationMs);
  return element("span", { class: over ? "spent over" : "spent" }, over ? `${words}, over budget` : words);
}

function progress(call) {
  const { message = "Working", fraction = null } = call.progress ?? {};
  const known = fraction === null ? {} : { value: fraction, max: 1 };
  return element("div", { class: "progress" },
    element("progress", { "aria-label": `Progress of ${call.tool}`, ...known }),
    element("span", {}, message || "Working"));
}

function problem(call) {
  if (OUTCOMES[call.state] && call.state !== "running") {
    return element("div", { class: "tool-problem" }, element("p", {}, OUTCOMES[call.state]),
      call.state === "in_doubt" && element("p", { class: "hint" }, DOUBT));
  }
  if (call.state !== "failed") return null;
  const { errorType, message, suggestion } = call.error;
  return element("div", { class: "tool-problem" },
    element("p", {}, MEANINGS[errorType] ?? "It failed."),
    element("p", { class: "hint" }, `${message}${suggestion ? ` ${suggestion}` : ""} `, element("code", {}, errorType)));
}

function inside(call, open) {
  return element("details", { open },
    element("summary", {}, call.result === undefined ? "Arguments" : "Arguments and result"),
    call.description && element("p", { class: "hint" }, call.description),
    labelled("Arguments", readableJson(call.arguments)),
    call.result !== undefined && labelled("Result", readable(call.result)),
    call.decisions && [element("div", { class: "label" }, "What each policy decided"), decisionList(call.decisions)]);
}

function labelled(label, text) {
  return [element("div", { class: "label" }, label), element("pre", { tabindex: "0", "aria-label": label }, text)];
}
