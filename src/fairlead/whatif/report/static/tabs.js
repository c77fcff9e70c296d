// Tables behind tabs: one of several is shown, each with its number of rows on its tab.

import { count } from "./format.js";
import { h } from "./dom.js";
import { dataTable } from "./table.js";

/**
 * `specs` are [{ key, label, empty, fields, facet }]; `tables` has a table for each key. The first
 * that has rows is shown.
 */
export function tabbedTables(specs, tables, label, priorities, known) {
  const panels = specs.map((spec) => panel(spec, tables[spec.key], priorities, known));
  const tabs = specs.map((spec) => tab(spec, tables[spec.key].length));
  const first = Math.max(
    0,
    specs.findIndex(({ key }) => tables[key].length),
  );
  const select = (at) => tabs.forEach((one, other) => show(one, panels[other], other === at));
  tabs.forEach((one, at) => one.addEventListener("click", () => select(at)));
  const strip = h("div", { class: "tabs", role: "tablist", "aria-label": label }, tabs);
  strip.addEventListener("keydown", (event) => selectByKey(event, tabs, select));
  select(first);
  return h("div", { class: "card" }, strip, panels);
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
