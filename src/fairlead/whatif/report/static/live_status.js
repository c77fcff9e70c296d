// The state of a running cluster in a sentence, and what to look at or to ask next.

import { count, plural } from "./format.js";
import { h } from "./dom.js";
import { displacedPods } from "./changes.js";
import { groupsByReason } from "./pending.js";
import { suggestChange } from "./live_controls.js";

const NAMES_MAX = 3;
const ZONE_OUTAGE = "20m";

/** The findings, worst first, and suggestions below them; `update(report)` follows the cluster. */
export function statusPart(report) {
  const first = h("p", { class: "verdict", role: "status" });
  const others = h("ul", { class: "findings" });
  const steps = h("ul");
  const element = h(
    "section",
    { id: "status", "aria-label": "State of the cluster" },
    first,
    others,
    h("div", { class: "card conclusion" }, h("div", {}, h("h3", {}, "What now?"), steps)),
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
  };
  update();
  return { element, update };
}

function findings(report) {
  const { nodes, pending, summary } = report;
  const quiet = namesOf(nodes, nodes.after.outOfService);
  const cordoned = namesOf(nodes, nodes.after.cordoned);
  const displaced = displacedPods(report);
  const found = [
    quiet.length && ["bad", `${plural(quiet.length, "node is", "nodes are")} out of service: ${some(quiet)}.`],
    pending.length && ["bad", `${plural(pending.length, "pod waits", "pods wait")}${namespacesOf(pending)} for a node: ${groupsByReason(pending)[0].title}.`],
    displaced && ["warning", `${plural(displaced, "pod was", "pods were")} displaced.`],
    cordoned.length && ["good", `${plural(cordoned.length, "node is", "nodes are")} cordoned: ${some(cordoned)}.`],
  ].filter(Boolean);
  const well = `Every pod has a node (${count(summary.placed ?? 0)}), and every node is in service (${count(nodes.length)}).`;
  const all = found.length ? found : [["good", nodes.length ? well : "The cluster has no nodes."]];
  return all.map(([severity, sentence]) => ({ severity, sentence }));
}

function namespacesOf({ columns: { pod } }) {
  const names = [...new Set(pod.map((one) => one.slice(0, one.indexOf("/"))))];
  return names.length === 1 ? ` in ${names[0]}` : ` in ${count(names.length)} namespaces`;
}

function namesOf({ name }, places) {
  return [...places].map((place) => name[place]).sort();
}

function some(names) {
  const rest = names.length - NAMES_MAX;
  const shown = names.slice(0, NAMES_MAX).join(", ");
  return rest > 0 ? `${shown} and ${count(rest)} more` : shown;
}

/** Links into the page as [words, place], and what-ifs as [words, null, options]. */
function nextSteps(report) {
  const { nodes, pending } = report;
  const [first] = nodes.name;
  const zone = nodes.zone?.find(Boolean);
  return [
    pending.length && ["See why no node takes these pods.", "pending"],
    pending.length && first && ["Ask whether one more node is enough:", null, `--add-nodes 1 --like ${quoted(first)}`],
    displacedPods(report) && ["See the displaced pods, with causes.", "changes"],
    first && ["Ask what draining a node displaces:", null, `--drain ${quoted(first)}`],
    zone && ["Ask whether the cluster survives a zone:", null, `--fail-zone ${quoted(zone)} --for ${ZONE_OUTAGE}`],
  ].filter(Boolean);
}

/** A word as the dashboard's server splits it, in the way of a shell. */
function quoted(word) {
  return /^[\w.:/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

function stepItem([words, place, options]) {
  if (place) return h("li", {}, h("a", { class: "link", href: `#${place}` }, words));
  const fill = () => suggestChange(options);
  return h("li", {}, words, " ", h("button", { type: "button", class: "suggestion", onclick: fill }, h("code", {}, options)));
}
