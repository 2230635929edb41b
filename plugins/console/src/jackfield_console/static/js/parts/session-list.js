// The table of conversations in the operations view.

import { element, replace } from "../dom.js";
import { formatTime } from "./format.js";
import { showTranscript } from "./transcript.js";

/** A table of sessions; a click opens a transcript. */
export class SessionList {
  #api;
  #rows = element("tbody");
  #note = element("p", { class: "hint" });

  constructor(api) {
    this.#api = api;
    const headers = ["Session", "User", "Mode", "State", "Started", "Last message", "Turns", ""];
    this.root = element("section", { class: "card stack", "aria-labelledby": "sessions-title" },
      element("h2", { id: "sessions-title" }, "Conversations"), this.#note,
      element("div", { class: "scroll", tabindex: "0" }, element("table", {},
        element("thead", {}, element("tr", {}, headers.map((header) =>
          element(header ? "th" : "td", header ? { scope: "col", class: header === "Turns" ? "number" : null } : {}, header)))),
        this.#rows)));
  }

  async refresh() {
    const { allUsers, complete, sessions } = await this.#api.get("sessions", { params: { limit: 50 } });
    const shown = allUsers
      ? `${complete ? "The" : `The latest ${sessions.length}`} conversations of all users.`
      : `Your ${complete ? "" : `latest ${sessions.length} `}conversations.`;
    this.#note.textContent = sessions.length
      ? `${shown} Transcripts are kept for seven days.` : "There are no conversations yet. Start one in the chat view.";
    // Not updated while it has the focus: a rebuilt button would lose it.
    if (this.#rows.contains(document.activeElement)) return;
    replace(this.#rows, sessions.map((each) => this.#row(each)));
  }

  #row(session) {
    const open = element("button", {
      type: "button", class: "small", "aria-label": `Transcript of ${session.session.slice(0, 8)}`,
      on: { click: () => showTranscript(this.#api, session) },
    }, "Transcript");
    return element("tr", {},
      element("td", {}, element("code", { title: session.session }, session.session.slice(0, 8))),
      element("td", {}, session.user ?? "anonymous"), element("td", {}, session.mode),
      element("td", {}, state(session)), element("td", {}, formatTime(session.beganAt)),
      element("td", {}, formatTime(session.lastAt)), element("td", { class: "number" }, session.turns),
      element("td", {}, open));
  }
}

function state(session) {
  const label = session.state.replaceAll("_", " ");
  if (!session.live) return element("span", { class: "tag" }, STORED_STATES[session.state] ?? label);
  return element("span", { class: `tag ${session.connected ? "good" : "warn"}`, title: `on ${session.host}` }, session.connected ? label : `${label}, no client connected`);
}

const STORED_STATES = { open: "can be resumed", ended: "ended", expired: "transcript only" };
