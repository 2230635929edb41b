// The WebSocket protocol: message types with their members, close codes and limits.
// Generated from jackfield.protocol by `nox -s protocol_js`; do not edit.

export const PROTOCOL = "jackfield.1";
export const MAX_TEXT_LENGTH = 8000;
export const MAX_CONTEXT_LENGTH = 4000;

/** The members of each message from the client, besides `type`. */
export const CLIENT_MESSAGES = {
  start: ["timeZone", "language", "forms", "handover", "model"],
  resume: ["timeZone", "language", "forms", "token", "lastEvent"],
  text: ["text", "clientId"],
  interrupt: [],
  playback: ["item", "ms"],
  approve: ["token"],
  decline: ["token"],
  form_submit: ["formId", "values", "clientId"],
  form_dismiss: ["formId"],
  cancel: ["callId"],
  context: ["text", "priority"],
  end: [],
};

/** The members of each message from the host, besides `type`. */
export const HOST_MESSAGES = {
  session: ["protocol", "session", "token", "mode", "user", "provider", "providerReason", "providerHints", "registry", "tools", "resumed", "state", "lastEvent", "partial", "model", "models", "now"],
  reset: ["reason"],
  caught_up: [],
  text_delta: ["answer", "offset", "text"],
  audio: ["item"],
  transcript: ["speaker", "text", "final", "item"],
  speech_started: [],
  speech_stopped: [],
  turn_complete: [],
  interrupted: [],
  going_away: ["reason"],
  error: ["code", "message", "suggestion", "retryAfter", "formId", "faults"],
  tool_decisions: ["tool", "callId", "decisions"],
  message: ["id", "at", "speaker", "text", "turn", "answer", "interrupted", "clientId", "formId", "unbackedClaims"],
  tool_start: ["id", "at", "tool", "callId", "description", "arguments", "budgetMs"],
  tool_progress: ["id", "at", "tool", "callId", "message", "fraction", "partial", "data", "truncated"],
  tool_complete: ["id", "at", "tool", "callId", "durationMs", "data"],
  tool_error: ["id", "at", "tool", "callId", "durationMs", "errorType", "message", "suggestion", "recoverable", "state"],
  confirmation_required: ["id", "at", "confirmation", "tool", "callId", "preview", "args", "expiresAt", "token"],
  confirmation_settled: ["id", "at", "tool", "callId", "approved"],
  form_request: ["id", "at", "formId", "tool", "values", "description", "parameters", "askedBy", "callId"],
  form_closed: ["id", "at", "formId", "submitted", "values"],
  session_status: ["id", "at", "state", "active", "tokensUsed", "ageSeconds"],
  notification: ["id", "at", "code", "text", "suggestion", "registry", "tools"],
  custom: ["id", "at", "name", "fields"],
};

/** Why the host closes the WebSocket. */
export const CLOSE_CODES = {
  ended: 4000,
  idle: 4001,
  maxDuration: 4002,
  slowClient: 4003,
  invalidMessage: 4004,
  banned: 4005,
  replaced: 4006,
  unknownSession: 4007,
  tooManySessions: 4008,
  providerUnavailable: 4009,
  expiredToken: 4010,
  abandoned: 4011,
  conversationsOff: 4012,
  restarting: 1012,
  internal: 1011,
};
