// The frame of the page: navigation, theme and token.

import { Api } from "./api.js";
import { element, replace } from "./dom.js";
import { SessionSocket } from "./session-socket.js";
import { BuildStatus } from "./parts/build-status.js";
import { BanBanner } from "./parts/countdown.js";
import { askForToken } from "./parts/token-dialog.js";
import { startTheme } from "./theme.js";

const VIEWS = {
  chat: { title: "Chat", load: () => import("./views/chat.js") },
  registry: { title: "Registry", load: () => import("./views/registry.js") },
  operations: { title: "Operations", load: () => import("./views/operations.js") },
  confirmation: { title: "Confirmation", load: () => import("./views/confirmation.js") },
};

const api = new Api();
const socket = new SessionSocket(api, "text");
const main = document.getElementById("main");
const banner = new BanBanner(document.getElementById("banner"), () => {
  socket.dispatchEvent(new Event("unbanned"));
  socket.retry();
});

let unmount = () => {};
let shownView = null;

/** Opens a view by its name and path, such as `registry/kb_search`. */
function navigate(path) {
  location.hash = `#/${path}`;
}

async function show() {
  const name = location.hash.replace(/^#\//, "").split("/")[0];
  const requested = Object.hasOwn(VIEWS, name) ? name : "chat";
  if (requested === shownView) return;
  shownView = requested;
  const { title, load } = VIEWS[requested];
  for (const link of document.querySelectorAll(".views a")) {
    const current = link.getAttribute("href") === `#/${requested}`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} · Jackfield`;
  unmount();
  unmount = () => {};
  const root = element("div", { class: `view view-${requested}` });
  replace(main, root);
  try {
    const view = await load();
    // The user may have opened another view meanwhile.
    if (root.isConnected) unmount = view.mount(root, { api, socket, navigate }) ?? (() => {});
  } catch (error) {
    console.error(error);
    replace(root, element("p", { class: "card problem", role: "alert" }, "This view could not be loaded. ",
      element("button", { type: "button", on: { click: () => location.reload() } }, "Reload the page")));
  }
}

function watchToken() {
  const button = document.getElementById("token");
  button.addEventListener("click", () => askForToken(api));
  const showButton = () => {
    button.hidden = !api.token;
  };
  showButton();
  api.addEventListener("token", () => {
    showButton();
    socket.retry();
  });
  api.addEventListener("unauthorized", ({ detail }) => {
    // The host's message says how a program sends a token; the user types it into the dialog.
    askForToken(api, detail.code === "missing_token" ? "" : detail.message);
  });
}

api.addEventListener("banned", ({ detail }) => socket.dispatchEvent(new CustomEvent("banned", { detail })));
socket.addEventListener("banned", ({ detail }) => banner.show(detail.message, detail.retryAfter));
socket.addEventListener("session", ({ detail }) => {
  api.session = detail.token;
  banner.hide();
});
new BuildStatus(api, document.getElementById("build")).start();
startTheme(document.getElementById("theme"));
watchToken();
addEventListener("hashchange", show);
await show();
