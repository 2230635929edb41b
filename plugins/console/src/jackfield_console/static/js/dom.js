// Elements without markup: text is never parsed as HTML.

/**
 * Makes an element. Properties: `class`, `on` (listeners by event), `data` (dataset), `aria-*`, `role` and other
 * attributes by name; true sets an attribute without a value, false, null and undefined leave it out.
 * Children are nodes, texts, lists of them, or nothing.
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(made.dataset, value);
    } else {
      made.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
    }
  }
  append(made, children);
  return made;
}

/** Adds nodes and texts to a parent. */
export function append(parent, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Puts these children in the place of all there were. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

/** Shows HTML that the host has rendered and sanitised; nothing else may be given here. */
export function showSanitised(parent, html) {
  parent.innerHTML = html;
}

/** A value as readable text: JSON with two blanks a level, or the text that it is. */
export function readable(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Milliseconds as people read them. */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return clock(ms / 1000);
}

/** A time in seconds since 1970, as people read it. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString() : date.toLocaleString();
}

/** JSON text with two blanks a level; text that is not JSON as it is. */
export function readableJson(text) {
  try {
    return readable(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Seconds as minutes and seconds. */
export function clock(seconds) {
  const whole = Math.max(0, Math.ceil(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
