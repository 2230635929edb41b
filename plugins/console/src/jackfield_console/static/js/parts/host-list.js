// The hosts that share the store, with what each of them reports.

import { element, replace } from "../dom.js";
import { formatCount, formatNumber } from "./format.js";

const COLUMNS = ["Host", "State", "Sessions", "Calls per second", "Registry", "Version"];
const NUMBERS = new Set(["Sessions", "Calls per second"]);

export class HostList {
  #api;
  #sums = element("p", { class: "hint" });
  #rows = element("tbody");
  root = element("section", { class: "card stack", "aria-labelledby": "hosts-title" },
    element("div", { class: "row spread" }, element("h2", { id: "hosts-title" }, "Hosts"), this.#sums),
    element("div", { class: "scroll", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, COLUMNS.map((text) =>
        element("th", { scope: "col", class: NUMBERS.has(text) ? "number" : null }, text)))), this.#rows)));

  constructor(api) {
    this.#api = api;
  }

  async refresh() {
    const { host, hosts, sums } = await this.#api.get("hosts");
    this.#sums.textContent = `${formatCount(sums.hosts, "host")}, ${formatCount(sums.sessions, "session")}, ${callRate(sums.callsPerSecond)}`;
    replace(this.#rows, hosts.map((each) => hostRow(each, each.name === host)));
  }
}

/** A row; the figures of a host that no longer reports are those of its last report. */
function hostRow(host, own) {
  return element("tr", {},
    element("td", {}, element("code", {}, host.name), own ? " (serves this page)" : null),
    element("td", {}, stateTag(host)),
    element("td", { class: "number" }, host.sessions),
    element("td", { class: "number" }, rate(host.callsPerSecond)),
    element("td", {}, host.registry), element("td", {}, host.version));
}

function stateTag(host) {
  if (host.silent) return element("span", { class: "tag bad" }, "not reporting; figures out of date");
  return element("span", { class: `tag ${host.draining ? "warn" : "good"}` }, host.draining ? "draining" : "serving");
}

function callRate(value) {
  return value === null ? "call rate unknown" : `${rate(value)} ${value === 1 ? "call" : "calls"} per second`;
}

function rate(value) {
  return value === null ? "unknown" : formatNumber(value);
}
