// Unpacks the embedded JSON, which page_data.py packs, and gives each resource a label and a scale.

const LISTS = [
  "workloads",
  "budgets",
  "packing",
  "certainty",
  "start_times",
  "drain_refused",
  "drain_flags",
  "undrained",
  "waited",
  "waits",
  "gone",
  "not_created",
  "placed",
  "completed",
  "updated",
  "removed",
  "deleted_claims",
  "refused_workloads",
  "skipped",
  "errors",
  "recurrences",
  "under_way",
];

export function loadReport(text) {
  return unpackReport(JSON.parse(text));
}

export function unpackReport(page) {
  const all = page.resources.length ? page.resources : resourcesOf(page.nodes);
  // Totals leave out cordoned nodes, but the map shows what these nodes offer.
  const isOffered = (name) => unpackColumn(page.nodes.allocatable[name] ?? []).some(Boolean);
  const resources = all.filter(({ name, allocatable, requested, before }) => allocatable !== 0 || requested || before || isOffered(name));
  return {
    ...page,
    resources: named(resources.map((resource) => ({ ...resource, scale: scaleOf(resource) }))),
    nodes: unpackNodes(page.nodes),
    preemptions: unpackTable(page.preemptions),
    evictions: unpackTable(page.evictions),
    pending: unpackTable(page.pending),
    moved: unpackTable(page.moved),
    pdb_breaches: unpackTable(page.pdb_breaches),
    drains: unpackTable(page.drains),
    outage: page.outage && unpackOutage(page.outage),
    autoscaling: page.autoscaling && unpackAutoscaling(page.autoscaling),
    waiting_groups: unpackTable(page.waiting_groups),
    ...Object.fromEntries(LISTS.map((name) => [name, unpackTable(page[name])])),
  };
}

function unpackOutage(outage) {
  const tables = ["nodes", "lost", "preempted", "zones"].map((name) => [name, unpackTable(outage[name])]);
  return { ...outage, ...Object.fromEntries(tables) };
}

function unpackAutoscaling(autoscaling) {
  const tables = ["groups", "waiting", "nodes", "no_scale_up", "no_scale_down", "insufficient_capacity"];
  const unpacked = tables.map((name) => [name, unpackTable(autoscaling[name])]);
  return { ...autoscaling, ...Object.fromEntries(unpacked) };
}

function unpackColumn(column) {
  return Array.isArray(column) ? column : column.at.map((at) => column.of[at]);
}

function unpackTable({ length, columns }) {
  const unpacked = Object.entries(columns).map(([name, column]) => [name, unpackColumn(column)]);
  return { length, columns: Object.fromEntries(unpacked) };
}

function unpackNodes(nodes) {
  const amounts = (byResource) =>
    new Map(Object.entries(byResource).map(([name, column]) => [name, unpackColumn(column)]));
  const side = ({ absent, unschedulable, out_of_service: quiet, allocatable, requested, pods, history }) => ({
    absent: new Set(absent),
    cordoned: new Set(unschedulable),
    outOfService: new Set(quiet),
    allocatable: amounts(allocatable),
    requested: amounts(requested),
    pods,
    history,
  });
  return {
    length: nodes.length,
    name: unpackColumn(nodes.name),
    zone: unpackColumn(nodes.zone),
    labels: amounts(nodes.labels),
    pods: unpackPods(nodes.pods),
    after: side(nodes),
    before: nodes.before && side(nodes.before),
  };
}

/** The pods on node n at the end have the positions from first[n] to first[n + 1] - 1; other pods follow. */
function unpackPods(pods) {
  const first = [0];
  for (const amount of unpackColumn(pods.count)) first.push(first[first.length - 1] + amount);
  return {
    first,
    name: unpackColumn(pods.name),
    priority: unpackColumn(pods.priority),
    requests: pods.shape.map((shape) => pods.shapes[shape]),
  };
}

function resourcesOf(nodes) {
  return Object.keys(nodes.allocatable).map((name) => ({ name, unit: "" }));
}

function scaleOf({ name, unit }) {
  if (unit === "milli" || unit === "m" || name === "cpu") return "milli";
  if (unit === "bytes" || /^(memory|ephemeral-storage|hugepages-.*)$/.test(name)) return "bytes";
  return "count";
}

/** Gives each resource a short label, unless another resource would have the same label. */
function named(resources) {
  const short = ({ name, scale }) => {
    if (name === "cpu") return "CPU";
    const last = name.slice(name.lastIndexOf("/") + 1) || name;
    const plain = scale === "milli" ? last.replace(/-milli$/, "") : last;
    return plain.replace(/^gpu\b/, "GPU").replace(/^./, (first) => first.toUpperCase());
  };
  const labels = resources.map(short);
  return resources.map((resource, at) => {
    const unique = labels.indexOf(labels[at]) === labels.lastIndexOf(labels[at]);
    return { ...resource, label: unique ? labels[at] : resource.name };
  });
}
