// The latest calls from the audit, filtered by tool, session and outcome.

import { duration, element, replace } from "../dom.js";
import { decisionList } from "./policy-order.js";

const NUMBERS = new Set(["Took", "Turn"]);

/** A table that is updated, except while a row is expanded. */
export class AuditTail {
  #api;
  #tools;
  #asked = 0;
  #rows = element("tbody");
  #note = element("p", { class: "hint", role: "status" });
  #known = element("datalist", { id: "audit-tools" });
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
    const words = { tool: "Tool", session: "Session", ok: "Outcome" };
    const heads = ["Time", "Tool", "Outcome", "Took", "User", "Session", "Turn", "Policies"];
    this.root = element("section", { class: "card stack", "aria-labelledby": "audit-title" },
      element("h2", { id: "audit-title" }, "Audit"),
      element("form", { class: "row filters", on: { submit: (event) => { event.preventDefault(); refresh(); } } },
        Object.entries(this.#filters).map(([name, control]) =>
          element("div", { class: "filter" }, element("label", { for: control.id }, words[name]), control)),
        this.#known),
      this.#note,
      element("div", { class: "scroll", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, heads.map((head) =>
          element("th", { scope: "col", class: NUMBERS.has(head) ? "number" : null }, head)))), this.#rows)));
  }

  async refresh({ forced = false } = {}) {
    if (!forced && this.#rows.querySelector("details[open]")) return;
    const asked = ++this.#asked;
    const params = Object.fromEntries(Object.entries(this.#filters).map(([name, { value }]) => [name, value.trim()]));
    const { lines, complete } = await this.#api.get("audit", { params: { ...params, limit: 50 } });
    // A later request has replaced this one.
    if (asked !== this.#asked) return;
    replace(this.#rows, lines.map((line) => row(line, (session) => {
      this.#filters.session.value = session;
      this.refresh({ forced: true });
    })));
    this.#note.textContent = lines.length
      ? `${lines.length} ${lines.length === 1 ? "call" : "calls"}, the latest first${complete ? "" : "; there are older ones"}.`
      : "No matching calls.";
  }

  /** Tools that the filter suggests. */
  suggest(tools) {
    if (String(tools) === this.#tools) return;
    this.#tools = String(tools);
    replace(this.#known, tools.map((tool) => element("option", { value: tool })));
  }
}

const WAITS = "CONFIRMATION_REQUIRED";

function row(line, choose) {
  const time = new Date(line.time).toLocaleTimeString();
  if (line.event === "dropped") {
    return element("tr", {}, element("td", {}, time), element("td", { colspan: "7" }, `${line.lines} lines are missing here.`));
  }
  const tone = line.ok ? "good" : line.error === WAITS ? "warn" : "bad";
  const outcome = element("span", { class: `tag ${tone}` }, line.ok ? "ok" : line.error);
  const decided = Object.values(line.decisions).filter((each) => each !== "pass" && each !== "not reached");
  return element("tr", {},
    element("td", {}, time), element("td", {}, element("code", {}, line.tool)),
    element("td", {}, outcome, line.stopped ? ` ${line.stopped}` : null),
    element("td", { class: "number" }, duration(line.durationMs)), element("td", {}, line.user ?? "nobody"),
    element("td", {}, element("button", {
      type: "button", class: "link", title: line.session, "aria-label": `Only session ${line.session.slice(0, 8)}`,
      on: { click: () => choose(line.session) },
    }, element("code", {}, line.session.slice(0, 8)))),
    element("td", { class: "number" }, line.turn),
    element("td", {}, element("details", {}, element("summary", {}, decided.length ? decided.join(", ") : "all passed"),
      decisionList(line.decisions))));
}
