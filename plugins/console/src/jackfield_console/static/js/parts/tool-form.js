// Try a tool: its arguments as a form, a governed call, and the outcome.

import { ApiError } from "../api.js";
import { element, replace } from "../dom.js";
import { ConfirmationCard } from "./confirmation-card.js";
import { decisionList } from "./policies.js";
import { SchemaForm } from "./schema-form.js";
import { formatDuration, formatValue, OUTCOME_TEXTS } from "./format.js";

/** Calls one tool as this user, under the same policies as a model. */
export class ToolForm {
  #api;
  #tool;
  #form;
  #token = null;
  #outcome = element("div", { class: "call-result", "aria-live": "polite" });
  #run = element("button", { class: "primary" }, "Run");
  #reuseSession = element("input", { type: "checkbox", id: "same-session" });

  constructor(api, tool) {
    this.#api = api;
    this.#tool = tool;
    this.#form = new SchemaForm(tool.parameters);
    this.root = element("section", { class: "card stack", "aria-labelledby": "try-title" },
      element("h2", { id: "try-title" }, "Try it"),
      element("form", {
        class: "stack", novalidate: true, "aria-label": `Arguments of ${tool.toolId}`,
        on: {
          submit: (event) => {
            event.preventDefault();
            this.#call();
          },
        },
      },
      Object.keys(tool.parameters.properties ?? {}).length ? null : element("p", { class: "hint" }, "This tool takes no arguments."),
      this.#form.root,
      element("div", { class: "row" }, this.#run,
        element("span", { class: "choice" }, this.#reuseSession,
          element("label", { for: "same-session" }, "Reuse the previous call's session and turn (this call counts towards the turn's budgets)")))),
      this.#outcome);
  }

  async #call() {
    const args = this.#form.read();
    if (args === null) return;
    this.#run.disabled = true;
    replace(this.#outcome, element("p", { class: "hint", role: "status" }, `${this.#tool.toolId} is running…`));
    try {
      this.#show(await this.#execute(args));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      replace(this.#outcome, element("p", { class: "card problem", role: "alert" }, error.message,
        error.suggestion ? ` ${error.suggestion}` : ""));
    } finally {
      this.#run.disabled = false;
    }
  }

  /** The answer to the call, including failures of the tool or a policy. */
  async #execute(args) {
    const session = this.#reuseSession.checked ? this.#token : null;
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
      result.confirmation ? this.#confirmationCard(result.confirmation) : resultView(envelope),
      element("h3", {}, "Policy decisions"), decisionList(result.decisions),
      element("details", {}, element("summary", {}, "Envelope as the model receives it"),
        element("pre", { tabindex: "0" }, formatValue(envelope))));
    const faults = envelope.error?.details?.errors;
    if (envelope.error?.type === "VALIDATION" && faults) this.#form.showFaults(faults);
  }

  #confirmationCard(required) {
    const resultArea = element("div");
    const decide = (approve) => {
      this.#decide(card, required.token, approve, resultArea);
      return true;
    };
    const card = new ConfirmationCard({ ...required, callId: null }, required.expiresAt - Date.now() / 1000, decide);
    return element("div", { class: "stack" }, element("div", { class: "card" }, card.root), resultArea);
  }

  async #decide(card, token, approve, resultArea) {
    try {
      const path = `confirmations/${encodeURIComponent(token)}`;
      const settled = await this.#api.post(path, { approve }, { session: this.#token });
      card.settle(approve);
      const { envelope } = settled;
      if (envelope) replace(resultArea, headline(envelope, envelope.meta.duration, this.#tool.latencyBudgetMs), resultView(envelope));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      card.refuse(error.message, error.suggestion);
      const envelope = error.body?.envelope;
      if (envelope) replace(resultArea, headline(envelope, envelope.meta.duration, this.#tool.latencyBudgetMs), resultView(envelope));
    }
  }
}

function headline({ ok, error, meta }, ms, budget) {
  const isWaiting = error?.type === "CONFIRMATION_REQUIRED";
  const tone = ok ? "good" : isWaiting || OUTCOME_TEXTS[meta.state] ? "warn" : "bad";
  const label = ok ? "Succeeded" : isWaiting ? "Waiting for your decision" : OUTCOME_TEXTS[meta.state] ?? `Failed: ${error.type}`;
  const time = `${formatDuration(ms)} (budget: ${formatDuration(budget)})`;
  return element("div", { class: "row headline" }, element("span", { class: `tag ${tone}`, role: "status" }, label),
    element("span", { class: ms > budget ? "tag warn" : "hint" }, time));
}

function resultView({ ok, data, error, intents }) {
  if (ok) {
    return [element("pre", { tabindex: "0", class: "data", "aria-label": "Result" }, formatValue(data)),
      intents?.length ? element("p", { class: "hint" }, `Intents: ${intents.map((each) => each.type).join(", ")}`) : null];
  }
  return element("div", { class: "card problem stack" }, element("p", {}, error.message),
    error.suggestion ? element("p", { class: "hint" }, error.suggestion) : null);
}
