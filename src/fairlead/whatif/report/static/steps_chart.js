// One chart over virtual time: counts as stacked steps or as lines. Its legend states the time of its
// figures, which follow the cursor; of a stack, it also has the highest figures.

import { clock, count } from "./format.js";
import { h, onWidth } from "./dom.js";
import { cssColour, mixed, resolvedColour, swatch } from "./palette.js";
import {
  LABEL_PX,
  cursorTime,
  lastUpTo,
  timeMark,
  timeTicks,
  wholeRange,
  wholeSteps,
} from "./timeline_chart.js";
import { onThemeChange } from "./theme.js";
import { onTime, showTime } from "./time.js";

/**
 * `model` is { title, note, t, rows, stacked, range, format }. `rows` are [{ label, variable, values,
 * dashed, line, sloped }]; the first row is at the bottom of the stack, and a row with `line` is drawn
 * as a line over the stack. `range` is the [from, to] of the time axis (default: all of `t`). `format`
 * formats values that are not counts. A `sloped` line connects its values; any other line holds each
 * value until the next.
 */
export function stepsChart(model, height, sync, time) {
  const plot = h("div", { class: "plot", role: "img", "aria-label": `Chart over time: ${model.title}` });
  const legend = stepsLegend(model, time);
  const element = h(
    "div",
    { class: "chart steps-chart" },
    h(
      "p",
      { class: "outage-head" },
      h("strong", {}, model.title),
      h("span", { class: "note" }, model.note),
    ),
    legend.element,
    plot,
  );
  const view = { chart: null, width: 0, markTime: () => {} };
  const draw = () => {
    view.chart?.destroy();
    if (!view.width) return;
    const options = outageOptions(model, { width: view.width, height }, sync, (t) => legend.show(t ?? time.shown));
    view.chart = new uPlot(options, [model.t, ...outageLayers(model)], plot);
    view.markTime = timeMark(view.chart, (t) => showTime(time, t));
    view.markTime(time.shown);
  };
  onTime(time, (t) => {
    legend.show(t);
    view.markTime(t);
  }, element);
  onThemeChange(draw, element);
  onWidth(plot, (width) => {
    view.width = width;
    draw();
  });
  return element;
}

function stepsLegend({ t, rows, stacked, format = (value) => count(Math.floor(value + 1e-6)) }, { isLive }) {
  const when = h("span", { class: "outage-when", "aria-live": "polite" });
  const figures = rows.map(() => h("b", {}));
  const items = rows.map((row, at) =>
    h(
      "span",
      { class: row.dashed ? "outage-key dashed" : "outage-key" },
      swatch(row.variable),
      `${row.label} `,
      figures[at],
      stacked ? highestText(row, format) : "",
    ),
  );
  const show = (instant) => {
    const sample = instant === null ? t.length - 1 : lastUpTo(t, instant);
    when.textContent = `${instant !== null ? `At ${clock(instant)}` : isLive ? "Now" : "At the end"}:`;
    rows.forEach((row, number) => {
      const value = row.values.slice(0, sample + 1).findLast((one) => one !== null);
      figures[number].textContent = format(value ?? 0);
    });
  };
  show(null);
  return { element: h("p", { class: "outage-legend" }, when, items), show };
}

/** The highest value of a row; nothing if the row has this value at the end. */
function highestText({ values }, format) {
  const known = values.filter((value) => value !== null);
  const highest = format(Math.max(0, ...known));
  return highest === format(known.at(-1) ?? 0) ? "" : ` (at most ${highest})`;
}

/** The layers of the stack, from the sum of all rows to the lowest row alone; then the lines. */
function outageLayers({ rows, stacked }) {
  const layers = [];
  if (stacked) {
    for (const row of rows.filter(({ line }) => !line)) {
      const below = layers[0];
      layers.unshift(below ? row.values.map((value, at) => value + below[at]) : row.values);
    }
    return [...layers, ...rows.filter(({ line }) => line).map(({ values }) => values)];
  }
  return rows.map(({ values }) => values);
}

function outageSeries({ rows, stacked }) {
  if (!stacked) return rows.map((row) => outageLine(row));
  const areas = rows.filter(({ line }) => !line).reverse().map(outageArea);
  return [...areas, ...rows.filter(({ line }) => line).map(outageLine)];
}

function outageArea({ variable }) {
  const colour = resolvedColour(variable);
  return {
    stroke: cssColour(colour),
    fill: cssColour(mixed(resolvedColour("--card"), colour, 0.62)),
    width: 1,
    points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }),
  };
}

function outageLine({ variable, dashed, sloped = dashed }) {
  return {
    stroke: cssColour(resolvedColour(variable)),
    width: dashed ? 1.5 : 2,
    dash: dashed ? [5, 4] : [],
    points: { show: false },
    ...(sloped ? {} : { paths: uPlot.paths.stepped({ align: 1 }) }),
  };
}

function outageOptions(model, size, sync, onCursor) {
  const grid = { stroke: cssColour(resolvedColour("--line")), width: 1 };
  const axis = {
    stroke: cssColour(resolvedColour("--ink-2")),
    font: "11px system-ui, sans-serif",
    grid,
    ticks: { show: false },
  };
  return {
    width: size.width,
    height: size.height,
    padding: [6, LABEL_PX, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: false, y: false },
      ...(sync ? { sync: { key: sync, setSeries: false } } : {}),
    },
    scales: {
      x: { time: false, range: () => model.range ?? wholeRange(model.t) },
      y: { range: (_, __, max) => [0, Math.max(model.format ? 0.01 : 1, max * 1.05)] },
    },
    axes: [
      { ...axis, size: 26, space: 90, incrs: timeTicks(), values: (_, at) => at.map(clock) },
      {
        ...axis,
        size: 56,
        space: 26,
        ...(model.format ? {} : { incrs: wholeSteps() }),
        values: (_, at) => at.map(model.format ?? count),
      },
    ],
    series: [{}, ...outageSeries(model)],
    hooks: { setCursor: [(chart) => onCursor(cursorTime(chart))] },
  };
}
