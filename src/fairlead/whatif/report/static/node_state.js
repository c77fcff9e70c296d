// The state of the nodes of each run at an instant: the state at the end, with later changes reverted.

const EXISTS = 1;
const SERVING = 2;
const UNSCHEDULABLE = 4;

/** `at(t)` gives { after, before }, the states at second `t`, or at the end for null. */
export function nodeStates({ nodes }) {
  const after = { ...nodes.after, podsBy: new Map() };
  const before = nodes.before && withPods(nodes, nodes.before);
  const histories = [nodes.after.history, nodes.before?.history];
  const at = (t) => ({
    after: stateAt(nodes, after, histories[0], t),
    before: before && stateAt(nodes, before, histories[1], t),
  });
  return { at, instants: instantsOf(histories), isKnown: histories[0] !== null };
}

/** The nodes that exist at the end; the page also knows nodes that were deleted. */
export function existingNodes({ length, after }) {
  return Array.from({ length }, (_, node) => node).filter((node) => !after.absent.has(node));
}

/** The pods on `node`, as positions in `nodes.pods`. */
export function podsOn({ pods }, state, node) {
  return state.podsBy.get(node) ?? podsAtEnd(pods, node);
}

function podsAtEnd({ first }, node) {
  return Array.from({ length: first[node + 1] - first[node] }, (_, at) => first[node] + at);
}

/** The end of the run without the change; its pods are stored as differences from the other run. */
function withPods(nodes, side) {
  const podsBy = new Map();
  const { node, pod, arrives } = side.pods;
  node.forEach((on, row) => movePod(podsBy, nodes.pods, on, pod[row], arrives[row]));
  return { ...side, podsBy };
}

function movePod(podsBy, pods, node, pod, arrives) {
  const here = podsBy.get(node) ?? podsAtEnd(pods, node);
  podsBy.set(node, arrives ? [...here, pod] : here.filter((one) => one !== pod));
}

function stateAt(nodes, end, history, t) {
  if (t === null || history === null) return end;
  const state = {
    ...end,
    podsBy: new Map(end.podsBy),
    requested: new Map([...end.requested].map(([name, amounts]) => [name, [...amounts]])),
  };
  const { t_s: times, node, pod, arrives } = history.placements;
  for (let row = times.length - 1; row >= 0 && times[row] > t; row -= 1) {
    movePod(state.podsBy, nodes.pods, node[row], pod[row], !arrives[row]);
    const amounts = { pods: 1, ...nodes.pods.requests[pod[row]] };
    for (const [name, amount] of Object.entries(amounts))
      request(state.requested, nodes.length, name, node[row], arrives[row] ? -amount : amount);
  }
  return { ...state, ...statusesAt(end, history.statuses, t) };
}

function request(requested, length, name, node, amount) {
  if (!requested.has(name)) requested.set(name, new Array(length).fill(0));
  const amounts = requested.get(name);
  amounts[node] = (amounts[node] ?? 0) + amount;
}

/** The sets of nodes by status at second `t`: for each node, its last status at or before `t` counts. */
function statusesAt(end, { t_s: times, node, state }, t) {
  const sets = ["absent", "outOfService", "cordoned"].map((name) => new Set(end[name]));
  for (let row = 0; row < times.length && times[row] <= t; row += 1) {
    const exists = Boolean(state[row] & EXISTS);
    const values = [!exists, exists && !(state[row] & SERVING), exists && Boolean(state[row] & UNSCHEDULABLE)];
    values.forEach((holds, at) => (holds ? sets[at].add(node[row]) : sets[at].delete(node[row])));
  }
  const [absent, outOfService, cordoned] = sets;
  return { absent, outOfService, cordoned };
}

/** The seconds at which something changes, ascending. */
function instantsOf(histories) {
  const times = histories
    .filter(Boolean)
    .flatMap(({ placements, statuses }) => [placements.t_s, statuses.t_s])
    .flat();
  return [...new Set(times)].sort((a, b) => a - b);
}
