// The nodes that an autoscaler added and removed: figures, nodes and cost over time, how long pods
// waited for a node, and why no further nodes were added or removed.

import { count, duration, hours, isNumber, money, plural } from "./format.js";
import { WAIT_FIELDS } from "./changes.js";
import { choice, h, section } from "./dom.js";
import { stepsChart } from "./steps_chart.js";
import { tabbedTables } from "./tabs.js";

const AUTOSCALING_SYNC = "autoscaling";

const GROUPS = {
  key: "groups",
  label: "Groups",
  empty: "No group has a node.",
  fields: [
    { key: "group", label: "Group", kind: "name" },
    { key: "instance_type", label: "Type", kind: "word" },
    { key: "min", label: "Minimum", kind: "count" },
    { key: "max", label: "Maximum", kind: "count" },
    { key: "nodes_before", label: "Before", kind: "count" },
    { key: "nodes_after", label: "After", kind: "count" },
    { key: "added", label: "Added", kind: "count" },
    { key: "removed", label: "Removed", kind: "count" },
    { key: "node_hours", label: "Node hours", kind: "hours" },
    { key: "cost", label: "Cost", kind: "money" },
  ],
};

const WAITS = {
  key: "waiting",
  label: "Waiting times",
  empty: "No pod waited for a node.",
  fields: WAIT_FIELDS,
};

const NODE_CHANGES = {
  key: "nodes",
  label: "Added and removed",
  empty: "No node was added or removed.",
  facet: "event",
  fields: [
    { key: "at_s", label: "Time", kind: "time" },
    { key: "event", label: "Event", kind: "word" },
    { key: "node", label: "Node", kind: "node" },
    { key: "group", label: "Group", kind: "text" },
    { key: "reason", label: "Because", kind: "text" },
  ],
};

const NO_SCALE_UP = {
  key: "no_scale_up",
  label: "No scale-up",
  empty: "Every pod that needed a new node triggered a scale-up.",
  fields: [
    { key: "pod", label: "Pod", kind: "pod" },
    { key: "why", label: "Why it triggers no scale-up", kind: "why" },
  ],
};

const NO_SCALE_DOWN = {
  key: "no_scale_down",
  label: "Not removed",
  empty: "The autoscaler stated no reason to keep a node.",
  fields: [
    { key: "node", label: "Node", kind: "node" },
    { key: "why", label: "Why it is not removed", kind: "why" },
  ],
};

const NO_CAPACITY = {
  key: "insufficient_capacity",
  label: "No capacity",
  empty: "Every machine was delivered.",
  fields: [
    { key: "group", label: "Group", kind: "name" },
    { key: "machines", label: "Machines not delivered", kind: "count" },
  ],
};

/** The section in a list, or an empty list if no autoscaler acted. */
export function autoscalingSection(report, priorities, time) {
  const { autoscaling } = report;
  if (!autoscaling) return [];
  const known = new Set(report.nodes.name);
  const failed = autoscaling.insufficient_capacity.length ? [NO_CAPACITY] : [];
  const specs = [GROUPS, WAITS, NODE_CHANGES, NO_SCALE_UP, NO_SCALE_DOWN, ...failed];
  const tables = tabbedTables(specs, autoscaling, "Autoscaler", priorities, known);
  const cells = autoscalingTiles(autoscaling);
  const tiles = h("div", { class: "tiles", "data-tiles": cells.length }, cells);
  const charts = autoscalingCharts(autoscaling, time);
  return [section("autoscaling", "Autoscaler", autoscalingLead(autoscaling), tiles, charts, tables)];
}

function autoscalingLead({ autoscaler, figures }) {
  const name = autoscaler === "karpenter" ? "Karpenter" : "Cluster Autoscaler";
  const nodes = `${name} added ${plural(figures.added, "node")} and removed ${count(figures.removed)}.`;
  if (!figures.bound && !figures.still_waiting) return nodes;
  const bound = figures.bound ? ` ${boundPods(figures)}` : "";
  const waiting = figures.still_waiting
    ? ` ${plural(figures.still_waiting, "pod")} still ${figures.still_waiting === 1 ? "waits" : "wait"}.`
    : "";
  return `${nodes}${bound}${waiting}`;
}

function boundPods({ bound, median_s: median, p95_s: p95, longest_s: longest }) {
  if (!longest) return bound === 1 ? "The new pod had a node at once." : `All ${count(bound)} new pods had a node at once.`;
  const within = (seconds) => (seconds ? `within ${duration(seconds)}` : "at once");
  return `Of ${plural(bound, "new pod")}, half had a node ${within(median)}, 95% ${within(p95)}, the last after ${duration(longest)}.`;
}

function autoscalingTiles({ figures, figures_without: without, groups }) {
  const { group: names, cost: costs, node_hours: used } = groups.columns;
  const hasPrices = costs.some((cost, at) => used[at] > 0 && isNumber(cost));
  const withoutPrice = names.filter((_, at) => !isNumber(costs[at]));
  const unpriced = withoutPrice.length ? `no price is known for ${withoutPrice.join(", ")}` : null;
  const before = (name, format) => (without ? `without the change: ${format(without[name])}` : null);
  const tiles = [
    ["Nodes at the end", count(figures.nodes_after), before("nodes_after", count) ?? "in its groups"],
    ["Most nodes at once", count(figures.most), before("most", count) ?? "in its groups"],
    ["Node hours", hours(figures.node_hours), before("node_hours", hours) ?? "in the run"],
    ...(hasPrices
      ? [
          ["Cost of the run", money(figures.cost), unpriced ?? before("cost", money) ?? "of all node hours"],
          [
            "Cost per month at the end",
            money(figures.cost_per_month),
            unpriced ?? before("cost_per_month", money) ?? "with the nodes at the end",
          ],
        ]
      : []),
    [
      "95% of pods waited",
      figures.bound ? duration(figures.p95_s) : "–",
      before("p95_s", duration) ?? "or less, for a node",
    ],
  ];
  return tiles.map(([name, value, note]) =>
    h(
      "div",
      { class: "tile" },
      h("span", { class: "tile-name" }, name),
      h("span", { class: "tile-value" }, value),
      h("span", { class: "tile-note" }, note),
    ),
  );
}

function autoscalingCharts(autoscaling, time) {
  const { figures, figures_without: without } = autoscaling;
  if (!figures.most && !without?.most) return null; // three lines at zero
  const { by_group: groups, by_type: types } = autoscaling;
  const place = h("div", {});
  const draw = (division) => place.replaceChildren(nodeCurves(autoscaling, division, time));
  const named = (lines) => JSON.stringify(lines.map(({ name }) => name).sort());
  const divided = types.length && named(types) !== named(groups);
  const options = [
    ["by_group", "by group"],
    ["by_type", "by type"],
  ];
  const buttons = divided
    ? h("div", { class: "autoscaling-choice" }, choice("Nodes", options, "by_group", draw))
    : null;
  draw("by_group");
  return h("div", { class: "card steps-charts" }, buttons, place, moneyChart(autoscaling, time), spentChart(autoscaling, time));
}

function nodeCurves(autoscaling, division, time) {
  const rows = autoscaling[division].map(({ name, nodes }, at) => ({
    label: name,
    variable: `--priority-${at}`,
    values: nodes,
  }));
  if (autoscaling.nodes_without)
    rows.push({
      label: "without the change",
      variable: "--ink",
      values: autoscaling.nodes_without,
      line: true,
      dashed: true,
      sloped: false,
    });
  const note = `at most ${count(autoscaling.figures.most)}`;
  const model = { title: "Nodes", note, t: autoscaling.t_s, rows, stacked: true };
  return stepsChart(model, 200, AUTOSCALING_SYNC, time);
}

function moneyChart(autoscaling, time) {
  const { cost, cost_without: without } = autoscaling;
  if (!cost) return null;
  const rows = costRows(cost, without, false);
  const note = "of all nodes in its groups";
  const model = { title: "Cost per hour", note, t: autoscaling.t_s, rows, stacked: false };
  return stepsChart({ ...model, format: money }, 130, AUTOSCALING_SYNC, time);
}

function spentChart(autoscaling, time) {
  const { spent, spent_without: without } = autoscaling;
  if (!spent) return null;
  const rows = costRows(spent, without, true);
  const model = { title: "Cost so far", note: "since the start", t: autoscaling.t_s, rows };
  return stepsChart({ ...model, stacked: false, format: money }, 130, AUTOSCALING_SYNC, time);
}

function costRows(values, without, sloped) {
  const label = without ? "with the change" : "cost";
  const rows = [{ label, variable: "--priority-0", values, line: true, sloped }];
  if (without)
    rows.push({ label: "without the change", variable: "--ink", values: without, line: true, dashed: true, sloped });
  return rows;
}
