// States, outcomes and troubles in words.

/** The states of a session in words. */
export const WORDS = {
  initializing: "connecting",
  ready: "ready",
  listening: "listening",
  processing: "thinking",
  speaking: "speaking",
  executing_tool: "using a tool",
  reconnecting: "reconnecting",
  terminated: "ended",
  full: "waiting for a place",
  banned: "banned",
};

/** The same where nobody speaks aloud. */
export const WORDS_IN_TEXT = { ...WORDS, listening: "ready", speaking: "writing" };

/** What the states of a call that did not simply fail mean to its user. */
export const OUTCOMES = {
  running: "Still running.",
  declined: "Declined: it was not run.",
  expired: "Expired: nobody decided in time, and it was not run.",
  in_doubt: "In doubt: it may or may not have taken effect.",
  never_run: "Not run: the host stopped before it took effect.",
  unknown: "Not known now: the host's store is unavailable.",
};

/** Why there is no call, and what the user can do. */
export function whyNoCall(error) {
  const sentences = {
    NotAllowedError: ["The microphone may not be used.", "Allow it in the browser's settings for this page, then try again."],
    NotFoundError: ["There is no microphone.", "Plug one in, then try again."],
    NotReadableError: ["The microphone is in use by another program.", "Close that, then try again."],
  };
  if (!navigator.mediaDevices) return ["The microphone needs a secure address.", "Open this page by https, or as localhost."];
  return sentences[error.name] ?? ["The call could not be made.", error.message ?? ""];
}
