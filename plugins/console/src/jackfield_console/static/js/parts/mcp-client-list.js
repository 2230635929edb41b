// The connected MCP clients of all hosts.

import { element, replace } from "../dom.js";
import { formatCount } from "./format.js";

const COLUMNS = ["Client", "User", "Protocol", "Host", "Last seen"];

export class McpClientList {
  #api;
  #count = element("p", { class: "hint" });
  #rows = element("tbody");
  root = element("section", { class: "card stack", "aria-labelledby": "mcp-title", hidden: true },
    element("div", { class: "row spread" }, element("h2", { id: "mcp-title" }, "MCP clients"), this.#count),
    element("div", { class: "scroll", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, COLUMNS.map((text) => element("th", { scope: "col" }, text)))), this.#rows)));

  constructor(api) {
    this.#api = api;
  }

  async refresh() {
    const { clients } = await this.#api.get("mcp/clients");
    this.#count.textContent = formatCount(clients.length, "client");
    replace(this.#rows, clients.length ? clients.map(clientRow)
      : element("tr", {}, element("td", { colspan: COLUMNS.length, class: "hint" }, "No MCP client is connected.")));
  }
}

function clientRow(client) {
  return element("tr", {},
    element("td", {}, [client.name || "unnamed", client.version].filter(Boolean).join(" ")),
    element("td", {}, client.user), element("td", {}, client.protocol), element("td", {}, element("code", {}, client.host)),
    element("td", {}, new Date(client.seenAt * 1000).toLocaleTimeString()));
}
