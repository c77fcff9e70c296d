// The pending pods, grouped by reason. The counts in a FailedScheduling message change with every
// attempt, so messages that differ only in their counts belong to one group.

import { count, percent, plural } from "./format.js";
import { h, nothing, searchField, section } from "./dom.js";
import { swatch } from "./palette.js";
import { dataTable } from "./table.js";

const GROUPS_SHOWN = 12;
const NOT_TRIED = "not tried yet"; // as in the text output
const REFUSAL = /^\d+\/\d+ nodes are available[:,] (.*)$/s; // kube-batch writes a comma
// Explanations of the scheduler's reasons. The reasons are equal to the constants beside the
// scheduler's rules; tests/unit/whatif/report/test_pending.py checks this.
const MEANINGS = [
  ["node(s) were unschedulable", "The node is cordoned: by kubectl cordon, or by a drain."],
  ["node(s) didn't match Pod's node affinity/selector", "The node's labels do not match the pod's nodeSelector or node affinity."],
  ["node(s) had untolerated taint", "The node has a taint, and the pod has no toleration for it."],
  ["node(s) didn't match pod anti-affinity rules", "The pod has anti-affinity to a pod on the node or in its topology domain, such as its zone."],
  ["node(s) didn't satisfy existing pods anti-affinity rules", "A pod on the node or in its topology domain, such as its zone, has anti-affinity to the pod."],
  ["node(s) didn't match pod affinity rules", "The pod has affinity to pods that are not on the node or in its topology domain, such as its zone."],
  ["node(s) didn't match pod topology spread constraints", "With the pod, too many of the pods that the constraint selects would be in one topology domain, such as a zone."],
  ["node(s) didn't match PersistentVolume's node affinity", "The pod's volume can only be used on other nodes, for example in another zone."],
  ["Too many pods", "The node already has its maximum number of pods."],
  ["Insufficient", "The pods on the node leave less of this resource than the pod requests."],
  ["No preemption victims found for incoming pod", "The node has no pod of lower priority that could be preempted."],
  ["Preemption is not helpful for scheduling", "Preemption cannot help: the reason would remain even if pods were removed from the node."],
  ["preemptionPolicy=Never", "The pod's preemptionPolicy is Never, so the pod does not preempt other pods."],
];
// The result of preemption in a message. DynamicResources adds "no new claims to deallocate" even for
// pods without claims, so this text is left out.
const PREEMPTION = /(?:^| )(?:no new claims to deallocate, )?preemption: (?:\d+\/\d+ nodes are available: )?(.*)$/s;

export function pendingSection(report, priorities) {
  const { pending } = report;
  if (!pending.length) return section("pending", "Pending pods", null, nothing(nonePending(report)));
  const groups = groupsByReason(pending);
  const view = {
    groups,
    pending,
    priorities,
    text: "",
    all: false,
    list: h("div", { class: "groups" }),
    found: h("span", { class: "note", "aria-live": "polite" }),
  };
  const search = searchField("Filter by pod or reason", (text) => {
    view.text = text;
    drawGroups(view);
  });
  drawGroups(view);
  const lead = `${plural(pending.length, "pod waits", "pods wait")} for ${plural(groups.length, "reason")}.${pendingAnyway(report, "other ")}`;
  return section(
    "pending",
    "Pending pods",
    lead,
    h("div", { class: "card" }, h("div", { class: "toolbar" }, search, view.found), view.list),
  );
}

function nonePending(report) {
  const others = pendingAnyway(report);
  return others ? `No pod is pending because of the change.${others}` : "No pods are pending.";
}

/** A sentence about the pods that a what-if does not list, as they are pending in both runs. */
function pendingAnyway({ pending, summary, summary_before: before }, which = "") {
  const others = before ? summary.pending - pending.length : 0;
  return others > 0 ? ` ${plural(others, `${which}pod is`, `${which}pods are`)} pending without the change, too.` : "";
}

/** The groups as [{ title, detail, rows }], the largest first. */
export function groupsByReason({ length, columns: { reason } }) {
  const groups = new Map();
  for (let row = 0; row < length; row += 1) {
    const causes = causesOf(reason[row] ?? "");
    const key = JSON.stringify(causes);
    if (!groups.has(key)) groups.set(key, { ...causes, rows: [] });
    groups.get(key).rows.push(row);
  }
  return [...groups.values()].sort((a, b) => b.rows.length - a.rows.length);
}

/** The causes in a FailedScheduling message, without counts, and the result of preemption. */
function causesOf(reason) {
  const preemption = reason.match(PREEMPTION);
  const refusal = (preemption ? reason.slice(0, preemption.index) : reason).match(REFUSAL);
  if (!refusal) return { title: reason || NOT_TRIED, detail: "" };
  return {
    title: withoutCounts(refusal[1]),
    detail: preemption ? `Preemption: ${withoutCounts(preemption[1])}` : "",
  };
}

function withoutCounts(text) {
  const causes = text
    .trim()
    .replace(/\.$/, "")
    .split(/, (?=\d+ )/);
  return causes
    .map((cause) => cause.replace(/^\d+ /, "").replace(/^insufficient /, "Insufficient "))
    .sort()
    .join(" · ");
}

function drawGroups(view) {
  const filtered = view.groups
    .map((group) => ({ ...group, rows: group.rows.filter((row) => waits(view, row)) }))
    .filter(({ rows }) => rows.length);
  const shown = view.all ? filtered : filtered.slice(0, GROUPS_SHOWN);
  const matching = filtered.reduce((sum, { rows }) => sum + rows.length, 0);
  view.found.textContent = view.text
    ? `${count(matching)} of ${plural(view.pending.length, "pod")}`
    : "";
  const rest = filtered.length - shown.length;
  view.list.replaceChildren(
    ...(shown.length
      ? shown.map((group, at) => groupElement(view, group, at === 0))
      : [nothing("No pending pod matches the filter.")]),
  );
  if (rest) view.list.append(moreButton(view, rest));
}

function moreButton(view, rest) {
  const press = () => {
    view.all = true;
    drawGroups(view);
  };
  return h(
    "button",
    { type: "button", class: "quiet more", onclick: press },
    `Show ${plural(rest, "more reason")}`,
  );
}

function waits({ pending: { columns }, text }, row) {
  return (
    !text ||
    [columns.pod[row], columns.reason[row]].some((value) =>
      (value ?? "").toLowerCase().includes(text),
    )
  );
}

function groupElement(view, group, isOpen) {
  const share = group.rows.length / view.pending.length;
  const meter = h("span", { class: "meter", "aria-hidden": "true" }, h("span"));
  meter.firstChild.style.width = `${share * 100}%`;
  const words = h(
    "span",
    { class: "group-words" },
    h("span", { class: "group-title" }, group.title),
    group.detail ? h("span", { class: "group-detail" }, group.detail) : null,
  );
  const amount = h("span", { class: "group-amount" }, count(group.rows.length));
  const summary = h(
    "summary",
    {},
    amount,
    h("span", { class: "group-share" }, percent(share), meter),
    words,
    byPriority(view, group.rows),
  );
  const details = h("details", { class: "group" }, summary);
  const fill = () => details.open && !details.dataset.filled && fillGroup(view, details, group);
  details.addEventListener("toggle", fill);
  details.open = isOpen; // true for the largest group, so that links to the pending pods lead to pods
  fill();
  return details;
}

/** A list that explains the causes of a group; null if there is nothing to explain. */
function meaningsOf({ title, detail }) {
  const found = MEANINGS.filter(([words]) => title.includes(words) || detail.includes(words));
  return found.length
    ? h("dl", { class: "meanings" }, found.flatMap(([words, meaning]) => [h("dt", {}, words), h("dd", {}, meaning)]))
    : null;
}

/** The number of pods of the group for each of its three highest priorities. */
function byPriority({ pending: { columns }, priorities }, rows) {
  const amounts = new Map();
  for (const row of rows)
    amounts.set(columns.priority[row], (amounts.get(columns.priority[row]) ?? 0) + 1);
  const sorted = [...amounts].sort((a, b) => b[0] - a[0]).slice(0, 3);
  return h(
    "span",
    { class: "group-priorities" },
    sorted.map(([priority, amount]) =>
      h(
        "span",
        { title: priorities.label(priority) },
        swatch(priorities.variable(priority)),
        `${count(amount)} `,
        h("span", { class: "note" }, `at ${priorities.label(priority)}`),
      ),
    ),
  );
}

// A group is filled when it is first opened, so that thousands of pods in closed groups take no time.
function fillGroup({ pending, priorities }, details, group) {
  const { rows } = group;
  details.dataset.filled = "yes";
  const pick = (key) => rows.map((row) => pending.columns[key][row]);
  const columns = {
    pod: pick("pod"),
    priority: pick("priority"),
    since_s: pick("since_s"),
    reason: pick("reason"),
  };
  const fields = [
    { key: "pod", label: "Pod", kind: "pod" },
    { key: "priority", label: "Priority", kind: "priority" },
    { key: "since_s", label: "Waiting since", kind: "time" },
    { key: "reason", label: "Last message", kind: "text" },
  ];
  details.append(
    meaningsOf(group) ?? "",
    dataTable({
      table: { length: rows.length, columns },
      fields,
      label: "Pods pending for this reason",
      empty: "",
      priorities,
      known: new Set(),
    }),
  );
}
