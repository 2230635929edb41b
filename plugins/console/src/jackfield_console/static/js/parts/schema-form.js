// A form for a JSON Schema: a control for each construct that has one, a JSON editor for the others.

import { element, replace } from "../dom.js";
import { loadStylesheet } from "../styles.js";
import { InvalidValue } from "./field.js";
import {
  ChoiceField, JsonField, ListField, MultiChoiceField, NumberField, ObjectField, TextField,
} from "./schema-fields.js";

/** Keywords that need more than one control. */
const UNSUPPORTED_KEYWORDS = ["allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "prefixItems", "dependentSchemas", "contains"];

/** How deep references are resolved; deeper ones are recursive. */
const MAX_DEPTH = 6;

/** The arguments of a tool, as a form or as JSON. */
export class SchemaForm {
  #fields;
  #json;
  #active;
  #summary = element("div", { class: "card problem", role: "alert", hidden: true });
  #container = element("div");
  #modeButton = element("button", { type: "button", class: "small plain", on: { click: () => this.#switchMode() } });

  /**
   * `values` are filled in; values without a field are left out. With `fold`, optional fields without a value are in
   * a closed section.
   */
  constructor(schema, values = null, { fold = false } = {}) {
    loadStylesheet("forms");
    this.schema = schema;
    const shown = fold ? new Set(Object.keys(values ?? {})) : null;
    const top = { name: "arguments", required: true, top: true, shown };
    this.#fields = createField(schema, top, schema, 0);
    this.#json = new JsonField({}, { name: "arguments" });
    this.#show(this.#fields);
    if (values) this.write(values);
    this.root = element("div", { class: "stack" }, this.#summary, this.#container,
      element("div", { class: "row end" }, this.#modeButton));
  }

  /** Returns the arguments; null if a field is invalid, which then shows its fault. */
  read() {
    this.clearFaults();
    try {
      return this.#active.read() ?? {};
    } catch (error) {
      if (!(error instanceof InvalidValue)) throw error;
      this.#focusFault();
      return null;
    }
  }

  write(value) {
    this.#active.write(value);
  }

  /** Shows the faults that the host found, each at its field: `[{path: "/filters/tags/0", message}]`. */
  showFaults(faults) {
    const general = [];
    for (const { path, message } of faults) {
      const parts = path.split("/").slice(1).filter((part) => part !== "")
        .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
      const { field } = this.#active.find(parts);
      const missing = missingMember(field, message);
      if (missing) missing.showFault("This field is required.");
      else if (field === this.#fields || field === this.#json) general.push(`${path} ${message}`);
      else field.showFault(toSentence(message));
    }
    replace(this.#summary, general.map((text) => element("p", {}, text)));
    this.#summary.hidden = !general.length;
    this.#focusFault();
  }

  /** Focuses the first required field that is empty. */
  focusMissing() {
    const members = this.#active.members ?? [this.#active];
    (members.find((field) => field.required && isEmpty(field)) ?? members[0])?.focus();
  }

  clearFaults() {
    this.#summary.hidden = true;
    this.#active.clearFaults();
  }

  #switchMode() {
    const value = this.read();
    if (value === null) return;
    this.#show(this.#active === this.#json ? this.#fields : this.#json);
    this.write(value);
  }

  #show(field) {
    this.#active = field;
    replace(this.#container, field.root);
    this.#modeButton.textContent = field === this.#json ? "Edit as a form" : "Edit as JSON";
    this.#modeButton.hidden = this.#fields instanceof JsonField;
  }

  #focusFault() {
    const first = this.#container.querySelector(".fault:not([hidden])");
    first?.closest("details.more")?.setAttribute("open", "");
    first?.parentElement.querySelector("input, select, textarea, button")?.focus();
  }
}

function isEmpty(field) {
  try {
    const value = field.read();
    return value === undefined || (Array.isArray(value) && !value.length);
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    return false;
  }
}

/** Finds the missing member that a message about an object names. */
function missingMember(field, message) {
  if (!(field instanceof ObjectField) || !message.includes("required")) return null;
  return field.members.find(({ name }) => message.includes(`"${name}"`) || message.includes(`'${name}'`));
}

function toSentence(message) {
  return message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?]$/.test(message) ? "" : ".");
}

function createField(unresolved, options, root, depth) {
  const schema = resolveReferences(unresolved, root);
  if (!schema || depth > MAX_DEPTH || UNSUPPORTED_KEYWORDS.some((keyword) => keyword in schema)) {
    return new JsonField(schema ?? {}, options);
  }
  const createMember = (member, inner) => createField(member, inner, root, depth + 1);
  if (schema.enum || "const" in schema) return new ChoiceField(schema, options);
  const kinds = [schema.type].flat().filter((kind) => kind !== "null");
  switch (kinds.length === 1 ? kinds[0] : null) {
    case "string":
      return new TextField(schema, options);
    case "integer":
    case "number":
      return new NumberField(schema, options);
    case "boolean":
      return new ChoiceField(schema, options);
    case "array":
      return createListField(schema, options, root, createMember);
    case "object":
      return schema.properties && schema.additionalProperties === false
        ? new ObjectField(schema, options, createMember) : new JsonField(schema, options);
    default:
      return new JsonField(schema, options);
  }
}

function createListField(schema, options, root, createMember) {
  const items = resolveReferences(schema.items, root);
  if (!items) return new JsonField(schema, options);
  if (items.enum && schema.uniqueItems) return new MultiChoiceField({ ...schema, items }, options);
  return new ListField({ ...schema, items }, options, createMember);
}

/** Resolves the local reference of a schema; keywords next to the reference win. */
function resolveReferences(schema, root) {
  for (let step = 0; step <= MAX_DEPTH; step += 1) {
    if (typeof schema !== "object" || schema === null) return null;
    if (!("$ref" in schema)) return schema;
    const { $ref: reference, ...siblings } = schema;
    const target = lookUp(reference, root);
    if (!target) return null;
    schema = { ...target, ...siblings };
  }
  return null;
}

function lookUp(reference, root) {
  if (typeof reference !== "string" || !reference.startsWith("#")) return null;
  const parts = reference.slice(1).split("/").slice(1)
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.reduce((found, part) => found?.[part], root) ?? null;
}
