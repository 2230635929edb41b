// Stylesheets of views, loaded when a view is first shown.

import { hostUrl } from "./api.js";
import { element } from "./dom.js";

const loaded = new Map();

/** Loads a stylesheet of the console; resolves when it applies. */
export function loadStylesheet(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve) => {
      const link = element("link", { rel: "stylesheet", href: hostUrl(`console/css/${name}.css`), on: { load: resolve, error: resolve } });
      document.head.append(link);
    }));
  }
  return loaded.get(name);
}
