// The shell: which view is shown, in which colours, for whom.

import { Api } from "./api.js";
import { element, replace } from "./dom.js";
import { Line } from "./line.js";
import { BanBanner } from "./parts/countdown.js";
import { askForToken } from "./parts/token-dialog.js";
import { startTheme } from "./theme.js";

const VIEWS = {
  talk: { title: "Talk", load: () => import("./views/talk.js") },
  registry: { title: "Registry", load: () => import("./views/registry.js") },
  operations: { title: "Operations", load: () => import("./views/operations.js") },
};

const api = new Api();
const line = new Line(api, "text");
const main = document.getElementById("main");
const banner = new BanBanner(document.getElementById("banner"), () => {
  line.dispatchEvent(new Event("unbanned"));
  line.retry();
});

let unmount = () => {};
let shown = null;

/** Goes to a view, by its name and what may follow it: `registry/kb_search`. */
function navigate(path) {
  location.hash = `#/${path}`;
}

async function show() {
  const name = location.hash.replace(/^#\//, "").split("/")[0];
  const wanted = Object.hasOwn(VIEWS, name) ? name : "talk";
  if (wanted === shown) return;
  shown = wanted;
  const { title, load } = VIEWS[wanted];
  for (const link of document.querySelectorAll(".views a")) {
    const current = link.getAttribute("href") === `#/${wanted}`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${title} · Jackfield`;
  unmount();
  unmount = () => {};
  const root = element("div", { class: `view view-${wanted}` });
  replace(main, root);
  try {
    const view = await load();
    // Whoever has gone on meanwhile does not want it any more.
    if (root.isConnected) unmount = view.mount(root, { api, line, navigate }) ?? (() => {});
  } catch (error) {
    console.error(error);
    replace(root, element("p", { class: "card problem", role: "alert" }, "This view could not be loaded. ",
      element("button", { type: "button", on: { click: () => location.reload() } }, "Load the page again")));
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
    line.retry();
  });
  api.addEventListener("unauthorized", ({ detail }) => {
    // The host says how a program sends a token; whoever sees the dialog types it in.
    askForToken(api, detail.code === "missing_token" ? "" : detail.message);
  });
}

api.addEventListener("banned", ({ detail }) => line.dispatchEvent(new CustomEvent("banned", { detail })));
line.addEventListener("banned", ({ detail }) => banner.show(detail.message, detail.retryAfter));
line.addEventListener("session", ({ detail }) => {
  api.session = detail.token;
  banner.hide();
});
startTheme(document.getElementById("theme"));
watchToken();
addEventListener("hashchange", show);
await show();
