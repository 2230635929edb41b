// Operations: metrics, calls in doubt, sessions and the audit.

import { ApiError } from "../api.js";
import { clock, duration, element, replace } from "../dom.js";
import { AuditTail } from "../parts/audit-tail.js";
import { TrendChart, brief, many, percentileBar } from "../parts/chart.js";
import { DoubtfulCalls } from "../parts/doubtful-calls.js";
import { SessionList } from "../parts/session-list.js";
import { style } from "../styles.js";

const EVERY_MS = 4000;

/** Sessions are loaded less often than metrics, because each is read from the store. */
const SESSIONS_EVERY = 3;

/** The charts: title, unit, total or gauge, and whether it is shown per minute. */
const CHARTS = [
  ["Conversations", "open", "open", false],
  ["Calls", "per minute", "calls", true],
  ["Errors", "per minute", "errors", true],
  ["Refusals", "per minute", "refusals", true],
  ["Loops", "per minute", "loops", true],
  ["Tokens of answers", "per minute", "tokens", true],
];

/** Shows the view, and updates it while it is visible. */
export function mount(root, { api }) {
  const view = new OperationsView(root, api);
  let timer = null;
  let gone = false;
  const look = async () => {
    clearTimeout(timer);
    if (!document.hidden) await view.refresh();
    clearTimeout(timer);
    if (!gone) timer = setTimeout(look, EVERY_MS);
  };
  document.addEventListener("visibilitychange", look);
  api.addEventListener("token", look);
  style("operations").then(look);
  return () => {
    gone = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
    api.removeEventListener("token", look);
  };
}

class OperationsView {
  #api;
  #charts = CHARTS.map(([title, unit]) => new TrendChart(title, unit));
  #uptime = element("p", { class: "hint" });
  #figures;
  #trouble = element("div");
  #tools = element("tbody");
  #decisions = element("div");
  #doubts;
  #sessions;
  #audit;
  #looks = 0;

  constructor(root, api) {
    this.#api = api;
    this.#doubts = new DoubtfulCalls(api);
    this.#sessions = new SessionList(api);
    this.#audit = new AuditTail(api);
    const heads = ["Tool", "Calls", "Errors", "Late", "P50", "P95", "P99", "Budget", "Against its budget"];
    this.#figures = element("div", { class: "stack" },
      element("div", { class: "figures" }, this.#charts.map((chart) => chart.root)),
      element("section", { class: "card stack", "aria-labelledby": "latency-title" },
        element("h2", { id: "latency-title" }, "Tools"),
        element("div", { class: "scroll", tabindex: "0" }, element("table", {},
          element("thead", {}, element("tr", {}, heads.map(heading))), this.#tools))),
      element("section", { class: "card stack", "aria-labelledby": "decisions-title" },
        element("h2", { id: "decisions-title" }, "Policy interventions"), this.#decisions));
    replace(root, element("div", { class: "operations stack" },
      element("div", { class: "row spread" }, element("h1", {}, "Operations"), this.#uptime), this.#trouble,
      this.#doubts.root, this.#figures, this.#sessions.root, this.#audit.root));
  }

  async refresh() {
    const listed = this.#looks++ % SESSIONS_EVERY === 0;
    const troubles = await Promise.all([
      this.#attempt(this.#doubts.root, () => this.#doubts.refresh()),
      this.#attempt(this.#figures, () => this.#showFigures()),
      listed && this.#attempt(this.#sessions.root, () => this.#sessions.refresh()),
      this.#attempt(this.#audit.root, () => this.#audit.refresh()),
    ]);
    const words = [...new Set(troubles.filter(Boolean))];
    if (words.join() === this.#trouble.textContent) return;
    replace(this.#trouble, words.map((each) => element("p", { class: "card problem", role: "status" }, each)));
  }

  /** Hides a section that is not available to this user or on this host; returns the reason. */
  async #attempt(part, refresh) {
    try {
      await refresh();
      part.hidden = false;
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 403 || error.status === 404) part.hidden = true;
      return `${error.message}${error.suggestion ? ` ${error.suggestion}` : ""}`;
    }
  }

  async #showFigures() {
    const stats = await this.#api.get("stats");
    const { sessions, turns } = stats.totals;
    this.#uptime.textContent = `up for ${clock(stats.uptime)}, ${many(sessions, "session")} and ${many(turns, "turn")} since`;
    CHARTS.forEach(([, , name, byMinute], index) => {
      const now = name === "open" ? stats.open : stats.totals[name];
      const points = byMinute ? rates(stats.samples, name) : stats.samples.map((each) => ({ at: each.at, value: each[name] }));
      this.#charts[index].update(brief(now), points);
    });
    replace(this.#tools, stats.tools.length ? stats.tools.map(toolRow)
      : element("tr", {}, element("td", { colspan: "9", class: "hint" }, "No tool has been called yet.")));
    replace(this.#decisions, decisionTable(stats.decisions));
    this.#audit.suggest(stats.tools.map(({ tool }) => tool));
  }
}

/** The growth of a total between two samples. */
function rates(samples, name) {
  return samples.slice(1).map((each, index) => {
    const before = samples[index];
    const minutes = Math.max(each.at - before.at, 0.001) / 60;
    return { at: each.at, value: Math.max(0, each[name] - before[name]) / minutes };
  });
}

function toolRow(tool) {
  // A call that waits for confirmation has not failed; the policy interventions count it.
  const failed = Object.entries(tool.errors).filter(([kind]) => kind !== "CONFIRMATION_REQUIRED")
    .map(([kind, count]) => element("span", { class: "tag bad" }, `${kind} ${count}`));
  const time = (ms) => element("td", { class: "number" }, ms === undefined ? "" : duration(ms));
  return element("tr", {},
    element("td", {}, element("code", {}, tool.tool)), element("td", { class: "number" }, tool.calls),
    element("td", {}, failed.length ? element("div", { class: "row" }, failed) : "none"),
    element("td", { class: "number" }, tool.late), time(tool.p50), time(tool.p95), time(tool.p99),
    time(tool.budgetMs ?? undefined), element("td", { class: "bar-cell" }, tool.p50 === undefined ? null : percentileBar(tool)));
}

const NUMBERS = new Set(["Calls", "Late", "P50", "P95", "P99", "Budget", "Times"]);

function heading(words) {
  return element("th", { scope: "col", class: NUMBERS.has(words) ? "number" : null }, words);
}

function decisionTable(decisions) {
  if (!decisions.length) return element("p", { class: "hint" }, "No policy has intervened.");
  return element("table", {},
    element("thead", {}, element("tr", {}, ["Policy", "Decision", "Times"].map(heading))),
    element("tbody", {}, decisions.map(({ policy, decision, count }) => element("tr", {},
      element("td", {}, policy), element("td", {}, decision), element("td", { class: "number" }, count)))));
}
