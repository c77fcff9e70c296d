// One chart of one measure over virtual time: stacked steps, drawn by uPlot.

import { clock, count } from "./format.js";
import { h } from "./dom.js";
import { cssColour, mixed, resolvedColour } from "./palette.js";
import { lowOf, peakOf, stack } from "./timeline_series.js";

const SECONDS = [1, 2, 5, 10, 15, 30];
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((minutes) => minutes * 60);
const DAYS = [1, 2, 7, 14, 30, 90, 365, 3650].map((days) => days * 86400);
const WHOLE_STEPS = Array.from({ length: 16 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();
const AXIS_PX = 26;
/** Space for the right half of the last label of an axis of time, such as "30d 12:00:00". */
export const LABEL_PX = 40;
const DRAG_PX = 4;

/**
 * A heading and a plot. Calls `on.cursor(second or null)` when the mouse moves, `on.pick(second)` for a
 * click, and `on.zoom([from, to])` for a drag. `markTime(second or null)` draws a line at the second.
 */
export function timelineChart(model, rows, measure, size, zoom, on) {
  const layers = stack(rows, measure.name);
  const plot = h("div", { class: "plot", role: "img", "aria-label": `Chart of ${measure.label.toLowerCase()} pods over time` });
  const element = h("div", { class: "chart" }, heading(model, measure, layers[0]), plot);
  const chart = new uPlot(options(model, rows, size, zoom, on), [model.t, ...layers], plot);
  return { element, chart, markTime: timeMark(chart, on.pick) };
}

/** The second under the cursor; null if the cursor is not on the chart. */
export function cursorTime(chart) {
  const { left, idx } = chart.cursor;
  return idx === null || idx === undefined || left < 0 ? null : chart.posToVal(left, "x");
}

/** The index of the last element of `t` (ascending) that is not after `instant`; -1 if there is none. */
export function lastUpTo(t, instant) {
  let [low, high] = [0, t.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] <= instant) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Calls `pick` with a clicked second; returns a function that draws a line at a second. */
export function timeMark(chart, pick) {
  const line = h("div", { class: "time-mark", hidden: true });
  let pressed = null;
  chart.over.append(line);
  chart.over.addEventListener("mousedown", ({ clientX }) => (pressed = clientX));
  chart.over.addEventListener("click", (event) => {
    const left = event.clientX - chart.over.getBoundingClientRect().left;
    if (Math.abs(event.clientX - pressed) < DRAG_PX) pick(chart.posToVal(left, "x"));
  });
  return (t) => {
    const left = t === null ? -1 : chart.valToPos(t, "x");
    line.hidden = left < 0 || left > chart.over.clientWidth;
    line.style.left = `${left}px`;
  };
}

function heading(model, measure, total) {
  const extreme = (words, { value, at }) => `${words} ${count(value)}, at ${clock(model.t[at])}`;
  const peak = peakOf(total);
  const notes = measure.grows ? [`${count(peak.value)} in all`] : [extreme("at most", peak)];
  const low = lowOf(total);
  if (measure.dips && low.value === peak.value) notes.splice(0, 1, `${count(low.value)} all the time`);
  else if (measure.dips) notes.unshift(extreme("at least", low));
  return h("p", { class: "chart-head" }, h("strong", {}, measure.label), h("span", {}, notes.join("; ")));
}

function options(model, rows, size, zoom, on) {
  const ink = cssColour(resolvedColour("--ink-2"));
  const grid = { stroke: cssColour(resolvedColour("--line")), width: 1 };
  const axis = { stroke: ink, font: "11px system-ui, sans-serif", grid, ticks: { show: false } };
  return {
    width: size.width,
    height: size.height + (size.axis ? AXIS_PX : 0),
    padding: [6, LABEL_PX, size.axis ? 0 : 6, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      sync: { key: "timeline", setSeries: false },
      drag: { x: true, y: false, setScale: false },
    },
    scales: {
      x: { time: false, range: () => zoom ?? wholeRange(model.t) },
      y: { range: (_, __, max) => [0, Math.max(1, max * 1.05)] },
    },
    axes: [
      {
        ...axis,
        size: size.axis ? AXIS_PX : 0,
        space: 90,
        incrs: timeTicks(),
        values: (_, at) => at.map(size.axis ? clock : () => ""),
      },
      { ...axis, size: 56, space: 26, incrs: wholeSteps(), values: (_, at) => at.map(count) },
    ],
    series: [{}, ...[...rows].reverse().map(layerStyle)],
    hooks: {
      setCursor: [(chart) => on.cursor(cursorTime(chart))],
      setSelect: [(chart) => selected(chart, on)],
    },
  };
}

/** Distances between marks on an axis of time, in seconds. */
export function timeTicks() {
  return [...SECONDS, ...MINUTES, ...DAYS];
}

/** Distances between marks on an axis of counts. */
export function wholeSteps() {
  return WHOLE_STEPS;
}

export function wholeRange(t) {
  const [from, to] = [t[0], t[t.length - 1]];
  return [from, to > from ? to : from + 1];
}

// Layers are painted over one another, from the whole stack down to the highest priority, so
// their colours are mixed with the background beforehand instead of being transparent.
function layerStyle(row) {
  const colour = resolvedColour(row.variable);
  return {
    stroke: cssColour(colour),
    fill: cssColour(mixed(resolvedColour("--card"), colour, 0.62)),
    width: 1,
    points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }),
  };
}

/**
 * Zooms to the selected time after uPlot has handled the mouse: the zoom replaces the charts, and a
 * chart that is destroyed before it has removed its listener would zoom again at every later click.
 * The selection is in all charts, but only the first one zooms.
 */
function selected(chart, on) {
  const { left, width } = chart.select;
  if (width < DRAG_PX) return;
  const range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
  queueMicrotask(() => chart.root.isConnected && on.zoom(range));
}
