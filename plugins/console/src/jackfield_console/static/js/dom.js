// Creates DOM elements; text is never parsed as HTML.

/**
 * Creates an element. Properties: `class`, `on` (listeners by event), `data` (dataset), `aria-*`, `role` and other
 * attributes by name; true sets an attribute without a value, false, null and undefined leave it out.
 * Children are nodes, texts, lists of them, or nothing.
 */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "data") {
      Object.assign(node.dataset, value);
    } else {
      node.setAttribute(name === "className" ? "class" : name, value === true ? "" : String(value));
    }
  }
  append(node, children);
  return node;
}

/** Appends nodes and texts to a parent. */
export function append(parent, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces all children of a parent. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
  return parent;
}

/** Shows HTML that the host has rendered and sanitised; never pass any other HTML. */
export function showSanitised(parent, html) {
  parent.innerHTML = html;
}
