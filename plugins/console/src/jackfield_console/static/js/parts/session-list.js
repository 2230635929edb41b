// The list of sessions, and the transcript of one.

import { ApiError, address } from "../api.js";
import { element, moment, readable, replace } from "../dom.js";
import { OUTCOMES } from "./format.js";

const FORMS = { markdown: ["Markdown", "md"], jsonl: ["JSON lines", "jsonl"] };

/** A table of sessions; a click opens a transcript. */
export class SessionList {
  #api;
  #rows = element("tbody");
  #note = element("p", { class: "hint" });
  #dialog = element("dialog", { class: "transcript", "aria-labelledby": "transcript-title" });

  constructor(api) {
    this.#api = api;
    const heads = ["Session", "User", "Mode", "State", "Began", "Last said", "Turns", ""];
    this.root = element("section", { class: "card stack", "aria-labelledby": "sessions-title" },
      element("h2", { id: "sessions-title" }, "Conversations"), this.#note,
      element("div", { class: "scroll", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, heads.map((head) =>
          element(head ? "th" : "td", head ? { scope: "col", class: head === "Turns" ? "number" : null } : {}, head)))),
        this.#rows)),
      this.#dialog);
  }

  async refresh() {
    const { allUsers, complete, sessions } = await this.#api.get("sessions", { params: { limit: 50 } });
    const whose = allUsers ? "Of all users" : "Your own";
    const words = complete ? "" : `, the latest ${sessions.length}`;
    this.#note.textContent = sessions.length
      ? `${whose}${words}. Transcripts are kept for 7 days.` : "No conversations yet. Start one under Chat.";
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
      element("td", {}, session.user ?? "nobody"), element("td", {}, session.mode),
      element("td", {}, state(session)), element("td", {}, moment(session.beganAt)),
      element("td", {}, moment(session.lastAt)), element("td", { class: "number" }, session.turns),
      element("td", {}, open));
  }

  async #open(session) {
    const lines = element("ol", { class: "lines", tabindex: "0", "aria-label": "Transcript" });
    const said = element("p", { class: "hint", role: "status" });
    replace(this.#dialog,
      element("div", { class: "stack" },
        element("div", { class: "row spread" },
          element("h2", { id: "transcript-title" }, "Transcript ", element("code", {}, session.session.slice(0, 8))),
          element("button", { type: "button", class: "plain small", on: { click: () => this.#dialog.close() } }, "Close")),
        element("p", { class: "hint" }, `${session.user ?? "nobody"}, ${session.mode}, began ${moment(session.beganAt)}`),
        lines, said,
        element("div", { class: "row end" }, Object.entries(FORMS).map(([form, [words]]) =>
          element("button", { type: "button", class: "small", on: { click: () => this.#save(session, form, said) } },
            `Save as ${words}`)))));
    this.#dialog.showModal();
    try {
      const told = await this.#api.get(`sessions/${session.session}/transcript`);
      replace(lines, told.lines.map(line));
      if (!told.lines.length) said.textContent = "No messages.";
    } catch (error) {
      fail(error, said);
    }
  }

  /** Downloads with a request, because a link cannot carry the token. */
  async #save(session, form, said) {
    const url = address(`sessions/${session.session}/transcript`);
    url.searchParams.set("format", form);
    try {
      const answer = await this.#api.request(url);
      const place = URL.createObjectURL(await answer.blob());
      const link = element("a", { href: place, download: `session-${session.session}.${FORMS[form][1]}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(place), 10_000);
    } catch (error) {
      fail(error, said);
    }
  }
}

function fail(error, place) {
  if (!(error instanceof ApiError)) throw error;
  place.textContent = error.message;
}

function state(session) {
  const words = session.state.replaceAll("_", " ");
  if (!session.live) return element("span", { class: "tag" }, RESTS[session.state] ?? words);
  return element("span", { class: `tag ${session.connected ? "good" : "warn"}` }, session.connected ? words : `${words}, nobody connected`);
}

const RESTS = { open: "can be resumed", ended: "over", expired: "transcript only" };

const TOLD = {
  tool_start: ({ tool, arguments: given }) => `calls ${tool} ${given}`,
  tool_progress: ({ tool, message }) => `${tool}: ${message}`,
  tool_complete: ({ tool, durationMs }) => `${tool} is done after ${Math.round(durationMs)} ms`,
  tool_error: ({ tool, message, errorType, state, expired, inDoubt }) => {
    if (errorType === "CONFIRMATION_REQUIRED") {
      return `${tool} ${expired ? "was not approved in time" : inDoubt ? "is in doubt" : "waits for approval"}`;
    }
    return OUTCOMES[state] ? `${tool}: ${OUTCOMES[state]}` : `${tool} failed: ${message}`;
  },
  confirmation_required: ({ preview, expired, inDoubt }) =>
    `asks: ${preview}${expired ? " (expired)" : inDoubt ? " (in doubt)" : ""}`,
  confirmation_settled: ({ tool, approved }) => `${approved ? "approved" : "declined"} ${tool}`,
  notification: ({ text }) => text,
};

function line(told) {
  const time = element("time", { class: "hint" }, new Date(told.at * 1000).toLocaleTimeString());
  if (told.type === "message") {
    return element("li", { class: told.speaker }, element("span", { class: "row spread" },
      element("strong", {}, told.speaker), time),
    element("p", {}, told.text, told.interrupted ? element("span", { class: "hint" }, " (interrupted)") : null));
  }
  const words = TOLD[told.type]?.(told) ?? readable(told.fields ?? told.name ?? told.type);
  return element("li", { class: "event" }, element("span", { class: "row spread" }, element("span", {}, words), time));
}
