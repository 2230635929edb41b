// The conversation on the page: messages, tool calls, confirmations and forms in order.

import { element, replace } from "./dom.js";
import { ConfirmationCard } from "./parts/confirmation-card.js";
import { FormCard } from "./parts/form-card.js";
import { MessageEntry, notice } from "./parts/message.js";
import { Call, toolCard } from "./parts/tool-card.js";

/** How close to the end, in pixels, the user still follows the conversation. */
const NEAR_END = 160;

/**
 * Handles the messages of sockets and updates the list. `callbacks` has `custom(event, socket)`,
 * `changed()`, and for the actions of a message `edit(text)` and `trace({ session, turn })`.
 */
export class ConversationView {
  root = element("ol", { class: "conversation", "aria-live": "polite", "aria-label": "Conversation" });

  #api;
  #sources;
  #openSource;
  #callbacks;
  #answers = new Map();
  #calls = new Map();
  #confirmations = [];
  #forms = new Map();
  /** The sockets that have received all missed events: what they receive now is live. */
  #caughtUp = new WeakSet();
  #utterances = { user: [], assistant: [] };
  #items = new Map();
  #resumedAnswer = null;
  #unclaimed = { user: null, assistant: null };
  #unacknowledged = [];
  /** Whether a transcript has arrived since the user last started to speak. */
  #hasTranscript = false;
  /** How many seconds this browser's clock is ahead of the clock that stamps events. */
  #clockSkew = 0;

  /** Whether the end is shown, and stays shown when something is added. */
  #follows = true;

  /** `scroller` is the element in which the list scrolls. */
  constructor(api, scroller, sources, openSource, callbacks) {
    this.#api = api;
    this.#sources = sources;
    this.#openSource = openSource;
    this.#callbacks = callbacks;
    let height = 0;
    // Entries also grow after they were added: an answer is rendered, a call asks for confirmation.
    new ResizeObserver(() => {
      height = scroller.scrollHeight;
      if (this.#follows) scroller.scrollTop = height;
    }).observe(this.root);
    scroller.addEventListener("scroll", () => {
      // If the height has changed meanwhile, it was not the user who moved away from the end.
      if (scroller.scrollHeight !== height) return;
      this.#follows = height - scroller.scrollTop - scroller.clientHeight < NEAR_END;
    });
  }

  get empty() {
    return !this.root.hasChildNodes();
  }

  /** Whether a call waits for the user's decision. */
  get waiting() {
    return this.#confirmations.some((each) => each.state === "open");
  }

  /** The time by the clock that stamps events, in seconds since 1970. */
  get now() {
    return Date.now() / 1000 - this.#clockSkew;
  }

  /** Returns the transcript from an entry on, for the text session. */
  transcriptSince(index) {
    return [...this.root.children].slice(index).filter((each) => each.dataset.speaker && !each.hidden)
      .map((each) => `${each.dataset.speaker}: ${each.querySelector(".message-text").innerText}`).join("\n");
  }

  clear() {
    replace(this.root);
    this.#follows = true;
    this.#answers.clear();
    this.#calls.clear();
    this.#confirmations = [];
    this.#forms.clear();
    this.#utterances = { user: [], assistant: [] };
    this.#items.clear();
    this.#unacknowledged = [];
  }

  /** Shows a text of the user that the host has not echoed yet. */
  showSent(text, connected) {
    this.#follows = true;
    const entry = this.#addMessage("user", "text");
    entry.finish(text);
    if (!connected) entry.setNote("waiting for the connection");
    this.#unacknowledged.push(entry);
  }

  /** Adds an entry to the list. */
  add(node) {
    this.root.append(node);
    this.#callbacks.changed();
    return node;
  }

  /** Handles a message from the host. */
  handle(message, socket) {
    this.#handlers[message.type]?.(message, socket);
  }

  #handlers = {
    session: ({ partial, now }, socket) => {
      this.#caughtUp.delete(socket);
      if (now !== undefined) this.#clockSkew = Date.now() / 1000 - now;
      if (socket.mode === "voice") this.#restoreSpeech(partial?.text, socket);
      else if (partial) this.#answer(socket, partial.answer).write(0, partial.text);
    },
    caught_up: (_, socket) => this.#caughtUp.add(socket),
    reset: ({ reason }, socket) => {
      if (this.empty) return;
      // A call ends; only a text session is followed by a new one.
      const lost = socket.mode === "voice" ? "The host no longer has this session."
        : "The host no longer has this session, so a new one starts here.";
      this.add(notice(reason === "expired"
        ? "Some events have expired, so the conversation may look incomplete." : lost));
    },
    text_delta: (message, socket) => this.#answer(socket, message.answer).write(message.offset, message.text),
    message: (message, socket) => this.#finishMessage(message, socket),
    transcript: (message, socket) => this.#transcript(message, socket),
    speech_started: () => this.#dropUnrecognised(),
    turn_complete: () => this.#hideUnrecognised(),
    interrupted: () => this.#endInterrupted(),
    speech_stopped: (_, socket) => {
      if (!this.#hasTranscript) this.#utterances.user.push(this.#addMessage("user", socket.mode));
    },
    tool_start: (event, socket) => this.#startCall(event, socket),
    tool_progress: (event) => this.#call(event)?.handle(event),
    tool_decisions: (event) => this.#call(event)?.handle(event),
    tool_complete: (event) => {
      this.#sources.add(event.data);
      this.#endCall(event, "done");
    },
    tool_error: (event) => {
      this.#endCall(event, event.errorType === "CONFIRMATION_REQUIRED" ? "waiting" : event.state ?? "failed");
    },
    confirmation_required: (event, socket) => this.#addConfirmation(event, socket),
    confirmation_settled: (event) => {
      this.#confirmationOf(event)?.settle(event.approved);
      this.#call(event)?.handle(event);
    },
    form_request: (event, socket) => this.#addForm(event, socket),
    form_closed: ({ formId, submitted, values }) => this.#forms.get(formId)?.close(submitted, values),
    notification: ({ text, suggestion }) => this.add(notice(text, suggestion)),
    custom: (event, socket) => this.#callbacks.custom(event, socket),
    error: (error) => this.#showError(error),
  };

  #addMessage(speaker, mode) {
    const actions = speaker === "assistant"
      ? { Trace: ({ turn }) => this.#callbacks.trace(turn) }
      : mode === "text" ? { Edit: ({ text }) => this.#callbacks.edit(text) } : {};
    const entry = new MessageEntry(this.#api, speaker, {
      mode, actions, decorate: (body) => this.#sources.cite(body, this.#openSource),
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

  /** Moves an answer that continues after a tool call below the call, as it is after a reload. */
  #moveBehindCalls(entry) {
    if (!entry.complete && entry.root.matches(".assistant:has(~ .tool)")) this.root.append(entry.root);
  }

  #finishMessage({ speaker, text, answer, interrupted, unbackedClaims, turn, formId }, socket) {
    // The submitted form shows the same values; only further down is the message needed to show what happened.
    if (formId && this.root.lastElementChild === this.#forms.get(formId)?.root) return;
    let entry = this.#findEntry(speaker, text, answer, socket);
    if (speaker === "user" && !entry) this.#hasTranscript = true;
    entry ??= this.#addMessage(speaker, socket.mode);
    if (socket.mode === "text") this.#moveBehindCalls(entry);
    if (speaker === "assistant" && answer) this.#answers.set(`${socket.session?.session}/${answer}`, entry);
    // Deltas that arrive after the complete message, such as after a reconnect, belong to it.
    const claimed = [...this.#items.values()].includes(entry);
    if (socket.mode === "voice" && !claimed) this.#unclaimed[speaker] = entry;
    entry.setNote("");
    entry.turn = { session: socket.session?.session, turn };
    entry.finish(text, { interrupted, unbackedClaims });
  }

  /** Finds the entry of a message that is complete now. */
  #findEntry(speaker, text, answer, socket) {
    if (speaker === "assistant" && answer) {
      const written = this.#answers.get(`${socket.session?.session}/${answer}`);
      if (written) return written;
    }
    if (speaker === "user") {
      const index = this.#unacknowledged.findIndex((each) => each.text === text);
      if (index >= 0) return this.#unacknowledged.splice(index, 1)[0];
    }
    return socket.mode === "voice" ? this.#utterances[speaker].shift() : null;
  }

  /** Replaces unfinished speech after a reconnect: the host sends it again. */
  #restoreSpeech(text, socket) {
    for (const each of [...this.#utterances.user, ...this.#utterances.assistant]) each.root.remove();
    this.#utterances = { user: [], assistant: [] };
    this.#items.clear();
    this.#resumedAnswer = text ? this.#addMessage("assistant", socket.mode) : null;
    this.#resumedAnswer?.write(0, text);
    if (text) this.#utterances.assistant.push(this.#resumedAnswer);
  }

  /** Shows speech while it is spoken; the complete `message` may arrive before the last delta. */
  #transcript({ speaker, text, final, item }, socket) {
    let entry = this.#items.get(item);
    if (!entry && this.#unclaimed[speaker]?.text.includes(text)) {
      entry = this.#unclaimed[speaker];
      this.#unclaimed[speaker] = null;
      this.#items.set(item, entry);
    }
    if (!entry && !final) {
      if (speaker === "user") this.#hasTranscript = true;
      entry = this.#utterances[speaker].find((each) => !each.text || each === this.#resumedAnswer);
      if (!entry) this.#utterances[speaker].push(entry = this.#addMessage(speaker, socket.mode));
      this.#items.set(item, entry);
    }
    if (!entry || entry.complete) return;
    if (final) entry.write(0, text);
    else entry.add(text);
  }

  /** Removes speech that was not recognised. */
  #dropUnrecognised() {
    this.#hasTranscript = false;
    for (const each of this.#utterances.user) {
      if (!each.text) each.root.remove();
    }
    this.#utterances.user = this.#utterances.user.filter((each) => each.text);
  }

  /** Hides entries whose transcript has not arrived. */
  #hideUnrecognised() {
    for (const each of this.#utterances.user) each.root.hidden = !each.text;
  }

  /** Ends answers of which almost nothing was played. */
  #endInterrupted() {
    for (const each of this.#utterances.assistant.splice(0)) each.finish(each.text, { interrupted: true });
  }

  #startCall(event, socket) {
    const call = new Call(event, socket.mode);
    const root = toolCard(call, () => socket.send({ type: "cancel", callId: event.callId }));
    this.#calls.set(event.callId ?? `${event.tool} ${this.#calls.size}`, { call, root });
    this.add(root);
  }

  #entry({ tool, callId }) {
    return this.#calls.get(callId)
      ?? [...this.#calls.values()].findLast(({ call }) => !call.callId && call.tool === tool);
  }

  #call(event) {
    return this.#entry(event)?.call;
  }

  /** Shows the outcome of a call, and closes its confirmation. */
  #endCall(event, state) {
    const call = this.#call(event);
    const confirmation = this.#confirmationOf(event);
    call?.handle(event);
    if (state !== "waiting") confirmation?.conclude(state);
    else if (confirmation?.state === "expired") call?.expire();
  }

  #confirmationOf({ tool, callId }) {
    return this.#confirmations.findLast((each) => each.callId === callId && each.tool === tool);
  }

  /** Adds a confirmation to the card of its call. */
  #addConfirmation(event, socket) {
    const decide = (approve) => socket.send({ type: approve ? "approve" : "decline", token: event.token });
    const entry = this.#entry(event);
    const changed = () => {
      if (card?.state === "expired") entry?.call.expire();
      this.#callbacks.changed();
    };
    let card = null;
    card = new ConfirmationCard(event, event.expiresAt - this.now, decide, changed);
    this.#confirmations.push(card);
    if (entry) entry.root.querySelector(".tool-confirmation").replaceChildren(card.root);
    else this.add(element("li", { class: "tool card" }, element("code", { class: "tool-name" }, event.tool), card.root));
    changed();
  }

  #addForm(event, socket) {
    const { formId } = event;
    const card = new FormCard(event, {
      submit: (values) => {
        this.#follows = true;
        socket.submitForm(formId, values);
        return socket.state === "open";
      },
      dismiss: () => socket.send({ type: "form_dismiss", formId }),
    });
    this.#forms.set(formId, card);
    this.add(card.root);
    // Do not take the focus while the user is typing.
    if (this.#caughtUp.has(socket) && !document.activeElement?.value) card.focus();
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
}
