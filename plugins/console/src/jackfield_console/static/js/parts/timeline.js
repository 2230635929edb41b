// The tool calls of this conversation, with durations and budgets.

import { duration, element, replace } from "../dom.js";

/** The list of calls in the side panel. */
export class Timeline {
  #list = element("ol", { class: "timeline" });
  #empty = element("p", { class: "hint" }, "Tool calls appear here, with their durations.");
  count = 0;

  constructor() {
    this.root = element("section", { "aria-label": "Tool activity", class: "stack" },
      element("h2", {}, "Activity"), this.#empty, this.#list);
  }

  /** Adds a call; `reveal` shows its card. */
  add(call, reveal) {
    this.count += 1;
    this.#empty.hidden = true;
    const row = element("li");
    const show = () => replace(row, line(call, reveal));
    call.addEventListener("change", show);
    show();
    this.#list.append(row);
  }

  clear() {
    this.count = 0;
    this.#empty.hidden = false;
    replace(this.#list);
  }
}

function line(call, reveal) {
  const [words, colour] = call.words;
  const at = new Date(call.at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return [
    element("div", { class: "row spread" },
      element("button", { type: "button", class: "link", on: { click: reveal } }, call.tool),
      element("span", { class: `tag ${colour}` }, words)),
    element("div", { class: "row spread hint" }, element("time", {}, at), element("span", {}, took(call))),
    bar(call),
  ];
}

function took(call) {
  if (!call.timed) return call.progress?.message ?? "";
  return call.budgetMs ? `${duration(call.durationMs)} of ${duration(call.budgetMs)}` : duration(call.durationMs);
}

function bar(call) {
  if (!call.timed || !call.budgetMs) return null;
  const most = Math.max(call.durationMs, call.budgetMs);
  const made = element("div", { class: "spent-bar", "aria-hidden": "true" }, element("span"), element("i"));
  made.classList.toggle("over", call.durationMs > call.budgetMs);
  // Set by script, which the content security policy allows; style attributes it does not.
  made.firstChild.style.width = `${Math.max(1.5, (100 * call.durationMs) / most)}%`;
  made.lastChild.style.left = `${(100 * call.budgetMs) / most}%`;
  return made;
}
