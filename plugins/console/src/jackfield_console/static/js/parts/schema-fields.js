// The fields of a form, one for each kind of JSON Schema. A field reads its value (undefined when it is left out)
// and shows what is wrong with it.

import { element, replace } from "../dom.js";
import { Field, Unreadable } from "./field.js";
import { shown } from "./schema-hints.js";

/** A text. */
export class TextField extends Field {
  static inputs = { date: "date", email: "email", uri: "url" };
  static samples = {
    "date-time": "2026-03-01T14:30:00+01:00", date: "2026-03-01", time: "14:30:00Z", email: "name@example.org",
    uri: "https://example.org", uuid: "123e4567-e89b-12d3-a456-426614174000", ipv4: "192.0.2.1", duration: "PT15M",
  };

  constructor(schema, place) {
    super(schema, place);
    const long = (schema.maxLength ?? 0) > 200;
    const sample = schema.default === undefined ? TextField.samples[schema.format] : `${schema.default} (default)`;
    const properties = { placeholder: sample, autocomplete: "off", spellcheck: "false" };
    this.labelled(long
      ? element("textarea", { rows: "3", ...properties })
      : element("input", { type: TextField.inputs[schema.format] ?? "text", ...properties }));
  }

  read() {
    return this.control.value === "" ? undefined : this.control.value;
  }

  write(value) {
    this.control.value = value ?? "";
  }
}

/** A number, whole or not. */
export class NumberField extends Field {
  constructor(schema, place) {
    super(schema, place);
    const placeholder = schema.default === undefined ? null : `${schema.default} (default)`;
    this.labelled(element("input", { type: "text", inputmode: "decimal", autocomplete: "off", placeholder }));
  }

  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    const value = Number(text);
    if (!Number.isFinite(value)) {
      this.blame("This is not a number.");
      throw new Unreadable(this.name);
    }
    return value;
  }

  write(value) {
    this.control.value = value ?? "";
  }
}

/** One of some values; also yes and no. */
export class ChoiceField extends Field {
  constructor(schema, place) {
    super(schema, place);
    this.values = schema.const !== undefined ? [schema.const] : (schema.enum ?? [true, false]);
    const words = schema.default === undefined ? "left out" : `left out: ${shown(schema.default)}`;
    const none = this.required && schema.default === undefined ? "choose" : words;
    this.labelled(element("select", {}, element("option", { value: "" }, `(${none})`),
      this.values.map((value, index) => element("option", { value: String(index) }, shown(value)))));
  }

  read() {
    return this.control.value === "" ? undefined : this.values[Number(this.control.value)];
  }

  write(value) {
    const index = this.values.findIndex((each) => JSON.stringify(each) === JSON.stringify(value));
    this.control.value = index < 0 ? "" : String(index);
  }
}

/** Some of a few values. */
export class SeveralField extends Field {
  constructor(schema, place) {
    super(schema, place);
    this.values = schema.items.enum;
    this.boxes = this.values.map((value, index) =>
      element("input", { type: "checkbox", id: `${this.id}-${index}` }));
    this.grouped(element("div", { class: "row" }, this.values.map((value, index) =>
      element("span", { class: "choice" }, this.boxes[index],
        element("label", { for: `${this.id}-${index}` }, shown(value))))));
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

/** Any number of values of one kind. */
export class ListField extends Field {
  items = [];

  constructor(schema, place, make) {
    super(schema, place);
    this.make = () => make(schema.items, { name: "", required: true });
    this.list = element("ol", { class: "items" });
    this.add = element("button", { type: "button", class: "small", on: { click: () => this.#append().focus() } },
      `Add to ${this.name}`);
    this.grouped(this.list, this.add);
  }

  #append() {
    const field = this.make();
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
    // A row without a value was added and not filled in; the host decides what that means.
    const values = readAll(this.items.map((item) => () => item.read() ?? ""));
    return values.length || this.required ? values : undefined;
  }

  write(value) {
    replace(this.list);
    this.items = [];
    for (const each of value ?? []) this.#append().write(each);
    this.#limit();
  }

  at([index, ...rest]) {
    const field = this.items[Number(index)];
    return index !== undefined && field ? field.at(rest) : { field: this, rest: [index, ...rest].filter((x) => x !== undefined) };
  }

  absolve() {
    super.absolve();
    for (const item of this.items) item.absolve();
  }
}

/** Several values, each with a name. */
export class ObjectField extends Field {
  constructor(schema, place, make) {
    super(schema, place);
    const required = new Set(schema.required ?? []);
    // A frozen schema has lost the author's order; required fields come first.
    const names = Object.keys(schema.properties).sort((a, b) => required.has(b) - required.has(a));
    this.members = names.map((name) => make(schema.properties[name], { name, required: required.has(name) }));
    if (place.top) {
      this.root = element("div", { class: "fields" }, this.fault, this.members.map((member) => member.root));
    } else {
      this.grouped(element("div", { class: "fields" }, this.members.map((member) => member.root)));
    }
  }

  read() {
    const values = readAll(this.members.map((member) => () => member.read()));
    const given = this.members.map((member, index) => [member.name, values[index]]).filter(([, value]) => value !== undefined);
    return given.length || this.required ? Object.fromEntries(given) : undefined;
  }

  write(value) {
    for (const member of this.members) member.write(value?.[member.name]);
  }

  at([name, ...rest]) {
    const member = this.member(name);
    return member ? member.at(rest) : { field: this, rest: name === undefined ? [] : [name, ...rest] };
  }

  member(name) {
    return this.members.find((each) => each.name === name);
  }

  absolve() {
    super.absolve();
    for (const member of this.members) member.absolve();
  }
}

/** JSON, for what no other field can express. */
export class JsonField extends Field {
  constructor(schema, place) {
    super(schema, place);
    this.labelled(element("textarea", { rows: "4", class: "json", spellcheck: "false", placeholder: "JSON" }));
    this.root.querySelector("label").append(element("span", { class: "hint" }, " as JSON"));
  }

  read() {
    const text = this.control.value.trim();
    if (text === "") return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      this.blame(`This is not JSON: ${error.message}`);
      throw new Unreadable(this.name);
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
  const place = field.root.querySelector("label, legend");
  replace(place, element("span", {}, title));
}
