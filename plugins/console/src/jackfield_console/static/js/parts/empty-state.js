// The empty conversation: suggestions, the provider, and how to add a tool.

import { element, replace } from "../dom.js";

/** A suggestion for common tools, in order of preference. */
const FIRST = {
  kb_search: "How do I book the photo room?",
  format_datetime: "What time is it in Tokyo?",
  calendar_get_availability: "When am I free tomorrow afternoon?",
  extract_contacts: "Find the contacts in a text I paste.",
  image_draft_prompt: "Help me describe a picture of a lighthouse.",
  start_voice_session: "Let us talk instead of typing.",
};

/** Shown while the conversation is empty; `say` is called with the suggestion that was picked. */
export class EmptyState {
  root = element("section", { class: "empty", "aria-label": "Getting started" });
  /** Where downloads are shown. */
  downloads = element("div");
  #say;
  #hints = [];

  constructor(say) {
    this.#say = say;
  }

  /** Hides hints that a button replaces. */
  hideHints(texts) {
    for (const { text, item } of this.#hints) item.hidden = texts.has(text);
    const list = this.#hints[0]?.item.parentElement;
    if (list) list.hidden = list.previousElementSibling.hidden = this.#hints.every(({ item }) => item.hidden);
  }

  /** `session` is the host's first message: its tools, and for operators why its provider was chosen. */
  show({ tools, provider, providerReason, providerHints }) {
    const offers = new Set(tools.map(({ id }) => id));
    const known = Object.keys(FIRST).filter((id) => offers.has(id)).map((id) => FIRST[id]);
    const sentences = ["What can you do?", ...known].slice(0, 4);
    replace(this.root,
      element("h1", {}, "What can I do for you?"),
      element("p", { class: "lead" }, "Ask something, or press the microphone and talk. For example:"),
      element("ul", { class: "first" }, sentences.map((text) =>
        element("li", {}, element("button", { type: "button", on: { click: () => this.#say(text) } }, text)))),
      providerReason && this.#answering(provider, providerReason, providerHints),
      tools.length ? offered(tools) : element("p", { class: "hint" }, "No tools are installed yet."),
      howToAdd());
  }

  /** The provider, why it was chosen, and how to get a better one. */
  #answering(provider, reason, hints = []) {
    this.#hints = hints.map((text) => ({ text, item: element("li", {}, withCode(text)) }));
    return element("section", { class: "card answering", "aria-label": "Provider", data: { testid: "provider" } },
      element("p", {}, element("strong", {}, `${provider} answers`), `: ${reason}.`),
      hints.length > 0 && [
        element("p", { class: "hint" }, "For better answers, do one of these and restart the host:"),
        element("ul", { class: "hint" }, this.#hints.map(({ item }) => item)),
      ],
      this.downloads);
  }
}

/** A text whose parts in backticks are code. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

function offered(tools) {
  return element("details", { class: "card" },
    element("summary", {}, `${tools.length} ${tools.length === 1 ? "tool" : "tools"} can be used here`),
    element("dl", { class: "facts roomy" }, tools.map(({ id, summary }) => [
      element("dt", {}, element("code", {}, id)), element("dd", {}, summary),
    ])),
    element("p", { class: "hint" }, element("a", { href: "#/registry" }, "See the registry"),
      " for parameters, guides, and what is withheld and why."));
}

function howToAdd() {
  const steps = [
    ["Install a published tool", "pip install NAME"],
    ["Or write one, and install it from its folder", "jackfield new-tool my_tool\npip install -e my-tool"],
    ["Freeze what is installed into a registry", "jackfield build"],
    ["Restart the host; conversations are resumed", "jackfield serve"],
  ];
  return element("details", { class: "card" },
    element("summary", {}, "How to add a tool"),
    element("ol", { class: "steps" }, steps.map(([words, commands]) =>
      element("li", {}, element("p", {}, words), element("pre", { tabindex: "0", "aria-label": words }, commands)))));
}
