// A session over a WebSocket: reconnects automatically, and emits every event once.

import { hostUrl } from "./api.js";
import { CLOSE_CODES, PROTOCOL } from "./protocol.js";

const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8000;

/** How many audio frames are buffered while reconnecting: 8 seconds in frames of 20 milliseconds. */
const MAX_FRAMES = 400;

/** What the user reads when the socket does not reconnect. */
const CLOSE_TEXTS = {
  [CLOSE_CODES.ended]: "The session has ended.",
  [CLOSE_CODES.idle]: "The connection was closed because the session was idle.",
  [CLOSE_CODES.maxDuration]: "The session reached its maximum duration.",
  [CLOSE_CODES.invalidMessage]: "The page and the host use different protocol versions. Reload the page.",
  [CLOSE_CODES.banned]: "You are temporarily banned.",
  [CLOSE_CODES.replaced]: "The session is open in another window.",
  [CLOSE_CODES.expiredToken]: "Your access token has expired. Sign in with a new one.",
  [CLOSE_CODES.conversationsOff]: "Conversations are off because this host has no model provider.",
};

/**
 * One session. Events: `message` (detail: a message from the host), `audio` (detail: ArrayBuffer), `state`, `session`
 * (detail: the first message), `banned` (detail: message, retryAfter), `full` (detail: message), `closed` (detail:
 * code, text).
 *
 * `state` is one of closed, connecting, open, reconnecting.
 */
export class SessionSocket extends EventTarget {
  state = "closed";
  /** The first message from the host: provider, tools, user. */
  session = null;
  /** Texts and forms of the user that the host has not echoed yet. */
  unacknowledged = [];

  #api;
  #mode;
  #storageKey;
  #webSocket = null;
  #lastEvent = 0;
  #delay = FIRST_DELAY_MS;
  #timer = null;
  #frames = [];
  #handover = null;
  /** The name of the model that the user chose for new sessions. */
  #model = null;
  /** Whether the socket should be connected. */
  #shouldConnect = false;
  #wasOpened = false;
  #givenToken = null;
  #rejection = null;
  /** Whether a new token was requested for a session that the host does not know. */
  #renewed = false;

  /** The token of a text session is stored for this tab, so that a reload resumes the session. */
  constructor(api, mode) {
    super();
    this.#api = api;
    this.#mode = mode;
    this.#storageKey = mode === "text" ? "jackfield.session" : null;
    addEventListener("online", () => this.state === "reconnecting" && this.retry());
  }

  get mode() {
    return this.#mode;
  }

  get token() {
    return this.session?.token ?? this.#givenToken ?? (this.#storageKey && sessionStorage.getItem(this.#storageKey));
  }

  /**
   * Connects, unless it is already connected: to an existing session by its `token`, or to a new one. With `handover`,
   * the new session takes over the pending request of the session with that token; `model` is that of a new session.
   */
  open({ token = null, handover = null, model = null } = {}) {
    if (this.#shouldConnect) return;
    this.#shouldConnect = true;
    this.#wasOpened = true;
    this.#givenToken = token;
    this.#handover = handover;
    this.#model = model;
    this.#connect();
  }

  /** Connects now: a ban has ended, there is a token, or the user asks for it. */
  retry() {
    if (!this.#wasOpened) return;
    this.#shouldConnect = true;
    clearTimeout(this.#timer);
    if (!this.#webSocket) this.#connect();
  }

  /** Leaves the session and opens another one by its `token`, or a new one with a `model`. With `end`, it ends. */
  leave({ token = null, model = null, end = false } = {}) {
    if (end && this.state === "open") this.send({ type: "end" });
    this.#disconnect();
    this.#forgetSession();
    this.unacknowledged = [];
    this.open({ token, model });
  }

  /** Ends the session. */
  end() {
    if (this.state === "open") this.send({ type: "end" });
    this.#shouldConnect = false;
    if (this.state !== "open") this.#close(CLOSE_CODES.ended);
  }

  /** Sends a text of the user, now or after reconnecting. */
  sendText(text) {
    this.#deliver({ type: "text", text });
  }

  /** Sends a completed form, now or after reconnecting. */
  submitForm(formId, values) {
    this.#deliver({ type: "form_submit", formId, values });
  }

  #deliver(message) {
    // The host accepts each id once, however often the message is sent.
    const sent = { ...message, clientId: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}` };
    this.unacknowledged.push(sent);
    if (!this.send(sent)) this.retry();
  }

  /** Sends a message; false when there is no connection. */
  send(message) {
    if (this.state !== "open") return false;
    this.#webSocket.send(JSON.stringify(message));
    return true;
  }

  /** Sends an audio frame; while reconnecting, the last few seconds are buffered. */
  sendAudio(frame) {
    if (this.state === "open") {
      this.#webSocket.send(frame);
    } else if (this.state === "reconnecting") {
      this.#frames.push(frame);
      if (this.#frames.length > MAX_FRAMES) this.#frames.shift();
    }
  }

  #connect() {
    const url = hostUrl(`ws/${this.#mode}`);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const protocols = [PROTOCOL];
    if (this.#api.token) protocols.push(`jackfield.token.${base64url(this.#api.token)}`);
    this.#setState(this.session ? "reconnecting" : "connecting");
    this.#rejection = null;
    const webSocket = new WebSocket(url, protocols);
    webSocket.binaryType = "arraybuffer";
    let opened = false;
    webSocket.addEventListener("open", () => {
      opened = true;
      webSocket.send(JSON.stringify(this.#firstMessage()));
    });
    webSocket.addEventListener("message", ({ data }) => webSocket === this.#webSocket && this.#receive(data));
    webSocket.addEventListener("close", ({ code }) => webSocket === this.#webSocket && this.#onClose(code, opened));
    this.#webSocket = webSocket;
  }

  #firstMessage() {
    const locale = {
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      language: navigator.language,
      // In voice, the assistant asks in words.
      forms: this.#mode === "text",
    };
    if (this.token) return { type: "resume", token: this.token, lastEvent: this.#lastEvent, ...locale };
    return {
      type: "start", ...(this.#handover && { handover: this.#handover }), ...(this.#model && { model: this.#model }), ...locale,
    };
  }

  #receive(data) {
    if (typeof data !== "string") {
      this.#emit("audio", data);
      return;
    }
    const message = JSON.parse(data);
    if (message.id !== undefined) {
      if (message.id <= this.#lastEvent) return;
      this.#lastEvent = message.id;
    }
    if (message.type === "session") this.#onSession(message);
    else if (message.type === "error" && message.code === "too_many_sessions") this.#emit("full", message);
    else if (message.type === "error" && message.retryAfter !== undefined) this.#rejection = message;
    else if (message.type === "message") this.#acknowledge((sent) => sent.clientId === message.clientId);
    // A form that was refused or closed is not sent again; one with faults is, when the user has corrected it.
    else if (["error", "form_closed"].includes(message.type) && message.formId) {
      this.#acknowledge((sent) => sent.formId === message.formId);
    }
    // Messages sent just before the connection broke may have arrived: then their echo was among the missed events.
    else if (message.type === "caught_up") this.#resend();
    this.#emit("message", message);
  }

  #onSession(message) {
    this.session = message;
    this.#renewed = false;
    this.#delay = FIRST_DELAY_MS;
    this.#handover = null;
    if (this.#storageKey) sessionStorage.setItem(this.#storageKey, message.token);
    this.#setState("open");
    this.#emit("session", message);
    for (const frame of this.#frames.splice(0)) this.#webSocket.send(frame);
  }

  /** Asks for a new token: the conversation may have been continued elsewhere, which renews it. */
  async #renewToken() {
    this.#renewed = true;
    const id = this.token.split(".")[0];
    const lastEvent = this.#lastEvent;
    const issued = await this.#api.post(`sessions/${id}/token`, {}, { session: null }).catch(() => null);
    if (!this.#shouldConnect || this.#webSocket) return;
    if (issued) {
      this.#forgetSession();
      this.#givenToken = issued.token;
      this.#lastEvent = lastEvent;
    }
    this.#connect();
  }

  #acknowledge(matches) {
    this.unacknowledged = this.unacknowledged.filter((sent) => !matches(sent));
  }

  #resend() {
    for (const sent of this.unacknowledged) this.send(sent);
  }

  #onClose(code, opened) {
    this.#webSocket = null;
    if (code === CLOSE_CODES.unknownSession && this.#mode === "text" && !this.#renewed && this.token) {
      this.#renewToken();
    } else if (code === CLOSE_CODES.unknownSession) {
      // Unacknowledged messages are sent in a new session.
      this.#forgetSession();
      this.#emit("message", { type: "reset", reason: "unknown" });
      if (this.#mode === "text" && this.#shouldConnect) this.#connect();
      else this.#close(code);
    } else if (code === CLOSE_CODES.banned) {
      const detail = this.#rejection ?? { message: CLOSE_TEXTS[code], retryAfter: 60 };
      this.#close(code);
      this.#emit("banned", detail);
    } else if (code === CLOSE_CODES.tooManySessions && this.#mode === "voice") {
      // A call does not wait with an open microphone until other sessions end.
      this.#close(code);
    } else if (code in CLOSE_TEXTS) {
      if (code === CLOSE_CODES.ended || code === CLOSE_CODES.maxDuration) this.#forgetSession();
      this.#close(code);
    } else if (!this.#shouldConnect) {
      this.#close(CLOSE_CODES.ended);
    } else {
      this.#reconnect(opened);
    }
  }

  #reconnect(opened) {
    this.#setState(this.session ? "reconnecting" : "connecting");
    const wait = this.#rejection ? this.#rejection.retryAfter * 1000 : this.#delay * (0.5 + Math.random());
    this.#delay = Math.min(this.#delay * 2, MAX_DELAY_MS);
    this.#timer = setTimeout(async () => {
      // A browser does not say why a handshake was refused; over HTTP the host does.
      if (!opened && !(await this.#isAdmitted())) return;
      if (this.#shouldConnect && !this.#webSocket) this.#connect();
    }, wait);
  }

  async #isAdmitted() {
    try {
      await this.#api.get("status", { session: null });
    } catch (error) {
      if (error.status === 401 || error.code === "banned") {
        this.#close(0);
        return false;
      }
    }
    return true;
  }

  #close(code) {
    this.#shouldConnect = false;
    this.#frames = [];
    this.#setState("closed");
    this.#emit("closed", { code, text: CLOSE_TEXTS[code] ?? "" });
  }

  #disconnect() {
    clearTimeout(this.#timer);
    const webSocket = this.#webSocket;
    this.#webSocket = null;
    webSocket?.close(1000);
    this.#shouldConnect = false;
  }

  #forgetSession() {
    this.session = null;
    this.#givenToken = null;
    this.#lastEvent = 0;
    if (this.#storageKey) sessionStorage.removeItem(this.#storageKey);
  }

  #setState(state) {
    if (state === this.state) return;
    this.state = state;
    this.#emit("state", state);
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function base64url(text) {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
