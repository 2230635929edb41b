// Texts for states, outcomes and errors, and the format of values, times and numbers.

/** The labels of session states. */
export const STATE_LABELS = {
  initializing: "connecting",
  ready: "ready",
  listening: "listening",
  processing: "thinking",
  speaking: "speaking",
  executing_tool: "using a tool",
  waiting: "waiting for you",
  reconnecting: "reconnecting",
  terminated: "ended",
  full: "waiting for another session to end",
  banned: "banned",
  off: "off",
};

/** The labels in a text session. */
export const TEXT_STATE_LABELS = { ...STATE_LABELS, listening: "ready", speaking: "writing" };

/** The outcomes of calls that did not simply fail, by state. */
export const OUTCOME_TEXTS = {
  running: "Still running.",
  declined: "Declined: the call was not run.",
  expired: "Expired: the call was not confirmed in time, so it was not run.",
  in_doubt: "In doubt: the call may or may not have taken effect.",
  never_run: "Not run: the host stopped before the call took effect.",
  unknown: "Outcome unknown: the host cannot reach its store. Check again when the store is available.",
};

/** What became of the call that should have done what the assistant claims, after "the call"; without a call: `no_call`. */
export const CLAIM_STATES = {
  waiting: "is waiting for approval", running: "is still running", failed: "failed", declined: "was declined",
  expired: "was not approved in time", never_run: "did not run", in_doubt: "may or may not have taken effect",
  unknown: "has an unknown outcome",
};

/** Explains why a voice call could not start, and what the user can do. */
export function explainCallError(error) {
  const texts = {
    NotAllowedError: ["The browser denied access to the microphone.", "Allow access in the browser's settings for this page, then try again."],
    NotFoundError: ["No microphone was found.", "Connect one, then try again."],
    NotReadableError: ["The microphone is in use by another program.", "Close that program, then try again."],
  };
  if (!navigator.mediaDevices) return ["The microphone requires a secure connection.", "Open this page over HTTPS or on localhost."];
  return texts[error.name] ?? ["The call could not be started.", error.message ?? ""];
}

/** Formats a value: text as it is, everything else as indented JSON. */
export function formatValue(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Indents JSON text; text that is not JSON stays as it is. */
export function formatJson(text) {
  try {
    return formatValue(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Formats milliseconds as a duration. */
export function formatDuration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return formatClock(ms / 1000);
}

/** Formats seconds as `m:ss` or `h:mm:ss`. */
export function formatClock(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** Formats seconds since 1970 as a time, with the date unless it is today. */
export function formatTime(seconds) {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}

/** Formats a number in short form. */
export function formatNumber(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)}k`;
  if (size >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  if (size >= 100 || isWhole(value)) return String(Math.round(value));
  return value.toFixed(1);
}

/** Formats a count with its noun. */
export function formatCount(number, noun) {
  return `${formatNumber(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Formats numbers of one column: all with a decimal place, or none. */
export function formatColumn(...values) {
  const isShort = values.some((each) => Math.abs(each) >= 100) || values.every(isWhole);
  return values.map((each) => (isShort ? formatNumber(Math.round(each)) : each.toFixed(1)));
}

function isWhole(value) {
  return Number.isInteger(Math.round(value * 10) / 10);
}
