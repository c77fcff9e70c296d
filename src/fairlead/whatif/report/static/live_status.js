// The state of a running cluster in a sentence, and what to look at or to ask next.

import { count, plural } from "./format.js";
import { h, unbroken } from "./dom.js";
import { displacedPods } from "./changes.js";
import { existingNodes } from "./node_state.js";
import { groupsByReason } from "./pending.js";
import { suggestChange } from "./live_controls.js";

const NAMES_MAX = 3;
const REASONS_MAX = 2;
const ZONE_OUTAGE = "20m";

/** The findings, worst first, and suggestions below them. `update(report)` shows a newer state. */
export function statusPart(report) {
  const first = h("p", { class: "verdict", role: "status" });
  const others = h("ul", { class: "findings" });
  const steps = h("ul");
  const card = h("div", { class: "card conclusion" }, h("div", {}, h("h3", {}, "What now?"), steps));
  const element = h(
    "section",
    { id: "status", "aria-label": "State of the cluster" },
    first,
    others,
    card,
  );
  let shown = null;
  const update = () => {
    const [worst, ...rest] = findings(report);
    const next = nextSteps(report);
    const key = JSON.stringify([worst, rest, next]);
    if (key === shown || steps.matches(":focus-within")) return;
    shown = key;
    first.className = `verdict ${worst.severity}`;
    first.textContent = worst.sentence;
    others.hidden = !rest.length;
    others.replaceChildren(...rest.map(({ severity, sentence }) => h("li", { class: severity }, sentence)));
    steps.replaceChildren(...next.map(stepItem));
    card.hidden = !next.length;
  };
  update();
  return { element, update };
}

function findings(report) {
  const { nodes, pending, summary } = report;
  const quiet = namesOf(nodes, nodes.after.outOfService);
  const cordoned = namesOf(nodes, nodes.after.cordoned);
  const silent = podNamesOn(nodes, nodes.after.outOfService);
  const displaced = [...displacedPods(report)];
  const found = [
    report.without_pods.length && ["bad", `${some(report.without_pods)} ${report.without_pods.length === 1 ? "has" : "have"} no pod on a node in service.`],
    quiet.length && ["bad", `${plural(quiet.length, "node is", "nodes are")} out of service: ${some(quiet)}.`],
    silent.length && ["bad", `${plural(silent.length, "pod")}${workloadsOf(silent, report)} ${silent.length === 1 ? "is" : "are"} on nodes out of service.`],
    pending.length && ["bad", `${plural(pending.length, "pod")}${workloadsOf(pending.columns.pod, report)} ${pending.length === 1 ? "waits" : "wait"} for a node${reasonsOf(pending)}.`],
    displaced.length && ["warning", `${plural(displaced.length, "pod")}${workloadsOf(displaced, report)} ${displaced.length === 1 ? "was" : "were"} displaced: ${whereTheyAre(displaced, report)}.`],
    cordoned.length && ["good", `${plural(cordoned.length, "node is", "nodes are")} cordoned: ${some(cordoned)}.`],
  ].filter(Boolean);
  const existing = existingNodes(nodes).length;
  const well = `Every pod has a node (${count(summary.placed ?? 0)}), and every node is in service (${count(existing)}).`;
  const all = found.length ? found : [existing ? ["good", well] : ["warning", "The cluster has no nodes."]];
  return all.map(([severity, sentence]) => ({ severity, sentence }));
}

/** The most frequent reasons why pods are pending, as the end of a sentence about these pods. */
function reasonsOf(pending) {
  const amounts = new Map();
  for (const { title, rows } of groupsByReason(pending)) {
    amounts.set(title, (amounts.get(title) ?? 0) + rows.length);
  }
  const sorted = [...amounts].sort((a, b) => b[1] - a[1]);
  if (sorted.length === 1) return `: ${sorted[0][0].replace(/\.$/, "")}`;
  const others = sorted.slice(REASONS_MAX);
  const rows = sorted.slice(0, REASONS_MAX);
  if (others.length) {
    const pods = others.reduce((sum, [, amount]) => sum + amount, 0);
    rows.push(["other reasons", pods]);
  }
  return rows.map(([why, pods]) => `. ${plural(pods, "pod")}: ${why.replace(/\.$/, "")}`).join("");
}

/**
 * Says how many of the displaced pods have a node again, wait for one, are replaced, still terminate,
 * or are gone. The replacement of a pod has another name, so other waiting pods of its workload are
 * counted, too.
 */
function whereTheyAre(displaced, report) {
  const { nodes, owners, pending, replaced } = report;
  const all = new Set(displaced);
  const placed = new Set(nodes.pods.name.slice(0, nodes.pods.first[nodes.length]));
  const waiting = new Set(pending.columns.pod);
  const terminating = terminatingPods(report);
  const isBack = (pod) => placed.has(pod) && !terminating.has(pod);
  const left = displaced.filter((pod) => !isBack(pod) && !waiting.has(pod));
  const back = displaced.filter(isBack).length;
  const unreplaced = Math.max(0, left.length - replaced);
  const staying = Math.min(unreplaced, left.filter((pod) => terminating.has(pod)).length);
  const amounts = [
    [back, back === 1 ? "has a node again" : "have a node again"],
    [displaced.length - back - left.length, "without a node now"],
    [left.length - unreplaced, "replaced"],
    [staying, "still terminating"],
    [unreplaced - staying, "gone"],
  ].filter(([amount]) => amount);
  const words = amounts.map(([amount, what]) => `${amount === displaced.length ? "all" : count(amount)} ${what}`);
  const theirs = new Set(left.map((pod) => owners[pod]).filter(Boolean));
  const successors = pending.columns.pod.filter((pod) => theirs.has(owners[pod]) && !all.has(pod)).length;
  if (!successors) return words.join(", ");
  const verb = successors === 1 ? "waits" : "wait";
  const workload = theirs.size === 1 ? "the same workload" : "the same workloads";
  return `${words.join(", ")}, and ${plural(successors, "other pod")} of ${workload} ${verb} for a node`;
}

/** The names of the displaced pods that still exist, but terminate, for example on a failed node. */
function terminatingPods({ preemptions, evictions }) {
  const rows = [
    [preemptions.columns.victim, preemptions.columns.to],
    [evictions.columns.pod, evictions.columns.to],
  ];
  return new Set(rows.flatMap(([pods, to]) => pods.filter((_, row) => to[row] === "terminating")));
}

/** The names of the pods on the nodes in `places`. */
function podNamesOn({ pods: { name, first } }, places) {
  return [...places].flatMap((place) => name.slice(first[place], first[place + 1]));
}

/**
 * The names of the workloads of `pods`: those with the most pods first, DaemonSets last. A pod without
 * a workload has its own name in the list.
 */
function workloadsOf(pods, { owners }) {
  const amounts = new Map();
  for (const pod of pods) {
    const name = owners[pod] ?? pod;
    amounts.set(name, (amounts.get(name) ?? 0) + 1);
  }
  const isLast = ([name]) => Number(name.startsWith("ds/"));
  const sorted = [...amounts].sort((a, b) => isLast(a) - isLast(b) || b[1] - a[1]);
  return ` of ${some(sorted.map(([name]) => name))}`;
}

function namesOf({ name }, places) {
  return [...places].map((place) => name[place]).sort();
}

function some(names) {
  const rest = names.length - NAMES_MAX;
  const shown = names.slice(0, NAMES_MAX).join(", ");
  return rest > 0 ? `${shown} and ${count(rest)} more` : shown;
}

/** Suggestions: links to parts of the page as [words, place], what-ifs as [words, null, options]. */
function nextSteps(report) {
  const { nodes, pending } = report;
  const existing = existingNodes(nodes);
  const [first] = existing.map((node) => nodes.name[node]);
  const zone = existing.map((node) => nodes.zone[node]).find(Boolean);
  return [
    pending.length && ["See why no node takes these pods.", "pending"],
    ...report.next_steps.map(({ words, options }) => [words, null, options]),
    displacedPods(report).size && ["See the displaced pods, the causes, and where the pods are now.", "changes"],
    first && ["Ask which pods the drain of a node displaces:", null, `--drain ${quoted(first)}`],
    zone && ["Ask whether the cluster survives the failure of a zone:", null, `--fail-zone ${quoted(zone)} --for ${ZONE_OUTAGE}`],
  ].filter(Boolean);
}

/** Quotes a word, because the dashboard's server splits options as a shell does. */
function quoted(word) {
  return /^[\w.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function stepItem([words, place, options]) {
  if (place) return h("li", {}, h("a", { class: "link", href: `#${place}` }, words));
  const fill = () => suggestChange(options);
  return h("li", {}, words, " ", h("button", { type: "button", class: "suggestion", onclick: fill }, h("code", {}, unbroken(options))));
}
