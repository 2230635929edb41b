// The changes between two registries.

import { element } from "../dom.js";

const TONES = { major: "bad", minor: "warn", patch: "" };

/** Shows the changes; `from` is null if there is no other registry. */
export function registryDiff(diff) {
  if (diff.from === null) {
    return element("p", { class: "hint" }, "There is no previous registry to compare with. When ",
      element("code", {}, "jackfield build"), " replaces the registry with a different one, it keeps a copy of the old one.");
  }
  const explanation = diff.waiting
    ? "A newer registry has been built. The changes take effect when the host restarts."
    : "Changes since the previous registry.";
  return element("div", { class: "stack" },
    element("p", {}, element("code", {}, diff.from), " → ", element("code", {}, diff.to)),
    element("p", { class: "hint" }, explanation),
    element("ul", { class: "changes" }, diff.changes.map(change)),
    diff.changes.length ? null : element("p", {}, "There are no changes that affect sessions."));
}

function change({ subject, what, bump }) {
  return element("li", {}, subject ? element("code", {}, subject) : null, element("span", {}, what),
    bump ? element("span", { class: `tag ${TONES[bump]}` }, bump === "major" ? "major: breaking" : bump) : null);
}
