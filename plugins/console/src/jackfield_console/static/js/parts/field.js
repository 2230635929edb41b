// The base of the form fields.

import { element, replace } from "../dom.js";
import { hints } from "./schema-hints.js";

/** Thrown when the input of a field is not a valid value. */
export class InvalidValue extends Error {}

let created = 0;

/** A form field with its label, description and fault. */
export class Field {
  fault = element("p", { class: "fault", hidden: true });

  constructor(schema, { name, required = false }) {
    this.id = `field-${++created}`;
    this.schema = schema;
    this.name = name;
    this.required = required;
    this.fault.id = `${this.id}-fault`;
    this.hint = element("p", { class: "hint", id: `${this.id}-hint` }, hints(schema));
  }

  /** Creates the root for one control with a label. */
  addLabel(control) {
    control.id = this.id;
    this.control = control;
    control.setAttribute("aria-describedby", `${this.hint.id} ${this.fault.id}`);
    if (this.required) control.setAttribute("aria-required", "true");
    this.root = element("div", { class: "field", data: { name: this.name } },
      element("label", { for: this.id }, this.title()), control, this.fault, this.hint);
  }

  /** Creates the root for a group of controls. */
  addGroup(...children) {
    this.root = element("fieldset", { class: "field", data: { name: this.name }, "aria-describedby": this.fault.id },
      element("legend", {}, this.title()), this.fault, this.hint, children);
  }

  title() {
    return [element("code", {}, this.name), this.required ? element("span", { class: "required" }, " required") : null];
  }

  /** Finds the field at a path below this one; returns it with the rest of the path. */
  find(path) {
    return { field: this, rest: path };
  }

  showFault(message) {
    replace(this.fault, message);
    this.fault.hidden = false;
    this.control?.setAttribute("aria-invalid", "true");
  }

  clearFaults() {
    this.fault.hidden = true;
    this.control?.removeAttribute("aria-invalid");
  }

  focus() {
    (this.control ?? this.root.querySelector("input, select, textarea, button"))?.focus();
  }
}
