// The list of sessions, and the transcript of one.

import { ApiError, hostUrl } from "../api.js";
import { element, replace } from "../dom.js";
import { formatTime, formatValue, OUTCOME_TEXTS } from "./format.js";

const FORMATS = { markdown: ["Markdown", "md"], jsonl: ["JSON lines", "jsonl"] };

/** A table of sessions; a click opens a transcript. */
export class SessionList {
  #api;
  #rows = element("tbody");
  #note = element("p", { class: "hint" });
  #dialog = element("dialog", { class: "transcript", "aria-labelledby": "transcript-title" });

  constructor(api) {
    this.#api = api;
    const headers = ["Session", "User", "Mode", "State", "Started", "Last message", "Turns", ""];
    this.root = element("section", { class: "card stack", "aria-labelledby": "sessions-title" },
      element("h2", { id: "sessions-title" }, "Conversations"), this.#note,
      element("div", { class: "scroll", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, headers.map((header) =>
          element(header ? "th" : "td", header ? { scope: "col", class: header === "Turns" ? "number" : null } : {}, header)))),
        this.#rows)),
      this.#dialog);
  }

  async refresh() {
    const { allUsers, complete, sessions } = await this.#api.get("sessions", { params: { limit: 50 } });
    const scope = allUsers ? "All users" : "Your conversations";
    const limit = complete ? "" : `, the latest ${sessions.length}`;
    this.#note.textContent = sessions.length
      ? `${scope}${limit}. Transcripts are kept for seven days.` : "There are no conversations yet. Start one in the Chat view.";
    // Not updated while it has the focus: a rebuilt button would lose it.
    if (this.#rows.contains(document.activeElement)) return;
    replace(this.#rows, sessions.map((each) => this.#row(each)));
  }

  #row(session) {
    const open = element("button", {
      type: "button", class: "small", "aria-label": `Transcript of ${session.session.slice(0, 8)}`,
      on: { click: () => this.#open(session) },
    }, "Transcript");
    return element("tr", {},
      element("td", {}, element("code", { title: session.session }, session.session.slice(0, 8))),
      element("td", {}, session.user ?? "anonymous"), element("td", {}, session.mode),
      element("td", {}, state(session)), element("td", {}, formatTime(session.beganAt)),
      element("td", {}, formatTime(session.lastAt)), element("td", { class: "number" }, session.turns),
      element("td", {}, open));
  }

  async #open(session) {
    const lines = element("ol", { class: "lines", tabindex: "0", "aria-label": "Transcript" });
    const status = element("p", { class: "hint", role: "status" });
    replace(this.#dialog,
      element("div", { class: "stack" },
        element("div", { class: "row spread" },
          element("h2", { id: "transcript-title" }, "Transcript ", element("code", {}, session.session.slice(0, 8))),
          element("button", { type: "button", class: "plain small", on: { click: () => this.#dialog.close() } }, "Close")),
        element("p", { class: "hint" }, `${session.user ?? "anonymous"}, ${session.mode}, started ${formatTime(session.beganAt)}`),
        lines, status,
        element("div", { class: "row end" }, Object.entries(FORMATS).map(([format, [label]]) =>
          element("button", { type: "button", class: "small", on: { click: () => this.#save(session, format, status) } },
            `Save as ${label}`)))));
    this.#dialog.showModal();
    try {
      const transcript = await this.#api.get(`sessions/${session.session}/transcript`);
      replace(lines, transcript.lines.map(line));
      if (!transcript.lines.length) status.textContent = "No messages.";
    } catch (error) {
      showError(error, status);
    }
  }

  /** Downloads with a request, because a link cannot carry the token. */
  async #save(session, format, status) {
    const url = hostUrl(`sessions/${session.session}/transcript`);
    url.searchParams.set("format", format);
    try {
      const response = await this.#api.request(url);
      const objectUrl = URL.createObjectURL(await response.blob());
      const link = element("a", { href: objectUrl, download: `session-${session.session}.${FORMATS[format][1]}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(objectUrl), 10_000);
    } catch (error) {
      showError(error, status);
    }
  }
}

function showError(error, target) {
  if (!(error instanceof ApiError)) throw error;
  target.textContent = error.message;
}

function state(session) {
  const label = session.state.replaceAll("_", " ");
  if (!session.live) return element("span", { class: "tag" }, STORED_STATES[session.state] ?? label);
  return element("span", { class: `tag ${session.connected ? "good" : "warn"}`, title: `on ${session.host}` }, session.connected ? label : `${label}, no client connected`);
}

const STORED_STATES = { open: "can be resumed", ended: "ended", expired: "transcript only" };

const EVENT_TEXTS = {
  tool_start: ({ tool, arguments: args }) => `called ${tool} ${args}`,
  tool_progress: ({ tool, message }) => `${tool}: ${message}`,
  tool_complete: ({ tool, durationMs }) => `${tool} finished after ${Math.round(durationMs)} ms`,
  tool_error: ({ tool, message, errorType, state, expired, inDoubt }) => {
    if (errorType === "CONFIRMATION_REQUIRED") {
      return `${tool} ${expired ? "was not approved in time" : inDoubt ? "is in doubt" : "is waiting for approval"}`;
    }
    return OUTCOME_TEXTS[state] ? `${tool}: ${OUTCOME_TEXTS[state]}` : `${tool} failed: ${message}`;
  },
  confirmation_required: ({ preview, expired, inDoubt }) =>
    `asked for approval: ${preview}${expired ? " (expired)" : inDoubt ? " (in doubt)" : ""}`,
  confirmation_settled: ({ tool, approved }) => `${approved ? "approved" : "declined"} ${tool}`,
  notification: ({ text }) => text,
};

function line(event) {
  const time = element("time", { class: "hint" }, new Date(event.at * 1000).toLocaleTimeString());
  if (event.type === "message") {
    return element("li", { class: event.speaker }, element("span", { class: "row spread" },
      element("strong", {}, event.speaker), time),
    element("p", {}, event.text, event.interrupted ? element("span", { class: "hint" }, " (interrupted)") : null));
  }
  const text = EVENT_TEXTS[event.type]?.(event) ?? formatValue(event.fields ?? event.name ?? event.type);
  return element("li", { class: "event" }, element("span", { class: "row spread" }, element("span", {}, text), time));
}
