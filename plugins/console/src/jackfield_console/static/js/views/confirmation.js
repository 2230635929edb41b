// The card of one waiting call of an MCP client, opened by its address: #/confirmation/SESSION/CONFIRMATION.

import { element, replace } from "../dom.js";
import { ConfirmationCard } from "../parts/confirmation-card.js";

/** Shows the card that the address names. */
export function mount(root, { api }) {
  const show = () => showCard(root, api);
  addEventListener("hashchange", show);
  api.addEventListener("token", show);
  show();
  return () => {
    removeEventListener("hashchange", show);
    api.removeEventListener("token", show);
  };
}

async function showCard(root, api) {
  const [session, confirmation] = location.hash.split("/").slice(2);
  const path = `mcp/confirmations/${encodeURIComponent(session ?? "")}/${encodeURIComponent(confirmation ?? "")}`;
  // The card belongs to the user, not to the conversation of this page.
  const options = { session: null };
  let waiting;
  try {
    waiting = await api.get(path, options);
  } catch (error) {
    replace(root, element("p", { class: "card problem", role: "alert" }, error.message));
    return;
  }
  const card = new ConfirmationCard(waiting, waiting.seconds, (approve) => {
    api.post(path, { approve }, options).then(
      ({ approved }) => card.settle(approved),
      (error) => card.refuse(error.message, error.suggestion),
    );
    return true;
  });
  if (waiting.state !== "waiting") card.conclude(waiting.state);
  replace(root, element("div", { class: "stack" },
    element("h1", {}, "Confirmation"),
    element("p", { class: "hint" }, "A program that uses your tools is asking for your approval."),
    element("div", { class: "card stack" }, element("code", {}, waiting.tool), card.root)));
}
