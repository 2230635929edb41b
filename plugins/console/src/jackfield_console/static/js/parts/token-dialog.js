// The dialog for the access token, which is kept for this tab.

import { element } from "../dom.js";

let open = null;

/** Asks for a token; `reason` is the host's message about the previous one. */
export function askForToken(api, reason = "") {
  if (open) return;
  const input = element("input", {
    id: "token-input", type: "password", autocomplete: "off", spellcheck: "false", required: true,
  });
  const form = element("form", { method: "dialog", class: "stack" },
    element("h2", {}, "Access token"),
    element("p", {}, reason || "This host requires an access token. Ask the operator for one."),
    element("label", { for: "token-input" }, "Token"),
    input,
    element("p", { class: "hint" }, "The token is an API key from ", element("code", {}, "jackfield key NAME"),
      " or a JSON Web Token. The console keeps it until you close this tab."),
    element("div", { class: "row end" },
      element("button", { type: "button", on: { click: () => open.close() } }, "Not now"),
      element("button", { class: "primary" }, "Sign in")));
  open = element("dialog", { "aria-label": "Token" }, form);
  form.addEventListener("submit", () => {
    api.token = input.value.trim();
  });
  open.addEventListener("close", () => {
    open.remove();
    open = null;
  });
  document.body.append(open);
  open.showModal();
}
