// Texts about nodes: the tooltip, the panel of the pinned node, and the tables about all nodes.

import { amountOf, count, percent, plural, quantity, ratio, uncountedNodes } from "./format.js";
import { bar, h, nothing } from "./dom.js";
import { priorityMark } from "./palette.js";
import { podsOn } from "./node_state.js";
import { podLink } from "./story.js";

const TOOLTIP_PODS = 8;
const PANEL_PODS_MAX = 500;
const TENTHS_SHOWN = 10;

/** The share of `resource` that is requested on `node`; null if the node does not have the resource. */
export function utilisation({ requested, allocatable }, node, resource) {
  return ratio(requested.get(resource)?.[node] ?? 0, allocatable.get(resource)?.[node] ?? null);
}

/** By how much the change raises the requested share of `resource` on `node`, from -1 to 1. */
export function utilisationChange({ after, before }, node, resource) {
  const share = (state) => (state.absent.has(node) ? 0 : (utilisation(state, node, resource) ?? 0));
  return share(after) - share(before);
}

/** Whether the status of `node`, or an amount that is requested on it, differs between the runs. */
export function isChanged({ after, before }, node) {
  const marks = ["absent", "cordoned", "outOfService"];
  if (marks.some((mark) => after[mark].has(node) !== before[mark].has(node))) return true;
  return [...after.requested].some(
    ([name, amounts]) => (amounts[node] ?? 0) !== (before.requested.get(name)?.[node] ?? 0),
  );
}

/** The state that the map shows: with the change, unless the run without the change is chosen. */
export function shownState({ side, states }) {
  return side === "before" ? states.before : states.after;
}

/** The words that apply to a node: cordoned, out of service, new, deleted. */
export function nodeMarks({ after, before }, node, state = after) {
  const isNew = before && before.absent.has(node) && !after.absent.has(node);
  const isDeleted = after.absent.has(node) && (!before || !before.absent.has(node));
  return [
    state.cordoned.has(node) && "cordoned",
    state.outOfService.has(node) && "out of service",
    isNew && "new",
    isDeleted && "deleted",
  ].filter(Boolean);
}

export function tooltipContent(report, priorities, view, node) {
  const pods = podsOf(report, view, node);
  const more = pods.length - TOOLTIP_PODS;
  return [
    nodeHeading("p", report, view, node),
    resourceBars(report, view, node),
    pods.length ? podTable(report, priorities, pods.slice(0, TOOLTIP_PODS)) : nothing("No pods"),
    more > 0
      ? h("p", { class: "note" }, `and ${plural(more, "more pod")}; click to see all`)
      : null,
  ].filter(Boolean);
}

export function nodePanel(report, priorities, view, onclose) {
  const node = view.pinned;
  const pods = podsOf(report, view, node);
  const close = h(
    "button",
    { type: "button", class: "quiet close", onclick: onclose },
    "All nodes",
  );
  const rest = pods.length - PANEL_PODS_MAX;
  return h(
    "div",
    { class: "panel" },
    h("div", { class: "panel-head" }, nodeHeading("h3", report, view, node), close),
    resourceBars(report, view, node),
    h("h4", {}, pods.length ? plural(pods.length, "pod") : "No pods"),
    h(
      "div",
      { class: "panel-pods", tabindex: "0", role: "region", "aria-label": "Pods on the node" },
      podTable(report, priorities, pods.slice(0, PANEL_PODS_MAX)),
    ),
    rest > 0 ? h("p", { class: "note" }, `and ${count(rest)} more`) : null,
    ...exchange(report, report.nodes.name[node]),
    report.live ? report.live.nodeActions(report.nodes.name[node], view.states, node) : null,
  );
}

/** Lists of the pods that leave the node because of the change, and of the pods that come to it. */
function exchange(report, node) {
  const { moved, preemptions, evictions, gone, placed, not_created: missing } = report;
  const on = ({ columns }, place, pod = "pod") =>
    columns[pod].filter((_, row) => columns[place][row] === node);
  const left = [
    ...on(moved, "from"),
    ...on(preemptions, "node", "victim"),
    ...[evictions, gone, missing].flatMap((table) => on(table, "node")),
  ];
  const came = [...on(moved, "to"), ...on(placed, "node")];
  return [
    ["Pods that left", left],
    ["Pods that came", came],
  ].map(([title, pods]) => podNames(title, [...new Set(pods)]));
}

function podNames(title, pods) {
  if (!pods.length) return null;
  const shown = pods.slice(0, PANEL_PODS_MAX);
  const items = shown.map((pod) => h("li", {}, podLink(pod)));
  return h("div", {}, h("h4", {}, `${title} (${count(pods.length)})`), h("ul", { class: "names" }, items));
}

function nodeHeading(tag, report, view, node) {
  const zone = report.nodes.zone[node];
  return h(
    "div",
    { class: "node-heading" },
    h(tag, { class: "node-name" }, report.nodes.name[node]),
    zone ? h("span", { class: "note" }, zone) : null,
    nodeMarks(view.states, node, shownState(view)).map((mark) => h("span", { class: "badge" }, mark)),
  );
}

function resourceBars(report, view, node) {
  const { before } = view.states;
  const state = shownState(view);
  const hasBefore = before && !before.absent.has(node);
  const shareBefore = ({ name }) => (hasBefore ? utilisation(before, node, name) : null);
  const rows = report.resources.map((resource) => {
    const share = utilisation(state, node, resource.name);
    if (share === null) return null;
    const [requested, allocatable] = [state.requested, state.allocatable].map(
      (amount) => amount.get(resource.name)?.[node] ?? 0,
    );
    const text = amountOf(requested, allocatable, resource);
    return h(
      "tr",
      {},
      h("th", { scope: "row", title: resource.name }, resource.label),
      h("td", {}, bar(share, shareBefore(resource))),
      h("td", { class: "number" }, percent(share)),
      h("td", { class: "number" }, text),
    );
  });
  return h("table", { class: "bars" }, h("tbody", {}, rows));
}

/** The pods of `node`, the most important first. */
function podsOf({ nodes }, view, node) {
  const { pods } = nodes;
  return [...podsOn(nodes, shownState(view), node)].sort(
    (a, b) => pods.priority[b] - pods.priority[a] || (pods.name[a] < pods.name[b] ? -1 : 1),
  );
}

function podTable(report, priorities, pods) {
  const { name, priority, requests } = report.nodes.pods;
  const rows = pods.map((pod) => {
    return h(
      "tr",
      {},
      h("td", { class: "pod-name", title: name[pod] }, podLink(name[pod])),
      h(
        "td",
        { class: "pod-priority", title: priorities.label(priority[pod]) },
        priorityMark(priorities, priority[pod]),
      ),
      h("td", { class: "number" }, requestText(report.resources, requests[pod])),
    );
  });
  return h("table", { class: "pods" }, h("tbody", {}, rows));
}

function requestText(resources, requests) {
  const parts = resources
    .filter(({ name }) => Object.hasOwn(requests, name) && requests[name] !== 0)
    .map(({ name, label, scale }) => {
      const text = quantity(requests[name], scale);
      return scale === "bytes" && name === "memory" ? text : `${text} ${label}`;
    });
  return parts.join(" · ") || "no requests";
}

/**
 * A table of the zones: the number of nodes, and the requested share of the resource on schedulable nodes. A note
 * below it says which nodes do not count.
 */
export function zoneTable(view, heading) {
  const { zones, resource } = view;
  const state = shownState(view);
  const rows = zones.map(({ name, nodes }) => {
    const schedulable = nodes.filter((node) => !state.cordoned.has(node) && !state.outOfService.has(node));
    const sum = (amount) =>
      schedulable.reduce((total, node) => total + (amount.get(resource.name)?.[node] ?? 0), 0);
    const share = ratio(sum(state.requested), sum(state.allocatable));
    const cordoned = nodes.filter((node) => state.cordoned.has(node)).length;
    return h(
      "tr",
      {},
      h("th", { scope: "row", class: "zone-name", title: name }, name || "none"),
      h("td", { class: "number" }, count(nodes.length)),
      h("td", { class: cordoned ? "number" : "number zero" }, count(cordoned)),
      h("td", {}, bar(share)),
      h("td", { class: "number" }, percent(share)),
    );
  });
  const head = [heading, "Nodes", "Cordoned", resource.label, ""].map((text) =>
    h("th", { scope: "col" }, text),
  );
  const has = (set) => zones.some(({ nodes }) => nodes.some((node) => set.has(node)));
  const note = uncountedNodes(has(state.cordoned), has(state.outOfService), "out of service");
  return h(
    "div",
    {},
    h("table", { class: "zones" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)),
    note ? h("p", { class: "note" }, note) : null,
  );
}

/** A histogram of the nodes by the requested share of the resource: a column for every tenth. */
export function fillHistogram(view) {
  const { zones, resource } = view;
  const amounts = new Array(TENTHS_SHOWN).fill(0);
  let without = 0;
  for (const node of zones.flatMap((zone) => zone.nodes)) {
    const share = utilisation(shownState(view), node, resource.name);
    if (share === null) without += 1;
    else amounts[Math.min(Math.floor(share * TENTHS_SHOWN), TENTHS_SHOWN - 1)] += 1;
  }
  const most = Math.max(1, ...amounts);
  const columns = amounts.map((amount, tenth) => histogramColumn(amount, tenth, most));
  const lacking = without ? `${plural(without, "node has", "nodes have")} none.` : "";
  return h(
    "div",
    { class: "fill-histogram" },
    h("h4", {}, `Nodes by share of ${resource.label} requested, in percent`),
    h("div", { class: "columns" }, columns),
    h("p", { class: "note" }, lacking),
  );
}

function histogramColumn(amount, tenth, most) {
  const block = h("span", { class: "block" });
  block.style.height = `${amount ? Math.max(1, (amount / most) * 64) : 0}px`;
  block.style.background = `var(--ramp-${Math.round((tenth / (TENTHS_SHOWN - 1)) * 4)})`;
  const range = `${tenth * 10} to ${tenth * 10 + 10}%`;
  return h(
    "span",
    { class: "column", title: `${plural(amount, "node")} at ${range}` },
    h("span", {}, amount ? count(amount) : ""),
    block,
    h("span", { class: "tick" }, String(tenth * 10)),
  );
}
