// Sources: records that tools found, and citations of them in answers.

import { element, replace, showSanitised } from "../dom.js";
import { formatValue } from "./format.js";

/** A shorter title would match everywhere. */
const MIN_TITLE_LENGTH = 4;

/** The records of this conversation, by id. */
export class Sources {
  #records = new Map();

  /** Adds the records in the result of a tool. */
  add(data) {
    const found = [data?.results, data?.records].flat().filter((each) => each && typeof each === "object");
    for (const each of found) {
      if (typeof each.id === "string" && typeof each.title === "string") {
        this.#records.set(each.id, { ...this.#records.get(each.id), ...each });
      }
    }
  }

  clear() {
    this.#records.clear();
  }

  /** Turns titles and ids of records in an answer into buttons that call `open`. */
  cite(root, open) {
    const names = new Map();
    for (const record of this.#records.values()) {
      for (const name of [record.title, record.id]) {
        if (name.length >= MIN_TITLE_LENGTH) names.set(name.toLowerCase(), record);
      }
    }
    if (!names.size) return;
    const longest = [...names.keys()].sort((a, b) => b.length - a.length).map(escapeRegExp);
    const pattern = new RegExp(`\\[?(?<![\\p{L}\\p{N}])(${longest.join("|")})(?![\\p{L}\\p{N}])\\]?`, "giu");
    for (const text of textNodes(root)) insertCitations(text, pattern, names, open);
  }
}

function escapeRegExp(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function textNodes(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    if (!walker.currentNode.parentElement.closest("a, button, pre")) found.push(walker.currentNode);
  }
  return found;
}

function insertCitations(text, pattern, names, open) {
  const parts = [];
  let end = 0;
  let last = null;
  for (const match of text.data.matchAll(pattern)) {
    const record = names.get(match[1].toLowerCase());
    const between = text.data.slice(end, match.index);
    end = match.index + match[0].length;
    // A title with its id behind it names one source.
    if (record === last && !between.trim()) continue;
    last = record;
    parts.push(between, citation(record, match[1], open));
  }
  if (!parts.length) return;
  text.replaceWith(...parts, text.data.slice(end));
}

function citation(record, text, open) {
  return element("button", {
    type: "button", class: "chip", title: `Source: ${record.title}`, on: { click: () => open(record) },
  }, text);
}

/** The side panel of a record; `kb_get` loads the complete record. */
export function sourcesPanel(api, record, close) {
  const body = element("div", { class: "prose" }, element("p", {}, record.snippet ?? ""));
  const facts = element("dl", { class: "facts" });
  const show = (known) => replace(facts, factsOf(known));
  show(record);
  loadRecord(api, record).then(({ complete, html }) => {
    show({ ...record, ...complete });
    if (html) {
      showSanitised(body, html);
      // The title is shown above.
      const first = body.firstElementChild;
      if (first?.matches("h1") && first.textContent === record.title) first.remove();
    }
    if (!html) replace(body, element("p", {}, complete.text));
  }).catch((error) => {
    body.append(element("p", { class: "hint" }, `Only the excerpt is available. ${error.message}`));
  });
  return element("section", { class: "stack source", "aria-label": "Source" },
    element("div", { class: "row spread" },
      element("h2", {}, record.title),
      element("button", { type: "button", class: "small", on: { click: close } }, "Close")),
    facts, body);
}

async function loadRecord(api, record) {
  // In its own session, so that it does not use up the budget of the assistant.
  const result = await api.post("execute/kb_get", { arguments: { ids: [record.id] } }, { session: null });
  const complete = result.envelope?.data?.records?.[0];
  if (!complete) throw new Error("The record no longer exists.");
  const { html } = await api.post("render", { markdown: complete.text }).catch(() => ({ html: "" }));
  return { complete, html };
}

function factsOf(record) {
  const shown = [
    ["ID", record.id],
    ["Type", record.type],
    ["Source", record.source_type],
    ["Updated", record.last_updated?.slice(0, 10)],
    ["Tags", record.tags?.join(", ")],
    ["Score", record.score === undefined ? null : `${Math.round(record.score * 100)} %`],
  ];
  const rows = shown.filter(([, value]) => value).map(([name, value]) => [
    element("dt", {}, name), element("dd", {}, formatValue(value)),
  ]);
  if (/^(https?|mailto):/.test(record.url ?? "")) {
    rows.push([element("dt", {}, "Address"),
      element("dd", {}, element("a", { href: record.url, target: "_blank", rel: "noopener noreferrer" }, record.url))]);
  }
  return rows;
}
