// The conversation as it is shown: what was said, called and asked, each in its place.

import { element, replace } from "../dom.js";
import { Confirmation } from "./confirmation-card.js";
import { FormCard } from "./form-card.js";
import { Message, notice } from "./message.js";
import { Call, toolCard } from "./tool-card.js";

/**
 * Takes the messages of lines and keeps the list up to date. `on` has `call(call, root)`, `custom(event, line)` and
 * `changed()`.
 */
export class Flow {
  root = element("ol", { class: "flow", "aria-live": "polite", "aria-label": "Conversation" });

  #api;
  #evidence;
  #openEvidence;
  #on;
  #answers = new Map();
  #calls = new Map();
  #confirmations = [];
  #forms = new Map();
  /** The lines whose missed events have come: what comes now happens now. */
  #live = new WeakSet();
  #spoken = { user: [], assistant: [] };
  #items = new Map();
  #joined = null;
  #unclaimed = { user: null, assistant: null };
  #waiting = [];
  /** Whether words of the user have come since speech of theirs began last. */
  #heard = false;
  #skew = Infinity;

  constructor(api, evidence, openEvidence, on) {
    this.#api = api;
    this.#evidence = evidence;
    this.#openEvidence = openEvidence;
    this.#on = on;
  }

  get empty() {
    return !this.root.hasChildNodes();
  }

  /** What was said aloud, for whoever goes on in writing. */
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

  /** The user has written something that the host has not echoed yet. */
  said(text, connected) {
    const message = this.#message("user", "text");
    message.finish(text);
    if (!connected) message.remark("waits for the connection");
    this.#waiting.push(message);
  }

  /** Adds whatever belongs between the messages. */
  add(node) {
    const { scrollHeight, scrollTop, clientHeight } = this.root.parentElement ?? {};
    this.root.append(node);
    if (scrollHeight - scrollTop - clientHeight < 160) node.scrollIntoView({ block: "end" });
    this.#on.changed();
    return node;
  }

  /** Takes a message of the host. */
  take(message, line) {
    if (message.at !== undefined) this.#skew = Math.min(this.#skew, Date.now() / 1000 - message.at);
    const taking = this.#taking[message.type];
    if (taking) taking(message, line);
    this.#follow();
  }

  #taking = {
    session: ({ partial }, line) => {
      this.#live.delete(line);
      if (line.mode === "voice") this.#joinSpeech(partial?.text, line);
      else if (partial) this.#answer(line, partial.answer).write(0, partial.text);
    },
    caught_up: (_, line) => this.#live.add(line),
    reset: ({ reason }) => {
      if (this.empty) return;
      this.add(notice(reason === "expired"
        ? "Some of what happened is no longer kept, so the conversation may look incomplete."
        : "The host no longer knows this conversation; a new one begins here."));
    },
    text_delta: (message, line) => this.#answer(line, message.answer).write(message.offset, message.text),
    message: (message, line) => this.#whole(message, line),
    transcript: (message, line) => this.#transcript(message, line),
    speech_started: () => this.#dropUnheard(),
    turn_complete: () => this.#hideUnheard(),
    interrupted: () => this.#breakOff(),
    speech_stopped: (_, line) => {
      if (!this.#heard) this.#spoken.user.push(this.#message("user", line.mode));
    },
    tool_start: (event, line) => this.#start(event, line),
    tool_progress: (event) => this.#call(event)?.take(event),
    tool_decisions: (event) => this.#call(event)?.take(event),
    tool_complete: (event) => {
      this.#evidence.take(event.data);
      this.#end(event, "done");
    },
    tool_error: (event) => this.#end(event, event.state ?? "failed"),
    confirmation_required: (event, line) => this.#ask(event, line),
    confirmation_settled: (event) => {
      this.#asked(event)?.settle(event.approved);
      this.#call(event)?.take(event);
    },
    form_request: (event, line) => this.#askWithForm(event, line),
    form_closed: ({ formId, submitted, values }) => this.#forms.get(formId)?.close(submitted, values),
    notification: ({ text, suggestion }) => this.add(notice(text, suggestion)),
    custom: (event, line) => this.#on.custom(event, line),
    error: (error) => this.#complain(error),
  };

  #message(speaker, mode) {
    const message = new Message(this.#api, speaker, {
      mode, decorate: (body) => this.#evidence.cite(body, this.#openEvidence),
    });
    this.add(message.root);
    return message;
  }

  #answer(line, number) {
    const key = `${line.session?.session}/${number}`;
    let message = this.#answers.get(key);
    if (!message || message.complete) {
      message = this.#message("assistant", line.mode);
      this.#answers.set(key, message);
    }
    this.#moveBehindCalls(message);
    return message;
  }

  /** An answer that goes on after a call stands where it ends, as it does for whoever loads the page again. */
  #moveBehindCalls(message) {
    if (!message.complete && message.root.matches(".assistant:has(~ .tool)")) this.root.append(message.root);
  }

  #whole({ speaker, text, answer, interrupted }, line) {
    let placed = this.#placed(speaker, text, answer, line);
    if (speaker === "user" && !placed) this.#heard = true;
    placed ??= this.#message(speaker, line.mode);
    if (line.mode === "text") this.#moveBehindCalls(placed);
    if (speaker === "assistant" && answer) this.#answers.set(`${line.session?.session}/${answer}`, placed);
    // Pieces that come behind the whole, after a reconnect for instance, belong to it.
    const claimed = [...this.#items.values()].includes(placed);
    if (line.mode === "voice" && !claimed) this.#unclaimed[speaker] = placed;
    placed.remark("");
    placed.finish(text, { interrupted });
  }

  /** Where something stands already that is now known as a whole. */
  #placed(speaker, text, answer, line) {
    if (speaker === "assistant" && answer) {
      const written = this.#answers.get(`${line.session?.session}/${answer}`);
      if (written) return written;
    }
    if (speaker === "user") {
      const sent = this.#waiting.findIndex((each) => each.text === text);
      if (sent >= 0) return this.#waiting.splice(sent, 1)[0];
    }
    return line.mode === "voice" ? this.#spoken[speaker].shift() : null;
  }

  /** What was being said when the line broke comes again, from the host that goes on with it. */
  #joinSpeech(text, line) {
    for (const each of [...this.#spoken.user, ...this.#spoken.assistant]) each.root.remove();
    this.#spoken = { user: [], assistant: [] };
    this.#items.clear();
    this.#joined = text ? this.#message("assistant", line.mode) : null;
    this.#joined?.write(0, text);
    if (text) this.#spoken.assistant.push(this.#joined);
  }

  /** Speech while it is being said; the whole of it comes as a `message`, at times before its last piece. */
  #transcript({ speaker, text, final, item }, line) {
    let message = this.#items.get(item);
    if (!message && this.#unclaimed[speaker]?.text.includes(text)) {
      message = this.#unclaimed[speaker];
      this.#unclaimed[speaker] = null;
      this.#items.set(item, message);
    }
    if (!message && !final) {
      if (speaker === "user") this.#heard = true;
      message = this.#spoken[speaker].find((each) => !each.text || each === this.#joined);
      if (!message) this.#spoken[speaker].push(message = this.#message(speaker, line.mode));
      this.#items.set(item, message);
    }
    if (!message || message.complete) return;
    if (final) message.write(0, text);
    else message.add(text);
  }

  /** Speech of which nothing was understood leaves no trace. */
  #dropUnheard() {
    this.#heard = false;
    for (const each of this.#spoken.user) {
      if (!each.text) each.root.remove();
    }
    this.#spoken.user = this.#spoken.user.filter((each) => each.text);
  }

  /** Words that come after the answer still find their place, which is not shown until they do. */
  #hideUnheard() {
    for (const each of this.#spoken.user) each.root.hidden = !each.text;
  }

  /** An answer of which so little was heard that it does not count as said. */
  #breakOff() {
    for (const each of this.#spoken.assistant.splice(0)) each.finish(each.text, { interrupted: true });
  }

  #start(event, line) {
    const call = new Call(event, line.mode);
    this.#calls.set(event.callId ?? `${event.tool} ${this.#calls.size}`, call);
    const root = toolCard(call, () => line.send({ type: "cancel", callId: event.callId }));
    this.add(root);
    this.#on.call(call, root);
  }

  #call({ tool, callId }) {
    return this.#calls.get(callId) ?? [...this.#calls.values()].findLast((each) => !each.callId && each.tool === tool);
  }

  /** A call has its outcome, and nobody has to decide about it any more. */
  #end(event, state) {
    this.#call(event)?.take(event);
    if (event.errorType !== "CONFIRMATION_REQUIRED") this.#asked(event)?.conclude(state);
  }

  #asked({ tool, callId }) {
    return this.#confirmations.findLast((each) => each.callId === callId && each.tool === tool);
  }

  #ask(event, line) {
    const left = event.expiresAt - (Date.now() / 1000 - this.#skew);
    const decide = (approve) => line.send({ type: approve ? "approve" : "decline", token: event.token });
    const asked = new Confirmation(event, left, decide);
    this.#confirmations.push(asked);
    this.add(asked.root);
  }

  #askWithForm(event, line) {
    const { formId } = event;
    const card = new FormCard(event, {
      submit: (values) => {
        line.submitForm(formId, values);
        return line.state === "open";
      },
      dismiss: () => line.send({ type: "form_dismiss", formId }),
    });
    this.#forms.set(formId, card);
    this.add(card.root);
    // What the user is writing comes first.
    if (this.#live.has(line) && !document.activeElement?.value) card.focus();
  }

  #complain({ code, message, suggestion, formId, faults }) {
    if (formId && this.#forms.get(formId)?.refuse(message, suggestion, faults)) return;
    if (code === "unknown_confirmation" || code === "already_decided") {
      // The error does not name its confirmation; one that still waits for the host comes first.
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
