// The registry: tools, withheld tools with their reasons, policies, plugins and changes.

import { ApiError } from "../api.js";
import { element, replace, showSanitised } from "../dom.js";
import { McpServers } from "../parts/mcp-servers.js";
import { registryDiff } from "../parts/registry-diff.js";
import { policyOrder } from "../parts/policies.js";
import { ToolForm } from "../parts/tool-form.js";
import { loadStylesheet } from "../styles.js";
import { formatDuration, formatValue } from "../parts/format.js";

const VIEW = "registry";
/** The distribution whose tools belong to MCP servers. */
const MCP_TOOLS = "jackfield-mcp-tools";
const SERVERS_MS = 3000;

/** Shows the view; the address names the tool: `#/registry/kb_search`. */
export function mount(root, { api }) {
  const view = new RegistryView(root, api);
  const showSelected = () => view.showSelected();
  const reload = () => view.load();
  addEventListener("hashchange", showSelected);
  api.addEventListener("token", reload);
  api.addEventListener("registry", reload);
  view.load();
  return () => {
    removeEventListener("hashchange", showSelected);
    api.removeEventListener("token", reload);
    api.removeEventListener("registry", reload);
  };
}

class RegistryView {
  #root;
  #api;
  #registry = null;
  #tools = [];
  #prompts = [];
  #selected = null;
  #list = element("nav", { class: "tool-list", "aria-label": "Tools" });
  #detail = element("div", { class: "tool-pane" });

  constructor(root, api) {
    this.#root = root;
    this.#api = api;
  }

  async load() {
    try {
      const [registry, { tools, prompts }] = await Promise.all(
        [this.#api.get("registry"), this.#api.get("tools"), loadStylesheet("registry"), loadStylesheet("forms")]);
      this.#registry = registry;
      this.#tools = tools;
      this.#prompts = prompts;
    } catch (error) {
      replace(this.#root, problem(error));
      return;
    }
    this.#selected = null;
    replace(this.#root, element("div", { class: "registry" }, this.#list, this.#detail));
    this.#showList();
    this.showSelected();
  }

  /** Shows the tool or page that the address names. */
  showSelected() {
    const [view, name = ""] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
    if (view !== VIEW || !this.#registry || name === this.#selected) return;
    this.#selected = name;
    this.#root.firstChild.classList.toggle("chosen", name !== "");
    for (const link of this.#list.querySelectorAll("a")) {
      if (link.dataset.tool === name) {
        link.setAttribute("aria-current", "true");
        link.scrollIntoView({ block: "nearest" });
      } else {
        link.removeAttribute("aria-current");
      }
    }
    if (!name) this.#showOverview();
    else if (name in this.#registry.withheld) this.#showWithheld(name);
    else this.#showTool(name);
  }

  #showList() {
    const filter = element("input", {
      type: "search", placeholder: "Find a tool", "aria-label": "Find a tool",
      on: { input: () => this.#filter(filter.value.trim().toLowerCase()) },
    });
    const withheld = Object.entries(this.#registry.withheld);
    replace(this.#list,
      element("a", { href: `#/${VIEW}`, data: { tool: "" }, class: "entry about" }, element("strong", {}, "Registry"),
        element("span", { class: "hint" }, this.#registry.version)),
      filter,
      element("h2", {}, `Offered (${this.#tools.length})`),
      element("ul", {}, this.#tools.map((tool) => entry(tool.toolId, tool.summary))),
      withheld.length ? [
        element("h2", {}, `Withheld (${withheld.length})`),
        element("ul", {}, withheld.map(([id, reason]) => entry(id, `It ${reason}.`, "withheld"))),
      ] : null);
  }

  #filter(text) {
    for (const item of this.#list.querySelectorAll("li")) {
      item.hidden = !item.textContent.toLowerCase().includes(text);
    }
  }

  async #showOverview() {
    const registry = this.#registry;
    const changes = element("div", {}, element("p", { class: "hint" }, "…"));
    const hasServers = registry.tools.some((tool) => tool.distribution === MCP_TOOLS);
    const servers = element("div", { class: "stack" });
    replace(this.#detail,
      element("h1", {}, "Registry ", element("code", {}, registry.version)),
      facts({
        Deployment: registry.deployment, Built: formatDate(registry.builtAt), Commit: registry.gitCommit?.slice(0, 12) ?? "none",
        Kernel: registry.kernel, "Content hash": registry.contentHash.slice(0, 23),
      }),
      section("Changes", changes),
      hasServers ? section("MCP servers", servers) : null,
      section("Policies",
        element("p", { class: "hint" }, "Policies run in this order; any of them can reject a call."),
        policyOrder(registry.chain)),
      section("Session prompt",
        element("p", { class: "hint" }, "Token counts are estimates, based on four characters per token. If a guide is not in the prompt, the model receives it with the tool's first error."),
        table(["Mode", "Tokens", "Budget", "Declarations", "Guides in the prompt"], this.#prompts.map((prompt) =>
          [prompt.mode, count(prompt.tokens), count(prompt.budget), count(prompt.declarations), `${prompt.guides} of ${prompt.tools}`])),
        table(["Tool", "Declaration", "Summary", "Guide", "Guide in the prompt"],
          this.#tools.filter((tool) => tool.tokens).map((tool) => [link(tool.toolId), count(tool.tokens.declaration),
            count(tool.tokens.summary), count(tool.tokens.guide), tool.tokens.guideInPrompt.join(", ") || "no"]))),
      section("Tools by distribution", table(["Tool", "Version", "Family", "Distribution", "Distribution version"],
        registry.tools.map((tool) => [link(tool.toolId), tool.version, tool.family ?? "", tool.distribution, tool.distributionVersion]))),
      section("Plugins", table(["Plugin", "Distribution", "Version", "Offers"],
        registry.plugins.map((plugin) => [plugin.name, plugin.distribution, plugin.distributionVersion, offers(plugin.offers)]))));
    replace(changes, await this.#loadChanges());
    if (hasServers) await this.#showServers(servers);
  }

  /** Shows the servers, and their changes for as long as the page shows them. */
  async #showServers(target) {
    const servers = new McpServers(this.#api);
    while (target.isConnected) {
      try {
        await servers.refresh();
        if (target.firstChild !== servers.root) replace(target, servers.root);
      } catch (error) {
        replace(target, problem(error));
      }
      await new Promise((resolve) => setTimeout(resolve, SERVERS_MS));
    }
  }

  async #loadChanges() {
    try {
      return registryDiff(await this.#api.get("registry/diff"));
    } catch (error) {
      return problem(error);
    }
  }

  #showWithheld(name) {
    const tool = this.#registry.tools.find((tool) => tool.toolId === name);
    replace(this.#detail, back(), element("h1", {}, name),
      element("div", { class: "card problem stack", role: "status" },
        element("p", {}, element("strong", {}, "Withheld. "), `It ${this.#registry.withheld[name]}.`),
        element("p", { class: "hint" }, "Models do not see this tool, and calls to it are rejected. ",
          "Fix the cause (for example, install or configure what the tool needs), build the registry, and restart the host.")),
      tool ? facts({ Version: tool.version, Distribution: origin(tool) }) : null);
  }

  async #showTool(name) {
    replace(this.#detail, back(), element("h1", {}, name), element("p", { class: "hint" }, "…"));
    let tool;
    try {
      tool = await this.#api.get(`tools/${encodeURIComponent(name)}`);
    } catch (error) {
      if (this.#selected === name) replace(this.#detail, back(), element("h1", {}, name), problem(error));
      return;
    }
    if (this.#selected !== name) return;
    const guide = element("div", { class: "prose" });
    replace(this.#detail, back(),
      element("header", { class: "stack" }, element("h1", {}, tool.toolId), element("p", {}, tool.description), tags(tool)),
      element("div", { class: "columns" },
        new ToolForm(this.#api, tool).root,
        element("section", { class: "card stack", "aria-labelledby": "guide-title" },
          element("h2", { id: "guide-title" }, "Guide"), guide)),
      section("Schemas", schema("Parameters", tool.parameters), tool.returns ? schema("Result", tool.returns) : null,
        Object.entries(tool.providerSchemas).map(([adapter, declared]) => schema(`As declared for ${adapter}`, declared))));
    this.#render(tool.guide, guide);
  }

  async #render(markdown, target) {
    try {
      const { html } = await this.#api.post("render", { markdown });
      showSanitised(target, html);
      for (const block of target.querySelectorAll("pre, table")) block.tabIndex = 0;
    } catch {
      // Plain Markdown is better than nothing.
      replace(target, element("pre", { tabindex: "0" }, markdown));
    }
  }
}

function entry(id, text, kind = "") {
  return element("li", {}, element("a", { href: `#/${VIEW}/${encodeURIComponent(id)}`, class: `entry ${kind}`, data: { tool: id } },
    element("strong", {}, id), element("span", { class: "hint" }, text)));
}

function link(id) {
  return element("a", { href: `#/${VIEW}/${encodeURIComponent(id)}` }, id);
}

function back() {
  return element("a", { href: `#/${VIEW}`, class: "back" }, "← All tools");
}

function tags(tool) {
  const confirmation = { true: "requires confirmation", false: null, policy: "confirmation depends on policies" }[String(tool.requiresConfirmation)];
  return element("div", { class: "row" },
    element("span", { class: "tag accent" }, tool.category),
    element("span", { class: `tag ${tool.sideEffects === "writes" ? "warn" : ""}` }, tool.sideEffects === "none" ? "no side effects" : tool.sideEffects.replace("_", "-")),
    confirmation ? element("span", { class: "tag warn" }, confirmation) : null,
    tool.allowedModes.map((mode) => element("span", { class: "tag" }, mode)),
    element("span", { class: "tag" }, tool.idempotent ? "idempotent" : "not idempotent"),
    element("span", { class: "tag" }, `latency budget ${formatDuration(tool.latencyBudgetMs)}, timeout ${formatDuration(tool.timeoutMs)}`),
    tool.requires.map((name) => element("span", { class: "tag" }, `requires ${name}`)),
    element("span", { class: "hint" },
      [`version ${tool.version}, from ${origin(tool)}`, tool.tokens ? cost(tool.tokens) : null].filter(Boolean).join(" · ")));
}

function origin(tool) {
  const distribution = `${tool.distribution} ${tool.distributionVersion}`;
  return tool.family ? `the ${tool.family} family in ${distribution}` : distribution;
}

function section(title, ...children) {
  return element("section", { class: "card stack" }, element("h2", {}, title), children);
}

function facts(named) {
  return element("dl", { class: "facts wide" },
    Object.entries(named).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function table(headers, rows) {
  return element("div", { class: "scroll", tabindex: "0" }, element("table", {},
    element("thead", {}, element("tr", {}, headers.map((header) => element("th", { scope: "col" }, header)))),
    element("tbody", {}, rows.map((cells) => element("tr", {}, cells.map((cell) => element("td", {}, cell)))))));
}

function offers(named) {
  return Object.entries(named).map(([kind, names]) =>
    element("div", {}, element("span", { class: "hint" }, `${kind.replaceAll("_", " ")}: `), names.join(", ")));
}

function schema(title, value) {
  return element("details", {}, element("summary", {}, title), element("pre", { tabindex: "0" }, formatValue(value)));
}

function count(number) {
  return number.toLocaleString("en");
}

function cost(tokens) {
  const modes = tokens.guideInPrompt;
  const where = modes.length ? `in the ${modes.join(" and ")} ${modes.length === 1 ? "prompt" : "prompts"}` : "not in the prompt";
  return `declaration: ${count(tokens.declaration)} tokens; guide: ${count(tokens.guide)} tokens, ${where}`;
}

function formatDate(text) {
  return new Date(text).toLocaleString();
}

function problem(error) {
  if (!(error instanceof ApiError)) throw error;
  return element("p", { class: "card problem", role: "alert" }, error.message, error.suggestion ? ` ${error.suggestion}` : "");
}
