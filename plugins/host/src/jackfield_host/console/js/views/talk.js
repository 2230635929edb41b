// Talk: the conversation in writing and by voice, what the tools do meanwhile, and what answers rest on.

import { element, replace } from "../dom.js";
import { CLOSED } from "../line.js";
import { CallBar, explainMicrophone } from "../parts/call-bar.js";
import { Composer } from "../parts/composer.js";
import { Downloads } from "../parts/downloads.js";
import { EmptyState } from "../parts/empty.js";
import { Evidence, evidencePanel } from "../parts/evidence.js";
import { Flow } from "../parts/flow.js";
import { LineBanner } from "../parts/line-banner.js";
import { notice } from "../parts/message.js";
import { Timeline } from "../parts/timeline.js";
import { WORDS, WORDS_IN_TEXT, whyNoCall } from "../parts/words.js";
import { VoiceCall } from "../voice/call.js";

/** The host takes so much of a note at once. */
const LONGEST_NOTE = 4000;

let room = null;

/** Shows the conversation; it goes on while another view is shown. */
export function mount(root, { api, line }) {
  room ??= new Room(api, line);
  root.append(room.root);
  room.shown();
  return () => room.root.remove();
}

class Room {
  #api;
  #line;
  #call = null;
  #callBegan = 0;
  #state = "initializing";
  /** Why the host turns the user away: `banned`, `full`, or it does not. */
  #away = null;

  #word = element("span", { class: "state", data: { testid: "state" }, role: "status" });
  #facts = element("span", { class: "hint facts-line" });
  #banner = new LineBanner();
  #calls = element("div");
  /** Where a download is shown while a conversation goes on. */
  #meanwhile = element("div", { class: "meanwhile" });
  #side = element("aside", { class: "talk-side", "aria-label": "Activity and sources" });
  #open = element("button", {
    type: "button", class: "small show-side", "aria-expanded": "false", on: { click: () => this.#showSide() },
  }, "Activity");

  constructor(api, line) {
    this.#api = api;
    this.#line = line;
    this.evidence = new Evidence();
    this.timeline = new Timeline();
    this.flow = new Flow(api, this.evidence, (record) => this.#showEvidence(record), {
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
    this.#listen(line);
    line.open();
    this.#show();
  }

  /** The view is on the page again. */
  shown() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    // On a phone the keyboard would cover what there is to read.
    if (matchMedia("(pointer: fine)").matches) this.composer.focus();
  }

  #scroller = element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Conversation so far" });

  #layout() {
    replace(this.#side, this.timeline.root);
    this.#scroller.append(this.empty.root, this.flow.root);
    return element("div", { class: "talk" },
      element("section", { class: "talk-main", "aria-label": "Talk" },
        element("div", { class: "talk-head" }, this.#word, this.#facts,
          element("div", { class: "row" }, this.#open,
            element("button", { type: "button", class: "small", on: { click: () => this.#startOver() } }, "New", element("span", { class: "wide" }, " conversation")))),
        this.#banner.root, this.#scroller, this.#meanwhile, this.#calls, this.composer.root),
      this.#side);
  }

  /** The line that the user speaks on now. */
  get #current() {
    return this.#call?.line ?? this.#line;
  }

  #listen(line) {
    line.addEventListener("message", ({ detail }) => {
      if (line === this.#line && ["session", "session_status"].includes(detail.type)) this.#state = detail.state;
      this.flow.take(detail, line);
      this.#show();
    });
    line.addEventListener("state", () => this.#show());
    line.addEventListener("closed", ({ detail }) => line === this.#line && this.#showClosed(detail));
    line.addEventListener("banned", () => this.#turnAway("banned"));
    line.addEventListener("full", ({ detail }) => this.#showFull(line, detail));
    for (const name of ["unbanned", "session"]) line.addEventListener(name, () => this.#turnAway(null));
  }

  /** The host takes nothing from the user for now, or does again. */
  #turnAway(why) {
    this.#away = why;
    this.composer.enable(why === null);
    if (why === "banned") this.#banner.clear();
    this.#show();
  }

  #say(text) {
    const line = this.#current;
    this.flow.said(text, line.state === "open");
    line.say(text);
  }

  #startOver() {
    this.#call?.hangUp();
    this.flow.clear();
    this.timeline.clear();
    this.evidence.clear();
    this.#countCalls();
    this.#banner.clear();
    this.#line.startOver();
    this.#showEmpty();
    this.composer.focus();
  }

  // What is shown

  #show() {
    const inCall = this.#call !== null;
    const state = this.#call?.state ?? this.#textState();
    const words = (inCall ? WORDS : WORDS_IN_TEXT)[state] ?? state;
    if (this.#word.textContent !== words) this.#word.textContent = words;
    this.#word.dataset.state = state;
    this.#bar?.say(words);
    const session = this.#current.session ?? this.#line.session;
    this.#facts.textContent = session
      ? `${session.provider} · ${inCall ? "voice" : "text"} · registry ${session.registry}`
      : "";
    this.composer.stop.hidden = !["speaking", "executing_tool", "processing"].includes(state);
    this.#showLost();
    this.#showEmpty();
  }

  #textState() {
    if (this.#away) return this.#away;
    if (this.#line.state === "open") return this.#state;
    if (this.#line.state === "closed") return "terminated";
    return this.#line.session ? "reconnecting" : "initializing";
  }

  #showLost() {
    if (this.#current.state === "reconnecting") this.#banner.lost(() => this.#current.retry());
    else if (this.#current.state === "open") this.#banner.clear();
  }

  #showFull(line, { message }) {
    if (line !== this.#line) {
      this.flow.add(notice(message));
      return;
    }
    this.#turnAway("full");
    this.#banner.full(message, () => line.retry());
  }

  #showClosed({ code, sentence }) {
    // While the user is banned another banner says so, and there is nothing to be done.
    if (!sentence || code === CLOSED.banned || this.#away === "banned") this.#banner.clear();
    else this.#banner.closed(sentence, this.#line.token ? "Go on here" : "Begin anew", () => this.#line.retry());
  }

  #tools = null;

  #showEmpty() {
    this.empty.root.hidden = !this.flow.empty;
    this.flow.root.hidden = this.flow.empty;
    this.#showDownloads();
    const session = this.#line.session;
    if (!session?.tools || session.tools === this.#tools) return;
    this.#tools = session.tools;
    this.empty.show(session);
    this.downloads.show(session.providerReason ?? null);
  }

  #showDownloads() {
    this.empty.hideHints(this.downloads.hints);
    const place = this.flow.empty ? this.empty.downloads : this.#meanwhile;
    if (this.downloads.root.parentElement !== place) place.append(this.downloads.root);
    this.#meanwhile.hidden = this.flow.empty || !this.downloads.active;
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

  #showEvidence(record) {
    const from = document.activeElement;
    const close = () => {
      replace(this.#side, this.timeline.root);
      this.root.classList.remove("side-open");
      from?.focus();
    };
    replace(this.#side, evidencePanel(this.#api, record, close));
    this.root.classList.add("side-open");
    this.#side.querySelector("button").focus();
  }

  // What tools tell the client

  #custom({ name, fields, at }, line) {
    if (name === "voice_session_start" && line === this.#line) this.#offerCall(fields.pendingRequest);
    else if (name === "chat_message") this.flow.add(notice(fields.text));
    else if (name === "ban") this.#ban(fields, at);
    else this.flow.add(notice(`${name}: ${JSON.stringify(fields)}`));
  }

  #ban({ until, message }, at) {
    const left = until - at - Math.max(0, Date.now() / 1000 - at);
    if (left <= 0) return;
    this.#line.dispatchEvent(new CustomEvent("banned", { detail: { message, retryAfter: left } }));
  }

  #offerCall(request) {
    const start = element("button", {
      type: "button", class: "primary",
      on: {
        click: async () => {
          start.disabled = true;
          if (!(await this.#talk(this.#line.token))) start.disabled = false;
        },
      },
    }, "Start talking");
    this.flow.add(element("li", { class: "card offer" },
      element("strong", {}, "Go on by voice?"),
      request && element("p", {}, `The call begins with what you asked: “${request}”`),
      element("div", { class: "row" }, start)));
  }

  // Calls

  #bar = null;

  async #talk(handover = null) {
    if (this.#call) return false;
    const provider = this.#line.session?.provider ?? "the provider";
    if (!(await explainMicrophone(provider))) return false;
    const call = new VoiceCall(this.#api);
    this.#call = call;
    this.#callBegan = this.flow.root.children.length;
    this.#bar = new CallBar({ mute: (muted) => call.mute(muted), hangUp: () => call.hangUp() });
    replace(this.#calls, this.#bar.root);
    this.composer.talk.hidden = true;
    this.#listen(call.line);
    call.addEventListener("level", ({ detail }) => this.#bar?.level(detail));
    call.addEventListener("change", () => this.#show());
    call.addEventListener("ended", ({ detail }) => this.#callOver(call, detail));
    call.line.addEventListener("banned", ({ detail }) => {
      this.#line.dispatchEvent(new CustomEvent("banned", { detail }));
    });
    this.#show();
    try {
      const direct = handover === null && (await this.#direct());
      await call.start({ direct, handover });
      return true;
    } catch (error) {
      this.flow.add(notice(...whyNoCall(error)));
      call.hangUp();
      return false;
    }
  }

  /** Whether the provider takes calls from browsers, and this browser makes them. */
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
    if (call.begun) this.flow.add(notice("The call has ended.", sentence.replace(/^The conversation has ended\.$/, "")));
    this.#handBack();
    this.#show();
  }

  /** Whoever goes on in writing need not say again what was said in the call. */
  #handBack() {
    const said = this.flow.spokenSince(this.#callBegan);
    if (!said) return;
    const before = "What was said in a voice call since, word for word:\n";
    this.#line.send({ type: "context", text: before + said.slice(-(LONGEST_NOTE - before.length)) });
  }
}
