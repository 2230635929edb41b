// The order of the policies, and their decisions on a call.

import { element } from "../dom.js";

const TONES = { pass: "", "not reached": "faint", refused: "bad", pending: "warn" };

/** Shows the policies in order, with validation and the handler. */
export function policyOrder(chain) {
  const admit = chain.filter((link) => link.stage === "ADMIT");
  const shape = chain.filter((link) => link.stage === "SHAPE");
  const isMixed = new Set(chain.map(({ distribution }) => distribution)).size > 1;
  const link = ({ name, distribution }) => element("li", { title: distribution }, element("strong", {}, name),
    isMixed ? element("span", { class: "hint" }, ` ${distribution}`) : null);
  const builtIn = (name, text) => element("li", { class: "built-in" }, element("strong", {}, name),
    element("span", { class: "hint" }, ` ${text}`));
  return element("ol", { class: "chain" }, admit.map(link), builtIn("validation", "checks the arguments against the schema"),
    shape.map(link), builtIn("handler", "runs the tool"));
}

/** Shows the decision of each policy about one call. */
export function decisionList(decisions) {
  const rows = Object.entries(decisions ?? {});
  if (!rows.length) return element("p", { class: "hint" }, "No policy applies to this tool.");
  return element("ul", { class: "decisions" }, rows.map(([policy, decision]) =>
    element("li", { class: TONES[decision] ?? "" }, element("span", {}, policy), element("span", {}, decision))));
}
