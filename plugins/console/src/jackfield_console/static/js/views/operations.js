// Operations: metrics, calls in doubt, hosts, sessions and the audit.

import { ApiError } from "../api.js";
import { element, replace } from "../dom.js";
import { AuditLog } from "../parts/audit-log.js";
import { TrendChart, percentileBar } from "../parts/chart.js";
import { ExperimentList } from "../parts/experiment-list.js";
import { HostList } from "../parts/host-list.js";
import { InDoubtCalls } from "../parts/in-doubt-calls.js";
import { McpClientList } from "../parts/mcp-client-list.js";
import { SessionList } from "../parts/session-list.js";
import { loadStylesheet } from "../styles.js";
import { formatClock, formatCount, formatDuration, formatNumber } from "../parts/format.js";

const POLL_MS = 4000;

/** Sessions are loaded less often than metrics, because each is read from the store. */
const SESSIONS_POLL_INTERVAL = 3;

/** The charts: title, unit, total or gauge, and whether it is shown per minute. */
const CHARTS = [
  ["Conversations", "open", "open", false],
  ["Calls", "per minute", "calls", true],
  ["Errors", "per minute", "errors", true],
  ["Rejections", "per minute", "refusals", true],
  ["Loops", "per minute", "loops", true],
  ["Response tokens", "per minute", "tokens", true],
];

/** Shows the view, and updates it while it is visible. */
export function mount(root, { api }) {
  const view = new OperationsView(root, api);
  let timer = null;
  let unmounted = false;
  const poll = async () => {
    clearTimeout(timer);
    if (!document.hidden) await view.refresh();
    clearTimeout(timer);
    if (!unmounted) timer = setTimeout(poll, POLL_MS);
  };
  document.addEventListener("visibilitychange", poll);
  api.addEventListener("token", poll);
  loadStylesheet("operations").then(poll);
  return () => {
    unmounted = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", poll);
    api.removeEventListener("token", poll);
  };
}

class OperationsView {
  #api;
  #charts = CHARTS.map(([title, unit]) => new TrendChart(title, unit));
  #uptime = element("p", { class: "hint" });
  #metrics;
  #problems = element("div");
  #tools = element("tbody");
  #decisions = element("div");
  #inDoubtCalls;
  #experiments;
  #hosts;
  #mcpClients;
  #sessions;
  #audit;
  #polls = 0;

  constructor(root, api) {
    this.#api = api;
    this.#inDoubtCalls = new InDoubtCalls(api);
    this.#experiments = new ExperimentList(api);
    this.#hosts = new HostList(api);
    this.#mcpClients = new McpClientList(api);
    this.#sessions = new SessionList(api);
    this.#audit = new AuditLog(api);
    const headers = ["Tool", "Calls", "Errors", "Over budget", "P50", "P95", "P99", "Budget", "Latency relative to budget"];
    this.#metrics = element("div", { class: "stack" },
      element("div", { class: "metrics" }, this.#charts.map((chart) => chart.root)),
      element("section", { class: "card stack", "aria-labelledby": "latency-title" },
        element("h2", { id: "latency-title" }, "Tools"),
        element("div", { class: "scroll", tabindex: "0" }, element("table", {},
          element("thead", {}, element("tr", {}, headers.map(heading))), this.#tools))),
      element("section", { class: "card stack", "aria-labelledby": "decisions-title" },
        element("h2", { id: "decisions-title" }, "Policy interventions"), this.#decisions));
    replace(root, element("div", { class: "operations stack" },
      element("div", { class: "row spread" }, element("h1", {}, "Operations"), this.#uptime), this.#problems,
      this.#inDoubtCalls.root, this.#metrics, this.#experiments.root, this.#hosts.root, this.#mcpClients.root, this.#sessions.root, this.#audit.root));
  }

  async refresh() {
    const withSessions = this.#polls++ % SESSIONS_POLL_INTERVAL === 0;
    const results = await Promise.all([
      this.#attempt(this.#inDoubtCalls.root, () => this.#inDoubtCalls.refresh()),
      this.#attempt(this.#metrics, () => this.#showMetrics()),
      this.#attempt(this.#experiments.root, () => this.#experiments.refresh(), { optional: true }),
      this.#attempt(this.#hosts.root, () => this.#hosts.refresh()),
      withSessions && this.#attempt(this.#mcpClients.root, () => this.#mcpClients.refresh(), { optional: true }),
      withSessions && this.#attempt(this.#sessions.root, () => this.#sessions.refresh()),
      this.#attempt(this.#audit.root, () => this.#audit.refresh()),
    ]);
    const problems = [...new Set(results.filter(Boolean))];
    if (problems.join() === this.#problems.textContent) return;
    replace(this.#problems, problems.map((each) => element("p", { class: "card problem", role: "status" }, each)));
  }

  /** Hides a section that is not available to this user or on this host; returns the reason, unless it is `optional`. */
  async #attempt(part, refresh, { optional = false } = {}) {
    try {
      await refresh();
      part.hidden = false;
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 403 || error.status === 404) part.hidden = true;
      if (optional && error.status === 404) return null;
      return `${error.message}${error.suggestion ? ` ${error.suggestion}` : ""}`;
    }
  }

  async #showMetrics() {
    const stats = await this.#api.get("stats");
    const { sessions, turns } = stats.totals;
    this.#uptime.textContent = `up for ${formatClock(stats.uptime)}, ${formatCount(sessions, "session")} and ${formatCount(turns, "turn")} since startup`;
    CHARTS.forEach(([, , name, byMinute], index) => {
      const now = name === "open" ? stats.open : stats.totals[name];
      const points = byMinute ? rates(stats.samples, name) : stats.samples.map((each) => ({ at: each.at, value: each[name] }));
      this.#charts[index].update(formatNumber(now), points);
    });
    replace(this.#tools, stats.tools.length ? stats.tools.map(toolRow)
      : element("tr", {}, element("td", { colspan: "9", class: "hint" }, "No tool has been called yet.")));
    replace(this.#decisions, decisionTable(stats.decisions));
    this.#audit.suggest([...new Set(stats.tools.map(({ tool }) => tool))]);
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
  const time = (ms) => element("td", { class: "number" }, ms === undefined ? "" : formatDuration(ms));
  return element("tr", {},
    element("td", {}, element("code", {}, tool.variant ? `${tool.tool}:${tool.variant}` : tool.tool),
      tool.experiment ? element("span", { class: "tag" }, tool.experiment) : null),
    element("td", { class: "number" }, tool.calls),
    element("td", {}, failed.length ? element("div", { class: "row" }, failed) : "none"),
    element("td", { class: "number" }, tool.late), time(tool.p50), time(tool.p95), time(tool.p99),
    time(tool.budgetMs ?? undefined), element("td", { class: "bar-cell" }, tool.p50 === undefined ? null : percentileBar(tool)));
}

const NUMBERS = new Set(["Calls", "Over budget", "P50", "P95", "P99", "Budget", "Count"]);

function heading(text) {
  return element("th", { scope: "col", class: NUMBERS.has(text) ? "number" : null }, text);
}

function decisionTable(decisions) {
  if (!decisions.length) return element("p", { class: "hint" }, "No policy has intervened.");
  return element("table", {},
    element("thead", {}, element("tr", {}, ["Policy", "Decision", "Count"].map(heading))),
    element("tbody", {}, decisions.map(({ policy, decision, count }) => element("tr", {},
      element("td", {}, policy), element("td", {}, decision), element("td", { class: "number" }, count)))));
}
