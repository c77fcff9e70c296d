// Draws the report of one answer.

import { count } from "./format.js";
import { h, scrollingSideways } from "./dom.js";
import { prioritiesOf } from "./palette.js";
import { themeToggle } from "./theme.js";
import { followPrinting } from "./print.js";
import { timeModel } from "./time.js";
import { nodeStates } from "./node_state.js";
import { summarySection, titleBlock } from "./summary.js";
import { timelineSection } from "./timeline.js";
import { nodesSection } from "./nodes.js";
import { outageSection, outageTitle } from "./outage.js";
import { autoscalingSection } from "./autoscaling.js";
import { queuesSection } from "./queues.js";
import { verdictSection } from "./verdict.js";
import { storyDialog } from "./story.js";
import { changesSection, displacedPods } from "./changes.js";
import { pendingSection } from "./pending.js";

function navigation(report) {
  const links = [
    ...(report.verdict.length ? [["verdict", "Verdict", null]] : []),
    ["summary", "Outcome", null],
    ...(report.outage || report.drains.length ? [["outage", outageTitle(report), null]] : []),
    ...(report.autoscaling ? [["autoscaling", "Autoscaler", null]] : []),
    ...(report.queues || report.waiting_groups.length ? [["queues", "Queues", null]] : []),
    ["timeline", "Time line", null],
    ["nodes", "Nodes", report.summary.nodes ?? report.nodes.length], // without removed nodes
    ["changes", "Displaced", displacedPods(report).size],
    ["pending", "Pending", report.pending.length],
  ];
  return scrollingSideways(
    h(
      "nav",
      { "aria-label": "Parts of the report" },
      links.map(([id, text, amount]) =>
        h(
          "a",
          { href: `#${id}` },
          text,
          amount === null ? null : h("span", { class: "amount" }, count(amount)),
        ),
      ),
    ),
  );
}

/** Draws `report`, with links to its parts. */
export function drawReport(report) {
  const priorities = prioritiesOf(report);
  const states = nodeStates(report);
  const time = timeModel(report, states.instants);
  drawPage(
    [navigation(report)],
    titleBlock(report),
    ...verdictSection(report, priorities),
    summarySection(report),
    ...outageSection(report, priorities, time),
    ...autoscalingSection(report, priorities, time),
    ...queuesSection(report, priorities, time),
    timelineSection(report, priorities, time),
    nodesSection(report, priorities, states, time),
    changesSection(report, priorities),
    pendingSection(report, priorities),
    storyDialog(report, priorities),
  );
}

/** Draws the bar with `links`, the parts of the page, and the foot. */
export function drawPage(links, ...parts) {
  const wordmark = h("span", { class: "wordmark" }, "Fairlead");
  document
    .getElementById("bar")
    .append(h("div", { class: "bar-inner" }, wordmark, ...links, themeToggle()));
  document.getElementById("report").append(...parts);
  document
    .getElementById("foot")
    .append(
      h(
        "p",
        {},
        "Written by Fairlead. This page contains all its data and makes no network requests. Charts: uPlot, © 2022 Leon Sorokin, MIT licence (in this file's source).",
      ),
    );
  followPrinting();
  document.documentElement.dataset.drawn = "yes";
}
