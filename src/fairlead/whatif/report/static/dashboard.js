// Draws a running cluster: the parts of a report, redrawn when the server sends another state.

import { count } from "./format.js";
import { h, nothing, scrollingSideways } from "./dom.js";
import { loadReport } from "./data.js";
import { prioritiesOf } from "./palette.js";
import { forgetDetachedRepaints, themeToggle } from "./theme.js";
import { followPrinting } from "./print.js";
import { forgetDetachedListeners, timeModel, updateTime } from "./time.js";
import { storyDialog } from "./story.js";
import { summarySection } from "./summary.js";
import { timelineModel } from "./timeline_series.js";
import { timelineSection } from "./timeline.js";
import { existingNodes, nodeStates } from "./node_state.js";
import { nodesSection } from "./nodes.js";
import { outageSection } from "./outage.js";
import { changesSection, displacedPods } from "./changes.js";
import { pendingSection } from "./pending.js";
import { followState } from "./live_server.js";
import { statusPart } from "./live_status.js";
import { askSection, clockControls, liveActions } from "./live_controls.js";

const { title, has_controls: hasControls } = JSON.parse(document.getElementById("report-data").textContent);
const clockCard = clockControls(hasControls);
const content = document.getElementById("report");
let page = null;

content.append(
  h("div", { class: "title-block" }, h("p", { class: "kind" }, "Dashboard"), h("h1", {}, title)),
  clockCard.element,
  nothing("Waiting for the cluster…"),
);

followPrinting();
followState(({ clock, page: packed }) => {
  clockCard.show(clock);
  const report = loadReport(JSON.stringify(packed));
  if (page === null || (page.report.nodes.length === 0) !== (report.nodes.length === 0)) drawDashboard(report);
  else updateDashboard(report);
}, clockCard.connect);

function drawDashboard(report) {
  Object.assign(report, { live: liveActions(hasControls) });
  const states = nodeStates(report);
  const time = Object.assign(timeModel(report, states.instants), { isLive: true });
  const priorities = prioritiesOf(report);
  page = { report, states, time, priorities, parts: [] };
  content.querySelectorAll("section, section-holder, dialog, .nothing").forEach((old) => old.remove());
  const parts = [
    statusPart(report),
    part(() => summarySection(report), ({ summary, resources }) => [summary, resources]),
    { element: nodesSection(report, priorities, states, time), update: () => {} },
    { element: askSection(report), update: () => {} },
    part(() => timelineSection(report, priorities, time), timelineKey),
    part(() => outageSection(report, priorities, time), ({ outage }) => outage),
    part(() => changesSection(report, priorities), changesKey),
    part(() => pendingSection(report, priorities), ({ pending }) => pending),
  ];
  page.parts = parts;
  const bar = document.getElementById("bar");
  const nav = part(() => liveNavigation(report), (now) => [existingNodes(now.nodes).length, now.pending.length, displacedPods(now).size]);
  parts.push(nav);
  bar.replaceChildren(
    h("div", { class: "bar-inner" }, h("span", { class: "wordmark" }, "Fairlead"), nav.element, themeToggle()),
  );
  content.append(...parts.filter((one) => one !== nav).map(({ element }) => element), storyDialog(report, priorities));
  document.documentElement.dataset.drawn = "yes";
}

function updateDashboard(fresh) {
  const { report, states, time, priorities, parts } = page;
  Object.assign(report, fresh);
  Object.assign(states, nodeStates(report));
  Object.assign(priorities, prioritiesOf(report));
  updateTime(time, report, states.instants);
  document.dispatchEvent(new Event("reportchange"));
  for (const one of parts) one.update();
  forgetDetachedListeners(time);
  forgetDetachedRepaints();
}

/** A part that is built again when its key changes, but not while the mouse or the focus is in it. */
function part(build, keyOf) {
  const element = h("section-holder", {});
  let key = null;
  const update = () => {
    const fresh = JSON.stringify(keyOf(page.report));
    if (fresh === key || element.matches(":hover, :focus-within")) return;
    key = fresh;
    element.replaceChildren(...[build()].flat());
  };
  update();
  return { element, update };
}

function timelineKey(report) {
  const { rows, measures, t } = timelineModel(report, page.priorities);
  return [rows.map(({ label }) => label), measures, t.length > 1];
}

function changesKey({ preemptions, evictions, moved, pdb_breaches: breaches, recurrences }) {
  return [preemptions, evictions, moved, breaches, recurrences];
}

function liveNavigation(report) {
  const links = [
    ["status", "Now", null],
    ["nodes", "Nodes", existingNodes(report.nodes).length],
    ["ask", "What if?", null],
    ["timeline", "Time line", null],
    ["changes", "Displaced", displacedPods(report).size],
    ["pending", "Pending", report.pending.length],
  ];
  return scrollingSideways(
    h(
      "nav",
      { "aria-label": "Parts of the dashboard" },
      links.map(([id, text, amount]) =>
        h("a", { href: `#${id}` }, text, amount === null ? null : h("span", { class: "amount" }, count(amount))),
      ),
    ),
  );
}
