// Small SVG charts: a line over time, and the percentiles of a tool next to its budget.

import { element } from "../dom.js";
import { formatColumn, formatDuration, formatNumber } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

const WIDTH = 240;
const HEIGHT = 56;

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
    this.#svg.addEventListener("pointermove", (event) => this.#showPoint(event));
    this.#svg.addEventListener("pointerleave", () => this.#showLatest());
    this.root = element("figure", { class: "card figure", data: { figure: title } },
      element("figcaption", {}, title), this.#number, this.#svg, this.#note);
  }

  update(now, points) {
    this.#points = points;
    this.#number.textContent = now;
    this.#high = Math.max(1, ...points.map(({ value }) => value));
    const positions = points.map((point, index) => this.#position(point, index));
    const path = positions.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    this.#line.setAttribute("d", path);
    this.#area.setAttribute("d", positions.length ? `${path}L${positions.at(-1)[0]} ${HEIGHT}L${positions[0][0]} ${HEIGHT}Z` : "");
    this.#showLatest();
  }

  #position({ value }, index) {
    const x = this.#points.length > 1 ? (index / (this.#points.length - 1)) * WIDTH : WIDTH;
    return [x, HEIGHT - 3 - (value / this.#high) * (HEIGHT - 8)];
  }

  #showPoint({ clientX }) {
    const box = this.#svg.getBoundingClientRect();
    const index = Math.round(((clientX - box.left) / box.width) * (this.#points.length - 1));
    const point = this.#points[index];
    if (!point) return;
    const [x, y] = this.#position(point, index);
    this.#mark.setAttribute("cx", x);
    this.#mark.setAttribute("cy", y);
    this.#mark.setAttribute("visibility", "visible");
    this.#note.textContent = `${formatNumber(point.value)} ${this.#unit} at ${new Date(point.at * 1000).toLocaleTimeString()}`;
  }

  #showLatest() {
    this.#mark.setAttribute("visibility", "hidden");
    const last = this.#points.at(-1);
    const high = Math.max(0, ...this.#points.map(({ value }) => value));
    const [now, peak] = formatColumn(last?.value ?? 0, high);
    const summary = last ? `${now} ${this.#unit}, peak ${peak}` : "no data yet";
    this.#note.textContent = summary;
    this.#svg.setAttribute("aria-label", `${this.#title}: ${summary}${last ? ", over the last 30 minutes" : ""}`);
  }
}

const BAR_WIDTH = 200;

/** Three percentiles on one scale, with a mark at the budget. */
export function percentileBar({ p50, p95, p99, budgetMs }) {
  const scale = Math.max(p99, budgetMs ?? 0) * 1.05 || 1;
  const x = (ms) => (Math.max(ms, scale / 200) / scale) * BAR_WIDTH;
  const late = budgetMs !== null && p95 > budgetMs;
  const bar = svg("svg", { viewBox: `0 0 ${BAR_WIDTH} 16`, class: `percentiles${late ? " late" : ""}`, "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("rect", { x: 0, y: 5, width: BAR_WIDTH, height: 6, class: "ground", rx: 3 }),
    svg("rect", { x: 0, y: 5, width: x(p99), height: 6, class: "p99", rx: 3 }),
    svg("rect", { x: 0, y: 4, width: x(p95), height: 8, class: "p95", rx: 3 }),
    svg("rect", { x: 0, y: 3, width: x(p50), height: 10, class: "p50", rx: 3 }));
  if (budgetMs !== null) bar.append(svg("line", { x1: x(budgetMs), x2: x(budgetMs), y1: 0, y2: 16, class: "budget" }));
  return element("div", { class: "bar-container", title: `50 % within ${formatDuration(p50)}, 95 % within ${formatDuration(p95)}` }, bar);
}
