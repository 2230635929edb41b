// One tool call, from start to outcome.

import { element, replace } from "../dom.js";
import { decisionList } from "./policies.js";
import { formatDuration, formatJson, formatValue, OUTCOME_TEXTS } from "./format.js";

/** What the error types mean, and which policy rejected the call. */
const ERROR_TEXTS = {
  VALIDATION: "The arguments were invalid; the model was told why.",
  NOT_FOUND: "The tool is not available.",
  INTERNAL: "The tool failed.",
  MODE_RESTRICTED: "The mode policy rejected the call: the tool is not available in this mode.",
  BUDGET_EXCEEDED: "The budget policy rejected the call: this turn has used up its budget.",
  CONFIRMATION_REQUIRED: "The call is waiting for your confirmation.",
  // Not "rejected": a call whose result is empty again has run.
  LOOP_DETECTED: "The loop policy detected identical calls or repeated empty results, and told the model to stop.",
  SESSION_INACTIVE: "The session that the tool needs is not active.",
  SESSION_ACTIVE: "The session that the tool would start is already active.",
  TRANSIENT: "The tool failed temporarily. Try again later.",
  PERMANENT: "The tool failed. Retrying the same request will not help.",
  CONFLICT: "The call conflicts with existing data or with another call.",
  AUTH: "Access was denied.",
  RATE_LIMIT: "A rate limit has been reached.",
};

const STATES = {
  running: ["running", "accent"],
  waiting: ["waiting for you", "warn"],
  done: ["done", "good"],
  failed: ["failed", "bad"],
  stopped: ["stopped", "warn"],
  declined: ["declined", ""],
  expired: ["expired", ""],
  in_doubt: ["in doubt", "warn"],
  never_run: ["not run", ""],
  unknown: ["outcome unknown", "warn"],
};

/** What happens to a call in doubt. */
const IN_DOUBT_HINT = "The host stopped while the call was running. The call will not be run again automatically; an operator can find out what happened and record the outcome.";

/** The state of a call, shown as a card in the conversation and as a row of the timeline. */
export class Call extends EventTarget {
  state = "running";
  progress = null;
  /** The partial results so far: texts and items. They are never the result. */
  partials = [];
  partialsTruncated = false;
  result = undefined;
  error = null;
  durationMs = null;
  /** The decision of each policy; unknown for calls before the page was loaded. */
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

  /** Handles an event of the call. */
  handle(event) {
    if (event.type === "tool_progress") {
      this.progress = event;
      if (event.partial) this.#addPartial(event);
    } else if (event.type === "tool_decisions") {
      this.decisions = event.decisions;
    } else if (event.type === "confirmation_settled") {
      this.state = event.approved ? "running" : "declined";
      this.error = null;
    } else {
      this.durationMs = event.durationMs;
      this.error = event.type === "tool_error" ? event : null;
      this.result = this.error ? undefined : event.data;
      this.state = this.error ? stateOf(this.error) : "done";
    }
    this.dispatchEvent(new Event("change"));
  }

  /** The confirmation of the call has expired; the host sends no event for that. */
  expire() {
    if (this.state !== "waiting") return;
    this.state = "expired";
    this.dispatchEvent(new Event("change"));
  }

  /** Adds a partial result; the first one of a further attempt replaces those of the attempt before. */
  #addPartial({ partial, data, truncated = false }) {
    if (partial === 1) this.partials = [];
    const text = typeof data === "string";
    const last = this.partials.at(-1);
    if (text && typeof last === "string") this.partials[this.partials.length - 1] = last + data;
    else this.partials.push(...(text ? [data] : data));
    this.partialsTruncated = truncated;
  }

  /** Whether the call ran to its end, so that its duration is meaningful. */
  get timed() {
    return this.durationMs !== null && ["done", "failed", "stopped"].includes(this.state);
  }

  /** The label and colour of the state. */
  get label() {
    return STATES[this.state];
  }
}

/** The state that a `tool_error` event means; a newer host may send one that is unknown here. */
function stateOf({ errorType, state }) {
  if (errorType === "CONFIRMATION_REQUIRED") return "waiting";
  // Nothing is broken: the call repeats another one, or found nothing like the one before.
  if (errorType === "LOOP_DETECTED") return "stopped";
  return state in STATES ? state : "failed";
}

/** Creates the card of a call, with a place for its confirmation; `cancel` is called when the user cancels it. */
export function toolCard(call, cancel) {
  const summary = element("summary", { class: "tool-summary" });
  const facts = element("div");
  const cancelButton = element("button", { type: "button", class: "small plain", on: { click: cancel } }, "Cancel");
  const running = element("div", { class: "tool-running" });
  const root = element("li", { class: "tool card", data: { tool: call.tool } },
    element("div", { class: "tool-row" }, element("details", {}, summary, facts), cancelButton),
    running, element("div", { class: "tool-confirmation" }));
  // The parts are updated in place, so that the keyboard's focus stays where it is.
  const show = () => {
    root.dataset.state = call.state;
    replace(summary, heading(call));
    replace(facts, details(call));
    cancelButton.hidden = call.state !== "running" || !call.callId;
    replace(running, call.state === "running" && progress(call), partials(call), problem(call));
  };
  call.addEventListener("change", show);
  show();
  return root;
}

function heading(call) {
  const [label, colour] = call.label;
  return [element("code", { class: "tool-name" }, call.tool), element("span", { class: `tag ${colour}` }, label),
    call.timed && durationTag(call)];
}

function durationTag(call) {
  const over = call.budgetMs && call.durationMs > call.budgetMs;
  const budget = call.budgetMs ? ` (${over ? "over the " : ""}budget${over ? " of" : ":"} ${formatDuration(call.budgetMs)})` : "";
  return element("span", { class: over ? "duration over" : "duration" }, formatDuration(call.durationMs) + budget);
}

function progress(call) {
  const { message = "Working", fraction = null } = call.progress ?? {};
  const known = fraction === null ? {} : { value: fraction, max: 1 };
  return element("div", { class: "progress" },
    element("progress", { "aria-label": `Progress of ${call.tool}`, ...known }),
    element("span", {}, message || "Working"));
}

/** What the tool has shown so far; the result replaces it. */
function partials(call) {
  if (!call.partials.length || call.result !== undefined) return null;
  const text = call.partials.map((each) => (typeof each === "string" ? each : formatValue(each))).join("\n");
  const label = call.state === "running" ? "Result so far" : "Partial output; the call ended without returning a result";
  return element("div", { class: "partials" }, labelled(label, text),
    call.partialsTruncated && element("p", { class: "hint" }, call.state === "running"
      ? "There is more output; the result will include all of it." : "There was more output, which is not shown."));
}

function problem(call) {
  if (OUTCOME_TEXTS[call.state] && call.state !== "running") {
    return element("div", { class: "tool-problem" }, element("p", {}, OUTCOME_TEXTS[call.state]),
      call.state === "in_doubt" && element("p", { class: "hint" }, IN_DOUBT_HINT));
  }
  if (call.state !== "failed" && call.state !== "stopped") return null;
  const { errorType, message, suggestion } = call.error;
  return element("div", { class: "tool-problem" },
    element("p", {}, ERROR_TEXTS[errorType] ?? "The tool failed."),
    element("p", { class: "hint" }, `${message}${suggestion ? ` ${suggestion}` : ""} `, element("code", {}, errorType)));
}

function details(call) {
  return [call.description && element("p", { class: "hint" }, call.description),
    labelled("Arguments", formatJson(call.arguments)),
    call.result !== undefined && labelled("Result", formatValue(call.result)),
    call.decisions && [element("div", { class: "label" }, "Policy decisions"), decisionList(call.decisions)]];
}

function labelled(label, text) {
  return [element("div", { class: "label" }, label), element("pre", { tabindex: "0", "aria-label": label }, text)];
}
