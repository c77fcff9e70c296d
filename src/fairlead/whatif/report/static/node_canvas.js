// The node map itself: one cell per node, on a canvas, which is fast even for thousands of nodes.

import { percent, plural, points } from "./format.js";
import { h, onWidth } from "./dom.js";
import { cssColour, resolvedColour, utilisationRamp } from "./palette.js";
import { onThemeChange } from "./theme.js";
import { isChanged, nodeMarks, shownState, utilisation, utilisationChange } from "./node_detail.js";
import { eachCell, nodeAt, nodeByKey, nodeLayout } from "./node_layout.js";

const DIMMED = 0.16;
const NAME_MAX = 64; // letters of a name; a cell has room for fewer

/** The canvas. `view` says what to paint; `on.point` gets the node under the pointer, `on.pin` a clicked node. */
export function nodeCanvas(report, view, on) {
  const canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    class: "node-canvas",
    "aria-describedby": "node-map-help",
  });
  const names = withoutDomain(report.nodes.name);
  const map = { report, names, view, canvas, layout: null, colours: null, paint: null };
  map.paint = () => map.layout && paintNodes(map);
  map.relayout = () => relayout(map, canvas.parentElement.clientWidth);
  listen(map, on);
  onThemeChange(() => {
    map.colours = null;
    map.paint();
  });
  return map;
}

export function fitNodeCanvas(map, container) {
  onWidth(container, (width) => relayout(map, width));
}

function relayout(map, width) {
  const { canvas, view } = map;
  map.layout = nodeLayout(view.zones, width);
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(map.layout.height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${map.layout.height}px`;
  map.paint();
}

function listen(map, on) {
  const { canvas, view } = map;
  const under = (event) => nodeAt(map.layout, event.offsetX, event.offsetY);
  const point = (node, place) => {
    view.pointed = node;
    map.paint();
    on.point(node, place);
  };
  canvas.addEventListener("pointermove", (event) => {
    const node = under(event);
    canvas.classList.toggle("pointing", node !== null);
    if (node !== view.pointed) point(node, event);
  });
  canvas.addEventListener("pointerleave", () => point(null, null));
  canvas.addEventListener("blur", () => point(null, null));
  canvas.addEventListener("click", (event) => on.pin(under(event)));
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Escape") on.pin(null);
    if (event.key === "Enter" || event.key === " ") on.pin(view.pointed);
    const node = nodeByKey(map.layout, view.pointed ?? view.pinned, event.key);
    if (node !== null) point(node, placeOf(map, node));
    if (node !== null || event.key === " ") event.preventDefault();
  });
}

/** The position of a node's cell on the screen, for the tooltip when the keyboard is used. */
function placeOf(map, wanted) {
  const box = map.canvas.getBoundingClientRect();
  let place = null;
  eachCell(map.layout, (node, x, y) => {
    if (node === wanted)
      place = { clientX: box.left + x + map.layout.cell.width, clientY: box.top + y };
  });
  return place;
}

function paintNodes(map) {
  const { canvas, layout, names, view } = map;
  const context = canvas.getContext("2d");
  const density = canvas.width / layout.width;
  map.colours ??= { ramp: utilisationRamp(), ...inks() };
  const brush = { context, layout, names, view, ...map.colours };
  context.setTransform(density, 0, 0, density, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  for (const block of layout.blocks) paintZoneLabel(brush, block);
  eachCell(layout, (node, x, y) => paintCell(brush, node, x, y));
  eachCell(layout, (node, x, y) => paintOutline(brush, node, x, y));
}

function inks() {
  const names = {
    ink: "--ink",
    soft: "--ink-2",
    none: "--cell-none",
    edge: "--line-strong",
    over: "--over",
    mark: "--cordon",
    card: "--card",
    more: "--more",
    less: "--less",
  };
  return Object.fromEntries(
    Object.entries(names).map(([key, variable]) => [key, cssColour(resolvedColour(variable))]),
  );
}

function paintZoneLabel({ context, ink, soft }, { name, nodes, x, y, width }) {
  const amount = plural(nodes.length, "node");
  context.font = "11px system-ui, sans-serif";
  const room = width - context.measureText(amount).width - 12;
  context.textBaseline = "alphabetic";
  context.font = "600 12px system-ui, sans-serif";
  context.fillStyle = ink;
  const label = shortenedName(context, name || "no zone", room);
  context.fillText(label, x, y + 13);
  const after = x + context.measureText(label).width + 8;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = soft;
  context.fillText(amount, after, y + 13);
}

function paintCell(brush, node, x, y) {
  const { context, layout, view, ramp } = brush;
  const { width, height } = layout.cell;
  context.globalAlpha = view.matches && !view.matches.has(node) ? DIMMED : 1;
  if (view.side === "change") return paintChange(brush, node, x, y);
  const state = shownState(view);
  const share = utilisation(state, node, view.resource.name);
  if (layout.named) return paintNamedCell(brush, node, x, y, share);
  if (share === null) paintHollow(brush, x, y, width, height);
  else {
    context.fillStyle = share > 1 ? brush.over : ramp(share);
    context.fillRect(x, y, width, height);
  }
  if (state.outOfService.has(node)) paintFaded(brush, x, y, width, height);
  if (state.cordoned.has(node)) paintCross(brush, x, y, width, height);
  context.globalAlpha = 1;
}

/** Paints how a node differs between the runs: more or less is requested on it, or it is new or deleted. */
function paintChange(brush, node, x, y) {
  const { context, layout, view, none, more, less, edge } = brush;
  const { width, height } = layout.cell;
  const change = utilisationChange(view.states, node, view.resource.name);
  const alpha = context.globalAlpha;
  context.fillStyle = none;
  context.fillRect(x, y, width, height);
  context.globalAlpha = alpha * Math.min(1, change ? 0.2 + Math.abs(change) * 0.6 : 0);
  context.fillStyle = change > 0 ? more : less;
  context.fillRect(x, y, width, height);
  context.globalAlpha = alpha;
  if (isChanged(view.states, node)) {
    context.strokeStyle = edge;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }
  if (layout.named) paintChangeText(brush, node, x, y, change);
  else if (view.states.after.absent.has(node)) paintCross(brush, x, y, width, height);
  context.globalAlpha = 1;
}

function paintChangeText({ context, layout, names, view, ink, soft }, node, x, y, change) {
  const { width } = layout.cell;
  const words = [...nodeMarks(view.states, node), change && points(change)];
  context.textBaseline = "alphabetic";
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = ink;
  context.fillText(shortenedName(context, names[node], width - 12), x + 6, y + 15);
  context.font = "11px system-ui, sans-serif";
  const text = words.filter(Boolean).join(" · ");
  context.fillStyle = text ? ink : soft;
  context.fillText(text || (isChanged(view.states, node) ? "other pods" : "unchanged"), x + 6, y + 29);
}

/** Paints only the outline of a node that does not have the resource, so that it looks neither empty nor full. */
function paintHollow({ context, none, edge }, x, y, width, height) {
  context.fillStyle = edge;
  context.fillRect(x, y, width, height);
  context.fillStyle = none;
  context.fillRect(x + 1, y + 1, width - 2, height - 2);
}

/** Paints a label over a bar: if there are few nodes, cells have room for the names of the nodes. */
function paintNamedCell(
  { context, layout, names, view, ramp, ink, soft, none, over, mark, edge },
  node,
  x,
  y,
  share,
) {
  const { width, height } = layout.cell;
  const { cordoned, outOfService } = shownState(view);
  const isQuiet = outOfService.has(node);
  const amount = share === null ? "none" : percent(share);
  const words = [isQuiet ? "out of service" : amount, cordoned.has(node) && "cordoned"];
  context.fillStyle = none;
  context.fillRect(x, y, width, height);
  context.fillStyle = share > 1 ? over : ramp(share ?? 0);
  if (isQuiet) context.fillStyle = edge;
  context.fillRect(x, y + height - 7, width * Math.min(share ?? 0, 1), 7);
  context.textBaseline = "alphabetic";
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = ink;
  context.fillText(shortenedName(context, names[node], width - 12), x + 6, y + 15);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = isQuiet || cordoned.has(node) ? mark : soft;
  context.fillText(shortened(context, words.filter(Boolean).join(" · "), width - 12), x + 6, y + 29);
  context.globalAlpha = 1;
}

/** Paints over the middle of a node that is out of service, so that only its rim keeps its colour. */
function paintFaded({ context, none, edge }, x, y, width, height) {
  const rim = Math.max(1, Math.round(width / 6));
  context.fillStyle = none;
  context.fillRect(x + rim, y + rim, width - 2 * rim, height - 2 * rim);
  context.fillStyle = edge;
  context.fillRect(x + 2 * rim, y + 2 * rim, width - 4 * rim, height - 4 * rim);
}

/** Paints a diagonal line over a cordoned node; it is visible on any colour and in cells of 4 px. */
function paintCross({ context, card, mark }, x, y, width, height) {
  for (const [style, line] of [
    [card, Math.max(3, width / 4)],
    [mark, Math.max(1.25, width / 9)],
  ]) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.beginPath();
    context.moveTo(x, y + height);
    context.lineTo(x + width, y);
    context.strokeStyle = style;
    context.lineWidth = line;
    context.stroke();
    context.restore();
  }
}

function paintOutline({ context, layout, view, ink, card }, node, x, y) {
  if (node !== view.pointed && node !== view.pinned) return;
  const { width, height } = layout.cell;
  const rings = [
    [card, 3.5],
    [ink, 1.75],
  ];
  for (const [style, line] of rings) {
    context.strokeStyle = style;
    context.lineWidth = line;
    context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  }
}

function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = Math.min(text.length, NAME_MAX);
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

/** Cuts the middle of a name, because names of nodes often differ only at the end. */
function shortenedName(context, name, room) {
  const letters = [...name];
  if (letters.length <= NAME_MAX && context.measureText(name).width <= room) return name;
  for (let length = Math.min(letters.length - 1, NAME_MAX); length > 1; length -= 1) {
    const text = `${letters.slice(0, length >> 1).join("")}…${letters.slice(-Math.ceil(length / 2)).join("")}`;
    if (context.measureText(text).width <= room) return text;
  }
  return "…";
}

/** The names without their domains (ip-10-0-1-2.eu-central-1.compute.internal), if they stay unique; an address has no domain. */
function withoutDomain(names) {
  const hosts = names.map((name) => (/^[^.]*[a-z]/.test(name) ? name.split(".")[0] : name));
  return new Set(hosts).size === names.length ? hosts : names;
}
