// The conversation on the page: messages, tool calls, confirmations and forms in order.

import { element, replace } from "./dom.js";
import { Confirmation } from "./parts/confirmation-card.js";
import { FormCard } from "./parts/form-card.js";
import { MessageEntry, notice } from "./parts/message.js";
import { Call, toolCard } from "./parts/tool-card.js";

/**
 * Handles the messages of sockets and updates the list. `on` has `call(call, root)`, `custom(event, socket)` and
 * `changed()`.
 */
export class ConversationView {
  root = element("ol", { class: "conversation", "aria-live": "polite", "aria-label": "Conversation" });

  #api;
  #sources;
  #openSource;
  #on;
  #answers = new Map();
  #calls = new Map();
  #confirmations = [];
  #forms = new Map();
  /** The sockets that have received all missed events: what they receive now is live. */
  #live = new WeakSet();
  #spoken = { user: [], assistant: [] };
  #items = new Map();
  #joined = null;
  #unclaimed = { user: null, assistant: null };
  #waiting = [];
  /** Whether a transcript has arrived since the user last started to speak. */
  #heard = false;
  #skew = Infinity;

  constructor(api, sources, openSource, on) {
    this.#api = api;
    this.#sources = sources;
    this.#openSource = openSource;
    this.#on = on;
  }

  get empty() {
    return !this.root.hasChildNodes();
  }

  /** The transcript of a call, for the text session. */
  spokenSince(index) {
    return [...this.root.children].slice(index).filter((each) => each.dataset.speaker && !each.hidden)
      .map((each) => `${each.dataset.speaker}: ${each.querySelector(".said").innerText}`).join("\n");
  }

  clear() {
    replace(this.root);
    this.#answers.clear();
    this.#calls.clear();
    this.#confirmations = [];
    this.#forms.clear();
    this.#spoken = { user: [], assistant: [] };
    this.#items.clear();
    this.#waiting = [];
  }

  /** Shows a text of the user that the host has not echoed yet. */
  said(text, connected) {
    const entry = this.#addMessage("user", "text");
    entry.finish(text);
    if (!connected) entry.remark("waiting for the connection");
    this.#waiting.push(entry);
  }

  /** Adds an entry to the list. */
  add(node) {
    const { scrollHeight, scrollTop, clientHeight } = this.root.parentElement ?? {};
    this.root.append(node);
    if (scrollHeight - scrollTop - clientHeight < 160) node.scrollIntoView({ block: "end" });
    this.#on.changed();
    return node;
  }

  /** Handles a message of the host. */
  take(message, socket) {
    if (message.at !== undefined) this.#skew = Math.min(this.#skew, Date.now() / 1000 - message.at);
    const handle = this.#handlers[message.type];
    if (handle) handle(message, socket);
    this.#follow();
  }

  #handlers = {
    session: ({ partial }, socket) => {
      this.#live.delete(socket);
      if (socket.mode === "voice") this.#restoreSpeech(partial?.text, socket);
      else if (partial) this.#answer(socket, partial.answer).write(0, partial.text);
    },
    caught_up: (_, socket) => this.#live.add(socket),
    reset: ({ reason }) => {
      if (this.empty) return;
      this.add(notice(reason === "expired"
        ? "Some events have expired, so the conversation may look incomplete."
        : "The host no longer has this session; a new one starts here."));
    },
    text_delta: (message, socket) => this.#answer(socket, message.answer).write(message.offset, message.text),
    message: (message, socket) => this.#finishMessage(message, socket),
    transcript: (message, socket) => this.#transcript(message, socket),
    speech_started: () => this.#dropUnrecognised(),
    turn_complete: () => this.#hideUnrecognised(),
    interrupted: () => this.#endInterrupted(),
    speech_stopped: (_, socket) => {
      if (!this.#heard) this.#spoken.user.push(this.#addMessage("user", socket.mode));
    },
    tool_start: (event, socket) => this.#start(event, socket),
    tool_progress: (event) => this.#call(event)?.take(event),
    tool_decisions: (event) => this.#call(event)?.take(event),
    tool_complete: (event) => {
      this.#sources.take(event.data);
      this.#end(event, "done");
    },
    tool_error: (event) => {
      this.#end(event, event.errorType === "CONFIRMATION_REQUIRED" ? "waiting" : event.state ?? "failed");
    },
    confirmation_required: (event, socket) => this.#ask(event, socket),
    confirmation_settled: (event) => {
      this.#confirmationOf(event)?.settle(event.approved);
      this.#call(event)?.take(event);
    },
    form_request: (event, socket) => this.#askWithForm(event, socket),
    form_closed: ({ formId, submitted, values }) => this.#forms.get(formId)?.close(submitted, values),
    notification: ({ text, suggestion }) => this.add(notice(text, suggestion)),
    custom: (event, socket) => this.#on.custom(event, socket),
    error: (error) => this.#showError(error),
  };

  #addMessage(speaker, mode) {
    const entry = new MessageEntry(this.#api, speaker, {
      mode, decorate: (body) => this.#sources.cite(body, this.#openSource),
    });
    this.add(entry.root);
    return entry;
  }

  #answer(socket, number) {
    const key = `${socket.session?.session}/${number}`;
    let entry = this.#answers.get(key);
    if (!entry || entry.complete) {
      entry = this.#addMessage("assistant", socket.mode);
      this.#answers.set(key, entry);
    }
    this.#moveBehindCalls(entry);
    return entry;
  }

  /** An answer that continues after a tool call is shown after it, as it is after a reload. */
  #moveBehindCalls(entry) {
    if (!entry.complete && entry.root.matches(".assistant:has(~ .tool)")) this.root.append(entry.root);
  }

  #finishMessage({ speaker, text, answer, interrupted }, socket) {
    let entry = this.#existing(speaker, text, answer, socket);
    if (speaker === "user" && !entry) this.#heard = true;
    entry ??= this.#addMessage(speaker, socket.mode);
    if (socket.mode === "text") this.#moveBehindCalls(entry);
    if (speaker === "assistant" && answer) this.#answers.set(`${socket.session?.session}/${answer}`, entry);
    // Deltas that arrive after the complete message, such as after a reconnect, belong to it.
    const claimed = [...this.#items.values()].includes(entry);
    if (socket.mode === "voice" && !claimed) this.#unclaimed[speaker] = entry;
    entry.remark("");
    entry.finish(text, { interrupted });
  }

  /** The entry of a message that is complete now. */
  #existing(speaker, text, answer, socket) {
    if (speaker === "assistant" && answer) {
      const written = this.#answers.get(`${socket.session?.session}/${answer}`);
      if (written) return written;
    }
    if (speaker === "user") {
      const sent = this.#waiting.findIndex((each) => each.text === text);
      if (sent >= 0) return this.#waiting.splice(sent, 1)[0];
    }
    return socket.mode === "voice" ? this.#spoken[speaker].shift() : null;
  }

  /** The speech that was interrupted by a reconnect is sent again. */
  #restoreSpeech(text, socket) {
    for (const each of [...this.#spoken.user, ...this.#spoken.assistant]) each.root.remove();
    this.#spoken = { user: [], assistant: [] };
    this.#items.clear();
    this.#joined = text ? this.#addMessage("assistant", socket.mode) : null;
    this.#joined?.write(0, text);
    if (text) this.#spoken.assistant.push(this.#joined);
  }

  /** A transcript while it is spoken; the complete `message` may arrive before the last piece. */
  #transcript({ speaker, text, final, item }, socket) {
    let entry = this.#items.get(item);
    if (!entry && this.#unclaimed[speaker]?.text.includes(text)) {
      entry = this.#unclaimed[speaker];
      this.#unclaimed[speaker] = null;
      this.#items.set(item, entry);
    }
    if (!entry && !final) {
      if (speaker === "user") this.#heard = true;
      entry = this.#spoken[speaker].find((each) => !each.text || each === this.#joined);
      if (!entry) this.#spoken[speaker].push(entry = this.#addMessage(speaker, socket.mode));
      this.#items.set(item, entry);
    }
    if (!entry || entry.complete) return;
    if (final) entry.write(0, text);
    else entry.add(text);
  }

  /** Removes speech that was not recognised. */
  #dropUnrecognised() {
    this.#heard = false;
    for (const each of this.#spoken.user) {
      if (!each.text) each.root.remove();
    }
    this.#spoken.user = this.#spoken.user.filter((each) => each.text);
  }

  /** Hides the place of a transcript that has not arrived. */
  #hideUnrecognised() {
    for (const each of this.#spoken.user) each.root.hidden = !each.text;
  }

  /** Ends answers of which almost nothing was played. */
  #endInterrupted() {
    for (const each of this.#spoken.assistant.splice(0)) each.finish(each.text, { interrupted: true });
  }

  #start(event, socket) {
    const call = new Call(event, socket.mode);
    this.#calls.set(event.callId ?? `${event.tool} ${this.#calls.size}`, call);
    const root = toolCard(call, () => socket.send({ type: "cancel", callId: event.callId }));
    this.add(root);
    this.#on.call(call, root);
  }

  #call({ tool, callId }) {
    return this.#calls.get(callId) ?? [...this.#calls.values()].findLast((each) => !each.callId && each.tool === tool);
  }

  /** The call has its outcome, so its confirmation closes. */
  #end(event, state) {
    this.#call(event)?.take(event);
    if (state !== "waiting") this.#confirmationOf(event)?.conclude(state);
  }

  #confirmationOf({ tool, callId }) {
    return this.#confirmations.findLast((each) => each.callId === callId && each.tool === tool);
  }

  #ask(event, socket) {
    const left = event.expiresAt - (Date.now() / 1000 - this.#skew);
    const decide = (approve) => socket.send({ type: approve ? "approve" : "decline", token: event.token });
    const asked = new Confirmation(event, left, decide);
    this.#confirmations.push(asked);
    this.add(asked.root);
  }

  #askWithForm(event, socket) {
    const { formId } = event;
    const card = new FormCard(event, {
      submit: (values) => {
        socket.submitForm(formId, values);
        return socket.state === "open";
      },
      dismiss: () => socket.send({ type: "form_dismiss", formId }),
    });
    this.#forms.set(formId, card);
    this.add(card.root);
    // Do not take the focus from a text that the user is writing.
    if (this.#live.has(socket) && !document.activeElement?.value) card.focus();
  }

  #showError({ code, message, suggestion, formId, faults }) {
    if (formId && this.#forms.get(formId)?.refuse(message, suggestion, faults)) return;
    if (code === "unknown_confirmation" || code === "already_decided") {
      // The error does not name its confirmation; prefer one whose decision was sent.
      const sent = this.#confirmations.filter((each) => each.state === "sent");
      if ([...sent, ...this.#confirmations].some((each) => each.refuse(message, suggestion))) return;
    }
    if (code === "banned" || code === "too_many_sessions") return;
    this.add(notice(message, suggestion));
  }

  #follow() {
    const box = this.root.parentElement;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 160) box.scrollTop = box.scrollHeight;
  }
}
