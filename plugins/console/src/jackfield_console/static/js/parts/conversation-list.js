// The user's conversations: find, continue, rename and delete them.

import { element, replace } from "../dom.js";
import { formatTime } from "./format.js";
import { icon } from "./icons.js";

const LIMIT = 50;
const SEARCH_DELAY_MS = 250;

/** The list beside the chat. `open(conversation)` continues or shows one, `startOver()` starts a new one. */
export class ConversationList {
  /** The id of the conversation that is shown. */
  #current = null;
  #api;
  #callbacks;
  #list = element("ul");
  #note = element("p", { class: "hint", role: "status" });
  #search = element("input", {
    type: "search", placeholder: "Search", "aria-label": "Search conversations", maxlength: "200",
    on: { input: () => this.#searchSoon() },
  });
  #timer = null;
  #requests = 0;

  constructor(api, callbacks) {
    this.#api = api;
    this.#callbacks = callbacks;
    this.root = element("nav", { class: "conversations", id: "conversations", "aria-label": "Conversations" },
      element("button", { type: "button", on: { click: callbacks.startOver } }, "New conversation"),
      this.#search, this.#list, this.#note);
  }

  /** Marks the conversation that is shown. */
  set current(id) {
    this.#current = id;
    for (const item of this.#list.children) markCurrent(item, id);
  }

  focus() {
    this.#search.focus();
  }

  /** Loads the list; of several requests, the last one counts. */
  async refresh() {
    const request = ++this.#requests;
    const search = this.#search.value.trim();
    try {
      const params = { user: "me", limit: LIMIT, search };
      const { sessions, complete } = await this.#api.get("sessions", { params, session: null });
      const said = sessions.filter(({ title }) => title !== null).sort((a, b) => b.lastAt - a.lastAt);
      if (request === this.#requests) this.#show(said, complete, search);
    } catch (error) {
      if (request === this.#requests) this.#note.textContent = error.message;
    }
  }

  #searchSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.refresh(), SEARCH_DELAY_MS);
  }

  #show(conversations, complete, search) {
    // A name that is being typed, and the keyboard's place in the list, must not be lost.
    if (this.#list.querySelector("form")) return;
    const focused = this.#list.contains(document.activeElement) ? document.activeElement.closest("li").dataset.session : null;
    replace(this.#list, conversations.map((each) => this.#item(each)));
    this.#list.querySelector(`[data-session="${focused}"] .open`)?.focus();
    this.#note.textContent = conversations.length
      ? (complete ? "" : "Older conversations are not shown.")
      : (search ? "No conversation contains these words." : "Your conversations will appear here. They are kept for seven days.");
  }

  #item(conversation) {
    const { session, title, lastAt, mode, state } = conversation;
    const past = ["ended", "expired"].includes(state) ? " · ended" : "";
    const tool = (name, label, click) => element("button", {
      type: "button", class: "icon", title: label, "aria-label": `${label} “${title}”`, on: { click },
    }, icon(name));
    const item = element("li", { data: { session } },
      element("button", { type: "button", class: "open", title, on: { click: () => this.#callbacks.open(conversation) } },
        element("span", { class: "title" }, title),
        element("span", { class: "when hint" }, `${formatTime(lastAt)} · ${mode}${past}`)),
      element("span", { class: "tools" },
        tool("rename", "Rename", () => this.#rename(item, conversation)),
        tool("remove", "Delete", () => this.#delete(item, conversation))));
    markCurrent(item, this.#current);
    return item;
  }

  /** Lets the user type a name; Enter saves it, Escape does not. */
  #rename(item, conversation) {
    const input = element("input", { value: conversation.title, maxlength: "200", "aria-label": "Title" });
    let open = true;
    const close = async (title) => {
      if (!open) return;
      open = false;
      if (title && title !== conversation.title) {
        await this.#change(conversation, "title", { title });
      }
      const fresh = this.#item({ ...conversation, title: title || conversation.title });
      item.replaceWith(fresh);
      fresh.querySelector(".open").focus();
      this.refresh();
    };
    replace(item, element("form", {
      on: {
        submit: (event) => {
          event.preventDefault();
          close(input.value.trim());
        },
      },
    }, input));
    input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      close("");
    });
    input.addEventListener("blur", () => close(input.value.trim()));
    input.select();
  }

  async #delete(item, conversation) {
    if (!(await confirmDeletion(conversation.title))) return;
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    (next?.querySelector(".open") ?? this.#search).focus();
    if (conversation.session === this.#current) this.#callbacks.startOver();
    await this.#change(conversation, "delete", {});
    this.refresh();
  }

  async #change({ session }, action, body) {
    try {
      await this.#api.post(`sessions/${session}/${action}`, body, { session: null });
    } catch (error) {
      this.#note.textContent = error.message;
    }
  }
}

function markCurrent(item, id) {
  const button = item.querySelector(".open");
  if (item.dataset.session === id) button?.setAttribute("aria-current", "true");
  else button?.removeAttribute("aria-current");
}

function confirmDeletion(title) {
  return new Promise((resolve) => {
    const dialog = element("dialog", { "aria-label": "Delete the conversation" },
      element("form", { method: "dialog", class: "stack" },
        element("h2", {}, "Delete the conversation?"),
        element("p", {}, `“${title}” and its transcript will be deleted. The effects of its tool calls will not be undone.`),
        element("div", { class: "row end" },
          element("button", { value: "no" }, "Cancel"),
          element("button", { value: "yes", class: "danger" }, "Delete"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
