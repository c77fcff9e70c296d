// Failed nodes: figures, charts, common misconceptions and tables. Rolling drains are here, too,
// because they also take nodes out of service.

import { clock, count, isNumber, plural } from "./format.js";
import { h, section } from "./dom.js";
import { outageCharts } from "./outage_charts.js";
import { tabbedTables } from "./tabs.js";

const LOST = {
  key: "lost",
  label: "Not back",
  empty: "Every pod is back.",
  facet: "cause",
  fields: [
    { key: "pod", label: "Pod", kind: "pod" },
    { key: "cause", label: "Cause", kind: "cause" },
    { key: "node", label: "Was on", kind: "node" },
    { key: "priority", label: "Priority", kind: "priority" },
    { key: "why", label: "Why it is not back", kind: "why" },
  ],
};

const QUIET = {
  key: "nodes",
  label: "Failed nodes",
  empty: "No node failed.",
  facet: "zone",
  fields: [
    { key: "node", label: "Node", kind: "node" },
    { key: "zone", label: "Zone", kind: "zone" },
    { key: "failures", label: "Failures", kind: "count" },
    { key: "quiet_s", label: "Failed", kind: "time" },
    { key: "unready_s", label: "Not ready", kind: "time" },
    { key: "tainted_s", label: "Tainted", kind: "time" },
    { key: "first_eviction_s", label: "First eviction", kind: "time" },
    { key: "back_s", label: "Back", kind: "time" },
    { key: "pods", label: "Pods", kind: "count" },
    { key: "evicted", label: "Evicted", kind: "count" },
  ],
};

const PREEMPTED = {
  key: "preempted",
  label: "Preempted to make room",
  empty: "No pods were preempted for pods of failed nodes.",
  fields: [
    { key: "t_s", label: "Time", kind: "time" },
    { key: "victim", label: "Victim", kind: "pod" },
    { key: "victim_priority", label: "Its priority", kind: "priority" },
    { key: "node", label: "Node", kind: "node" },
    { key: "by", label: "For", kind: "pod" },
  ],
};

const ZONES = {
  key: "zones",
  label: "States of zones",
  empty: "No zone was assessed.",
  facet: "zone",
  fields: [
    { key: "t_s", label: "Time", kind: "time" },
    { key: "zone", label: "Zone", kind: "zone" },
    { key: "state", label: "State", kind: "text" },
    { key: "unready", label: "Not ready", kind: "count" },
    { key: "size", label: "Nodes", kind: "count" },
    { key: "rate", label: "Evictions at", kind: "rate" },
  ],
};

const DRAINS = {
  key: "drains",
  label: "Rolling drain",
  empty: "No rolling drain took place.",
  fields: [
    { key: "node", label: "Node", kind: "node" },
    { key: "begun_s", label: "Begun", kind: "time" },
    { key: "empty_s", label: "Empty", kind: "time" },
    { key: "back_s", label: "Back", kind: "time" },
    { key: "held_up_by", label: "Held up by", kind: "text" },
  ],
};

export function outageTitle({ outage }) {
  return outage ? "Outage" : "Rolling drain";
}

/** The section in a list; an empty list if no node failed and there is no rolling drain. */
export function outageSection(report, priorities, time) {
  const { outage, drains } = report;
  if (!outage && !drains.length) return [];
  const specs = [...(outage ? [LOST, PREEMPTED, QUIET, ZONES] : []), ...(drains.length ? [DRAINS] : [])];
  const known = new Set(report.nodes.name);
  const tables = tabbedTables(specs, { ...outage, drains }, "Failed nodes", priorities, known);
  const title = outageTitle(report);
  const parts = outage
    ? [
        h("div", { class: "tiles" }, outageTiles(outage.figures, report)),
        outageCharts(report, time),
        misconceptions(outage, report),
      ]
    : [];
  return [section("outage", title, outage ? outageLead(outage.figures) : null, ...parts, tables)];
}

function outageLead(figures) {
  const times = figures.failures > figures.nodes ? ` ${count(figures.failures)} times` : "";
  const parts = [`${plural(figures.nodes, "node")} failed${times}.`];
  if (isNumber(figures.first_eviction_s)) {
    const [from, to] = [clock(figures.first_eviction_s), clock(figures.last_eviction_s)];
    parts.push(from === to ? `Evictions at ${from}.` : `Evictions from ${from} to ${to}.`);
  }
  if (isNumber(figures.first_back_s)) {
    const [from, to] = [clock(figures.first_back_s), clock(figures.last_back_s)];
    parts.push(from === to ? `Pods are back at ${from}.` : `Pods are back from ${from} to ${to}.`);
  }
  return parts.join(" ");
}

function outageTiles(figures, { kind: reported }) {
  const tiles = [
    ["Pods affected", figures.concerned, "on failed nodes"],
    ["Evicted", figures.evicted, "because of a taint", "warn"],
    ["Back as new pods", figures.replaced, "on any node with room"],
    ["Back with their nodes", figures.back_with_node, "without a replacement"],
    ["Not back", figures.lost, reported === "live" ? "now" : "at the end", "warn"],
    ["Others preempted", figures.preempted, "to make room", "warn"],
  ];
  return tiles.map(([name, value, note, kind]) =>
    h(
      "div",
      { class: "tile", "data-some": kind === "warn" && value > 0 && "outage" },
      h("span", { class: "tile-name" }, name),
      h("span", { class: "tile-value" }, count(value)),
      h("span", { class: "tile-note" }, note),
    ),
  );
}

function misconceptions({ misconceptions: found }, { kind }) {
  if (!found.length) return null;
  const items = found.flatMap(({ belief, fact }) => [
    h("dt", {}, `“${belief}”`),
    h("dd", {}, fact),
  ]);
  return h(
    "div",
    { class: "card misconceptions", id: "misconceptions" },
    h("h3", {}, `Common misconceptions, checked against this ${kind === "live" ? "cluster" : "simulation"}`),
    h("dl", {}, items),
  );
}
