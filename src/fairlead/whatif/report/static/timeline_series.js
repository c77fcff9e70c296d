// The counts behind the time line: one row per priority, highest first, and their stacks.

/** `rare` measures are shown only if they are not always zero. */
export const MEASURES = [
  { name: "running", label: "Running", grows: false, dips: true },
  { name: "down", label: "Down", grows: false, rare: true },
  { name: "pending", label: "Pending", grows: false },
  { name: "preempted", label: "Preempted", grows: true },
  { name: "evicted", label: "Evicted", grows: true },
];

/** Rows of counts by priority; priorities without a colour of their own are added up in one row. */
export function timelineModel(report, priorities) {
  const timeline = overTheRun(report);
  const length = timeline.t_s.length;
  const sorted = [...timeline.series].sort((a, b) => b.priority - a.priority);
  const own = sorted.filter((one) => priorities.own.includes(one.priority));
  const others = sorted.filter((one) => !priorities.own.includes(one.priority));
  const rows = own.map((one) =>
    row(priorities.label(one.priority), one.priority, priorities, [one], length),
  );
  if (others.length)
    rows.push(row(`${others.length} other priorities`, null, priorities, others, length));
  const measures = MEASURES.filter(({ name }) => rows.some((one) => one[name].some((value) => value > 0)));
  const absent = MEASURES.filter((measure) => !measure.rare && !measures.includes(measure));
  return { t: timeline.t_s, recorded: timeline.recorded, rows, measures, absent };
}

/** Before the first sample, there are no pods; the last counts hold until the run ends. */
function overTheRun({ timeline, virtual_seconds: end }) {
  const { t_s: instants } = timeline;
  const before = instants[0] > 0 ? [0] : [];
  const after = end > instants[instants.length - 1] ? [end] : [];
  const extended = (values) => values && [...before.map(() => 0), ...values, ...after.map(() => values[values.length - 1])];
  const series = timeline.series.map((one) => {
    const counts = MEASURES.map(({ name }) => [name, extended(one[name])]);
    return { ...one, ...Object.fromEntries(counts) };
  });
  return { ...timeline, t_s: [...before, ...instants, ...after], series };
}

function row(label, priority, priorities, members, length) {
  const summed = (name) => {
    const sums = new Array(length).fill(0);
    for (const member of members) (member[name] ?? []).forEach((value, at) => (sums[at] += value));
    return sums;
  };
  const counts = Object.fromEntries(MEASURES.map(({ name }) => [name, summed(name)]));
  return { label, priority, variable: priorities.variable(priority), ...counts };
}

/** The layers of the stack of `rows`, from the sum of all priorities to the highest priority alone. */
export function stack(rows, measure) {
  const layers = [];
  for (const one of rows) {
    const below = layers[0];
    layers.unshift(below ? one[measure].map((value, at) => value + below[at]) : one[measure]);
  }
  return layers;
}

/** The highest value of a layer and its index, as { value, at }; of equal values, the first. */
export function peakOf(layer) {
  return extremeOf(layer, (value, best) => value > best);
}

/** The lowest value of a layer and its index, as { value, at }; of equal values, the first. */
export function lowOf(layer) {
  return extremeOf(layer, (value, best) => value < best);
}

function extremeOf(layer, isBetter) {
  let at = 0;
  for (let i = 1; i < layer.length; i += 1) if (isBetter(layer[i], layer[at])) at = i;
  return { value: layer[at], at };
}
