// Chat: the conversation in text and voice, the activity of tools, and the sources of answers.

import { element, replace } from "../dom.js";
import { ConversationView } from "../conversation-view.js";
import { CLOSE_CODES, MAX_CONTEXT_LENGTH } from "../protocol.js";
import { CallBar, explainMicrophone } from "../parts/call-bar.js";
import { Composer } from "../parts/composer.js";
import { Downloads } from "../parts/downloads.js";
import { EmptyState } from "../parts/empty-state.js";
import { Sources, sourcesPanel } from "../parts/sources.js";
import { ConnectionBanner } from "../parts/connection-banner.js";
import { notice } from "../parts/message.js";
import { Timeline } from "../parts/timeline.js";
import { STATES, TEXT_STATES, whyNoCall } from "../parts/format.js";
import { VoiceCall } from "../voice/voice-call.js";

let view = null;

/** Shows the conversation, which continues while another view is shown. */
export function mount(root, { api, socket }) {
  view ??= new ChatView(api, socket);
  root.append(view.root);
  view.shown();
  return () => view.root.remove();
}

class ChatView {
  #api;
  #socket;
  #call = null;
  #callBegan = 0;
  #state = "initializing";
  /** Why the host accepts nothing from the user: `banned`, `full`, or null. */
  #refused = null;

  #word = element("span", { class: "state", data: { testid: "state" }, role: "status" });
  #facts = element("span", { class: "hint facts-socket" });
  #banner = new ConnectionBanner();
  #calls = element("div");
  /** Where a download is shown during a conversation. */
  #meanwhile = element("div", { class: "meanwhile" });
  #side = element("aside", { class: "chat-side", "aria-label": "Activity and sources" });
  #open = element("button", {
    type: "button", class: "small show-side", "aria-expanded": "false", on: { click: () => this.#showSide() },
  }, "Activity");

  constructor(api, socket) {
    this.#api = api;
    this.#socket = socket;
    this.sources = new Sources();
    this.timeline = new Timeline();
    this.conversation = new ConversationView(api, this.sources, (record) => this.#showSource(record), {
      call: (call, card) => this.#addCall(call, card),
      custom: (event, from) => this.#custom(event, from),
      changed: () => this.#showEmpty(),
    });
    this.empty = new EmptyState((text) => this.#say(text));
    this.downloads = new Downloads(api, {
      startOver: () => this.#startOver(),
      changed: () => this.#showDownloads(),
    });
    this.composer = new Composer({
      say: (text) => this.#say(text),
      talk: () => this.#talk(),
      stop: () => this.#current.send({ type: "interrupt" }),
    });
    this.root = this.#layout();
    this.#listen(socket);
    socket.open();
    this.#show();
  }

  /** The view was added to the page. */
  shown() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    // On a phone the keyboard would cover what there is to read.
    if (matchMedia("(pointer: fine)").matches) this.composer.focus();
  }

  #scroller = element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation so far" });

  #layout() {
    replace(this.#side, this.timeline.root);
    this.#scroller.append(this.empty.root, this.conversation.root);
    return element("div", { class: "chat" },
      element("section", { class: "chat-main", "aria-label": "Chat" },
        element("div", { class: "chat-head" }, this.#word, this.#facts,
          element("div", { class: "row" }, this.#open,
            element("button", { type: "button", class: "small", on: { click: () => this.#startOver() } }, "New", element("span", { class: "wide" }, " conversation")))),
        this.#banner.root, this.#scroller, this.#meanwhile, this.#calls, this.composer.root),
      this.#side);
  }

  /** The socket of the current call, or else of the text session. */
  get #current() {
    return this.#call?.socket ?? this.#socket;
  }

  #listen(socket) {
    socket.addEventListener("message", ({ detail }) => {
      if (socket === this.#socket && ["session", "session_status"].includes(detail.type)) this.#state = detail.state;
      this.conversation.take(detail, socket);
      this.#show();
    });
    socket.addEventListener("state", () => this.#show());
    socket.addEventListener("closed", ({ detail }) => socket === this.#socket && this.#showClosed(detail));
    socket.addEventListener("banned", () => this.#refuse("banned"));
    socket.addEventListener("full", ({ detail }) => this.#showFull(socket, detail));
    for (const name of ["unbanned", "session"]) socket.addEventListener(name, () => this.#refuse(null));
  }

  /** Disables input for a reason, or enables it again. */
  #refuse(reason) {
    this.#refused = reason;
    this.composer.enable(reason === null);
    if (reason === "banned") this.#banner.clear();
    this.#show();
  }

  #say(text) {
    const socket = this.#current;
    this.conversation.said(text, socket.state === "open");
    socket.sendText(text);
  }

  #startOver() {
    this.#call?.hangUp();
    this.conversation.clear();
    this.timeline.clear();
    this.sources.clear();
    this.#countCalls();
    this.#banner.clear();
    this.#socket.startOver();
    this.#showEmpty();
    this.composer.focus();
  }

  // What is shown

  #show() {
    const inCall = this.#call !== null;
    const state = this.#call?.state ?? this.#textState();
    const words = (inCall ? STATES : TEXT_STATES)[state] ?? state;
    if (this.#word.textContent !== words) this.#word.textContent = words;
    this.#word.dataset.state = state;
    this.#bar?.say(words);
    const session = this.#current.session ?? this.#socket.session;
    this.#facts.textContent = session
      ? `${session.provider} · ${inCall ? "voice" : "text"} · registry ${session.registry}`
      : "";
    this.composer.stop.hidden = !["speaking", "executing_tool", "processing"].includes(state);
    this.#showLost();
    this.#showEmpty();
  }

  #textState() {
    if (this.#refused) return this.#refused;
    if (this.#socket.state === "open") return this.#state;
    if (this.#socket.state === "closed") return "terminated";
    return this.#socket.session ? "reconnecting" : "initializing";
  }

  #showLost() {
    if (this.#current.state === "reconnecting") this.#banner.lost(() => this.#current.retry());
    else if (this.#current.state === "open") this.#banner.clear();
  }

  #showFull(socket, { message }) {
    if (socket !== this.#socket) {
      this.conversation.add(notice(message));
      return;
    }
    this.#refuse("full");
    this.#banner.full(message, () => socket.retry());
  }

  #showClosed({ code, sentence }) {
    // While the user is banned, another banner says so.
    if (!sentence || code === CLOSE_CODES.banned || this.#refused === "banned") this.#banner.clear();
    else this.#banner.closed(sentence, this.#socket.token ? "Continue here" : "New conversation", () => this.#socket.retry());
  }

  #tools = null;

  #showEmpty() {
    this.empty.root.hidden = !this.conversation.empty;
    this.conversation.root.hidden = this.conversation.empty;
    this.#showDownloads();
    const session = this.#socket.session;
    if (!session?.tools || session.tools === this.#tools) return;
    this.#tools = session.tools;
    this.empty.show(session);
    this.downloads.show(session.providerReason ?? null);
  }

  #showDownloads() {
    this.empty.hideHints(this.downloads.hints);
    const place = this.conversation.empty ? this.empty.downloads : this.#meanwhile;
    if (this.downloads.root.parentElement !== place) place.append(this.downloads.root);
    this.#meanwhile.hidden = this.conversation.empty || !this.downloads.active;
  }

  #addCall(call, card) {
    this.timeline.add(call, () => {
      this.root.classList.remove("side-open");
      card.querySelector("details").open = true;
      card.scrollIntoView({ block: "center" });
    });
    this.#countCalls();
  }

  #countCalls() {
    this.#open.textContent = this.timeline.count ? `Activity (${this.timeline.count})` : "Activity";
  }

  #showSide() {
    const open = this.root.classList.toggle("side-open");
    this.#open.setAttribute("aria-expanded", String(open));
  }

  #showSource(record) {
    const from = document.activeElement;
    const close = () => {
      replace(this.#side, this.timeline.root);
      this.root.classList.remove("side-open");
      from?.focus();
    };
    replace(this.#side, sourcesPanel(this.#api, record, close));
    this.root.classList.add("side-open");
    this.#side.querySelector("button").focus();
  }

  // Events of tools

  #custom({ name, fields, at }, socket) {
    if (name === "voice_session_start" && socket === this.#socket) this.#offerCall(fields.pendingRequest);
    else if (name === "chat_message") this.conversation.add(notice(fields.text));
    else if (name === "ban") this.#ban(fields, at);
    else this.conversation.add(notice(`${name}: ${JSON.stringify(fields)}`));
  }

  #ban({ until, message }, at) {
    const left = until - at - Math.max(0, Date.now() / 1000 - at);
    if (left <= 0) return;
    this.#socket.dispatchEvent(new CustomEvent("banned", { detail: { message, retryAfter: left } }));
  }

  #offerCall(request) {
    const start = element("button", {
      type: "button", class: "primary",
      on: {
        click: async () => {
          start.disabled = true;
          if (!(await this.#talk(this.#socket.token))) start.disabled = false;
        },
      },
    }, "Start talking");
    this.conversation.add(element("li", { class: "card offer" },
      element("strong", {}, "Continue by voice?"),
      request && element("p", {}, `The call starts with your request: “${request}”`),
      element("div", { class: "row" }, start)));
  }

  // Calls

  #bar = null;

  async #talk(handover = null) {
    if (this.#call) return false;
    const provider = this.#socket.session?.provider ?? "the provider";
    if (!(await explainMicrophone(provider))) return false;
    const call = new VoiceCall(this.#api);
    this.#call = call;
    this.#callBegan = this.conversation.root.children.length;
    this.#bar = new CallBar({ mute: (muted) => call.mute(muted), hangUp: () => call.hangUp() });
    replace(this.#calls, this.#bar.root);
    this.composer.talk.hidden = true;
    this.#listen(call.socket);
    call.addEventListener("level", ({ detail }) => this.#bar?.level(detail));
    call.addEventListener("change", () => this.#show());
    call.addEventListener("ended", ({ detail }) => this.#callOver(call, detail));
    call.socket.addEventListener("banned", ({ detail }) => {
      this.#socket.dispatchEvent(new CustomEvent("banned", { detail }));
    });
    this.#show();
    try {
      const direct = handover === null && (await this.#direct());
      await call.start({ direct, handover });
      return true;
    } catch (error) {
      this.conversation.add(notice(...whyNoCall(error)));
      call.hangUp();
      return false;
    }
  }

  /** Whether browser and provider support calls over WebRTC. */
  async #direct() {
    if (!("RTCPeerConnection" in window)) return false;
    try {
      return (await this.#api.get("status", { session: null })).browserCalls === true;
    } catch {
      return false;
    }
  }

  #callOver(call, sentence) {
    if (call !== this.#call) return;
    this.#call = null;
    this.#bar = null;
    replace(this.#calls);
    this.#banner.clear();
    this.composer.talk.hidden = false;
    if (call.begun) this.conversation.add(notice("The call has ended.", sentence.replace(/^The session has ended\.$/, "")));
    this.#handBack();
    this.#show();
  }

  /** Gives the text session the transcript of the call. */
  #handBack() {
    const said = this.conversation.spokenSince(this.#callBegan);
    if (!said) return;
    const before = "Transcript of a voice call since then:\n";
    this.#socket.send({ type: "context", text: before + said.slice(-(MAX_CONTEXT_LENGTH - before.length)) });
  }
}
