// The fields of a form, one for each kind of JSON Schema. A field returns its value (undefined if it is not set)
// and shows its fault.

import { element, replace } from "../dom.js";
import { Field, InvalidValue } from "./field.js";
import { displayValue } from "./schema-hints.js";

/** A string. */
export class TextField extends Field {
  static inputTypes = { date: "date", email: "email", uri: "url" };
  static examples = {
    "date-time": "2026-03-01T14:30:00+01:00", date: "2026-03-01", time: "14:30:00Z", email: "name@example.org",
    uri: "https://example.org", uuid: "123e4567-e89b-12d3-a456-426614174000", ipv4: "192.0.2.1", duration: "PT15M",
  };

  constructor(schema, options) {
    super(schema, options);
    const long = (schema.maxLength ?? 0) > 200;
    const example = schema.default === undefined ? TextField.examples[schema.format] : `${schema.default} (default)`;
    const properties = { placeholder: example, autocomplete: "off", spellcheck: "false" };
    this.addLabel(long
      ? element("textarea", { rows: "3", ...properties })
      : element("input", { type: TextField.inputTypes[schema.format] ?? "text", ...properties }));
  }

  read() {
    return this.control.value === "" ? undefined : this.control.value;
  }

  write(value) {
    this.control.value = value ?? "";
  }
}

/** A number or an integer. */
export class NumberField extends Field {
  constructor(schema, options) {
    super(schema, options);
    const placeholder = schema.default === undefined ? null : `${schema.default} (default)`;
    this.addLabel(element("input", { type: "text", inputmode: "decimal", autocomplete: "off", placeholder }));
  }

  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    const value = Number(text);
    if (!Number.isFinite(value)) {
      this.showFault("Enter a number.");
      throw new InvalidValue(this.name);
    }
    return value;
  }

  write(value) {
    this.control.value = value ?? "";
  }
}

/** One of several values, or yes and no. */
export class ChoiceField extends Field {
  constructor(schema, options) {
    super(schema, options);
    this.values = schema.const !== undefined ? [schema.const] : (schema.enum ?? [true, false]);
    const omitted = schema.default === undefined ? "not set" : `default: ${displayValue(schema.default)}`;
    const none = this.required && schema.default === undefined ? "choose" : omitted;
    this.addLabel(element("select", {}, element("option", { value: "" }, `(${none})`),
      this.values.map((value, index) => element("option", { value: String(index) }, displayValue(value)))));
  }

  read() {
    return this.control.value === "" ? undefined : this.values[Number(this.control.value)];
  }

  write(value) {
    const index = this.values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
    this.control.value = index < 0 ? "" : String(index);
  }
}

/** Any of several values. */
export class MultiChoiceField extends Field {
  constructor(schema, options) {
    super(schema, options);
    this.values = schema.items.enum;
    this.boxes = this.values.map((value, index) =>
      element("input", { type: "checkbox", id: `${this.id}-${index}` }));
    this.addGroup(element("div", { class: "row" }, this.values.map((value, index) =>
      element("span", { class: "choice" }, this.boxes[index],
        element("label", { for: `${this.id}-${index}` }, displayValue(value))))));
  }

  read() {
    const chosen = this.values.filter((_, index) => this.boxes[index].checked);
    return chosen.length || this.required ? chosen : undefined;
  }

  write(value) {
    this.boxes.forEach((box, index) => {
      box.checked = (value ?? []).includes(this.values[index]);
    });
  }
}

/** A list of values of one kind. */
export class ListField extends Field {
  items = [];

  constructor(schema, options, createField) {
    super(schema, options);
    this.createField = () => createField(schema.items, { name: "", required: true });
    this.list = element("ol", { class: "items" });
    this.add = element("button", { type: "button", class: "small", on: { click: () => this.#append().focus() } },
      `Add to ${this.name}`);
    this.addGroup(this.list, this.add);
  }

  #append() {
    const field = this.createField();
    field.name = String(this.items.length + 1);
    replaceTitle(field, `${this.name} ${field.name}`);
    const row = element("li", {}, field.root, element("button", {
      type: "button", class: "small plain", "aria-label": `Remove ${this.name} ${field.name}`,
      on: {
        click: () => {
          row.remove();
          this.items.splice(this.items.indexOf(field), 1);
          this.#limit();
          this.add.focus();
        },
      },
    }, "Remove"));
    this.list.append(row);
    this.items.push(field);
    this.#limit();
    return field;
  }

  #limit() {
    this.add.disabled = this.items.length >= (this.schema.maxItems ?? Infinity);
  }

  read() {
    // The user added a row and did not fill it in; the host decides what that means.
    const values = readAll(this.items.map((item) => () => item.read() ?? ""));
    return values.length || this.required ? values : undefined;
  }

  write(value) {
    replace(this.list);
    this.items = [];
    for (const each of value ?? []) this.#append().write(each);
    this.#limit();
  }

  find([index, ...rest]) {
    const field = this.items[Number(index)];
    return index !== undefined && field ? field.find(rest) : { field: this, rest: [index, ...rest].filter((x) => x !== undefined) };
  }

  clearFaults() {
    super.clearFaults();
    for (const item of this.items) item.clearFaults();
  }
}

/** An object: one field for each member. */
export class ObjectField extends Field {
  constructor(schema, options, createField) {
    super(schema, options);
    const required = new Set(schema.required ?? []);
    // The registry keeps the author's order only of the required fields, which come first.
    const names = [...new Set([...required, ...Object.keys(schema.properties)])].filter((name) => name in schema.properties);
    this.members = names.map((name) => createField(schema.properties[name], { name, required: required.has(name) }));
    if (options.top) {
      const isOpen = ({ name }) => !options.shown || required.has(name) || options.shown.has(name);
      const open = this.members.some(isOpen) ? this.members.filter(isOpen) : this.members;
      const folded = this.members.filter((member) => !open.includes(member));
      this.root = element("div", { class: "fields" }, this.fault, open.map((member) => member.root),
        folded.length > 0 && element("details", { class: "more" },
          element("summary", {}, `Optional fields (${folded.length})`),
          element("div", { class: "fields" }, folded.map((member) => member.root))));
    } else {
      this.addGroup(element("div", { class: "fields" }, this.members.map((member) => member.root)));
    }
  }

  read() {
    const values = readAll(this.members.map((member) => () => member.read()));
    const entries = this.members.map((member, index) => [member.name, values[index]]).filter(([, value]) => value !== undefined);
    return entries.length || this.required ? Object.fromEntries(entries) : undefined;
  }

  write(value) {
    for (const member of this.members) member.write(value?.[member.name]);
  }

  find([name, ...rest]) {
    const member = this.member(name);
    return member ? member.find(rest) : { field: this, rest: name === undefined ? [] : [name, ...rest] };
  }

  member(name) {
    return this.members.find((each) => each.name === name);
  }

  clearFaults() {
    super.clearFaults();
    for (const member of this.members) member.clearFaults();
  }
}

/** JSON, for values that no other field can express. */
export class JsonField extends Field {
  constructor(schema, options) {
    super(schema, options);
    this.addLabel(element("textarea", { rows: "4", class: "json", spellcheck: "false", placeholder: "JSON" }));
    this.root.querySelector("label").append(element("span", { class: "hint" }, " as JSON"));
  }

  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      this.showFault(`The value is not valid JSON: ${error.message}`);
      throw new InvalidValue(this.name);
    }
  }

  write(value) {
    this.control.value = value === undefined ? "" : JSON.stringify(value, null, 2);
  }
}

/** Reads all fields, so that all faults are shown at once. */
function readAll(readers) {
  let failed = null;
  const values = readers.map((read) => {
    try {
      return read();
    } catch (error) {
      failed = error;
      return undefined;
    }
  });
  if (failed) throw failed;
  return values;
}

function replaceTitle(field, title) {
  const label = field.root.querySelector("label, legend");
  replace(label, element("span", {}, title));
}
