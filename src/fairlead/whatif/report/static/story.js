// The story of one pod or workload: what happened to it, with times and reasons, in a dialog.

import { clock, count, duration, isNumber } from "./format.js";
import { h, nothing } from "./dom.js";
import { priorityMark } from "./palette.js";
import { onAddress, setAddress } from "./address.js";

const PODS_MAX = 200;

/** A button that opens the story of a pod or a workload. */
export function podLink(name, text = name) {
  const open = () => document.dispatchEvent(new CustomEvent("showstory", { detail: name }));
  return h("button", { type: "button", class: "link", onclick: open }, text);
}

// --- the dialog ----------------------------------------------------------------------------------

/** The dialog, closed; it opens when `podLink` is pressed, or when the address names a pod. */
export function storyDialog(report, priorities) {
  const dialog = h("dialog", { class: "story", "aria-label": "The story of a pod or a workload" });
  const close = () => dialog.close();
  const open = (name) => {
    const shut = h("button", { type: "button", class: "quiet close", onclick: close }, "Close");
    const isWorkload = name.split("/").length > 2;
    const content = isWorkload
      ? workloadStory(report, name)
      : podStory(report, priorities, name);
    const heading = h("h2", {}, name);
    dialog.replaceChildren(h("div", { class: "panel-head" }, heading, shut), ...content);
    setAddress("pod", name);
    if (!dialog.open) dialog.showModal();
  };
  dialog.addEventListener("close", () => setAddress("pod", null));
  dialog.addEventListener("keydown", (event) => event.key === "Escape" && close());
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  document.addEventListener("showstory", ({ detail }) => open(detail));
  onAddress("pod", open);
  return dialog;
}

function podStory(report, priorities, name) {
  const events = eventsOf(report, name);
  const owner = report.owners[name];
  const place = placeAtEnd(report, priorities, name);
  const explained = report.live ? report.live.explanation(name) : null;
  return [
    owner ? h("p", { class: "note" }, "of ", podLink(owner)) : null,
    place,
    events.length ? eventTable(events, report) : nothing(report.live ? "Nothing was recorded about this pod." : "Nothing happens to this pod."),
    explained,
  ].filter(Boolean);
}

function workloadStory(report, name) {
  const { workloads, owners } = report;
  const row = workloads.columns.workload.indexOf(name);
  const pods = Object.keys(owners).filter((pod) => owners[pod] === name);
  const items = pods.slice(0, PODS_MAX).map((pod) =>
    h("tr", {}, h("th", { scope: "row" }, podLink(pod)), h("td", {}, lastWords(report, pod))),
  );
  const more = pods.length - PODS_MAX;
  return [
    row < 0 ? null : h("p", {}, workloadSentence(workloads.columns, row)),
    items.length ? h("table", { class: "events" }, h("tbody", {}, items)) : null,
    more > 0 ? h("p", { class: "note" }, `and ${count(more)} more`) : null,
  ].filter(Boolean);
}

function workloadSentence({ wanted, lowest, lowest_for: lasted, at_end: atEnd, what }, row) {
  const dip = lasted[row] ? `, lowest ${count(lowest[row])} (${lasted[row]})` : "";
  return `${count(wanted[row])} wanted, ${count(atEnd[row])} ready at the end${dip}: ${what[row]}.`;
}

/** The last event of the pod; if the pod waits at the end, also the event that displaced it. */
function lastWords(report, pod) {
  const events = eventsOf(report, pod);
  const last = events.at(-1);
  const cause = last?.waits ? events.findLast(({ displaces }) => displaces) : null;
  return [cause, last].filter(Boolean).map(({ text }) => text).join(". ");
}

// --- what happened -------------------------------------------------------------------------------

/** The events of a pod, in the order of their times; those without a time come last. */
function eventsOf(report, name) {
  const events = [
    ...rowsAbout(report.preemptions, "victim", name, ({ t_s: at, node, by, rule }) => ({
      at,
      text: `Preempted on ${node} by ${by}${rule ? ` (${rule})` : ""}`,
      displaces: true,
    })),
    ...rowsAbout(report.preemptions, "by", name, ({ t_s: at, node, victim }) => ({
      at,
      text: `Preempts ${victim} on ${node}`,
    })),
    ...rowsAbout(report.evictions, "pod", name, ({ t_s: at, node, why }) => ({
      at,
      text: `Evicted from ${node}: ${why}`,
      displaces: true,
    })),
    ...rowsAbout(report.pdb_breaches, "pod", name, ({ t_s: at, pdb, by }) => ({
      at,
      text: `Disrupted by ${by}, in violation of PodDisruptionBudget ${pdb}`,
    })),
    ...rowsAbout(report.pending, "pod", name, ({ since_s: at, reason }) => ({
      at,
      text: `${report.kind === "live" ? "Pending now" : "Pending to the end"}${reason ? `: ${reason}` : ""}`,
      waits: true,
    })),
    ...outcomes(report, name),
  ];
  const time = ({ at }) => (isNumber(at) ? at : Infinity);
  return events.sort((a, b) => time(a) - time(b));
}

function outcomes(report, name) {
  const words = {
    undrained: ({ why }) => `Cannot be evicted: ${why}`,
    moved: ({ from, to }) => `Runs on ${to} instead of ${from}`,
    placed: ({ node }) => `Runs on ${node}, and has no node without the change`,
    returned: ({ node }) => `Is back on ${node}`,
    waited: ({ waited_s: waited, reason }) => `Waited ${duration(waited)} for a node: ${reason}`,
    updated: ({ node, instead_of: before }) =>
      before ? `Runs on ${node} in place of pod ${before}` : `Resized in place on ${node}`,
    gone: () => "Gone for good: nothing replaces it",
    not_created: ({ waits_for: pod }) => `Not created again${pod ? `: waits for ${pod}` : ""}`,
    removed: () => "Removed",
  };
  return Object.entries(words).flatMap(([table, text]) =>
    rowsAbout(report[table], "pod", name, (row) => ({ at: null, text: text(row) })),
  );
}

function rowsAbout({ length, columns }, key, name, told) {
  const rows = [];
  for (let row = 0; row < length; row += 1) {
    if (columns[key][row] !== name) continue;
    const values = Object.entries(columns).map(([field, column]) => [field, column[row]]);
    rows.push(told(Object.fromEntries(values)));
  }
  return rows;
}

function eventTable(events, { kind }) {
  const rows = events.map(({ at, text }) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, isNumber(at) ? clock(at) : kind === "live" ? "now" : "at the end"),
      h("td", {}, text),
    ),
  );
  return h("table", { class: "events" }, h("tbody", {}, rows));
}

function placeAtEnd({ nodes, virtual_seconds: end, live: isLive }, priorities, name) {
  const pod = nodes.pods.name.indexOf(name);
  if (pod < 0 || pod >= nodes.pods.first[nodes.length]) return null;
  const node = nodes.pods.first.findLastIndex((first) => first <= pod);
  const after = isNumber(end) && !isLive ? ` after ${duration(end)}` : "";
  return h(
    "p",
    {},
    `On ${nodes.name[node]}${after}. Priority `,
    ...priorityMark(priorities, nodes.pods.priority[pod]),
    ".",
  );
}
