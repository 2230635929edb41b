// The MCP servers of the registry: their state, what changed in their tools since the build, and how to accept it.

import { ApiError } from "../api.js";
import { element, replace } from "../dom.js";
import { formatCount } from "./format.js";

const TONES = { connected: "good", connecting: "warn", disconnected: "bad", unused: "warn" };
const ACCEPT = "Accept all changes and rebuild";

/** The servers by name; on a development host with a button that accepts what they changed. */
export class McpServers {
  root = element("div", { class: "stack" });

  #api;
  #development = null;
  #list = element("div", { class: "stack" }, element("p", { class: "hint" }, "…"));
  #result = element("p", { class: "hint", role: "status", hidden: true });
  #dialog = element("dialog", { "aria-labelledby": "accept-title" });

  constructor(api) {
    this.#api = api;
    replace(this.root, this.#list, this.#result, this.#dialog);
  }

  async refresh() {
    // Not updated while it has the focus: a rebuilt button would lose it.
    if (this.#dialog.open || this.#list.contains(document.activeElement)) return;
    this.#development ??= (await this.#api.get("status")).development;
    const { servers } = await this.#api.get("mcp-servers");
    const changed = Object.values(servers).flatMap((server) => server.tools.filter((tool) => tool.changes.length));
    replace(this.#list, Object.entries(servers).map(([name, server]) => this.#server(name, server)),
      this.#development && changed.length > 0 && element("div", { class: "row" },
        element("button", { type: "button", on: { click: () => this.#confirm(changed) } }, ACCEPT)));
  }

  #server(name, server) {
    const withheld = server.tools.filter((tool) => tool.withheld);
    return element("div", { class: "stack" },
      element("p", {}, element("strong", {}, name), " ",
        element("span", { class: `tag ${TONES[server.state] ?? ""}` }, server.state), " ",
        element("span", { class: "hint" }, [server.address ?? "not in the settings", formatCount(server.tools.length, "frozen tool"),
          server.reason].filter(Boolean).join(", "))),
      withheld.length ? [changes(withheld), this.#advice(withheld.length)] : null,
      server.unfrozen.length
        ? element("p", { class: "hint" }, `Offered by the server but not in the registry: ${server.unfrozen.join(", ")}. `
          + "To add a tool, check that the settings allow it, then rebuild the registry.") : null);
  }

  #advice(number) {
    const accept = this.#development ? `select “${ACCEPT}”` : ["run ", element("code", {}, "jackfield build"), ", and restart the host"];
    return element("p", { class: "hint" }, number === 1 ? "This tool is withheld." : "These tools are withheld.",
      " To accept the changes, review them, ", this.#development ? "then " : "", accept,
      ". To reject a change, do nothing, or deny the tool in the settings.");
  }

  /** Asks for confirmation, because models will read what the servers say. */
  #confirm(changed) {
    const accept = element("button", { type: "button", class: "primary", on: { click: () => this.#accept(accept) } }, ACCEPT);
    replace(this.#dialog, element("div", { class: "stack" },
      element("h2", { id: "accept-title" }, "Accept the servers' changes?"),
      changes(changed),
      element("p", {}, "The build reads the tools of all servers again and freezes their current state. Models will then see the "
        + "changed tools, and will be able to call them if this host's policies allow it. Review the changes to the registry afterwards."),
      element("div", { class: "row end" },
        element("button", { type: "button", on: { click: () => this.#dialog.close() } }, "Cancel"), accept)));
    this.#dialog.showModal();
  }

  async #accept(button) {
    button.disabled = true;
    try {
      await this.#api.post("development/listings", {});
      this.#result.textContent = "The registry is being rebuilt; the outcome will appear at the top of the page.";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#result.textContent = error.message;
    }
    this.#result.hidden = false;
    this.#dialog.close();
    document.activeElement?.blur();
  }
}

function changes(tools) {
  return element("ul", { class: "changes" }, tools.map((tool) => element("li", {}, element("code", {}, tool.toolId),
    element("span", {}, tool.changes.length ? tool.changes.join("; ") : `It ${tool.withheld}.`))));
}
