// What was displaced, in tables behind tabs: preemptions, evictions, moves, budget breaches.

import { count } from "./format.js";
import { h, section } from "./dom.js";
import { dataTable } from "./table.js";

const TIME = { key: "t_s", label: "Time", kind: "time" };

const TABLES = [
  {
    key: "preemptions",
    label: "Preemptions",
    empty: "No preemptions.",
    facet: "rule",
    fields: [
      TIME,
      { key: "victim", label: "Victim", kind: "pod" },
      { key: "victim_priority", label: "Its priority", kind: "priority" },
      { key: "node", label: "Node", kind: "node" },
      { key: "by", label: "Preempted by", kind: "pod" },
      { key: "by_priority", label: "Its priority", kind: "priority" },
      { key: "rule", label: "Deciding rule", kind: "text" },
      { key: "candidates", label: "Candidates", kind: "count" },
    ],
  },
  {
    key: "evictions",
    label: "Evictions",
    empty: "No evictions.",
    facet: "why",
    fields: [
      TIME,
      { key: "pod", label: "Pod", kind: "pod" },
      { key: "node", label: "Node", kind: "node" },
      { key: "why", label: "Why", kind: "text" },
    ],
  },
  {
    key: "moved",
    label: "Moved pods",
    empty: "No pods moved.",
    fields: [
      { key: "pod", label: "Pod", kind: "pod" },
      { key: "from", label: "From", kind: "node" },
      { key: "to", label: "To", kind: "node" },
    ],
  },
  {
    key: "pdb_breaches",
    label: "PDB breaches",
    empty: "No PodDisruptionBudget was breached.",
    facet: "pdb",
    fields: [
      TIME,
      { key: "pdb", label: "PodDisruptionBudget", kind: "pod" },
      { key: "pod", label: "Pod", kind: "pod" },
      { key: "by", label: "Caused by", kind: "pod" },
    ],
  },
];

/** How many pods are in the tables; who was preempted and then moved is one pod. */
export function displacedPods({ preemptions, evictions, moved }) {
  const names = [preemptions.columns.victim, evictions.columns.pod, moved.columns.pod];
  return new Set(names.flat()).size;
}

export function changesSection(report, priorities) {
  const known = new Set(report.nodes.name);
  const tables = TABLES.filter(
    ({ key }) => key !== "moved" || report.kind === "whatif" || report.moved.length,
  );
  const panels = tables.map((spec) => panel(spec, report, priorities, known));
  const tabs = tables.map((spec) => tab(spec, report[spec.key].length));
  const first = Math.max(
    0,
    tables.findIndex(({ key }) => report[key].length),
  );
  const select = (at) => tabs.forEach((one, other) => show(one, panels[other], other === at));
  tabs.forEach((one, at) => one.addEventListener("click", () => select(at)));
  const strip = h("div", { class: "tabs", role: "tablist", "aria-label": "Displaced pods" }, tabs);
  strip.addEventListener("keydown", (event) => selectByKey(event, tabs, select));
  select(first);
  const lead = "A pod that was preempted or evicted and has moved is in both tables, a pod displaced twice has two rows.";
  return section("changes", "Displaced pods", lead, h("div", { class: "card" }, strip, panels));
}

function tab({ key, label }, amount) {
  const attributes = {
    type: "button",
    role: "tab",
    id: `tab-${key}`,
    "aria-controls": `panel-${key}`,
  };
  return h(
    "button",
    attributes,
    label,
    h("span", { class: amount ? "amount" : "amount zero" }, count(amount)),
  );
}

function panel(spec, report, priorities, known) {
  const content = dataTable({ ...spec, table: report[spec.key], priorities, known });
  return h(
    "div",
    { role: "tabpanel", id: `panel-${spec.key}`, "aria-labelledby": `tab-${spec.key}` },
    content,
  );
}

function show(tabButton, tabPanel, selected) {
  tabButton.setAttribute("aria-selected", String(selected));
  tabButton.tabIndex = selected ? 0 : -1;
  tabPanel.hidden = !selected;
}

function selectByKey(event, tabs, select) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const at = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
  select(at);
  tabs[at].focus();
}
