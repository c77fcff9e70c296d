// The three charts of an outage: nodes by state, tainted nodes compared with the rate of their zone,
// and the pods that were on failed nodes, by state.

import { count, duration, isNumber, plural } from "./format.js";
import { h } from "./dom.js";
import { stepsChart } from "./steps_chart.js";

const SYNC = "outage";

const NODE_STATES = [
  { name: "tainted", label: "tainted NoExecute", variable: "--priority-5" },
  { name: "unready", label: "not ready", variable: "--priority-1" },
  { name: "unnoticed", label: "failed, unnoticed", variable: "--priority-other" },
  { name: "cordoned", label: "cordoned", variable: "--priority-4" },
];

const POD_STATES = [
  { name: "down", label: "down, not replaced", variable: "--priority-5" },
  { name: "waiting", label: "pending or starting", variable: "--priority-1" },
  { name: "back", label: "back", variable: "--priority-2" },
  { name: "evicted", label: "evicted so far", variable: "--ink", line: true },
];

export function outageCharts(report, time) {
  const { outage } = report;
  const charts = [
    nodesChart(outage, report, time),
    rateChart(outage, report, time),
    podsChart(outage, report, time),
  ].filter((chart) => chart !== null);
  return h("div", { class: "card steps-charts" }, charts);
}

function nodesChart({ nodes_over_time: line, figures }, report, time) {
  const rows = countRows(line, NODE_STATES);
  if (!rows.length) return null;
  const note = `${count(figures.nodes)} of ${plural(report.nodes.length, "node")} failed`;
  const model = { title: "Nodes out of service", note, rows, stacked: true };
  return stepsChart({ ...model, ...untilEnd(line.t_s, rows, report) }, 170, SYNC, time);
}

function podsChart({ pods_over_time: line, figures }, report, time) {
  const rows = countRows(line, POD_STATES);
  if (!rows.length) return null;
  const note = `${plural(figures.concerned, "pod was", "pods were")} on failed nodes`;
  const model = { title: "Pods of failed nodes", note, rows, stacked: true };
  return stepsChart({ ...model, ...untilEnd(line.t_s, rows, report) }, 190, SYNC, time);
}

/** For each zone, the number of nodes tainted so far, and the number that the zone's rate allows. */
function rateChart({ rates }, { virtual_seconds: end }, time) {
  const t = [...new Set(rates.flatMap((rate) => rate.t_s))].sort((a, b) => a - b);
  if (t.length < 2) return null; // lines over one instant have no length
  const rows = rates.flatMap((rate, at) => {
    const variable = `--priority-${at}`;
    return [
      { label: `${rate.zone}: tainted`, variable, values: stretched(rate, "tainted", t), line: true },
      {
        label: "rate allows",
        variable: rates.length > 1 ? variable : "--ink",
        values: stretched(rate, "allowed", t),
        line: true,
        dashed: true,
      },
    ];
  });
  const first = t[0];
  const last = t[t.length - 1];
  const margin = Math.max((last - first) * 0.04, 1);
  const isMostOfTheRun = isNumber(end) && last - first > end / 2; // then the axis is that of the charts beside it
  const range = isMostOfTheRun ? [0, end] : [Math.max(first - margin, 0), last + margin];
  const note = `${duration(last - first)} from the first taint to the last; the rate counts nodes, not pods`;
  const model = { title: "Tainted nodes", note, t, rows, stacked: false };
  return stepsChart({ ...model, range }, 150, null, time);
}

/** The values of one zone at `t`, the instants of all zones; null before the zone's first instant. */
function stretched(rate, name, t) {
  const known = new Map(rate.t_s.map((instant, at) => [instant, rate[name][at]]));
  const last = rate.t_s[rate.t_s.length - 1];
  let value = null;
  return t.map((instant) => {
    if (known.has(instant)) value = known.get(instant);
    if (name === "allowed") return known.has(instant) ? value : null;
    return instant > last ? (known.get(last) ?? null) : value;
  });
}

function countRows({ counts }, states) {
  return states
    .filter(({ name }) => counts[name]?.some((value) => value > 0))
    .map((state) => ({ ...state, values: counts[state.name] }));
}

/** Extends the rows to the whole run: with 0 from its start, and with their last value until its end. */
function untilEnd(t_s, rows, { virtual_seconds: end }) {
  const t = [...t_s];
  const before = t[0] > 0;
  const after = end > t[t.length - 1];
  if (before) t.unshift(0);
  if (after) t.push(end);
  const stretchedRows = rows.map((row) => {
    const values = [...row.values];
    if (before) values.unshift(0);
    if (after) values.push(values[values.length - 1]);
    return { ...row, values };
  });
  return { t, rows: stretchedRows };
}
