// What changed from one registry to another.

import { element } from "../dom.js";

const TONES = { major: "bad", minor: "warn", patch: "" };

/** The difference as the host tells it; null where there is nothing to compare with. */
export function difference(told) {
  if (!told) {
    return element("p", { class: "hint" }, "No registry before this one is kept here. ",
      element("code", {}, "jackfield build"), " keeps the one before when something has changed.");
  }
  const words = told.waiting
    ? "A newer registry has been built; this is what a restart of the host brings."
    : "This is what the last build changed.";
  return element("div", { class: "stack" },
    element("p", {}, element("code", {}, told.from), " → ", element("code", {}, told.to)),
    element("p", { class: "hint" }, words),
    element("ul", { class: "changes" }, told.changes.map(change)),
    told.changes.length ? null : element("p", {}, "Nothing that a session could notice."));
}

function change({ subject, what, bump }) {
  return element("li", {}, subject ? element("code", {}, subject) : null, element("span", {}, what),
    bump ? element("span", { class: `tag ${TONES[bump]}` }, bump === "major" ? "major: breaking" : bump) : null);
}
