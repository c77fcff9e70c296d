// The time line: a chart for each measure, one above the other, with one time axis and one legend.

import { count } from "./format.js";
import { choice, h, nothing, onWidth, section } from "./dom.js";
import { onThemeChange } from "./theme.js";
import { onTime, scrubber, showTime, stopByKey } from "./time.js";
import { timelineChart } from "./timeline_chart.js";
import { readout } from "./timeline_readout.js";
import { timelineModel } from "./timeline_series.js";

const HEIGHT_PX = { 1: 300, 2: 170, 3: 124, 4: 100, 5: 90 };

export function timelineSection(report, priorities, time) {
  // The page of a running cluster may be about a real cluster, whose time is real.
  const overTime = report.kind === "live" ? "over time" : "over virtual time";
  const lead = `Pods by priority ${overTime}. A pod counts as running from the time it gets a node until it ends or its deletion begins; while its node is not ready, it counts as down instead.`;
  const help = " Click a chart to move the slider below, which also sets the time of the node map; drag to zoom in.";
  if (!report.timeline.t_s.length) {
    return section("timeline", "Time line", null, nothing("No time line was recorded."));
  }
  const model = timelineModel(report, priorities);
  if (!model.measures.length) {
    return section(
      "timeline",
      "Time line",
      null,
      nothing("No pod ran, waited, was preempted or evicted."),
    );
  }
  // One instant is a point, which has no length to draw.
  if (report.kind === "live" && model.t.length === 1) {
    return section("timeline", "Time line", null, nothing("No time has passed yet."));
  }
  if (report.kind !== "live" && report.virtual_seconds === 0) {
    const words = "The run ended at its start, because nothing happened afterwards.";
    return section("timeline", "Time line", null, nothing(words));
  }
  return section("timeline", "Time line", [lead, h("span", { class: "on-screen" }, help)], timelineCard(report, priorities, model, time));
}

function timelineCard(report, priorities, model, time) {
  const plots = h("div", {
    class: "plots",
    tabindex: "0",
    role: "group",
    "aria-label": "Charts over virtual time; the arrow keys move through time",
  });
  const reset = h("button", { type: "button", class: "quiet", hidden: true }, "Whole run");
  const view = {
    model,
    plots,
    reset,
    hidden: new Set(),
    measure: "all",
    zoom: null,
    width: 0,
    time,
    charts: [],
  };
  view.slider = scrubber(time, "Time shown by charts and node map", () => view.zoom ?? [0, time.end]);
  view.legend = readout(model, time, view.hidden, () => drawTimeline(view));
  plots.addEventListener("keydown", (event) => moveByKey(event, view));
  onTime(time, (t) => {
    view.legend.show(t);
    for (const { markTime } of view.charts) markTime(t);
  }, plots);
  reset.addEventListener("click", () => zoomTo(view, null));
  onThemeChange(() => drawTimeline(view), plots);
  onWidth(plots, (width) => {
    view.width = width;
    drawTimeline(view);
  });
  const follow = () => {
    if (!plots.isConnected) document.removeEventListener("reportchange", follow);
    else if (tookOver(model, timelineModel(report, priorities)) && !plots.matches(":active")) drawTimeline(view);
  };
  document.addEventListener("reportchange", follow);
  const toolbar = h("div", { class: "toolbar" }, measureChoice(view), reset);
  const slider = h("div", { class: "chart-scrubber" }, view.slider.element);
  const side = h("div", { class: "side" }, view.legend.element, sampleNote(model));
  return h("div", { class: "card timeline" }, toolbar, h("div", { class: "split" }, h("div", {}, plots, slider), side));
}

/** Copies the counts of `fresh` to `model`; returns false if `fresh` has other rows than `model`. */
function tookOver(model, fresh) {
  const labels = ({ rows }) => JSON.stringify(rows.map(({ label }) => label));
  if (labels(model) !== labels(fresh)) return false;
  model.rows.forEach((row, at) => Object.assign(row, fresh.rows[at]));
  Object.assign(model, { t: fresh.t, recorded: fresh.recorded });
  return true;
}

function measureChoice(view) {
  const options = view.model.measures.map(({ name, label }) => [name, label]);
  if (options.length > 1) options.unshift(["all", "All"]);
  return choice("Measure", options, options[0][0], (measure) => {
    view.measure = measure;
    drawTimeline(view);
  });
}

function drawTimeline(view) {
  const { model, plots } = view;
  for (const { chart } of view.charts) chart.destroy();
  view.reset.hidden = view.zoom === null;
  view.legend.show(view.time.shown);
  const rows = model.rows.filter((row) => !view.hidden.has(row));
  view.charts = rows.length && view.width ? timelineCharts(view, rows) : [];
  const shown = rows.length
    ? view.charts.map(({ element }) => element)
    : [nothing("All priorities are hidden.")];
  plots.replaceChildren(...shown, quietMeasures(view));
}

function timelineCharts(view, rows) {
  const measures = view.model.measures.filter(
    ({ name }) => view.measure === "all" || view.measure === name,
  );
  const on = {
    cursor: (t) => view.legend.show(t ?? view.time.shown),
    pick: (t) => showTime(view.time, t),
    zoom: (range) => zoomTo(view, range),
  };
  return measures.map((measure, at) => {
    const size = {
      width: view.width,
      height: HEIGHT_PX[measures.length],
      axis: at === measures.length - 1,
    };
    const chart = timelineChart(view.model, rows, measure, size, view.zoom, on);
    chart.markTime(view.time.shown);
    return chart;
  });
}

function zoomTo(view, range) {
  view.zoom = range;
  view.slider.show();
  drawTimeline(view);
}

/** A sentence that names the measures that are always zero, for which no chart is drawn. */
function quietMeasures(view) {
  const { absent } = view.model;
  if (!absent.length || view.measure !== "all") return "";
  const none = absent.map(({ label }) => `none ${label.toLowerCase()}`).join(", ");
  return h("p", { class: "note" }, `${none.charAt(0).toUpperCase()}${none.slice(1)} at any time.`);
}

function sampleNote(model) {
  if (model.recorded <= model.t.length) return null;
  const text = `${count(model.t.length)} of ${count(model.recorded)} samples drawn; peaks are kept.`;
  return h("p", { class: "note" }, text);
}

function moveByKey(event, view) {
  const t = stopByKey(view.time, event.key);
  if (t === undefined) return;
  event.preventDefault();
  showTime(view.time, t);
}
