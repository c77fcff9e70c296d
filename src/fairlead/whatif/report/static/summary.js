// The head of the page: what was asked, and what came out, in figures.

import {
  amountOf,
  count,
  duration,
  isNumber,
  percent,
  plural,
  points,
  ratio,
  signed,
} from "./format.js";
import { bar, h, nothing, section, unbroken } from "./dom.js";

/** Figures that count events, or pods that are gone at the end; they are not shown as shares of the pods. */
const EVENTS = ["preempted", "evicted", "completed"];
const DISTURBING = ["pending", "preempted", "evicted"];

export function titleBlock(report) {
  const kind = report.kind === "whatif" ? "What-if" : "Simulation";
  return h(
    "div",
    { class: "title-block" },
    h("p", { class: "kind" }, kind),
    h("h1", {}, unbroken(report.title || kind)),
    report.subtitle ? h("p", { class: "subtitle" }, report.subtitle) : null,
    factList(report),
  );
}

function factList(report) {
  const { summary } = report;
  const facts = [
    ["Nodes", !report.subtitle && isNumber(summary.nodes) && count(summary.nodes)],
    ["Pods", !report.subtitle && isNumber(summary.pods) && count(summary.pods)],
    ["Virtual time", isNumber(report.virtual_seconds) && duration(report.virtual_seconds)],
    [
      "Everything runs after",
      isNumber(report.all_running_after_s) && duration(report.all_running_after_s),
    ],
    ["Computed in", report.wall_seconds > 0 && duration(report.wall_seconds)],
    ["From", report.started_at],
    ["Seed", report.seed],
    [
      "Ties broken at random",
      isNumber(summary.choices_among_equals) && count(summary.choices_among_equals),
    ],
  ].filter(([, value]) => value);
  return h(
    "dl",
    { class: "facts" },
    facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

export function summarySection(report) {
  const lead =
    report.kind === "whatif"
      ? "All pods of the run with the change, compared with the run without the change."
      : null;
  return section(
    "summary",
    "Outcome",
    lead,
    h("div", { class: "tiles" }, tiles(report)),
    allocation(report),
    report.kind === "whatif" ? null : report.notes.map((text) => h("p", { class: "note" }, unbroken(text))),
  );
}

function tiles({ summary, summary_before: before }) {
  const shown = ["placed", "pending", "preempted", "evicted"];
  if (summary.completed) shown.push("completed");
  return shown.map((name) => tile(name, summary, before));
}

function tile(name, summary, before) {
  const value = summary[name];
  return h(
    "div",
    {
      class: "tile",
      id: `tile-${name}`,
      "data-some": value > 0 && DISTURBING.includes(name) && name,
    },
    h("span", { class: "tile-name" }, name.charAt(0).toUpperCase() + name.slice(1)),
    h("span", { class: "tile-value" }, count(value)),
    h("span", { class: "tile-note" }, tileNote(name, summary, before)),
  );
}

function tileNote(name, summary, before) {
  if (before && isNumber(before[name])) {
    return `${signed(summary[name] - before[name])} compared with ${count(before[name])} without the change`;
  }
  if (EVENTS.includes(name)) return "since the start";
  const share = ratio(summary[name], summary.pods);
  return share === null ? " " : `${percent(share)} of ${plural(summary.pods, "pod")}`;
}

function allocation({ resources }) {
  const known = resources.filter((resource) => isNumber(resource.allocatable));
  const compared = known.some((resource) => isNumber(resource.before));
  const body = known.length
    ? h("div", { class: "allocation-cells" }, known.map(allocationCell))
    : nothing("No resources were reported.");
  const note = compared
    ? h("span", { class: "note" }, h("span", { class: "before-key" }), "without the change")
    : null;
  return h(
    "div",
    { class: "card allocation" },
    h("div", { class: "card-head" }, h("h3", {}, "Requested share of what is allocatable on schedulable nodes (ready, not cordoned)"), note),
    body,
  );
}

function allocationCell(resource) {
  const now = ratio(resource.requested, resource.allocatable);
  const before = isNumber(resource.before) ? ratio(resource.before, resource.allocatable_before) : null;
  return h(
    "div",
    { class: "allocation-cell" },
    h("span", { class: "allocation-name", title: resource.name }, resource.label),
    h("span", { class: "allocation-share" }, percent(now)),
    bar(now, before),
    h(
      "span",
      { class: "allocation-amount" },
      amountOf(resource.requested, resource.allocatable, resource),
    ),
    h(
      "span",
      { class: "allocation-delta" },
      before === null || now === null ? "" : points(now - before),
    ),
  );
}

