// The trace of a turn: the model, the tools with their policies, and the waits on one timeline.

import { element, replace } from "../dom.js";
import { decisionList } from "./policies.js";
import { formatDuration } from "./format.js";

/** What the model does in a state of the session. */
const MODEL_STATES = { processing: "Model thinking", speaking: "Model responding" };

const AUDIT_LINES = 200;

/** Collects the spans of each turn from the events; times are in seconds, by the clock that stamps events. */
export class Traces {
  #turns = new Map();
  /** The key of the current turn, by session. */
  #current = new Map();

  clear() {
    this.#turns.clear();
    this.#current.clear();
  }

  /** Returns the trace of a turn, if its events are known. */
  find(session, turn) {
    return this.#turns.get(`${session}/${turn}`) ?? null;
  }

  /** Handles an event of a session. */
  record(event, session) {
    if (event.type === "message" && event.speaker === "user") {
      const key = `${session}/${event.turn}`;
      this.#current.set(session, key);
      if (!this.#turns.has(key)) this.#turns.set(key, { session, from: event.at, to: event.at, text: event.text, spans: [] });
      return;
    }
    const turn = this.#turns.get(this.#current.get(session));
    if (!turn) return;
    if (event.at !== undefined) turn.to = Math.max(turn.to, event.at);
    HANDLERS[event.type]?.(turn, event);
  }
}

const HANDLERS = {
  session_status(turn, { state, at }) {
    end(open(turn, "model"), at);
    if (MODEL_STATES[state]) turn.spans.push({ kind: "model", label: MODEL_STATES[state], from: at, to: null });
  },
  tool_start: startTool,
  tool_decisions(turn, { callId, decisions }) {
    const span = turn.spans.findLast((each) => each.kind === "tool" && each.callId === callId);
    if (span) span.decisions = decisions;
  },
  tool_complete(turn, event) {
    endTool(turn, event);
    end(open(turn, "wait", event.callId), event.at);
  },
  tool_error(turn, event) {
    const waits = event.errorType === "CONFIRMATION_REQUIRED";
    endTool(turn, event, !waits);
    if (waits) turn.spans.push({ kind: "wait", label: `${event.tool}: waiting for your decision`, callId: event.callId, from: event.at, to: null });
    else end(open(turn, "wait", event.callId), event.at);
  },
  confirmation_settled(turn, event) {
    end(open(turn, "wait", event.callId), event.at);
    if (event.approved) startTool(turn, event);
  },
};

function startTool(turn, { tool, callId, at }) {
  turn.spans.push({ kind: "tool", label: tool, callId, from: at, to: null });
}

function endTool(turn, { callId, at, durationMs }, failed = false) {
  const span = open(turn, "tool", callId);
  if (!span) return;
  // The host measured the duration; the time of the event is when it was stored.
  end(span, durationMs ? Math.min(at, span.from + durationMs / 1000) : at);
  span.failed = failed;
}

function open(turn, kind, callId) {
  return turn.spans.findLast((each) => each.kind === kind && each.to === null && each.callId === callId);
}

function end(span, at) {
  if (span) span.to = at;
}

/** The panel with the trace of a turn; `now()` returns the time of the host. */
export function tracePanel(api, turn, { now, operator, close }) {
  const list = element("ol", { class: "trace" });
  const total = element("p", { class: "hint" });
  const show = () => {
    const until = turn.spans.some(({ to }) => to === null) ? Math.max(turn.to, now()) : turn.to;
    total.textContent = `${formatDuration(1000 * (until - turn.from))} from your message to the last event.`;
    replace(list, turn.spans.map((span) => row(span, turn.from, until)));
  };
  show();
  if (operator) loadDecisions(api, turn).then(show, () => {});
  return element("section", { class: "stack", "aria-label": "Trace" },
    element("div", { class: "row spread nowrap" }, element("h2", {}, "Trace"),
      element("button", { type: "button", class: "small", on: { click: close } }, "Close")),
    element("p", { class: "trace-text" }, turn.text), total, list,
    !turn.spans.length && element("p", { class: "hint" }, "The events of this turn are no longer stored."));
}

function row({ kind, label, from, to, decisions, failed }, begin, until) {
  const length = Math.max(until - begin, 0.001);
  const bar = element("span", { class: "trace-bar", "aria-hidden": "true" }, element("i"));
  // Set by script, which the content security policy allows; style attributes it does not.
  bar.firstChild.style.left = `${(100 * (from - begin)) / length}%`;
  bar.firstChild.style.width = `${Math.max(0.7, (100 * ((to ?? until) - from)) / length)}%`;
  return element("li", { data: { kind: failed ? "failed" : kind } },
    element("div", { class: "row spread nowrap" },
      element(kind === "tool" ? "code" : "span", {}, label),
      element("span", { class: "hint" }, to === null ? "for " : "", `${formatDuration(1000 * ((to ?? until) - from))}`,
        element("span", { class: "visually-hidden" }, `, started ${formatDuration(1000 * (from - begin))} after the message`))),
    bar, decisions && policies(decisions));
}

/** The decisions of the policies; only those that changed something are named at once. */
function policies(decisions) {
  const passed = Object.values(decisions).filter((each) => each === "pass").length;
  const others = Object.entries(decisions).filter(([, decision]) => decision !== "pass" && decision !== "not reached");
  const summary = [`${passed} ${passed === 1 ? "policy" : "policies"} passed`, ...others.map(([policy, decision]) => `${policy}: ${decision}`)];
  return element("details", {}, element("summary", {}, summary.join(", ")), decisionList(decisions));
}

/** Completes the decisions of policies from the audit log: they are not among the events that a session keeps. */
async function loadDecisions(api, turn) {
  const missing = turn.spans.filter(({ kind, decisions }) => kind === "tool" && !decisions);
  if (!missing.length) return;
  const params = { session: turn.session, limit: AUDIT_LINES };
  const { lines } = await api.get("audit", { params, session: null });
  for (const span of missing) {
    span.decisions = lines.findLast(({ event, callId }) => event === "call" && callId === span.callId)?.decisions;
  }
}
