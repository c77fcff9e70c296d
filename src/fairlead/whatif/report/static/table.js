// A table of any length: sorted by its headings, filtered by text and by facet, shown in pages.

import { MISSING, clock, count, duration, money } from "./format.js";
import { dropDown, h, nothing, searchField } from "./dom.js";
import { priorityMark } from "./palette.js";
import { showNode } from "./nodes.js";
import { podLink } from "./story.js";

const PAGE_SIZES = [10, 25, 50, 100];
const PRINTED_ROWS_MAX = 200; // in each table; the line below a table has the number of all its rows
const FACETS_MAX = 12;
const UNFILTERED_MAX = 5; // a table with at most this number of rows has no filter
const textOrder = new Intl.Collator("en", { numeric: true });

/**
 * `table` is { length, columns }; `fields` are [{ key, label, kind }] with kind text, word, name, pod,
 * node, time, duration, count, money or priority; a field's `priority` names the column with the
 * priority of its pod. `isDuration(columns, row)` of a field of kind count tells whether the value in
 * this row is a time. `facet` names a column whose values become buttons.
 */
export function dataTable({
  table,
  fields,
  label,
  empty,
  priorities,
  known,
  facet = null,
  page = 10,
}) {
  if (!table.length) return nothing(empty);
  const view = {
    table,
    fields,
    priorities,
    known,
    sort: { key: null, descending: false },
    text: "",
    facet,
    chosen: null,
    page: 0,
    pageSize: page,
  };
  const parts = {
    body: h("tbody", { role: "rowgroup" }),
    status: h("span", { class: "page-status", "aria-live": "polite" }),
  };
  parts.headings = fields.map((field) => headingCell(view, parts, field));
  const redraw = () => drawRows(view, parts);
  const search = searchField("Filter", (text) => restart(view, redraw, { text }));
  const element = h(
    "table",
    { class: "data", role: "table" }, // the roles are explicit, because stacked rows hide them from some readers
    h("caption", { class: "unseen" }, label),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, parts.headings)),
    parts.body,
  );
  const scroll = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    element,
  );
  const filters = [
    table.length > UNFILTERED_MAX ? search : null,
    table.length > 1 ? sorting(view, parts) : null,
    facet ? facetButtons(view, redraw) : null,
  ].filter(Boolean);
  const toolbar = filters.length ? h("div", { class: "toolbar" }, filters) : null;
  const whole = h("div", { class: "data-table" }, toolbar, scroll, pager(view, parts, redraw));
  const rows = { printed: Math.max(page, PRINTED_ROWS_MAX), before: page };
  whole.addEventListener("printing", ({ detail: isPrinting }) => {
    if (isPrinting) rows.before = view.pageSize;
    restart(view, redraw, { pageSize: isPrinting ? rows.printed : rows.before });
  });
  whole.addEventListener("showrow", ({ detail: value }) => {
    restart(view, () => {}, { marked: value, text: "", chosen: null });
    const at = rowOrder(view).findIndex((row) => isMarked(view, row));
    view.page = Math.max(0, Math.floor(at / view.pageSize));
    redraw();
  });
  redraw();
  return whole;
}

/** Whether a cell of the row has the value to which a link leads. */
function isMarked({ table: { columns }, fields, marked }, row) {
  return marked !== undefined && fields.some(({ key }) => columns[key][row] === marked);
}

function restart(view, redraw, change) {
  Object.assign(view, change, { page: 0 });
  redraw();
}

function headingCell(view, parts, field) {
  const cell = h("th", { scope: "col", role: "columnheader", class: `kind-${field.kind}`, "aria-sort": "none" });
  const press = () => sortBy(view, parts, field.key);
  cell.append(h("button", { type: "button", onclick: press }, field.label));
  return cell;
}

/** Sorts by a column. If the table is already sorted by this column, reverses the order. */
function sortBy(view, parts, key) {
  const again = view.sort.key === key;
  view.sort = { key, descending: again && !view.sort.descending };
  const order = view.sort.descending ? "descending" : "ascending";
  parts.headings.forEach((heading, at) =>
    heading.setAttribute("aria-sort", view.fields[at].key === key ? order : "none"),
  );
  restart(view, () => drawRows(view, parts), {});
}

/** A list of the headings, for narrow screens: there, rows are stacked and have no headings above them. */
function sorting(view, parts) {
  const options = view.fields.map(({ key, label }) => [key, `Sort by ${label.toLowerCase()}`]);
  const list = dropDown("Sort by", [["", "Sort by …"], ...options], "", (key) => {
    if (key) sortBy(view, parts, key);
    list.value = ""; // so that the same column can be chosen again, for the other direction
  });
  list.classList.add("sorting");
  return list;
}

function facetButtons(view, redraw) {
  const amounts = new Map();
  for (const value of view.table.columns[view.facet])
    amounts.set(value, (amounts.get(value) ?? 0) + 1);
  const values = [...amounts].sort((a, b) => b[1] - a[1]).slice(0, FACETS_MAX);
  if (values.length < 2) return null;
  const buttons = values.map(([value, amount]) => {
    const button = h(
      "button",
      { type: "button", class: "facet", "aria-pressed": "false" },
      h("span", {}, value ?? "not stated"),
      h("b", {}, count(amount)),
    );
    button.addEventListener("click", () => {
      const pressed = button.getAttribute("aria-pressed") === "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(!pressed));
      restart(view, redraw, { chosen: pressed ? null : { value } });
    });
    return button;
  });
  return h("div", { class: "facets", role: "group", "aria-label": "Show only rows with" }, buttons);
}

function pager(view, parts, redraw) {
  const turn = (by) => () => {
    view.page += by;
    redraw();
  };
  parts.back = h("button", { type: "button", class: "quiet", onclick: turn(-1) }, "Previous");
  parts.next = h("button", { type: "button", class: "quiet", onclick: turn(1) }, "Next");
  const sizes = PAGE_SIZES.map((size) => [String(size), `${size} rows`]);
  const size = dropDown("Rows per page", sizes, String(view.pageSize), (value) =>
    restart(view, redraw, { pageSize: Number(value) }),
  );
  parts.pager = h(
    "div",
    { class: "pager" },
    parts.status,
    h("span", { class: "spacer" }),
    size,
    parts.back,
    parts.next,
  );
  return parts.pager;
}

function drawRows(view, parts) {
  const order = rowOrder(view);
  const first = view.page * view.pageSize;
  const shown = order.slice(first, first + view.pageSize);
  const rows = shown.map((row) =>
    h(
      "tr",
      { role: "row", class: isMarked(view, row) ? "marked" : null },
      view.fields.map((field) => cellOf(view, field, row)),
    ),
  );
  const none = h(
    "tr",
    {},
    h("td", { colspan: String(view.fields.length), "data-label": "" }, nothing("No row matches the filter.")),
  );
  parts.body.replaceChildren(...(rows.length ? rows : [none]));
  const of =
    order.length < view.table.length
      ? `${count(order.length)} (of ${count(view.table.length)})`
      : count(order.length);
  parts.status.textContent = shown.length
    ? `${count(first + 1)}–${count(first + shown.length)} of ${of}`
    : `0 of ${count(view.table.length)}`;
  parts.back.disabled = view.page === 0;
  parts.next.disabled = first + view.pageSize >= order.length;
  parts.pager.hidden = view.table.length <= PAGE_SIZES[0];
  parts.pager.classList.toggle("whole", shown.length === order.length);
}

/** The rows that pass the filters, sorted by the chosen column; equal rows keep their order. */
function rowOrder(view) {
  const { columns, length } = view.table;
  const rows = Array.from({ length }, (_, row) => row).filter((row) => passes(view, row));
  const values = columns[view.sort.key];
  if (!values) return rows;
  const sign = view.sort.descending ? -1 : 1;
  return rows.sort((a, b) => sign * compared(values[a], values[b]) || a - b);
}

function compared(a, b) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  return typeof a === "number" && typeof b === "number" ? a - b : textOrder.compare(a, b);
}

function passes({ table: { columns }, fields, priorities, facet, chosen, text }, row) {
  if (chosen && columns[facet][row] !== chosen.value) return false;
  return (
    !text ||
    fields.some((field) =>
      [spelled(field, columns, row, priorities), priorityOf(field, columns, row, priorities)].some((words) =>
        words.toLowerCase().includes(text),
      ),
    )
  );
}

function priorityOf({ priority }, columns, row, priorities) {
  return priority ? priorities.label(columns[priority][row]) : "";
}

/** A cell's value as the text that is shown. */
function spelled({ key, kind, isDuration }, columns, row, priorities) {
  const value = columns[key][row];
  if (isDuration?.(columns, row)) return duration(value);
  if (kind === "time") return clock(value);
  if (kind === "count") return count(value);
  if (kind === "hours") return hours(value);
  if (kind === "duration") return duration(value);
  if (kind === "money") return money(value);
  if (kind === "priority") return priorities.label(value);
  return String(value ?? "");
}

/** Whether a value is a pod, as namespace/name, rather than another object or no object. */
function isPod(text) {
  return text.split("/").length === 2;
}

function podPriority({ priority }, columns, row, priorities) {
  return priority ? [h("span", { class: "of-pod" }, priorityMark(priorities, columns[priority][row]))] : [];
}

function cellOf({ table: { columns }, priorities, known }, field, row) {
  const value = columns[field.key][row];
  const text = spelled(field, columns, row, priorities);
  const cell = h("td", {
    role: "cell",
    class: `kind-${field.kind}`,
    "data-label": field.label,
    title: text.length > 24 ? text : null,
  });
  if (field.kind === "priority") cell.append(...priorityMark(priorities, value));
  else if (field.kind === "node" && known.has(value))
    cell.append(
      h("button", { type: "button", class: "link", onclick: () => showNode(value) }, text),
    );
  else if (field.kind === "pod" && isPod(text)) cell.append(podLink(text), ...podPriority(field, columns, row, priorities));
  else cell.append(h("span", { class: "clamp" }, text || MISSING));
  return cell;
}
