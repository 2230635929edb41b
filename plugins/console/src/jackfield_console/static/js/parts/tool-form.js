// Try a tool: its arguments as a form, a governed call, and the outcome.

import { ApiError } from "../api.js";
import { duration, element, readable, replace } from "../dom.js";
import { Confirmation } from "./confirmation-card.js";
import { decisionList } from "./policy-order.js";
import { SchemaForm } from "./schema-form.js";
import { OUTCOMES } from "./format.js";

/** Calls one tool as this user, under the same policies as a model. */
export class ToolForm {
  #api;
  #tool;
  #form;
  #token = null;
  #outcome = element("div", { class: "outcome-place", "aria-live": "polite" });
  #run = element("button", { class: "primary" }, "Run");
  #same = element("input", { type: "checkbox", id: "same-session" });

  constructor(api, tool) {
    this.#api = api;
    this.#tool = tool;
    this.#form = new SchemaForm(tool.parameters);
    this.root = element("section", { class: "card stack", "aria-labelledby": "trial-title" },
      element("h2", { id: "trial-title" }, "Try it"),
      element("form", {
        class: "stack", novalidate: true, "aria-label": `Arguments of ${tool.toolId}`,
        on: {
          submit: (event) => {
            event.preventDefault();
            this.#call();
          },
        },
      },
      Object.keys(tool.parameters.properties ?? {}).length ? null : element("p", { class: "hint" }, "It takes no arguments."),
      this.#form.root,
      element("div", { class: "row" }, this.#run,
        element("span", { class: "choice" }, this.#same,
          element("label", { for: "same-session" }, "Reuse the previous call's session and turn (its budgets apply)")))),
      this.#outcome);
  }

  async #call() {
    const args = this.#form.read();
    if (args === null) return;
    this.#run.disabled = true;
    replace(this.#outcome, element("p", { class: "hint", role: "status" }, `${this.#tool.toolId} is running …`));
    try {
      this.#show(await this.#asked(args));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      replace(this.#outcome, element("p", { class: "card problem", role: "alert" }, error.message,
        error.suggestion ? ` ${error.suggestion}` : ""));
    } finally {
      this.#run.disabled = false;
    }
  }

  /** The answer to the call, including failures of the tool or a policy. */
  async #asked(args) {
    const session = this.#same.checked ? this.#token : null;
    try {
      // In one group, so that the calls of a session share a turn.
      const options = { session, headers: { "Jackfield-Turn": "trial" } };
      return await this.#api.post(`execute/${encodeURIComponent(this.#tool.toolId)}`, { arguments: args }, options);
    } catch (error) {
      if (error.body?.envelope) return error.body;
      throw error;
    }
  }

  #show(result) {
    this.#token = result.token ?? this.#token;
    const { envelope } = result;
    replace(this.#outcome,
      headline(envelope, result.duration, this.#tool.latencyBudgetMs),
      result.confirmation ? this.#card(result.confirmation) : answer(envelope),
      element("h3", {}, "What each policy decided"), decisionList(result.decisions),
      element("details", {}, element("summary", {}, "The envelope, as the model receives it"),
        element("pre", { tabindex: "0" }, readable(envelope))));
    const faults = envelope.error?.details?.errors;
    if (envelope.error?.type === "VALIDATION" && faults) this.#form.blame(faults);
  }

  #card(asked) {
    const after = element("div");
    const decide = (approve) => {
      this.#decided(card, asked.token, approve, after);
      return true;
    };
    const card = new Confirmation({ ...asked, callId: null }, asked.expiresAt - Date.now() / 1000, decide);
    return element("div", { class: "stack" }, element("ul", { class: "plain-list" }, card.root), after);
  }

  async #decided(card, token, approve, after) {
    try {
      const path = `confirmations/${encodeURIComponent(token)}`;
      const settled = await this.#api.post(path, { approve }, { session: this.#token });
      card.settle(approve);
      const { envelope } = settled;
      if (envelope) replace(after, headline(envelope, envelope.meta.duration, this.#tool.latencyBudgetMs), answer(envelope));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      card.refuse(error.message, error.suggestion);
      const envelope = error.body?.envelope;
      if (envelope) replace(after, headline(envelope, envelope.meta.duration, this.#tool.latencyBudgetMs), answer(envelope));
    }
  }
}

function headline({ ok, error, meta }, ms, budget) {
  const waits = error?.type === "CONFIRMATION_REQUIRED";
  const tone = ok ? "good" : waits || OUTCOMES[meta.state] ? "warn" : "bad";
  const words = ok ? "Succeeded" : waits ? "Waits for your decision" : OUTCOMES[meta.state] ?? `Failed: ${error.type}`;
  const time = `${duration(ms)} of ${duration(budget)}`;
  return element("div", { class: "row headline" }, element("span", { class: `tag ${tone}`, role: "status" }, words),
    element("span", { class: ms > budget ? "tag warn" : "hint" }, time));
}

function answer({ ok, data, error, intents }) {
  if (ok) {
    return [element("pre", { tabindex: "0", class: "data", "aria-label": "Result" }, readable(data)),
      intents?.length ? element("p", { class: "hint" }, `Asked for: ${intents.map((each) => each.type).join(", ")}`) : null];
  }
  return element("div", { class: "card problem stack" }, element("p", {}, error.message),
    error.suggestion ? element("p", { class: "hint" }, error.suggestion) : null);
}
