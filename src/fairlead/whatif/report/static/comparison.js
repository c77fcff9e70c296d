// Draws several answers side by side; `?alternative=2` in the address shows the second one's report.

import { count, duration, isNumber, money, plural } from "./format.js";
import { h, section, unbroken } from "./dom.js";
import { unpackReport } from "./data.js";
import { drawPage, drawReport } from "./report.js";

const FIGURES = [
  { key: "pending", label: "Pending", isBad: true },
  { key: "preempted", label: "Preempted" },
  { key: "evicted", label: "Evicted" },
  { key: "moved", label: "Moved" },
  { key: "gone", label: "Gone", isBad: true },
  { key: "breaches", label: "Against a budget", isBad: true },
  { key: "recovered_s", label: "Everything runs after", format: duration },
  { key: "nodes", label: "Nodes", isShown: (rows) => hasCost(rows) || new Set(rows.map(({ nodes }) => nodes)).size > 1 },
  { key: "cost_per_month", label: "Cost per month at the end", isShown: hasCost, format: money },
];

function hasCost(rows) {
  return rows.some(({ cost_per_month: cost }) => isNumber(cost));
}

const page = JSON.parse(document.getElementById("report-data").textContent);
const shown = Number(new URLSearchParams(window.location.search).get("alternative"));
if (Number.isInteger(shown) && shown >= 1 && shown <= page.reports.length) {
  drawAlternative(shown);
} else {
  drawComparison();
}

/** Draws the report of one alternative, with links to the comparison and to the others. */
function drawAlternative(number) {
  const others = page.alternatives.map(({ alternative }, at) =>
    h(
      "a",
      at + 1 === number
        ? { class: "alternative", href: addressOf(at), "aria-current": "page" }
        : { class: "alternative", href: addressOf(at) },
      alternative,
    ),
  );
  const back = h("a", { class: "alternative", href: "?" }, "Comparison");
  drawReport(unpackReport(page.reports[number - 1]));
  document
    .getElementById("report")
    .prepend(h("nav", { class: "alternatives", "aria-label": "Alternatives" }, back, others));
}

function addressOf(at) {
  return `?alternative=${at + 1}`;
}

function drawComparison() {
  const parts = [titleOf(), sideBySide()];
  if (page.workloads.length) parts.push(workloads());
  if (page.notes.length) {
    const notes = page.notes.map((note) => h("li", {}, unbroken(note)));
    parts.push(section("notes", "Notes", null, h("ul", { class: "note" }, notes)));
  }
  drawPage([h("span", { class: "spacer" })], ...parts);
}

function titleOf() {
  const amount = plural(page.alternatives.length, "answer");
  return h(
    "div",
    { class: "title-block", id: "verdict" },
    h("p", { class: "kind" }, "What-if"),
    h("h1", {}, `${amount} side by side`),
    h("p", { class: "subtitle" }, page.source),
    h("p", { class: `verdict ${page.severity}` }, page.verdict),
    ...page.findings.map((sentence) => h("p", {}, sentence)),
  );
}

function sideBySide() {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "Alternative"),
    figures().map(({ label }) => h("th", { class: "kind-count", scope: "col" }, label)),
  );
  return section(
    "alternatives",
    "Alternatives",
    "The name of an alternative opens its report, which is part of this file.",
    h(
      "div",
      { class: "card scroll" },
      h("table", { class: "data compared" }, h("thead", {}, head), h("tbody", {}, page.alternatives.map(rowOf))),
    ),
  );
}

/** The figures to compare: the nodes only if they differ, the cost only if it is known. */
function figures() {
  return FIGURES.filter(({ isShown }) => !isShown || isShown(page.alternatives));
}

function rowOf(row, at) {
  return h(
    "tr",
    row.best ? { class: "best" } : {},
    h(
      "td",
      {},
      h("a", { class: "link name", href: addressOf(at) }, row.alternative),
      row.best ? h("span", { class: "badge" }, "best outcome") : null,
      h("p", { class: `sentence ${row.severity}` }, row.sentence),
      h("p", { class: "note" }, changesOf(row)),
    ),
    figures().map(({ key, label, isBad, format = count }) =>
      h(
        "td",
        { class: `kind-count ${row[key] === 0 ? "zero" : isBad ? "bad" : ""}`, "data-label": label },
        format(row[key]),
      ),
    ),
  );
}

function changesOf(row) {
  const words = row.changes.length ? row.changes.map((word) => h("code", {}, word)) : ["no change"];
  return [...words, h("span", {}, row.scheduler)];
}

function workloads() {
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "Workload"),
    page.alternatives.map(({ alternative }, at) =>
      h("th", { scope: "col" }, h("a", { class: "link", href: addressOf(at) }, alternative)),
    ),
  );
  const rows = page.workloads.map(({ workload, effects }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, workload),
      effects.map((effect, at) =>
        h("td", { "data-label": page.alternatives[at].alternative }, effectOf(effect)),
      ),
    ),
  );
  return section(
    "workloads",
    "Workloads that differ",
    null,
    h(
      "div",
      { class: "card scroll" },
      h("table", { class: "data compared" }, h("thead", {}, head), h("tbody", {}, rows)),
    ),
  );
}

function effectOf({ wanted, lowest, at_end, what }) {
  if (!isNumber(wanted)) return h("span", { class: "zero" }, what);
  const isShort = at_end < wanted;
  return [
    h("p", {}, what),
    h(
      "p",
      { class: isShort ? "note bad" : "note" },
      `lowest ready ${count(lowest)}, at the end ${count(at_end)} of ${count(wanted)}`,
    ),
  ];
}
