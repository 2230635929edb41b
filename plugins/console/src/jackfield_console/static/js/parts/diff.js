// The changes between two registries.

import { element } from "../dom.js";

const TONES = { major: "bad", minor: "warn", patch: "" };

/** The changes; null where there is no other registry. */
export function difference(told) {
  if (!told) {
    return element("p", { class: "hint" }, "No earlier registry is kept here. ",
      element("code", {}, "jackfield build"), " keeps the one before when something has changed.");
  }
  const words = told.waiting
    ? "A newer registry has been built. These changes take effect after a restart of the host."
    : "Changes of the last build.";
  return element("div", { class: "stack" },
    element("p", {}, element("code", {}, told.from), " → ", element("code", {}, told.to)),
    element("p", { class: "hint" }, words),
    element("ul", { class: "changes" }, told.changes.map(change)),
    told.changes.length ? null : element("p", {}, "No changes that affect sessions."));
}

function change({ subject, what, bump }) {
  return element("li", {}, subject ? element("code", {}, subject) : null, element("span", {}, what),
    bump ? element("span", { class: `tag ${TONES[bump]}` }, bump === "major" ? "major: breaking" : bump) : null);
}
