// The tool calls of this conversation, with durations and budgets.

import { element, replace } from "../dom.js";
import { formatDuration } from "./format.js";

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
    const show = () => replace(row, rowContent(call, reveal));
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

function rowContent(call, reveal) {
  const [label, colour] = call.label;
  const at = new Date(call.at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  return [
    element("div", { class: "row spread" },
      element("button", { type: "button", class: "link", on: { click: reveal } }, call.tool),
      element("span", { class: `tag ${colour}` }, label)),
    element("div", { class: "row spread hint" }, element("time", {}, at), element("span", {}, durationText(call))),
    bar(call),
  ];
}

function durationText(call) {
  if (!call.timed) return call.progress?.message ?? "";
  return call.budgetMs ? `${formatDuration(call.durationMs)} of ${formatDuration(call.budgetMs)}` : formatDuration(call.durationMs);
}

function bar(call) {
  if (!call.timed || !call.budgetMs) return null;
  const longest = Math.max(call.durationMs, call.budgetMs);
  const node = element("div", { class: "duration-bar", "aria-hidden": "true" }, element("span"), element("i"));
  node.classList.toggle("over", call.durationMs > call.budgetMs);
  // Set by script, which the content security policy allows; style attributes it does not.
  node.firstChild.style.width = `${Math.max(1.5, (100 * call.durationMs) / longest)}%`;
  node.lastChild.style.left = `${(100 * call.budgetMs) / longest}%`;
  return node;
}
