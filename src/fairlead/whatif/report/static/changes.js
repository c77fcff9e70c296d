// What was displaced, in tables behind tabs: preemptions, evictions, moves, budget breaches.

import { section } from "./dom.js";
import { tabbedTables } from "./tabs.js";

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
  const lead = "A pod that was preempted or evicted and has moved is in both tables, a pod displaced twice has two rows.";
  const card = tabbedTables(tables, report, "Displaced pods", priorities, known);
  return section("changes", "Displaced pods", lead, card);
}
