// Style sheets of views, loaded when a view is first shown.

import { address } from "./api.js";
import { element } from "./dom.js";

const loaded = new Map();

/** Resolves when a style sheet of the console applies. */
export function style(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve) => {
      const link = element("link", { rel: "stylesheet", href: address(`console/css/${name}.css`), on: { load: resolve, error: resolve } });
      document.head.append(link);
    }));
  }
  return loaded.get(name);
}
