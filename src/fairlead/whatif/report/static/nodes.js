// The node map with its controls, its tooltip, and the panel of the node that was clicked.

import { count, percent, plural } from "./format.js";
import { choice, dropDown, h, nothing, searchField, section } from "./dom.js";
import { fitNodeCanvas, nodeCanvas } from "./node_canvas.js";
import {
  fillHistogram,
  isChanged,
  nodePanel,
  shownState,
  tooltipContent,
  utilisation,
  utilisationChange,
  zoneTable,
} from "./node_detail.js";
import { onAddress, setAddress } from "./address.js";
import { onTime, scrubber, timeText } from "./time.js";
import { podsOn } from "./node_state.js";

const BUTTONS_MAX = 5;
const ZONE = "zone";
const collator = new Intl.Collator("en", { numeric: true });

/** Makes the map pin a node and scroll into view; tables call this for links to nodes. */
export function showNode(name) {
  document.dispatchEvent(new CustomEvent("shownode", { detail: name }));
}

export function nodesSection(report, priorities, states, time) {
  if (!report.nodes.length) return section("nodes", "Nodes", null, nothing("The cluster has no nodes."));
  const resource = report.resources[0] ?? { name: "", label: "Nothing", scale: "count" };
  const view = {
    resource,
    states: states.at(null),
    side: "after",
    group: ZONE,
    order: "name",
    zones: [],
    matches: null,
    text: "",
    pointed: null,
    pinned: null,
    pinnedName: null,
  };
  const parts = {
    tooltip: h("div", { class: "tooltip", hidden: true, "aria-hidden": "true" }),
    side: h("div", { class: "side" }),
    spoken: h("p", { class: "unseen", "aria-live": "polite" }),
    found: h("span", { class: "note" }),
    legend: h("div"),
  };
  const map = nodeCanvas(report, view, {
    point: (node, place) => pointAt(report, priorities, view, parts, node, place),
    pin: (node) => {
      pin(node);
      if (node !== null && isBelow(parts.side, map)) parts.side.scrollIntoView({ block: "nearest" });
    },
  });
  const pin = (node) => {
    view.pinned = node;
    view.pinnedName = node === null ? null : report.nodes.name[node];
    setAddress("node", view.pinnedName);
    parts.tooltip.hidden = true;
    map.paint();
    showSide(report, priorities, view, parts, pin);
  };
  const refresh = () => {
    view.zones = zonesOf(report, view);
    parts.legend.replaceChildren(legendScale(report, view));
    if (map.layout) map.relayout();
    if (!parts.isHeld) showSide(report, priorities, view, parts, pin);
    map.canvas.setAttribute(
      "aria-label",
      `Node map: ${plural(view.zones.flatMap(({ nodes }) => nodes).length, "node")} coloured by ${view.resource.label} requested`,
    );
  };
  document.addEventListener("reportchange", () => followReport(report, view, parts, states, time, refresh));
  document.addEventListener("shownode", ({ detail }) => showNamed(report, map, parts.side, pin, detail));
  onTime(time, (t) => {
    view.states = states.at(t);
    refresh();
  });
  onAddress("node", (name) => showNamed(report, map, parts.side, pin, name));
  return section(
    "nodes",
    "Nodes",
    ["One cell per node.", h("span", { class: "on-screen" }, " Point at a cell to see the pods of the node; click the cell to keep them in view.")],
    nodesCard(report, view, map, parts, refresh, nodeTime(states, time)),
  );
}

/** Shows a newer state, but does not draw the side panel again while the mouse or the focus is in it. */
function followReport(report, view, parts, states, time, refresh) {
  const at = report.nodes.name.indexOf(view.pinnedName);
  view.pinned = view.pinnedName === null || at < 0 ? null : at;
  if (view.pointed >= report.nodes.length) view.pointed = null;
  view.resource = report.resources.find(({ name }) => name === view.resource.name) ?? view.resource;
  view.states = states.at(time.shown);
  if (view.text) view.matches = nodesMatching(report, view, view.text);
  parts.isHeld = parts.side.matches(":hover, :focus-within");
  refresh();
  parts.isHeld = false;
}

/** The scrubber above the map, and the instant that the map shows. */
function nodeTime({ isKnown }, time) {
  if (!time.end && !time.isLive) return null;
  if (!isKnown) return h("p", { class: "note" }, "The run has too many placements for the map to show other times, so it shows only the end of the run.");
  const words = h("output", { class: "time-words" });
  onTime(time, (t) => (words.textContent = timeText(time, t)));
  return h("div", { class: "node-time" }, scrubber(time, "Time shown by the node map").element, words);
}

function nodesCard(report, view, map, parts, refresh, timeRow) {
  const holder = h("div", { class: "map" }, map.canvas);
  fitNodeCanvas(map, holder);
  const help = h(
    "p",
    { class: "unseen", id: "node-map-help" },
    "Arrow keys move between nodes, Enter keeps a node's pods in view, Escape closes them.",
  );
  const toolbar = h(
    "div",
    { class: "toolbar" },
    controls(report, view, map, parts, refresh),
    h("span", { class: "spacer" }),
    parts.legend,
  );
  return h(
    "div",
    { class: "card" },
    toolbar,
    timeRow,
    h("div", { class: "split" }, holder, parts.side),
    parts.tooltip,
    parts.spoken,
    help,
  );
}

function controls(report, view, map, parts, refresh) {
  const { nodes } = report;
  const byName = new Map(report.resources.map((resource) => [resource.name, resource]));
  const options = report.resources.map(({ name, label }) => [name, label]);
  const pick = (name) => {
    view.resource = byName.get(name);
    refresh();
  };
  const resources = options.length > BUTTONS_MAX ? dropDown : choice;
  const order = choice(
    "Order of nodes",
    [
      ["name", "By name"],
      ["most", "Fullest first"],
    ],
    "name",
    (value) => {
      view.order = value;
      refresh();
    },
  );
  const find = searchField("Find node or pod", (text) => {
    view.text = text;
    view.matches = text ? nodesMatching(report, view, text) : null;
    parts.found.textContent = text ? `${plural(view.matches.size, "node")} found` : "";
    map.paint();
  });
  return [
    nodes.before ? sides(view, refresh) : null,
    options.length ? resources("Resource", options, view.resource.name, pick) : null,
    groups(report, view, refresh),
    order,
    find,
    parts.found,
  ];
}

/** Which of the two runs the map shows, or what differs between them. */
function sides(view, refresh) {
  const options = [
    ["before", "Without the change"],
    ["after", "With the change"],
    ["change", "Difference"],
  ];
  return choice("Run", options, view.side, (side) => {
    view.side = side;
    refresh();
  });
}

function groups({ nodes }, view, refresh) {
  if (!nodes.labels.size) return null;
  const options = [[ZONE, "By zone"], ...[...nodes.labels.keys()].map((key) => [key, `By ${key}`])];
  return dropDown("Group nodes", options, view.group, (group) => {
    view.group = group;
    refresh();
  });
}

function legendScale(report, view) {
  if (view.side === "change") return changeScale();
  const state = shownState(view);
  const gradient = h("span", {
    class: "scale",
    role: "img",
    "aria-label": "Colours from nothing requested to everything requested",
  });
  const key = (kind, text) => h("span", {}, h("span", { class: `key ${kind}` }), text);
  const marks = [h("span", {}, "0%", gradient, "100%")];
  const shares = report.resources.flatMap(({ name }) =>
    report.nodes.name.map((_, node) => utilisation(state, node, name)),
  );
  if (shares.includes(null)) marks.push(key("none", "has none"));
  if (shares.some((share) => share > 1)) marks.push(key("over", "over 100%"));
  if (state.cordoned.size) marks.push(key("cordon", "cordoned"));
  if (state.outOfService.size) marks.push(key("quiet", "out of service"));
  return h("div", { class: "scale-row" }, marks);
}

function changeScale() {
  const label = "Colours from less requested to more requested with the change";
  const gradient = h("span", { class: "scale change", role: "img", "aria-label": label });
  return h("div", { class: "scale-row" }, h("span", {}, "less", gradient, "more"));
}

/** The nodes of the chosen run, in blocks by zone or by a label. */
function zonesOf(report, view) {
  const { nodes } = report;
  const values = view.group === ZONE ? nodes.zone : nodes.labels.get(view.group);
  const { after, before } = view.states;
  const isAbsent = (node) =>
    view.side === "change"
      ? after.absent.has(node) && before.absent.has(node)
      : shownState(view).absent.has(node);
  const byZone = new Map();
  for (let node = 0; node < nodes.length; node += 1) {
    if (isAbsent(node)) continue;
    const members = byZone.get(values[node]);
    if (members) members.push(node);
    else byZone.set(values[node], [node]);
  }
  const byName = (a, b) => collator.compare(nodes.name[a], nodes.name[b]);
  const rank = nodeRank(view);
  const order = view.order === "name" ? byName : (a, b) => rank(b) - rank(a) || byName(a, b);
  return [...byZone]
    .map(([name, members]) => ({ name: name ?? "", nodes: members.sort(order) }))
    .sort((a, b) => collator.compare(a.name, b.name));
}

/** The number by which "Fullest first" sorts: the requested share, or how much it differs. */
function nodeRank(view) {
  const { side, resource, states } = view;
  if (side !== "change") return (node) => utilisation(shownState(view), node, resource.name) ?? -1;
  return (node) =>
    Math.abs(utilisationChange(states, node, resource.name)) + (isChanged(states, node) ? 0.001 : 0);
}

function nodesMatching({ nodes }, view, text) {
  const found = new Set();
  for (let node = 0; node < nodes.length; node += 1) {
    if (nodes.name[node].toLowerCase().includes(text)) found.add(node);
    const pods = podsOn(nodes, shownState(view), node);
    if (pods.some((pod) => nodes.pods.name[pod].toLowerCase().includes(text))) found.add(node);
  }
  return found;
}

function pointAt(report, priorities, view, { tooltip, spoken }, node, place) {
  tooltip.hidden = node === null;
  if (node === null) return;
  tooltip.replaceChildren(...tooltipContent(report, priorities, view, node));
  const { offsetWidth: width, offsetHeight: height } = tooltip;
  const left =
    place.clientX + 16 + width > window.innerWidth
      ? place.clientX - width - 12
      : place.clientX + 16;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, Math.min(place.clientY + 12, window.innerHeight - height - 4))}px`;
  spoken.textContent = `${report.nodes.name[node]}, ${percent(utilisation(shownState(view), node, view.resource.name))} ${view.resource.label}`;
}

function showSide(report, priorities, view, { side }, pin) {
  if (view.pinned !== null)
    side.replaceChildren(nodePanel(report, priorities, view, () => pin(null)));
  else
    side.replaceChildren(
      zoneTable(view, view.group === ZONE ? "Zone" : view.group),
      fillHistogram(view),
    );
}

/** Whether the panel is below the map, as in a narrow window, where the map may fill the screen. */
function isBelow(side, { canvas }) {
  return side.getBoundingClientRect().top >= canvas.getBoundingClientRect().bottom;
}

function showNamed(report, map, side, pin, name) {
  const node = report.nodes.name.indexOf(name);
  if (node < 0) return;
  pin(node);
  if (isBelow(side, map)) side.scrollIntoView({ block: "nearest" });
  else map.canvas.scrollIntoView({ block: "center" });
  map.canvas.focus({ preventScroll: true });
}
