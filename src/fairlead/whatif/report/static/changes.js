// What happened to pods, in tables behind tabs: displaced, not drained, gone, new and removed pods.

import { count, plural } from "./format.js";
import { section } from "./dom.js";
import { tabbedTables } from "./tabs.js";

const TIME = { key: "t_s", label: "Time", kind: "time" };

/** The columns of a table of workloads whose pods waited for a node. */
export const WAIT_FIELDS = [
  { key: "workload", label: "Workload", kind: "name" },
  { key: "bound", label: "Pods", kind: "count" },
  { key: "median_s", label: "Median", kind: "duration" },
  { key: "p95_s", label: "95%", kind: "duration" },
  { key: "longest_s", label: "Longest", kind: "duration" },
  { key: "longest_pod", label: "Which", kind: "pod" },
  { key: "still_waiting", label: "Still waiting", kind: "count" },
];

const CHANGE_TABLES = [
  {
    key: "preemptions",
    label: "Preemptions",
    empty: "No preemptions.",
    facet: "rule",
    fields: [
      TIME,
      { key: "victim", label: "Victim", kind: "pod", priority: "victim_priority" },
      { key: "node", label: "From", kind: "node" },
      { key: "to", label: "To", kind: "node" },
      { key: "by", label: "Preempted by", kind: "pod", priority: "by_priority" },
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
      { key: "node", label: "From", kind: "node" },
      { key: "to", label: "To", kind: "node" },
      { key: "why", label: "Why", kind: "text" },
    ],
  },
  {
    key: "moved",
    label: "Moved pods",
    empty: "No pods moved.",
    facet: "how",
    fields: [
      { key: "pod", label: "Pod", kind: "pod" },
      { key: "from", label: "From", kind: "node" },
      { key: "to", label: "To", kind: "node" },
      { key: "how", label: "How", kind: "text" },
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
  podListTable("returned", "Back on the same node", []),
  podListTable("waited", "Waited a minute or longer for a node", [
    { key: "waited_s", label: "Waited", kind: "duration" },
    { key: "reason", label: "Why", kind: "text" },
  ]),
  { key: "waits", label: "Waits for a node", empty: "", fields: WAIT_FIELDS },
  podListTable("gone", "Gone for good", []),
  podListTable("not_created", "Not created again", [
    { key: "waits_for", label: "Waits for", kind: "pod" },
  ]),
  podListTable("placed", "Newly placed", []),
  podListTable("completed", "Completed", [
    { key: "phase", label: "Phase", kind: "text" },
    { key: "at_s", label: "Time", kind: "time" },
  ]),
  podListTable("updated", "Updated", [{ key: "instead_of", label: "Instead of", kind: "pod" }]),
  podListTable("removed", "Removed", []),
  {
    key: "deleted_claims",
    label: "Deleted claims",
    empty: "",
    fields: [
      { key: "at_s", label: "Time", kind: "time" },
      { key: "claim", label: "PersistentVolumeClaim", kind: "name" },
      { key: "volume", label: "Volume", kind: "text" },
      { key: "reclaim_policy", label: "Reclaim policy", kind: "text" },
    ],
  },
  {
    key: "refused_workloads",
    label: "New pods refused",
    empty: "",
    fields: [
      { key: "workload", label: "Workload", kind: "text" },
      { key: "replacements_refused", label: "Replacements, too", kind: "text" },
      { key: "message", label: "Message", kind: "text" },
    ],
  },
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
    key: "errors",
    label: "Errors",
    empty: "",
    fields: [
      { key: "object", label: "Object", kind: "text" },
      { key: "missing", label: "Pods missing", kind: "count" },
      { key: "message", label: "Message", kind: "text" },
      { key: "also_without", label: "Also without the change", kind: "text" },
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

/**
 * The set of the displaced pods in the tables: a pod that was preempted and then moved occurs once. A
 * new pod is not displaced, even if it has another node than without the change.
 */
export function displacedPods({ preemptions, evictions, moved }) {
  const left = moved.columns.pod.filter((_, row) => moved.columns.how[row] === "displaced");
  const names = [preemptions.columns.victim, evictions.columns.pod, left];
  return new Set(names.flat());
}

/**
 * Says where the displaced pods are at the end, which explains how the numbers on the tabs add up. A
 * pod whose node was deleted is only in the table of moved pods. `hasOtherRows` says whether a table has
 * rows although no pod was displaced.
 */
function changesLead({ kind, preemptions, evictions, moved, nodes }, hasOtherRows) {
  const ejected = preemptions.length + evictions.length;
  const places = new Map();
  for (const { columns, length } of [preemptions, evictions]) {
    const pods = columns.victim ?? columns.pod;
    for (let row = 0; row < length; row += 1) places.set(pods[row], [columns.node[row], columns.to[row]]);
  }
  const again = ejected - places.size;
  for (let row = 0; row < moved.length; row += 1) {
    const { pod, from, to, how } = moved.columns;
    if (how[row] === "displaced" && !places.has(pod[row])) places.set(pod[row], [from[row], to[row]]);
  }
  if (!places.size) return hasOtherRows ? "No pod was displaced." : null;
  const known = new Set(nodes.name);
  const amounts = new Map();
  for (const [from, to] of places.values()) {
    const where = !known.has(to) ? to : from === to ? "back on the same node" : "on another node";
    amounts.set(where, (amounts.get(where) ?? 0) + 1);
  }
  const parts = [...amounts].sort((a, b) => b[1] - a[1]).map(([where, amount]) => `${count(amount)} ${where}`);
  const twice = again ? ` ${plural(again, "row is", "rows are")} about pods that had been displaced before.` : "";
  const when = kind === "live" ? "now" : "at the end";
  return `Of ${plural(places.size, "displaced pod")}, ${when}: ${parts.join(", ")}.${twice}`;
}

export function changesSection(report, priorities) {
  const known = new Set(report.nodes.name);
  const tables = CHANGE_TABLES.filter(
    ({ key }) => ALWAYS.includes(key) || report[key].length,
  );
  const card = tabbedTables(tables, report, "Displaced pods", priorities, known);
  const hasRows = tables.some(({ key }) => report[key].length);
  return section("changes", "Displaced pods", changesLead(report, hasRows), card);
}
