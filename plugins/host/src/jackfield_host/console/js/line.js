// A session over a WebSocket: begun, taken up again after every kind of loss, and nothing told twice.

import { address } from "./api.js";

const PROTOCOL = "jackfield.1";
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 8000;

/** So much of what was spoken is kept while there is no connection: 8 seconds of frames of 20 milliseconds. */
const MOST_FRAMES = 400;

export const CLOSED = {
  ended: 4000, idle: 4001, tooLong: 4002, misunderstood: 4004, banned: 4005, replaced: 4006, unknown: 4007,
  full: 4008, expired: 4010,
};

/** What the user reads when the line is not taken up again by itself. */
const SENTENCES = {
  [CLOSED.ended]: "The conversation has ended.",
  [CLOSED.idle]: "The line was closed because nothing was said for a while.",
  [CLOSED.tooLong]: "The conversation has lasted as long as one may.",
  [CLOSED.misunderstood]: "This page and the host do not understand each other. Load the page again.",
  [CLOSED.banned]: "You are banned for a while.",
  [CLOSED.replaced]: "The conversation goes on in another window.",
  [CLOSED.expired]: "Your token has expired.",
};

/**
 * One session. Events: `message` (detail: a message of the host), `sound` (detail: ArrayBuffer), `state`, `session`
 * (detail: the first message), `banned` (detail: message, retryAfter), `full` (detail: message), `closed` (detail: code,
 * sentence).
 *
 * `state` is one of closed, connecting, open, reconnecting.
 */
export class Line extends EventTarget {
  state = "closed";
  /** The first message of the host: provider, tools, user. */
  session = null;
  /** Texts and forms of the user that the host has not echoed yet. */
  unsaid = [];

  #api;
  #mode;
  #kept;
  #socket = null;
  #lastEvent = 0;
  #pause = FIRST_PAUSE_MS;
  #timer = null;
  #frames = [];
  #handover = null;
  #wanted = false;
  #begun = false;
  #given = null;
  #trouble = null;

  /** A text session is kept for this tab, so that a page that is loaded again goes on with it. */
  constructor(api, mode) {
    super();
    this.#api = api;
    this.#mode = mode;
    this.#kept = mode === "text" ? "jackfield.session" : null;
    addEventListener("online", () => this.state === "reconnecting" && this.retry());
  }

  get mode() {
    return this.#mode;
  }

  get token() {
    return this.session?.token ?? this.#given ?? (this.#kept && sessionStorage.getItem(this.#kept));
  }

  /**
   * Opens the line, unless it is open: a session that exists by its `token`, or a new one, which with `handover`
   * takes up the request of the session with that token.
   */
  open({ token = null, handover = null } = {}) {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#begun = true;
    this.#given = token;
    this.#handover = handover;
    this.#connect();
  }

  /** Tries again now: a ban has ended, there is a token, or the user asks. */
  retry() {
    if (!this.#begun) return;
    this.#wanted = true;
    clearTimeout(this.#timer);
    if (!this.#socket) this.#connect();
  }

  /** Begins a conversation anew; the one there was is over. */
  startOver() {
    if (this.state === "open") this.send({ type: "end" });
    this.#drop();
    this.#forget();
    this.open();
  }

  /** Hangs up for good. */
  end() {
    if (this.state === "open") this.send({ type: "end" });
    this.#wanted = false;
    if (this.state !== "open") this.#over(CLOSED.ended);
  }

  /** Says something; while there is no connection it waits for one. */
  say(text) {
    this.#say({ type: "text", text });
  }

  /** Sends a completed form; while there is no connection it waits for one. */
  submitForm(formId, values) {
    this.#say({ type: "form_submit", formId, values });
  }

  #say(message) {
    // Under a name of its own the host takes it once, however often it is sent.
    const said = { ...message, clientId: `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}` };
    this.unsaid.push(said);
    if (!this.send(said)) this.retry();
  }

  /** Sends a message; false when there is no connection. */
  send(message) {
    if (this.state !== "open") return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends a frame of sound; what is spoken while the line is being taken up again is kept for a few seconds. */
  sendSound(frame) {
    if (this.state === "open") {
      this.#socket.send(frame);
    } else if (this.state === "reconnecting") {
      this.#frames.push(frame);
      if (this.#frames.length > MOST_FRAMES) this.#frames.shift();
    }
  }

  #connect() {
    const url = address(`ws/${this.#mode}`);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const protocols = [PROTOCOL];
    if (this.#api.token) protocols.push(`jackfield.token.${base64url(this.#api.token)}`);
    const resuming = this.session !== null;
    this.#go(resuming ? "reconnecting" : "connecting");
    this.#trouble = null;
    const socket = new WebSocket(url, protocols);
    socket.binaryType = "arraybuffer";
    let opened = false;
    socket.addEventListener("open", () => {
      opened = true;
      socket.send(JSON.stringify(this.#opening()));
    });
    socket.addEventListener("message", ({ data }) => socket === this.#socket && this.#take(data));
    socket.addEventListener("close", ({ code }) => socket === this.#socket && this.#lost(code, opened));
    this.#socket = socket;
  }

  #opening() {
    const place = {
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      language: navigator.language,
      // Who speaks is asked in words.
      forms: this.#mode === "text",
    };
    if (this.token) return { type: "resume", token: this.token, lastEvent: this.#lastEvent, ...place };
    return { type: "start", ...(this.#handover ? { handover: this.#handover } : {}), ...place };
  }

  #take(data) {
    if (typeof data !== "string") {
      this.#tell("sound", data);
      return;
    }
    const message = JSON.parse(data);
    if (message.id !== undefined) {
      if (message.id <= this.#lastEvent) return;
      this.#lastEvent = message.id;
    }
    if (message.type === "session") this.#begin(message);
    else if (message.type === "error" && message.code === "too_many_sessions") this.#tell("full", message);
    else if (message.type === "error" && message.retryAfter !== undefined) this.#trouble = message;
    else if (message.type === "message") this.unsaid = this.unsaid.filter((said) => said.clientId !== message.clientId);
    // A form that was refused or closed is not sent again; one with faults is, when the user has corrected it.
    else if (["error", "form_closed"].includes(message.type) && message.formId) {
      this.unsaid = this.unsaid.filter((said) => said.formId !== message.formId);
    }
    // What was said just before the line broke may have arrived: then it was among what was missed.
    else if (message.type === "caught_up") this.#sayAgain();
    this.#tell("message", message);
  }

  #begin(message) {
    this.session = message;
    this.#pause = FIRST_PAUSE_MS;
    this.#handover = null;
    if (this.#kept) sessionStorage.setItem(this.#kept, message.token);
    this.#go("open");
    this.#tell("session", message);
    for (const frame of this.#frames.splice(0)) this.#socket.send(frame);
  }

  #sayAgain() {
    for (const said of this.unsaid) this.send(said);
  }

  #lost(code, opened) {
    this.#socket = null;
    if (code === CLOSED.unknown) {
      // The host does not know it any more; what was not said yet is said in a new one.
      this.#forget();
      this.#tell("message", { type: "reset", reason: "unknown" });
      if (this.#mode === "text" && this.#wanted) this.#connect();
      else this.#over(code);
    } else if (code === CLOSED.banned) {
      const detail = this.#trouble ?? { message: SENTENCES[code], retryAfter: 60 };
      this.#over(code);
      this.#tell("banned", detail);
    } else if (code === CLOSED.full && this.#mode === "voice") {
      // Nobody waits at an open microphone for others to hang up.
      this.#over(code);
    } else if (code in SENTENCES) {
      if (code === CLOSED.ended || code === CLOSED.tooLong) this.#forget();
      this.#over(code);
    } else if (!this.#wanted) {
      this.#over(CLOSED.ended);
    } else {
      this.#comeBack(opened);
    }
  }

  #comeBack(opened) {
    this.#go(this.session ? "reconnecting" : "connecting");
    const wait = this.#trouble ? this.#trouble.retryAfter * 1000 : this.#pause * (0.5 + Math.random());
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
    this.#timer = setTimeout(async () => {
      // A browser does not say why a handshake was refused; over HTTP the host does.
      if (!opened && !(await this.#admitted())) return;
      if (this.#wanted && !this.#socket) this.#connect();
    }, wait);
  }

  async #admitted() {
    try {
      await this.#api.get("status", { session: null });
    } catch (error) {
      if (error.status === 401 || error.code === "banned") {
        this.#over(0);
        return false;
      }
    }
    return true;
  }

  #over(code) {
    this.#wanted = false;
    this.#frames = [];
    this.#go("closed");
    this.#tell("closed", { code, sentence: SENTENCES[code] ?? "" });
  }

  #drop() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
    this.#wanted = false;
  }

  #forget() {
    this.session = null;
    this.#given = null;
    this.#lastEvent = 0;
    if (this.#kept) sessionStorage.removeItem(this.#kept);
  }

  #go(state) {
    if (state === this.state) return;
    this.state = state;
    this.#tell("state", state);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

function base64url(text) {
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
