// The transcript of a conversation, in a dialog that can save it.

import { ApiError, hostUrl } from "../api.js";
import { element, replace } from "../dom.js";
import { formatTime, formatValue } from "./format.js";

const FORMATS = { markdown: ["Markdown", "md"], jsonl: ["JSON lines", "jsonl"] };

/** Shows the transcript of a session, as `GET /sessions` describes it, and offers to save it. */
export async function showTranscript(api, session) {
  const lines = element("ol", { class: "lines", tabindex: "0", "aria-label": "Transcript" });
  const status = element("p", { class: "hint", role: "status" });
  const dialog = element("dialog", { class: "transcript", "aria-labelledby": "transcript-title", on: { close: () => dialog.remove() } },
    element("div", { class: "stack" },
      element("div", { class: "row spread nowrap" },
        element("h2", { id: "transcript-title" }, session.title ?? "Transcript"),
        element("button", { type: "button", class: "plain small", on: { click: () => dialog.close() } }, "Close")),
      element("p", { class: "hint" }, `${session.user ?? "anonymous"}, ${session.mode}, started ${formatTime(session.beganAt)}, `,
        element("code", { title: session.session }, session.session.slice(0, 8))),
      lines, status,
      element("div", { class: "row end" }, Object.entries(FORMATS).map(([format, [label]]) =>
        element("button", { type: "button", class: "small", on: { click: () => save(api, session, format, status) } },
          `Save as ${label}`)))));
  document.body.append(dialog);
  dialog.showModal();
  try {
    const transcript = await api.get(`sessions/${session.session}/transcript`, { session: null });
    replace(lines, transcript.lines.map(line));
    if (!transcript.lines.length) status.textContent = "No messages.";
  } catch (error) {
    showError(error, status);
  }
}

/** Downloads with a request, because a link cannot carry the token. */
async function save(api, session, format, status) {
  const url = hostUrl(`sessions/${session.session}/transcript`);
  url.searchParams.set("format", format);
  try {
    const response = await api.request(url, { session: null });
    const objectUrl = URL.createObjectURL(await response.blob());
    element("a", { href: objectUrl, download: `session-${session.session}.${FORMATS[format][1]}` }).click();
    setTimeout(() => URL.revokeObjectURL(objectUrl), 10_000);
  } catch (error) {
    showError(error, status);
  }
}

function showError(error, target) {
  if (!(error instanceof ApiError)) throw error;
  target.textContent = error.message;
}

/** The outcomes of calls that did not simply fail, after the name of the tool. */
const OUTCOMES = {
  running: "is still running", declined: "was declined", expired: "was not approved in time",
  in_doubt: "is in doubt: it may or may not have taken effect",
  never_run: "was not run: the host stopped before the call took effect", unknown: "has an unknown outcome",
};

const EVENT_TEXTS = {
  tool_start: ({ tool, arguments: args }) => `${tool} was called: ${args}`,
  tool_progress: ({ tool, message }) => `${tool}: ${message}`,
  tool_complete: ({ tool, durationMs }) => `${tool} finished after ${Math.round(durationMs)} ms`,
  tool_error: ({ tool, message, errorType, state, expired, inDoubt }) => {
    if (errorType === "CONFIRMATION_REQUIRED") {
      return `${tool} ${expired ? "was not approved in time" : inDoubt ? "is in doubt" : "is waiting for approval"}`;
    }
    return `${tool} ${OUTCOMES[state] ?? `failed: ${message}`}`;
  },
  confirmation_required: ({ preview, expired, inDoubt }) =>
    `approval was requested: ${preview}${expired ? " (expired)" : inDoubt ? " (in doubt)" : ""}`,
  confirmation_settled: ({ tool, approved }) => `the user ${approved ? "approved" : "declined"} ${tool}`,
  form_request: ({ tool }) => `the form for ${tool} was shown`,
  form_closed: ({ submitted }) => (submitted ? "the form was submitted" : "the form was closed"),
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
