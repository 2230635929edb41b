// A form for a JSON Schema: a control for each construct that has one, a JSON editor for the others.

import { element, replace } from "../dom.js";
import { style } from "../styles.js";
import { Unreadable } from "./field.js";
import {
  ChoiceField, JsonField, ListField, NumberField, ObjectField, SeveralField, TextField,
} from "./schema-fields.js";

/** Keywords that need more than one control. */
const BEYOND = ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas", "contains"];

/** How deep references are followed; deeper ones are recursive. */
const DEEPEST = 6;

/** The arguments of a tool, as a form or as JSON. */
export class SchemaForm {
  #fields;
  #json;
  #shown;
  #summary = element("div", { class: "card problem", role: "alert", hidden: true });
  #place = element("div");
  #switch = element("button", { type: "button", class: "small plain", on: { click: () => this.#change() } });

  /** `values` are filled in; values without a field are left out. */
  constructor(schema, values = null) {
    style("forms");
    this.schema = schema;
    const top = { name: "arguments", required: true, top: true };
    this.#fields = fieldOf(schema, top, schema, 0);
    this.#json = new JsonField({}, { name: "arguments" });
    this.#show(this.#fields);
    if (values) this.write(values);
    this.root = element("div", { class: "stack" }, this.#summary, this.#place,
      element("div", { class: "row end" }, this.#switch));
  }

  /** The arguments; null if a field is invalid, which is then shown. */
  read() {
    this.absolve();
    try {
      return this.#shown.read() ?? {};
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      this.#focusFault();
      return null;
    }
  }

  write(value) {
    this.#shown.write(value);
  }

  /** Shows the faults that the host found, each at its field: `[{path: "/filters/tags/0", message}]`. */
  blame(faults) {
    const homeless = [];
    for (const { path, message } of faults) {
      const parts = path.split("/").slice(1).filter((part) => part !== "")
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
      const { field } = this.#shown.at(parts);
      const missing = lacking(field, message);
      if (missing) missing.blame("This is required.");
      else if (field === this.#fields || field === this.#json) homeless.push(`${path} ${message}`);
      else field.blame(sentence(message));
    }
    replace(this.#summary, homeless.map((words) => element("p", {}, words)));
    this.#summary.hidden = !homeless.length;
    this.#focusFault();
  }

  /** Focuses the first required field that is empty. */
  focusMissing() {
    const members = this.#shown.members ?? [this.#shown];
    (members.find((field) => field.required && isEmpty(field)) ?? members[0])?.focus();
  }

  absolve() {
    this.#summary.hidden = true;
    this.#shown.absolve();
  }

  #change() {
    const value = this.read();
    if (value === null) return;
    this.#show(this.#shown === this.#json ? this.#fields : this.#json);
    this.write(value);
  }

  #show(field) {
    this.#shown = field;
    replace(this.#place, field.root);
    this.#switch.textContent = field === this.#json ? "Edit as a form" : "Edit as JSON";
    this.#switch.hidden = this.#fields instanceof JsonField;
  }

  #focusFault() {
    const first = this.#place.querySelector(".fault:not([hidden])");
    first?.parentElement.querySelector("input, select, textarea, button")?.focus();
  }
}

function isEmpty(field) {
  try {
    const value = field.read();
    return value === undefined || (Array.isArray(value) && !value.length);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return false;
  }
}

/** The missing member that a message about an object names. */
function lacking(field, message) {
  if (!(field instanceof ObjectField) || !message.includes("required")) return null;
  return field.members.find(({ name }) => message.includes(`"${name}"`) || message.includes(`'${name}'`));
}

function sentence(message) {
  return message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? "" : ".");
}

function fieldOf(given, place, root, depth) {
  const schema = followed(given, root);
  if (!schema || depth > DEEPEST || BEYOND.some((keyword) => keyword in schema)) {
    return new JsonField(schema ?? {}, place);
  }
  const make = (member, inner) => fieldOf(member, inner, root, depth + 1);
  if (schema.enum || "const" in schema) return new ChoiceField(schema, place);
  const kinds = [schema.type].flat().filter((kind) => kind !== "null");
  switch (kinds.length === 1 ? kinds[0] : null) {
    case "string":
      return new TextField(schema, place);
    case "integer":
    case "number":
      return new NumberField(schema, place);
    case "boolean":
      return new ChoiceField(schema, place);
    case "array":
      return listOf(schema, place, root, make);
    case "object":
      return schema.properties && schema.additionalProperties === false
        ? new ObjectField(schema, place, make) : new JsonField(schema, place);
    default:
      return new JsonField(schema, place);
  }
}

function listOf(schema, place, root, make) {
  const items = followed(schema.items, root);
  if (!items) return new JsonField(schema, place);
  if (items.enum && schema.uniqueItems) return new SeveralField({ ...schema, items }, place);
  return new ListField({ ...schema, items }, place, make);
}

/** A schema with its local reference resolved; keywords next to the reference win. */
function followed(schema, root) {
  for (let step = 0; step <= DEEPEST; step += 1) {
    if (typeof schema !== "object" || schema === null) return null;
    if (!("$ref" in schema)) return schema;
    const { $ref: reference, ...beside } = schema;
    const target = resolved(reference, root);
    if (!target) return null;
    schema = { ...target, ...beside };
  }
  return null;
}

function resolved(reference, root) {
  if (typeof reference !== "string" || !reference.startsWith("#")) return null;
  const parts = reference.slice(1).split("/").slice(1)
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.reduce((found, part) => found?.[part], root) ?? null;
}
