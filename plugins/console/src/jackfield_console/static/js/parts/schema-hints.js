// Describes the constraints of a JSON Schema in text.

/** Formats a value for a list of choices. */
export function displayValue(value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}

const LIMITS = {
  minLength: (n) => `at least ${characters(n)}`, maxLength: (n) => `at most ${characters(n)}`,
  minimum: (n) => `from ${n}`, maximum: (n) => `up to ${n}`, exclusiveMinimum: (n) => `more than ${n}`,
  exclusiveMaximum: (n) => `less than ${n}`, multipleOf: (n) => `a multiple of ${n}`, pattern: (p) => `matches ${p}`,
  minItems: (n) => `at least ${items(n)}`, maxItems: (n) => `at most ${items(n)}`,
};

function characters(n) {
  return n === 1 ? "1 character" : `${n} characters`;
}

function items(n) {
  return n === 1 ? "1 item" : `${n} items`;
}

/** Returns the hint below a field: its description, and the limits of its value. */
export function hints(schema) {
  const limits = Object.entries(LIMITS).filter(([name]) => schema[name] !== undefined)
    .map(([name, describe]) => describe(schema[name]));
  if (schema.format) limits.unshift(schema.format);
  return [schema.description, limits.length ? ` (${limits.join(", ")})` : ""];
}
