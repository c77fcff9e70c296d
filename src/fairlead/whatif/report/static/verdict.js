// The answer first: the verdict in a sentence, then workloads, node pools and budgets.

import { count, duration, isNumber, percent, plural, ratio, uncountedNodes } from "./format.js";
import { h, section, unbroken } from "./dom.js";
import { tabbedTables } from "./tabs.js";

const TABLES = [
  {
    key: "workloads",
    label: "Workloads",
    empty: "No workload is touched.",
    fields: [
      { key: "workload", label: "Workload", kind: "pod" },
      { key: "wanted", label: "Wanted", kind: "count" },
      { key: "lowest", label: "Lowest ready", kind: "count" },
      { key: "lowest_for", label: "For", kind: "word" },
      { key: "at_end", label: "At end", kind: "count" },
      { key: "budget_what", label: "Budget", kind: "word" },
      { key: "what", label: "What happened", kind: "text" },
    ],
  },
  {
    key: "node_pools",
    label: "Node pools",
    empty: "No nodes.",
    fields: [
      { key: "pool", label: "Pool", kind: "text" },
      { key: "nodes_without", label: "Nodes before", kind: "count" },
      { key: "nodes", label: "Nodes", kind: "count" },
      { key: "not_ready", label: "Not ready", kind: "count" },
      { key: "cordoned", label: "Cordoned", kind: "count" },
      { key: "pods_without", label: "Pods before", kind: "count" },
      { key: "pods", label: "Pods", kind: "count" },
      { key: "cpu", label: "CPU requested", kind: "word" },
      { key: "memory", label: "Memory requested", kind: "word" },
    ],
  },
  {
    key: "budgets",
    label: "Disruption budgets",
    empty: "No disruption budget covers these pods.",
    fields: [
      { key: "pdb", label: "Budget", kind: "name" },
      { key: "rule", label: "Rule", kind: "text" },
      { key: "allowed", label: "Allowed", kind: "count" },
      { key: "lowest_healthy", label: "Lowest healthy", kind: "count" },
      { key: "needed", label: "Needed", kind: "count" },
      { key: "what", label: "Result", kind: "text" },
    ],
  },
];

const PACKING = {
  key: "packing",
  label: "Packing",
  empty: "",
  fields: [
    { key: "measure", label: "Measure", kind: "text" },
    { key: "today", label: "In the dump", kind: "text" },
    { key: "without", label: "Without the change", kind: "text" },
    { key: "changed", label: "With the change", kind: "text" },
  ],
};

/** Whether the amounts in the row are times, not numbers of pods (certainty.py: RECOVERED). */
const isRecovery = ({ what }, row) => what[row] === "all affected run after";

const CERTAINTY = {
  key: "certainty",
  label: "Certainty over seeds",
  empty: "",
  fields: [
    { key: "subject", label: "Subject", kind: "pod" },
    { key: "what", label: "What", kind: "text" },
    { key: "seeds", label: "Seeds", kind: "count" },
    { key: "total", label: "Of", kind: "count" },
    { key: "least", label: "Least", kind: "count", isDuration: isRecovery },
    { key: "median", label: "Median", kind: "count", isDuration: isRecovery },
    { key: "p90", label: "90%", kind: "count", isDuration: isRecovery },
    { key: "most", label: "Most", kind: "count", isDuration: isRecovery },
    { key: "certain", label: "Certain?", kind: "text" },
  ],
};

const START_TIMES = {
  key: "start_times",
  label: "Start times",
  empty: "",
  fields: [
    { key: "subject", label: "Waiting", kind: "pod" },
    { key: "kind", label: "Kind", kind: "word" },
    { key: "pods", label: "Pods", kind: "count" },
    { key: "p10_s", label: "10%", kind: "duration" },
    { key: "p50_s", label: "Median", kind: "duration" },
    { key: "p90_s", label: "90%", kind: "duration" },
    { key: "started", label: "Simulations in which it starts", kind: "count" },
  ],
};

/** The verdict of a what-if, with its tables and next steps, or the verdict of a simulation. */
export function verdictSection(report, priorities) {
  if (!report.verdict.length) return [];
  if (report.kind !== "whatif") return [section("verdict", "Verdict", null, ...sentences(report))];
  const tables = { ...report, node_pools: poolTable(report.node_pools) };
  const optional = [PACKING, CERTAINTY, START_TIMES].filter(({ key }) => report[key].length);
  const body = [
    ...sentences(report),
    ...conditions(report.fail_on),
    conclusion(report),
    tabbedTables([...TABLES.map((spec) => withPoolNote(spec, report.node_pools)), ...optional], tables, "The effect by workload", priorities, new Set()),
    untouched(report),
  ];
  return [section("verdict", "Verdict", null, ...body)];
}

function sentences({ verdict: [first, ...others], node_cost: cost }) {
  const items = [...others.map(finding), ...(cost ? [h("li", {}, cost)] : [])];
  return [
    h("p", { class: `verdict ${first.severity}` }, verdictLines(first.sentence)),
    items.length ? h("ul", { class: "findings" }, items) : null,
  ];
}

/** The claim in large type, and each sentence after it, such as a reason, in a smaller line below. */
function verdictLines(text) {
  const [claim, ...others] = text.split(/(?<=\.) (?=[A-Z0-9])/);
  return [claim, ...others.map((sentence) => h("span", { class: "more" }, ` ${sentence}`))];
}

function finding({ severity, sentence }) {
  return h("li", { class: severity }, sentence);
}

/** How sure the answer is, and what to do next. */
function conclusion(report) {
  const sure = [h("p", {}, unbroken(certaintySentence(report))), ...notes(report)];
  const steps = report.next_steps.map(nextStep);
  const part = (title, ...content) => h("div", {}, h("h3", {}, title), ...content);
  return h(
    "div",
    { class: "card conclusion" },
    part("How sure?", ...sure),
    steps.length ? part("What now?", h("ul", {}, steps)) : null,
  );
}

function certaintySentence({ certainty, seed, summary: { choices_among_equals: choices } }) {
  const { subject, what, seeds, total } = certainty.columns;
  const verdicts = certainty.length ? subject.flatMap((name, row) => (name === "verdict" ? [row] : [])) : [];
  if (verdicts.length === 1) return `All ${count(total[verdicts[0]])} seeds have this verdict; the tab “Certainty over seeds” has the amounts.`;
  if (verdicts.length) {
    const words = verdicts.map((row) => `${what[row]} with ${count(seeds[row])}`);
    return `The verdict depends on the seed. Of ${count(total[verdicts[0]])} seeds: ${words.join(", ")}.`;
  }
  if (!choices) return "No node was chosen at random: whenever a pod was placed, one node was the best.";
  const times = choices === 1 ? "Once" : `${count(choices)} times`;
  return `${times}, several nodes were equally good for a pod, and seed ${seed ?? 0} chose one. Another choice may place pods elsewhere; --seeds 20 shows which outcomes depend on the choice.`;
}

function nextStep({ words, options, command, place }) {
  const code = options ?? command;
  return h(
    "li",
    {},
    place ? h("a", { class: "link", href: `#${place}` }, words) : words,
    code ? [" ", h("code", {}, unbroken(code))] : null,
  );
}

function conditions(failOn) {
  return failOn.map(({ condition, holds, evidence }) =>
    h(
      "p",
      { class: holds ? "condition bad" : "condition good" },
      `--fail-on ${condition}: ${holds ? evidence.slice(0, 5).join(", ") : "does not hold"}`,
    ),
  );
}

/** What was under way before the change, and what the simulation did not check. */
function notes({ under_way: underWay, rest_after_s: after, notes: texts }) {
  const shown = texts.map((text) => h("p", { class: "note" }, unbroken(text)));
  if (!underWay.length) return shown;
  const parts = underWay.columns.workload.map((name, at) => `${name}: ${underWay.columns.what[at]}`);
  const when = isNumber(after)
    ? `The change is made ${duration(after)} later, when the cluster has settled.`
    : "The cluster does not settle, so the change is made at once.";
  const text = `Under way before the change: ${parts.join("; ")}. ${when}`;
  return [h("p", { class: "note" }, text), ...shown];
}

function untouched({ untouched_workloads: amount, workloads }) {
  if (!amount) return null;
  const other = workloads.length ? "other " : "";
  return h("p", { class: "note" }, `${plural(amount, `${other}workload is`, `${other}workloads are`)} untouched.`);
}

/** `spec`, with a note about nodes that do not count if it is the spec of the table of node pools. */
function withPoolNote(spec, pools) {
  if (spec.key !== "node_pools") return spec;
  const has = (key) => pools.some((pool) => pool[key]);
  return { ...spec, note: uncountedNodes(has("cordoned"), has("not_ready"), "not ready") };
}

function poolTable(pools) {
  const column = (key) => pools.map((pool) => pool[key]);
  const keys = ["pool", "nodes_without", "nodes", "not_ready", "cordoned", "pods_without", "pods"];
  const columns = Object.fromEntries(keys.map((key) => [key, column(key)]));
  columns.cpu = pools.map((pool) => usage(pool, "cpu"));
  columns.memory = pools.map((pool) => usage(pool, "memory"));
  return { length: pools.length, columns };
}

function usage({ resources }, name) {
  const found = resources.find(({ resource }) => resource === name);
  if (!found) return "";
  const before = percent(ratio(found.requested_without, found.allocatable_without));
  const after = percent(ratio(found.requested, found.allocatable));
  return before === after ? after : `${before} → ${after}`;
}
