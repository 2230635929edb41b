// Chat: the conversation in text and voice, the activity of tools, and the sources of answers.

import { element, replace } from "../dom.js";
import { ConversationView } from "../conversation-view.js";
import { CLOSE_CODES, MAX_CONTEXT_LENGTH } from "../protocol.js";
import { CallBar, explainMicrophone } from "../parts/call-bar.js";
import { Composer } from "../parts/composer.js";
import { ConversationList } from "../parts/conversation-list.js";
import { Downloads } from "../parts/downloads.js";
import { EmptyState } from "../parts/empty-state.js";
import { Sources, sourcesPanel } from "../parts/sources.js";
import { ConnectionBanner } from "../parts/connection-banner.js";
import { notice } from "../parts/message.js";
import { icon } from "../parts/icons.js";
import { showTranscript } from "../parts/transcript.js";
import { Traces, tracePanel } from "../parts/trace.js";
import { VoiceCall } from "../voice/voice-call.js";
import { explainCallError, STATE_LABELS, TEXT_STATE_LABELS } from "../parts/format.js";

let view = null;

/** Shows the conversation, which continues while another view is shown. */
export function mount(root, { api, socket }) {
  view ??= new ChatView(api, socket);
  root.append(view.root);
  view.onShow();
  return () => view.root.remove();
}

class ChatView {
  #api;
  #socket;
  #call = null;
  #callStartIndex = 0;
  #state = "initializing";
  /** Why the host accepts no input: `banned`, `full`, `off` (it has no provider), or null. */
  #blockedBy = null;

  #stateLabel = element("span", { class: "state", data: { testid: "state" }, role: "status" });
  #sessionInfo = element("span", { class: "hint session-info" });
  /** The heading of a conversation, for screen readers; the empty one has its own. */
  #heading = element("h1", { class: "visually-hidden" }, "Conversation");
  #models = element("select", {
    class: "models", "aria-label": "Model", title: "Choosing a model starts a new conversation", hidden: true,
    on: { change: ({ target }) => this.#startOver(target.value || null) },
  });
  #banner = new ConnectionBanner();
  #traces = new Traces();
  #scroller = element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation so far" });
  #callArea = element("div");
  /** Shows a download during a conversation. */
  #downloadArea = element("div", { class: "download-area" });
  #side = element("aside", { class: "chat-side", "aria-label": "Details", hidden: true });

  #listButton = element("button", {
    type: "button", class: "icon small show-list", "aria-label": "Conversations", "aria-expanded": "false",
    "aria-controls": "conversations", on: { click: () => this.#toggleList() },
  }, icon("list"));
  #exportButton = element("button", {
    type: "button", class: "small", hidden: true, on: { click: () => this.#export() },
  }, "Export");

  constructor(api, socket) {
    this.#api = api;
    this.#socket = socket;
    this.sources = new Sources();
    this.conversation = new ConversationView(api, this.#scroller, this.sources, (record) => this.#showSource(record), {
      custom: (event, from) => this.#handleCustomEvent(event, from),
      changed: () => this.#update(),
      edit: (text) => this.composer.edit(text),
      trace: (turn) => this.#showTrace(turn),
    });
    this.list = new ConversationList(api, {
      open: (conversation) => this.#openConversation(conversation),
      startOver: () => this.#startOver(),
    });
    this.empty = new EmptyState(api, (text) => this.#sendText(text));
    this.downloads = new Downloads(api, {
      startOver: () => this.#startOver(),
      changed: () => this.#showDownloads(),
    });
    this.composer = new Composer({
      send: (text) => this.#sendText(text),
      call: () => this.#startCall(),
      stop: () => this.#current.send({ type: "interrupt" }),
    });
    this.root = this.#layout();
    this.#listen(socket);
    socket.open();
    this.#update();
  }

  /** Called when the view was added to the page. */
  onShow() {
    this.list.refresh();
    // On a phone, the keyboard would cover the conversation.
    if (matchMedia("(pointer: fine)").matches) this.composer.focus();
  }

  #layout() {
    this.#scroller.append(this.empty.root, this.conversation.root);
    return element("div", { class: "chat", on: { keydown: (pressed) => this.#closeList(pressed) } }, this.list.root,
      element("section", { class: "chat-main", "aria-label": "Chat" },
        element("div", { class: "chat-head" }, this.#listButton, this.#heading, this.#stateLabel, this.#models, this.#sessionInfo,
          element("div", { class: "row" }, this.#exportButton)),
        this.#banner.root, this.#scroller, this.#downloadArea, this.#callArea, this.composer.root),
      this.#side);
  }

  /** The socket of the current call, or else of the text session. */
  get #current() {
    return this.#call?.socket ?? this.#socket;
  }

  #listen(socket) {
    socket.addEventListener("message", ({ detail }) => {
      if (socket === this.#socket && ["session", "session_status"].includes(detail.type)) this.#state = detail.state;
      // A development host reloads its tools under a session.
      if (detail.type === "notification" && detail.registry && socket.session) socket.session.registry = detail.registry;
      if (socket.session) this.#traces.record(detail, socket.session.session);
      this.conversation.handle(detail, socket);
      this.#update();
      // By now, the host has the message, and the title if it was the first message.
      if (detail.type === "caught_up" || detail.type === "turn_complete") this.list.refresh();
    });
    socket.addEventListener("state", () => this.#update());
    socket.addEventListener("closed", ({ detail }) => socket === this.#socket && this.#showClosed(detail));
    socket.addEventListener("banned", () => this.#setBlocked("banned"));
    socket.addEventListener("full", ({ detail }) => this.#showFull(socket, detail));
    for (const name of ["unbanned", "session"]) socket.addEventListener(name, () => this.#setBlocked(null));
  }

  /** Disables input for a reason, or enables it again. */
  #setBlocked(reason) {
    this.#blockedBy = reason;
    this.composer.enable(reason === null);
    if (reason === "banned") this.#banner.clear();
    this.#update();
  }

  #sendText(text) {
    const socket = this.#current;
    this.conversation.showSent(text, socket.state === "open");
    socket.sendText(text);
  }

  /** Starts a new conversation; the current one can be continued later, unless nothing was said in it. */
  #startOver(model = this.#socket.session?.model ?? null) {
    const end = this.conversation.empty;
    this.#clear();
    this.#socket.leave({ end, model });
    this.composer.focus();
  }

  #clear() {
    this.#call?.hangUp();
    this.conversation.clear();
    this.sources.clear();
    this.#traces.clear();
    this.#banner.clear();
    this.#toggleList(false);
    this.#closeSide();
    this.#showEmpty();
  }

  /** Continues a text conversation that has not ended; shows the transcript of any other conversation. */
  async #openConversation(conversation) {
    const { session, mode, state } = conversation;
    if (session === this.#socket.session?.session) {
      this.#toggleList(false);
      return;
    }
    if (mode !== "text" || state === "ended" || state === "expired") {
      showTranscript(this.#api, conversation);
      return;
    }
    try {
      const { token } = await this.#api.post(`sessions/${session}/token`, {}, { session: null });
      const end = this.conversation.empty;
      this.#clear();
      this.#socket.leave({ token, end });
      this.composer.focus();
    } catch (error) {
      this.conversation.add(notice(error.message, error.suggestion ?? ""));
    }
  }

  /** On a narrow screen, the list is shown over the chat. */
  #toggleList(open = !this.root.classList.contains("list-open")) {
    this.root.classList.toggle("list-open", open);
    this.#listButton.setAttribute("aria-expanded", String(open));
    if (open) this.list.focus();
  }

  /** Closes the list that covers the chat. Escape in a field for a title only leaves the field. */
  #closeList({ key, defaultPrevented }) {
    if (key !== "Escape" || defaultPrevented || !this.root.classList.contains("list-open")) return;
    this.#toggleList(false);
    this.#listButton.focus();
  }

  async #export() {
    const id = this.#socket.session.session;
    const { session } = await this.#api.get(`sessions/${id}/transcript`, { session: null });
    await showTranscript(this.#api, session);
  }

  // Display

  #update() {
    const inCall = this.#call !== null;
    const reported = this.#call?.state ?? this.#textState();
    const idle = reported === "ready" || reported === "listening";
    const state = idle && this.conversation.waiting ? "waiting" : reported;
    const label = (inCall ? STATE_LABELS : TEXT_STATE_LABELS)[state] ?? state;
    if (this.#stateLabel.textContent !== label) this.#stateLabel.textContent = label;
    this.#stateLabel.dataset.state = state;
    this.#callBar?.setState(label);
    const session = this.#current.session ?? this.#socket.session;
    this.#sessionInfo.textContent = session
      ? [!session.models?.length && session.provider, inCall ? "voice" : "text", `registry ${session.registry}`].filter(Boolean).join(" · ")
      : "";
    this.#showModels(session);
    this.composer.stopButton.hidden = !["speaking", "executing_tool", "processing"].includes(state);
    this.#exportButton.hidden = this.conversation.empty || !this.#socket.session;
    this.list.current = this.#socket.session?.session ?? null;
    this.#showConnection();
    this.#showEmpty();
  }

  /** Offers the models, if there are several. */
  #showModels(session) {
    const { models = [], model = null, provider } = session ?? {};
    if (!session || this.#call) return;
    this.#models.hidden = !models.length;
    const names = models.map(({ name }) => name).join("\n");
    if (this.#models.dataset.names !== names) {
      this.#models.dataset.names = names;
      // Only a session with the default model knows the name of the default provider.
      replace(this.#models, element("option", { value: "" }, model === null ? provider : "default"),
        models.map((each) => element("option", { value: each.name }, `${each.name} (${each.provider})`)));
    }
    this.#models.value = model ?? "";
  }

  #textState() {
    if (this.#blockedBy) return this.#blockedBy;
    if (this.#socket.state === "open") return this.#state;
    if (this.#socket.state === "closed") return "terminated";
    return this.#socket.session ? "reconnecting" : "initializing";
  }

  #showConnection() {
    if (this.#current.state === "reconnecting") this.#banner.showLost(() => this.#current.retry());
    else if (this.#current.state === "open") this.#banner.clear();
  }

  #showFull(socket, { message }) {
    if (socket !== this.#socket) {
      this.conversation.add(notice(message));
      return;
    }
    this.#setBlocked("full");
    this.#banner.showFull(message, () => socket.retry());
  }

  #showClosed({ code, text }) {
    if (code === CLOSE_CODES.conversationsOff) {
      this.#showOff();
      return;
    }
    // While the user is banned, another banner says so.
    if (!text || code === CLOSE_CODES.banned || this.#blockedBy === "banned") this.#banner.clear();
    else this.#banner.showClosed(text, this.#socket.token ? "Continue here" : "New conversation", () => this.#socket.retry());
  }

  /** Shows that the host has no provider: tools can be called, but nobody answers. */
  async #showOff() {
    this.#setBlocked("off");
    this.#banner.clear();
    const status = await this.#api.get("status", { session: null }).catch(() => null);
    this.empty.showOff(status?.providerChoice ?? null, status?.tools ?? 0);
  }

  #tools = null;

  #showEmpty() {
    this.empty.root.hidden = !this.conversation.empty;
    this.conversation.root.hidden = this.#heading.hidden = this.conversation.empty;
    this.#showDownloads();
    const session = this.#socket.session;
    if (!session?.tools || session.tools === this.#tools) return;
    this.#tools = session.tools;
    this.empty.show(session);
    this.downloads.show(session.providerReason ?? null);
  }

  #showDownloads() {
    this.empty.hideHints(this.downloads.hints);
    const target = this.conversation.empty ? this.empty.downloads : this.#downloadArea;
    if (this.downloads.root.parentElement !== target) target.append(this.downloads.root);
    this.#downloadArea.hidden = this.conversation.empty || !this.downloads.active;
  }

  #showSource(record) {
    this.#showSide((close) => sourcesPanel(this.#api, record, close));
  }

  #showTrace({ session, turn }) {
    const trace = this.#traces.find(session, turn);
    if (!trace) return;
    const operator = Boolean(this.#socket.session?.providerReason);
    this.#showSide((close) => tracePanel(this.#api, trace, { now: () => this.conversation.now, operator, close }));
  }

  /** Shows a panel beside the conversation; `create(close)` returns it. */
  #showSide(create) {
    const from = document.activeElement;
    replace(this.#side, create(() => {
      this.#closeSide();
      from?.focus();
    }));
    this.#side.hidden = false;
    this.#side.querySelector("button").focus();
  }

  #closeSide() {
    replace(this.#side);
    this.#side.hidden = true;
  }

  // Tool events

  #handleCustomEvent({ name, fields }, socket) {
    if (name === "voice_session_start" && socket === this.#socket) this.#offerCall(fields.pendingRequest);
    else if (name === "chat_message") this.conversation.add(notice(fields.text));
    else if (name === "ban") this.#showBan(fields);
    else this.conversation.add(notice(`${name}: ${JSON.stringify(fields)}`));
  }

  #showBan({ until, message }) {
    const seconds = until - this.conversation.now;
    if (seconds <= 0) return;
    this.#socket.dispatchEvent(new CustomEvent("banned", { detail: { message, retryAfter: seconds } }));
  }

  #offerCall(request) {
    const start = element("button", {
      type: "button", class: "primary",
      on: {
        click: async () => {
          start.disabled = true;
          if (!(await this.#startCall(this.#socket.token))) start.disabled = false;
        },
      },
    }, "Start the call");
    this.conversation.add(element("li", { class: "card offer" },
      element("strong", {}, "Continue by voice?"),
      request && element("p", {}, `The call will start with your request: “${request}”`),
      element("div", { class: "row" }, start)));
  }

  // Calls

  #callBar = null;

  async #startCall(handover = null) {
    if (this.#call) return false;
    if (!(await explainMicrophone(this.#socket.session?.provider))) return false;
    const call = new VoiceCall(this.#api);
    this.#call = call;
    this.#callStartIndex = this.conversation.root.children.length;
    this.#callBar = new CallBar({
      mute: (muted) => call.mute(muted),
      useMicrophone: (deviceId) => call.useMicrophone(deviceId).catch((error) => this.conversation.add(notice(...explainCallError(error)))),
      hangUp: () => call.hangUp(),
    });
    replace(this.#callArea, this.#callBar.root);
    this.composer.callButton.hidden = true;
    this.#listen(call.socket);
    call.addEventListener("level", ({ detail }) => this.#callBar?.setLevel(detail));
    call.addEventListener("change", () => this.#update());
    call.addEventListener("ended", ({ detail }) => this.#onCallEnded(call, detail));
    call.socket.addEventListener("banned", ({ detail }) => {
      this.#socket.dispatchEvent(new CustomEvent("banned", { detail }));
    });
    this.#update();
    try {
      const { model = null, models = [] } = this.#socket.session ?? {};
      const speaks = models.find(({ name }) => name === model)?.modes.includes("voice");
      const direct = handover === null && !speaks && (await this.#supportsWebRtc());
      await call.start({ direct, handover, model: speaks ? model : null });
      this.#callBar?.showMicrophones(await call.microphones());
      return true;
    } catch (error) {
      this.conversation.add(notice(...explainCallError(error)));
      call.hangUp();
      return false;
    }
  }

  /** Returns whether browser and provider support calls over WebRTC. */
  async #supportsWebRtc() {
    if (!("RTCPeerConnection" in window)) return false;
    try {
      return (await this.#api.get("status", { session: null })).browserCalls === true;
    } catch {
      return false;
    }
  }

  #onCallEnded(call, text) {
    if (call !== this.#call) return;
    this.#call = null;
    this.#callBar = null;
    replace(this.#callArea);
    this.#banner.clear();
    this.composer.callButton.hidden = false;
    if (call.wasConnected) this.conversation.add(notice("The call has ended.", text.replace(/^The session has ended\.$/, "")));
    this.#sendCallTranscript();
    this.#update();
  }

  /** Sends the text session the transcript of the call. */
  #sendCallTranscript() {
    const transcript = this.conversation.transcriptSince(this.#callStartIndex);
    if (!transcript) return;
    const prefix = "Transcript of the voice call that has just ended:\n";
    this.#socket.send({ type: "context", text: prefix + transcript.slice(-(MAX_CONTEXT_LENGTH - prefix.length)) });
  }
}
