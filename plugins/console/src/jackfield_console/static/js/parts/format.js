// How states, outcomes and errors read.

/** The states of a session. */
export const STATES = {
  initializing: "connecting",
  ready: "ready",
  listening: "listening",
  processing: "thinking",
  speaking: "speaking",
  executing_tool: "using a tool",
  reconnecting: "reconnecting",
  terminated: "ended",
  full: "waiting for a free session",
  banned: "banned",
};

/** The same in a text session. */
export const TEXT_STATES = { ...STATES, listening: "ready", speaking: "writing" };

/** The states of a call that did not simply fail. */
export const OUTCOMES = {
  running: "Still running.",
  declined: "Declined: it was not run.",
  expired: "Expired: nobody decided in time, and it was not run.",
  in_doubt: "In doubt: it may or may not have taken effect.",
  never_run: "Not run: the host stopped before it took effect.",
  unknown: "Not known now: the host's store is unavailable.",
};

/** Why a call could not start, and what the user can do. */
export function whyNoCall(error) {
  const sentences = {
    NotAllowedError: ["The browser denied access to the microphone.", "Allow it in the browser's settings for this page, then try again."],
    NotFoundError: ["No microphone was found.", "Connect one, then try again."],
    NotReadableError: ["The microphone is in use by another program.", "Close that, then try again."],
  };
  if (!navigator.mediaDevices) return ["The microphone needs a secure connection.", "Open this page over https, or on localhost."];
  return sentences[error.name] ?? ["The call could not start.", error.message ?? ""];
}
