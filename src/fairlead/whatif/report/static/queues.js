// Batch queues: the share of each queue over time, compared with the share that it deserves, key
// figures of gangs, and the groups that wait.

import { count, hours, isNumber, percent, plural } from "./format.js";
import { h, section } from "./dom.js";
import { stepsChart } from "./steps_chart.js";
import { dataTable } from "./table.js";

const WAITING = {
  key: "waiting_groups",
  empty: "No group waits.",
  facet: "queue",
  fields: [
    { key: "group", label: "Group", kind: "name" },
    { key: "queue", label: "Queue", kind: "text" },
    { key: "ready", label: "On nodes", kind: "text" },
    { key: "starts_s", label: "May start at", kind: "time" },
    { key: "why", label: "Because", kind: "why" },
  ],
};

/** The section in a list; an empty list if there are no queues and no waiting groups. */
export function queuesSection(report, priorities, time) {
  const { queues, waiting_groups: waiting } = report;
  if (!queues && !waiting.length) return [];
  const known = new Set(report.nodes.name);
  const groups = waiting.length
    ? h(
        "div",
        { class: "card" },
        h("h3", {}, `Groups that wait at the end`),
        dataTable({ ...WAITING, table: waiting, priorities, known }),
      )
    : null;
  const parts = queues ? [gangTiles(queues), shares(queues, report, time)] : [];
  return [section("queues", "Queues", queues ? lead(queues) : null, ...parts, groups)];
}

function lead({ lines, left_out: leftOut, resource }) {
  const more = leftOut ? ` ${plural(leftOut, "further queue")} not shown.` : "";
  const weights = lines.map(({ queue, weight }) => `${queue} ${count(weight)}`).join(", ");
  return `Weights: ${weights}. The scarcest resource is ${resource}.${more}`;
}

function gangTiles({ gangs, resource }) {
  if (!gangs.gangs) return null;
  const plain = resource.slice(resource.lastIndexOf("/") + 1).replace(/-milli$/, "");
  const unit = plain.replace(/^[cg]pu$/, (name) => name.toUpperCase());
  const tiles = [
    ["Gangs", gangs.gangs, count, "of more than one member"],
    ["Finished", gangs.finished, count, "all members ran at the same time"],
    ["Broken", gangs.broken, count, "members were preempted, and too few kept running", "warn"],
    [`Lost ${unit} hours`, gangs.lost_hours, hours, "used by members that were preempted", "warn"],
    [`Idle ${unit} hours`, gangs.incomplete_hours, hours, "held by gangs with too few running members", "warn"],
  ].filter(([, value]) => isNumber(value));
  return h(
    "div",
    { class: "tiles" },
    tiles.map(([name, value, format, note, kind]) =>
      h(
        "div",
        { class: "tile", "data-some": kind === "warn" && value > 0 && "outage" },
        h("span", { class: "tile-name" }, name),
        h("span", { class: "tile-value" }, format(value)),
        h("span", { class: "tile-note" }, note),
      ),
    ),
  );
}

function shares({ lines, t_s: instants, resource }, { virtual_seconds: end }, time) {
  const last = instants[instants.length - 1];
  const t = end > last ? [...instants, end] : [...instants];
  const until = (values) => (end > last ? [...values, values[values.length - 1]] : values);
  const rows = lines.flatMap(({ queue, held, deserved }, at) => {
    const variable = `--priority-${at}`;
    return [
      { label: `${queue}: has`, variable, values: until(held), line: true },
      { label: "deserves", variable, values: until(deserved), line: true, dashed: true, sloped: false },
    ];
  });
  const title = `Each queue's part of the cluster's ${resource}`;
  const format = (value) => percent(value / 100);
  const note = "dashed: the share that the queue deserves, by its weight and its requests";
  const chart = stepsChart({ title, note, t, rows, stacked: false, format }, 240, null, time);
  return h("div", { class: "card steps-charts" }, chart);
}
