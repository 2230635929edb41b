// The empty conversation: suggestions, the provider, and how to add a tool.

import { element, replace } from "../dom.js";

/** A suggestion for common tools, in order of preference. */
const SUGGESTIONS = {
  kb_search: "How do I book the photo room?",
  format_datetime: "What time is it in Tokyo?",
  calendar_get_availability: "When am I free tomorrow afternoon?",
  extract_contacts: "Find the contacts in text that I paste.",
  image_draft_prompt: "Help me describe a picture of a lighthouse.",
  start_voice_session: "I would rather talk than type.",
};

/** Shown while the conversation is empty; `send` is called with the suggestion that was picked. */
export class EmptyState {
  root = element("section", { class: "empty", "aria-label": "Getting started" });
  /** Where downloads are shown. */
  downloads = element("div");
  #api;
  #send;
  #hints = [];

  constructor(api, send) {
    this.#api = api;
    this.#send = send;
  }

  /** Hides hints that a button replaces. */
  hideHints(texts) {
    for (const { text, item } of this.#hints) item.hidden = texts.has(text);
    const list = this.#hints[0]?.item.parentElement;
    if (list) list.hidden = list.previousElementSibling.hidden = this.#hints.every(({ item }) => item.hidden);
  }

  /** `session` is the host's first message: its tools, and for operators why its provider was chosen. */
  show({ tools, provider, providerReason, providerHints }) {
    const ids = new Set(tools.map(({ id }) => id));
    const forTools = Object.keys(SUGGESTIONS).filter((id) => ids.has(id)).map((id) => SUGGESTIONS[id]);
    const texts = ["What can you do?", ...forTools].slice(0, 4);
    replace(this.root,
      element("h1", {}, "What can I do for you?"),
      element("p", { class: "lead" }, "Type a question, or press the microphone button to talk. For example:"),
      element("ul", { class: "suggestions" }, texts.map((text) =>
        element("li", {}, element("button", { type: "button", on: { click: () => this.#send(text) } }, text)))),
      providerReason && this.#providerCard(provider, providerReason, providerHints),
      tools.length ? toolList(tools) : element("p", { class: "hint" }, "No tools are available."),
      providerReason && howToAdd(this.#api));
  }

  /** Conversations are off; `choice` says why and how to turn them on, for operators. */
  showOff(choice, tools) {
    replace(this.root,
      element("h1", {}, "Conversations are off"),
      element("p", { class: "lead" }, "This host has no model provider.",
        tools > 0 && [` You can still call its ${tools === 1 ? "tool" : `${tools} tools`} in the `,
          element("a", { href: "#/registry" }, "registry view"), " or over HTTP."]),
      choice && element("section", { class: "card provider", "aria-label": "Provider", data: { testid: "provider" } },
        element("p", {}, "Reason: ", withCode(choice.reason), "."),
        element("p", { class: "hint" }, "To turn on conversations, do one of the following, then restart the host:"),
        element("ul", { class: "hint" }, choice.hints.map((text) => element("li", {}, withCode(text))))),
      choice && howToAdd(this.#api));
  }

  /** The provider, why it was chosen, and how to get a better one. */
  #providerCard(provider, reason, hints = []) {
    this.#hints = hints.map((text) => ({ text, item: element("li", {}, withCode(text)) }));
    return element("section", { class: "card provider", "aria-label": "Provider", data: { testid: "provider" } },
      element("p", {}, element("strong", {}, `Provider: ${provider}`), " (", withCode(reason), ")"),
      hints.length > 0 && [
        element("p", { class: "hint" }, "For better answers, do one of the following, then restart the host:"),
        element("ul", { class: "hint" }, this.#hints.map(({ item }) => item)),
      ],
      this.downloads);
  }
}

/** A text whose parts in backticks are code. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

function toolList(tools) {
  return element("details", { class: "card" },
    element("summary", {}, `${tools.length} ${tools.length === 1 ? "tool" : "tools"} available`),
    element("dl", { class: "facts roomy" }, tools.map(({ id, summary }) => [
      element("dt", {}, element("code", {}, id)), element("dd", {}, summary),
    ])),
    element("p", { class: "hint" }, element("a", { href: "#/registry" }, "See the registry"),
      " for parameters, guides and withheld tools."));
}

/** The commands that add a tool, for operators; the host knows where it is installed. */
function howToAdd(api) {
  const body = element("div");
  const show = async ({ target }) => {
    if (!target.open || body.hasChildNodes()) return;
    try {
      const { environment } = await api.get("status", { session: null });
      replace(body, environment && addSteps(environment));
    } catch (error) {
      replace(body, element("p", { class: "hint", role: "alert" }, error.message));
    }
  };
  return element("details", { class: "card", on: { toggle: show } }, element("summary", {}, "How to add a tool"), body);
}

function addSteps({ enter, install }) {
  const steps = [
    ["In a terminal, activate this host's environment", enter.join("\n")],
    ["Install a published tool", `${install} NAME`],
    ["Or write your own tool, and install it from its folder", `jackfield new-tool my_tool\n${install} -e my-tool`],
    ["Build the registry", "jackfield build"],
    ["Stop the host, then start it again in this terminal; conversations will resume", "jackfield serve"],
    ["While you develop a tool, replace the previous two steps with this command. It rebuilds the registry and reloads the tools after every change.", "jackfield dev"],
  ];
  return element("ol", { class: "steps" }, steps.map(([title, commands]) =>
    element("li", {}, element("p", {}, title), element("pre", { tabindex: "0", "aria-label": title }, commands))));
}
