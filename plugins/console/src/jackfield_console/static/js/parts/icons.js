// Icons, drawn with a few strokes each.

const PATHS = {
  microphone: "M12 4a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V7a3 3 0 0 1 3-3zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  muted: "M15 9.5V7a3 3 0 0 0-5.8-1M9 9v3a3 3 0 0 0 4.6 2.5M5.5 11.5a6.5 6.5 0 0 0 10.6 5M18.3 13a6.5 6.5 0 0 0 .2-1.5M12 18v3M4 4l16 16",
  hangUp: "M2.5 14c5.3-5.3 13.7-5.3 19 0l-2.8 2.8-3.7-1.8v-2.8a11 11 0 0 0-6 0V15l-3.7 1.8z",
  send: "M5 12h13M12.5 6.5 18 12l-5.5 5.5",
  close: "M6 6l12 12M18 6 6 18",
  stop: "M7 7h10v10H7z",
  list: "M5 7h14M5 12h14M5 17h14",
  rename: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  remove: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12M10.5 10.5v5M13.5 10.5v5",
};

/** Creates an icon by name; screen readers ignore it, so its button needs a label. */
export function icon(name) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const attributes = {
    viewBox: "0 0 24 24", width: "20", height: "20", fill: "none", stroke: "currentColor", "stroke-width": "1.8",
    "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  const path = document.createElementNS(namespace, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
