// Tables behind tabs: one table is shown at a time, and each tab has the number of rows of its table.
// An address such as `#tab=evictions&row=store/web-1` opens a tab at the first row with this value.

import { onAddress, setAddress } from "./address.js";
import { count } from "./format.js";
import { h, scrollingSideways } from "./dom.js";
import { dataTable } from "./table.js";

const BEFORE_PX = 50; // this part of the tab to the left of the chosen one stays visible

/**
 * `specs` are [{ key, label, empty, fields, facet, note }]; `tables` has a table for each key. At first,
 * the first table that has rows is shown. `note` is a sentence below the table, or null.
 */
export function tabbedTables(specs, tables, label, priorities, known) {
  const panels = specs.map((spec) => panel(spec, tables[spec.key], priorities, known));
  const tabs = specs.map((spec) => tab(spec, tables[spec.key].length));
  const first = Math.max(
    0,
    specs.findIndex(({ key }) => tables[key].length),
  );
  const select = (at) => tabs.forEach((one, other) => show(one, panels[other], other === at));
  const choose = (at) => {
    select(at);
    setAddress("row", null);
    setAddress("tab", specs[at].key);
  };
  tabs.forEach((one, at) => one.addEventListener("click", () => choose(at)));
  const strip = scrollingSideways(h("div", { class: "tabs", role: "tablist", "aria-label": label }, tabs));
  strip.addEventListener("keydown", (event) => selectByKey(event, tabs, choose));
  select(first);
  const card = h("div", { class: "card" }, strip, panels);
  let mayScroll = document.documentElement.dataset.drawn !== "yes"; // false when a dashboard draws the tables again
  onAddress("tab", (key, { row }) => {
    const at = specs.findIndex((spec) => spec.key === key);
    if (at >= 0) open(at, row);
    mayScroll = true;
  }, card);
  const open = (at, row) => {
    select(at);
    strip.scrollLeft = tabs[at].offsetLeft - strip.offsetLeft - BEFORE_PX;
    if (row) panels[at].firstChild.dispatchEvent(new CustomEvent("showrow", { detail: row }));
    if (mayScroll) card.scrollIntoView({ block: "start" });
  };
  return card;
}

function tab({ key, label }, amount) {
  const attributes = {
    type: "button",
    role: "tab",
    id: `tab-${key}`,
    "aria-controls": `panel-${key}`,
  };
  return h(
    "button",
    attributes,
    label,
    h("span", { class: amount ? "amount" : "amount zero" }, count(amount)),
  );
}

function panel(spec, table, priorities, known) {
  const content = dataTable({ ...spec, table, priorities, known });
  return h(
    "div",
    {
      role: "tabpanel",
      id: `panel-${spec.key}`,
      "aria-labelledby": `tab-${spec.key}`,
      "data-title": spec.label,
      "data-empty": !table.length,
    },
    content,
    spec.note ? h("p", { class: "note" }, spec.note) : null,
  );
}

function show(tabButton, tabPanel, selected) {
  tabButton.setAttribute("aria-selected", String(selected));
  tabButton.tabIndex = selected ? 0 : -1;
  tabPanel.hidden = !selected;
}

function selectByKey(event, tabs, select) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const at = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
  select(at);
  tabs[at].focus();
}
