// The base of the form fields.

import { element, replace } from "../dom.js";
import { hints } from "./schema-hints.js";

/** A value that cannot be read. */
export class Unreadable extends Error {}

let made = 0;

/** A field: label, description, and a place for faults. */
export class Field {
  fault = element("p", { class: "fault", hidden: true });

  constructor(schema, { name, required = false }) {
    this.id = `field-${++made}`;
    this.schema = schema;
    this.name = name;
    this.required = required;
    this.fault.id = `${this.id}-fault`;
    this.hint = element("p", { class: "hint", id: `${this.id}-hint` }, hints(schema));
  }

  /** Wraps a control that has a label of its own. */
  labelled(control) {
    control.id = this.id;
    this.control = control;
    control.setAttribute("aria-describedby", `${this.hint.id} ${this.fault.id}`);
    if (this.required) control.setAttribute("aria-required", "true");
    this.root = element("div", { class: "field", data: { name: this.name } },
      element("label", { for: this.id }, this.title()), control, this.fault, this.hint);
  }

  /** Wraps several controls. */
  grouped(...children) {
    this.root = element("fieldset", { class: "field", data: { name: this.name }, "aria-describedby": this.fault.id },
      element("legend", {}, this.title()), this.fault, this.hint, children);
  }

  title() {
    return [element("code", {}, this.name), this.required ? element("span", { class: "required" }, " required") : null];
  }

  /** The field at a path below this one, and the rest of the path. */
  at(path) {
    return { field: this, rest: path };
  }

  blame(message) {
    replace(this.fault, message);
    this.fault.hidden = false;
    this.control?.setAttribute("aria-invalid", "true");
  }

  absolve() {
    this.fault.hidden = true;
    this.control?.removeAttribute("aria-invalid");
  }

  focus() {
    (this.control ?? this.root.querySelector("input, select, textarea, button"))?.focus();
  }
}
