// What happened to pods, in tables behind tabs: displaced, not drained, gone, new and removed ones.

import { section } from "./dom.js";
import { tabbedTables } from "./tabs.js";

const TIME = { key: "t_s", label: "Time", kind: "time" };

const CHANGE_TABLES = [
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
      { key: "pdb", label: "PodDisruptionBudget", kind: "name" },
      { key: "pod", label: "Pod", kind: "pod" },
      { key: "by", label: "Caused by", kind: "text" },
    ],
  },
  {
    key: "drain_refused",
    label: "Refused by kubectl",
    empty: "",
    fields: [
      { key: "node", label: "Node", kind: "node" },
      { key: "message", label: "Error", kind: "text" },
    ],
  },
  {
    key: "drain_flags",
    label: "Flags for kubectl",
    empty: "",
    fields: [
      { key: "flag", label: "kubectl drain needs", kind: "text" },
      { key: "needed_for", label: "For", kind: "count" },
      { key: "pods", label: "Pods", kind: "text" },
    ],
  },
  podListTable("undrained", "Not drained", [{ key: "why", label: "Why", kind: "text" }]),
  podListTable("gone", "Gone for good", []),
  podListTable("not_created", "Not created again", [
    { key: "waits_for", label: "Waits for", kind: "pod" },
  ]),
  podListTable("placed", "Newly placed", []),
  podListTable("updated", "Updated", [{ key: "instead_of", label: "Instead of", kind: "pod" }]),
  podListTable("removed", "Removed", []),
  {
    key: "skipped",
    label: "Without effect",
    empty: "",
    fields: [
      { key: "at_s", label: "Time", kind: "time" },
      { key: "event", label: "Event", kind: "text" },
      { key: "why", label: "Why", kind: "text" },
    ],
  },
  {
    key: "complaints",
    label: "Errors",
    empty: "",
    fields: [
      { key: "object", label: "Object", kind: "text" },
      { key: "missing", label: "Pods missing", kind: "count" },
      { key: "message", label: "Message", kind: "text" },
    ],
  },
  {
    key: "recurrences",
    label: "Repeated",
    empty: "",
    fields: [
      { key: "at_s", label: "Time", kind: "time" },
      { key: "kind", label: "Kind", kind: "text" },
      { key: "message", label: "What", kind: "text" },
    ],
  },
];

const ALWAYS = ["preemptions", "evictions", "pdb_breaches"];

function podListTable(key, label, more) {
  const fields = [
    { key: "pod", label: "Pod", kind: "pod" },
    { key: "node", label: "Node", kind: "node" },
    ...more,
  ];
  return { key, label, empty: "", fields };
}

/** How many pods are in the tables; who was preempted and then moved is one pod. */
export function displacedPods({ preemptions, evictions, moved }) {
  const names = [preemptions.columns.victim, evictions.columns.pod, moved.columns.pod];
  return new Set(names.flat()).size;
}

export function changesSection(report, priorities) {
  const known = new Set(report.nodes.name);
  const tables = CHANGE_TABLES.filter(
    ({ key }) => ALWAYS.includes(key) || report[key].length,
  );
  const lead = "A pod that was preempted or evicted and has moved is in both tables, a pod displaced twice has two rows.";
  const card = tabbedTables(tables, report, "Displaced pods", priorities, known);
  return section("changes", "Displaced pods", lead, card);
}
