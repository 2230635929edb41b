// The chain of policies, and what each decided about a call.

import { element } from "../dom.js";

const TONES = { pass: "", "not reached": "faint", refused: "bad", pending: "warn" };

/** The policies in order, with validation and the tool itself. */
export function policyOrder(chain) {
  const admit = chain.filter((link) => link.stage === "ADMIT");
  const shape = chain.filter((link) => link.stage === "SHAPE");
  const several = new Set(chain.map(({ distribution }) => distribution)).size > 1;
  const link = ({ name, distribution }) => element("li", { title: distribution }, element("strong", {}, name),
    several ? element("span", { class: "hint" }, ` ${distribution}`) : null);
  const own = (name, words) => element("li", { class: "own" }, element("strong", {}, name),
    element("span", { class: "hint" }, ` ${words}`));
  return element("ol", { class: "chain" }, admit.map(link), own("validation", "the arguments against the schema"),
    shape.map(link), own("handler", "the tool itself"));
}

/** What each policy decided about one call. */
export function decisionList(decisions) {
  const rows = Object.entries(decisions ?? {});
  if (!rows.length) return element("p", { class: "hint" }, "No policy applies to this tool.");
  return element("ul", { class: "decisions" }, rows.map(([policy, decision]) =>
    element("li", { class: TONES[decision] ?? "" }, element("span", {}, policy), element("span", {}, decision))));
}
