// A form in the conversation: the user completes the arguments of a tool, or answers a running call.

import { element, replace } from "../dom.js";
import { SchemaForm } from "./schema-form.js";
import { formatValue } from "./format.js";

/**
 * One form. `submit(values)` sends it and returns whether there is a connection; `dismiss()` returns whether the
 * message was sent.
 *
 * `state` is one of open, sent, submitted, dismissed, refused.
 */
export class FormCard {
  state = "open";

  #form;
  #values;
  /** Who asks the question; undefined for the arguments of a tool. */
  #askedBy;
  #card;
  #fields;
  #hint = element("span", { class: "hint" }, "Please complete this form");
  #body = element("div", { class: "stack" });
  #status = element("p", { class: "hint", role: "status" });

  constructor({ tool, description, parameters, values, askedBy }, { submit, dismiss }) {
    this.#values = values;
    this.#askedBy = askedBy;
    if (askedBy) this.#hint.textContent = `A question from ${askedBy}, which will receive your answer`;
    this.#form = new SchemaForm(parameters, values, { fold: !askedBy });
    const sendButton = element("button", { class: "primary" }, "Send");
    const dismissButton = element("button", { type: "button", on: { click: () => this.#dismiss(dismiss) } }, "Dismiss");
    this.#fields = element("form", {
      class: "stack", novalidate: true, "aria-label": askedBy ? "Your answer" : `Arguments of ${tool}`,
      on: {
        submit: (event) => {
          event.preventDefault();
          this.#submit(submit);
        },
      },
    }, this.#form.root, element("div", { class: "row" }, sendButton, dismissButton));
    // The first sentence says what a tool does; the others tell the model how to use it.
    const told = askedBy ? description : description?.split(/(?<=[.!?])\s/)[0];
    replace(this.#body, told && element("p", { class: "preview" }, told), this.#fields, this.#status);
    this.#card = element("div", { class: "form-card card", role: "group", "aria-label": `Form for ${tool}` },
      element("div", { class: "row spread" }, this.#hint, element("code", {}, tool)),
      this.#body);
    this.#setState("open");
    this.root = element("li", {}, this.#card);
  }

  /** Focuses the first required field that is empty. */
  focus() {
    this.#form.focusMissing();
  }

  /** The form was closed, here or elsewhere; `values` are the submitted ones, if the host has them. */
  close(submitted, values) {
    this.#values = values ?? this.#values;
    if (submitted) this.#end("submitted", "You submitted this form.", facts(this.#values));
    else this.#end("dismissed", this.#askedBy ? "This form was closed without an answer." : "This form was closed. The tool was not run.");
  }

  /** The host did not accept the form: values with faults can be corrected, a closed form says why. */
  refuse(message, suggestion, faults) {
    if (this.state !== "sent" && this.state !== "open") return false;
    if (faults) {
      this.#setState("open");
      this.#status.textContent = `${message} ${suggestion ?? ""}`.trim();
      this.#form.showFaults(faults);
    } else {
      this.#end("refused", `${message} ${suggestion ?? ""}`.trim());
    }
    return true;
  }

  #submit(submit) {
    if (this.state !== "open") return;
    const values = this.#form.read();
    if (values === null) return;
    this.#values = values;
    this.#setState("sent");
    this.#status.textContent = submit(values) ? "Sending…" : "Waiting for the connection.";
  }

  #dismiss(dismiss) {
    if (this.state !== "open") return;
    // The form stays open until the host confirms: the message may be lost with the connection.
    this.#status.textContent = dismiss() ? "Closing…" : "The form was not closed because there is no connection. Try again when the connection is restored.";
  }

  #setState(state) {
    this.state = state;
    this.#card.dataset.state = state;
    this.#status.textContent = "";
    this.#fields.inert = state === "sent";
  }

  #end(state, text, ...children) {
    const { activeElement, body } = document;
    // A disabled control, such as during sending, has lost the focus to the page.
    const hadFocus = this.#card.contains(activeElement) || (this.state === "sent" && activeElement === body);
    this.state = state;
    this.#card.dataset.state = state;
    this.#hint.textContent = state === "submitted" ? "Completed" : "Closed";
    const outcome = element("p", { role: "status", class: "outcome", tabindex: "-1" }, text);
    replace(this.#body, outcome, ...children);
    if (hadFocus) outcome.focus({ preventScroll: true });
  }
}

function facts(values) {
  const rows = Object.entries(values);
  return rows.length > 0 && element("details", {}, element("summary", {}, "Values"), element("dl", { class: "facts" },
    rows.map(([name, value]) => [element("dt", {}, name), element("dd", {}, formatValue(value))])));
}
