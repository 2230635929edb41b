// Small SVG charts: a line over time, and the percentiles of a tool next to its budget.

import { duration, element } from "../dom.js";

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

const WIDTH = 240;
const HEIGHT = 56;

/** A number in short form. */
export function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)}k`;
  if (size >= 1e3) return `${(value / 1e3).toFixed(1)}k`;
  if (size >= 100 || isWhole(value)) return String(Math.round(value));
  return value.toFixed(1);
}

/** A count with its noun. */
export function many(number, thing) {
  return `${brief(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** Numbers in one column: all with a decimal place, or none. */
function alike(...values) {
  const short = values.some((each) => Math.abs(each) >= 100) || values.every(isWhole);
  return values.map((each) => (short ? brief(Math.round(each)) : each.toFixed(1)));
}

function isWhole(value) {
  return Number.isInteger(Math.round(value * 10) / 10);
}

/**
 * One metric: title, current value, and history. `points` are `{at, value}`, the oldest first, `at` in seconds. It
 * is updated in place, so that the page does not jump.
 */
export class TrendChart {
  #title;
  #unit;
  #area = svg("path", { class: "area" });
  #line = svg("path", { class: "line" });
  #mark = svg("circle", { r: 2.5, class: "mark", visibility: "hidden" });
  #svg;
  #number = element("span", { class: "figure-number" });
  #note = element("span", { class: "hint" });
  #points = [];
  #high = 1;

  constructor(title, unit) {
    this.#title = title;
    this.#unit = unit;
    this.#svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "trend" },
      this.#area, this.#line, this.#mark);
    this.#svg.addEventListener("pointermove", (event) => this.#point(event));
    this.#svg.addEventListener("pointerleave", () => this.#leave());
    this.root = element("figure", { class: "card figure", data: { figure: title } },
      element("figcaption", {}, title), this.#number, this.#svg, this.#note);
  }

  update(now, points) {
    this.#points = points;
    this.#number.textContent = now;
    this.#high = Math.max(1, ...points.map(({ value }) => value));
    const places = points.map((point, index) => this.#place(point, index));
    const path = places.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    this.#line.setAttribute("d", path);
    this.#area.setAttribute("d", places.length ? `${path}L${places.at(-1)[0]} ${HEIGHT}L${places[0][0]} ${HEIGHT}Z` : "");
    this.#leave();
  }

  #place({ value }, index) {
    const x = this.#points.length > 1 ? (index / (this.#points.length - 1)) * WIDTH : WIDTH;
    return [x, HEIGHT - 3 - (value / this.#high) * (HEIGHT - 8)];
  }

  #point({ clientX }) {
    const box = this.#svg.getBoundingClientRect();
    const index = Math.round(((clientX - box.left) / box.width) * (this.#points.length - 1));
    const point = this.#points[index];
    if (!point) return;
    const [x, y] = this.#place(point, index);
    this.#mark.setAttribute("cx", x);
    this.#mark.setAttribute("cy", y);
    this.#mark.setAttribute("visibility", "visible");
    this.#note.textContent = `${brief(point.value)} ${this.#unit} at ${new Date(point.at * 1000).toLocaleTimeString()}`;
  }

  #leave() {
    this.#mark.setAttribute("visibility", "hidden");
    const last = this.#points.at(-1);
    const high = Math.max(0, ...this.#points.map(({ value }) => value));
    const [now, peak] = alike(last?.value ?? 0, high);
    const words = last ? `${now} ${this.#unit}, peak ${peak}` : "nothing yet";
    this.#note.textContent = words;
    this.#svg.setAttribute("aria-label", `${this.#title}: ${words}, over the last half hour`);
  }
}

const BAR = 200;

/** Three percentiles on one scale, with a mark at the budget. */
export function percentileBar({ p50, p95, p99, budgetMs }) {
  const scale = Math.max(p99, budgetMs ?? 0) * 1.05 || 1;
  const at = (ms) => (Math.max(ms, scale / 200) / scale) * BAR;
  const late = budgetMs !== null && p95 > budgetMs;
  const bar = svg("svg", { viewBox: `0 0 ${BAR} 16`, class: `percentiles${late ? " late" : ""}`, "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("rect", { x: 0, y: 5, width: BAR, height: 6, class: "ground", rx: 3 }),
    svg("rect", { x: 0, y: 5, width: at(p99), height: 6, class: "p99", rx: 3 }),
    svg("rect", { x: 0, y: 4, width: at(p95), height: 8, class: "p95", rx: 3 }),
    svg("rect", { x: 0, y: 3, width: at(p50), height: 10, class: "p50", rx: 3 }));
  if (budgetMs !== null) bar.append(svg("line", { x1: at(budgetMs), x2: at(budgetMs), y1: 0, y2: 16, class: "budget" }));
  return element("div", { class: "bar-place", title: `half within ${duration(p50)}, 95 % within ${duration(p95)}` }, bar);
}
