// The legend with the counts at one time: a row per priority, which can be hidden, and a column per measure.

import { count } from "./format.js";
import { h } from "./dom.js";
import { swatch } from "./palette.js";
import { timeText } from "./time.js";
import { lastUpTo } from "./timeline_chart.js";
import { MEASURES } from "./timeline_series.js";

/** The table, and `show(t)`, which shows the counts at second `t` (null: the end of the run). */
export function readout(model, time, hidden, onchange) {
  const when = h("caption", { "aria-live": "polite" });
  const measures = MEASURES.filter((measure) => !measure.rare || model.measures.includes(measure));
  const rows = model.rows.map((row) => readoutRow(row, measures, hidden, onchange));
  const total = readoutCells(measures);
  const table = h(
    "table",
    { class: "readout" },
    when,
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "Priority"),
        measures.map(({ label }) => h("th", { scope: "col" }, label)),
      ),
    ),
    h(
      "tbody",
      {},
      rows.map(({ element }) => element),
    ),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "All shown"), total)),
  );
  const show = (t) => {
    const sample = t === null ? model.t.length - 1 : Math.max(0, lastUpTo(model.t, t));
    when.textContent = timeText(time, t);
    const shown = rows.filter(({ row }) => !hidden.has(row));
    for (const { row, cells } of rows) fill(cells, measures, (name) => row[name][sample]);
    fill(total, measures, (name) => shown.reduce((sum, { row }) => sum + row[name][sample], 0));
  };
  return { element: table, show };
}

function readoutCells(measures) {
  return measures.map(() => h("td"));
}

function fill(cells, measures, valueOf) {
  measures.forEach(({ name }, at) => {
    const value = valueOf(name);
    cells[at].textContent = count(value);
    cells[at].className = value ? "" : "zero";
  });
}

function readoutRow(row, measures, hidden, onchange) {
  const cells = readoutCells(measures);
  const number =
    row.priority !== null && row.label !== count(row.priority) ? count(row.priority) : null;
  const button = h(
    "button",
    {
      type: "button",
      class: "legend",
      "aria-pressed": "true",
      title: `Show or hide ${row.label}${number ? `, priority ${number}` : ""}`,
    },
    swatch(row.variable),
    h(
      "span",
      { class: "legend-words" },
      h("span", { class: "legend-name" }, row.label),
      number ? h("span", { class: "legend-number" }, number) : null,
    ),
  );
  button.addEventListener("click", () => {
    if (!hidden.delete(row)) hidden.add(row);
    button.setAttribute("aria-pressed", String(!hidden.has(row)));
    onchange();
  });
  return { row, cells, element: h("tr", {}, h("th", { scope: "row" }, button), cells) };
}
