// The latest calls from the audit, filtered by tool, session and outcome.

import { element, replace } from "../dom.js";
import { decisionList } from "./policies.js";
import { CLAIM_STATES, formatDuration } from "./format.js";

const NUMBERS = new Set(["Duration", "Turn"]);

/** A table that is updated, except while a row is expanded. */
export class AuditLog {
  #api;
  #tools;
  #requests = 0;
  #rows = element("tbody");
  #note = element("p", { class: "hint", role: "status" });
  #suggestions = element("datalist", { id: "audit-tools" });
  #filters;

  constructor(api) {
    this.#api = api;
    const refresh = () => this.refresh({ forced: true });
    this.#filters = {
      tool: element("input", { id: "audit-tool", list: "audit-tools", placeholder: "all", autocomplete: "off", on: { change: refresh } }),
      session: element("input", { id: "audit-session", placeholder: "all", autocomplete: "off", on: { change: refresh } }),
      ok: element("select", { id: "audit-ok", on: { change: refresh } },
        element("option", { value: "" }, "all"), element("option", { value: "true" }, "succeeded"),
        element("option", { value: "false" }, "failed")),
    };
    const labels = { tool: "Tool", session: "Session", ok: "Outcome" };
    const headers = ["Time", "Tool", "Outcome", "Duration", "User", "Session", "Turn", "Policies"];
    this.root = element("section", { class: "card stack", "aria-labelledby": "audit-title" },
      element("h2", { id: "audit-title" }, "Audit log"),
      element("form", { class: "row filters", on: { submit: (event) => { event.preventDefault(); refresh(); } } },
        Object.entries(this.#filters).map(([name, control]) =>
          element("div", { class: "filter" }, element("label", { for: control.id }, labels[name]), control)),
        this.#suggestions),
      this.#note,
      element("div", { class: "scroll", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, headers.map((header) =>
          element("th", { scope: "col", class: NUMBERS.has(header) ? "number" : null }, header)))), this.#rows)));
  }

  async refresh({ forced = false } = {}) {
    if (!forced && this.#rows.querySelector("details[open]")) return;
    const request = ++this.#requests;
    const params = Object.fromEntries(Object.entries(this.#filters).map(([name, { value }]) => [name, value.trim()]));
    const { lines, complete } = await this.#api.get("audit", { params: { ...params, limit: 50 } });
    // A later request has replaced this one.
    if (request !== this.#requests) return;
    replace(this.#rows, lines.map((line) => row(line, (session) => {
      this.#filters.session.value = session;
      this.refresh({ forced: true });
    })));
    this.#note.textContent = lines.length
      ? (complete ? `${entries(lines.length)}.` : `Latest ${entries(lines.length)}; older entries are not shown.`)
      : "No matching entries.";
  }

  /** Tools that the filter suggests. */
  suggest(tools) {
    if (String(tools) === this.#tools) return;
    this.#tools = String(tools);
    replace(this.#suggestions, tools.map((tool) => element("option", { value: tool })));
  }
}

const CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED";

function entries(number) {
  return `${number} ${number === 1 ? "entry" : "entries"}`;
}

const SHADOW_TEXTS = {
  same: "same result", different: "different result", failed: "only the shadow failed", timed_out: "the shadow timed out",
  served_failed: "only the tool failed", both_failed: "both failed", skipped: "skipped because too many shadows were running",
};

function row(line, selectSession) {
  const time = new Date(line.time).toLocaleTimeString();
  if (line.event === "dropped") {
    return element("tr", {}, element("td", {}, time), element("td", { colspan: "7" },
      `${entries(line.lines)} ${line.lines === 1 ? "was" : "were"} dropped before being written to the audit log.`));
  }
  if (line.event === "claim") {
    const outcome = line.state === "no_call" ? "the tool was not called" : `the call ${CLAIM_STATES[line.state] ?? line.state}`;
    return element("tr", {}, element("td", {}, time), element("td", {}, element("code", {}, line.tool)),
      element("td", {}, element("span", { class: "tag warn" }, "unbacked claim")),
      element("td", { colspan: "5" }, `The assistant claimed “${line.says}”, but ${outcome}. User: ${line.user ?? "anonymous"}.`));
  }
  if (line.event === "shadow") {
    const text = `Shadow ${line.variant} in experiment ${line.experiment}: ${SHADOW_TEXTS[line.outcome] ?? line.outcome}.`;
    return element("tr", {}, element("td", {}, time), element("td", {}, element("code", {}, line.tool)), element("td", { colspan: "6" }, text));
  }
  const tone = line.ok ? "good" : line.error === CONFIRMATION_REQUIRED ? "warn" : "bad";
  const outcome = element("span", { class: `tag ${tone}` }, line.ok ? "succeeded" : line.error);
  const interventions = Object.values(line.decisions).filter((each) => each !== "pass" && each !== "not reached");
  return element("tr", {},
    element("td", {}, time), element("td", {}, element("code", {}, line.tool)),
    element("td", {}, outcome, line.stopped ? ` ${line.stopped}` : null),
    element("td", { class: "number" }, formatDuration(line.durationMs)), element("td", {}, line.user ?? "anonymous"),
    element("td", {}, element("button", {
      type: "button", class: "link", title: line.session, "aria-label": `Show only session ${line.session.slice(0, 8)}`,
      on: { click: () => selectSession(line.session) },
    }, element("code", {}, line.session.slice(0, 8)))),
    element("td", { class: "number" }, line.turn),
    element("td", {}, element("details", {}, element("summary", {}, interventions.length ? interventions.join(", ") : "all passed"),
      decisionList(line.decisions))));
}
