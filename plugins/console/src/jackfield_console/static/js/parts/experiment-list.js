// The experiments of all hosts: each arm with its figures, and what the comparison says.

import { element, replace } from "../dom.js";
import { formatDuration, formatNumber } from "./format.js";

const COLUMNS = ["Arm", "Share", "Sessions", "Calls", "Errors", "P50", "P95", "Result size", "Refused", "Repeated in the same turn", "Repeated in the next turn"];

const TONES = { running: "", promoted: "good", aborted: "bad" };

export class ExperimentList {
  #api;
  #version = element("p", { class: "hint" });
  #problem = element("p", { class: "problem", role: "status", hidden: true });
  #list = element("div", { class: "stack" });
  #shown = "";
  root = element("section", { class: "card stack", "aria-labelledby": "experiments-title", hidden: true },
    element("div", { class: "row spread" }, element("h2", { id: "experiments-title" }, "Experiments"), this.#version),
    this.#problem, this.#list);

  constructor(api) {
    this.#api = api;
  }

  async refresh() {
    const report = await this.#api.get("experiments");
    // Without a change nothing is replaced, so that open details stay open.
    const shown = JSON.stringify(report);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#version.textContent = report.version === null ? "" : `version ${report.version}`;
    this.#problem.hidden = !report.problem;
    this.#problem.textContent = report.problem ?? "";
    replace(this.#list, report.experiments.length ? report.experiments.map(experiment)
      : element("p", { class: "hint" }, "This deployment has no experiments."));
  }
}

function experiment(each) {
  const state = each.winner ? `promoted: ${each.winner}` : each.state;
  const by = each.abortedBy ? `Aborted by the guard on host ${each.abortedBy.host} because of arm ${each.abortedBy.arm}: ` : "";
  return element("article", { class: "stack", "aria-label": each.name },
    element("div", { class: "row" }, element("h3", {}, each.name), element("span", { class: `tag ${TONES[each.state]}` }, state),
      element("code", {}, each.tool), element("span", { class: "hint" }, each.shadow ? "shadow" : `assigned by ${each.by}`)),
    each.reason ? element("p", {}, `${by}${each.reason}`) : null,
    element("div", { class: "scroll", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, COLUMNS.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, each.arms.map(armRow)))),
    each.comparisons.map(comparison));
}

function armRow(arm) {
  const counts = (object) => Object.entries(object).map(([name, count]) => element("span", { class: "tag" }, `${name} ${count}`));
  const number = (text) => element("td", { class: "number" }, text);
  const percent = (value) => (value === null ? "" : `${formatNumber(value)} %`);
  const time = (value) => (value === undefined ? "" : formatDuration(value));
  const { p50 } = arm.resultSize;
  return element("tr", {},
    element("td", {}, element("code", {}, arm.arm), counts(arm.outcomes)), number(`${arm.percent} %`),
    number(formatNumber(arm.sessions)), number(formatNumber(arm.calls)),
    element("td", {}, percent(arm.errorPercent), counts(arm.errors)), number(time(arm.latencyMs.p50)), number(time(arm.latencyMs.p95)),
    number(p50 === undefined ? "" : formatNumber(Math.round(p50))), element("td", {}, counts(arm.refusals)),
    number(percent(arm.repeatPercent)), number(percent(arm.nextTurnPercent)));
}

function comparison({ sentence, differences }) {
  if (!differences.length) return element("p", { class: "hint" }, sentence);
  return element("details", {}, element("summary", {}, sentence),
    element("ul", {}, differences.map((each) => element("li", {}, each.sentence))));
}
