// Colours by meaning. Their values are in base.css; colour-blind people can distinguish them. For a
// canvas, the values are resolved for the current theme.

import { MISSING, count } from "./format.js";
import { h } from "./dom.js";

const PRIORITY_COLOURS = 7;
const RAMP_STOPS = 5;
const RAMP_STEPS = 64;

/**
 * The colour and the name of each priority. The seven priorities with the most pods have a colour of
 * their own; all others share one colour.
 */
export function prioritiesOf(report) {
  const names = new Map(report.priorities.map(({ priority, name }) => [priority, name]));
  const ranked = rankedByPods(report, names);
  const coloured = ranked.slice(0, PRIORITY_COLOURS).sort((a, b) => b - a);
  const slots = new Map(coloured.map((priority, at) => [priority, at]));
  return {
    own: coloured,
    variable: (priority) =>
      slots.has(priority) ? `--priority-${slots.get(priority)}` : "--priority-other",
    label: (priority) => names.get(priority) || (priority === null ? MISSING : count(priority)),
  };
}

function rankedByPods(report, names) {
  const weight = new Map([...names.keys()].map((priority) => [priority, 0]));
  const add = (priority, amount) => weight.set(priority, (weight.get(priority) ?? 0) + amount);
  for (const one of report.timeline.series)
    add(one.priority, peak(one.running) + peak(one.down) + peak(one.pending));
  for (const priority of report.nodes.pods.priority) add(priority, 1);
  for (const priority of report.pending.columns.priority) add(priority, 1);
  const numbers = [...weight.keys()].filter((priority) => priority !== null && weight.get(priority) > 0);
  return numbers.sort((a, b) => weight.get(b) - weight.get(a) || b - a);
}

function peak(values = []) {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/** A small square in a priority's colour. */
export function swatch(variable) {
  const square = h("span", { class: "swatch", "aria-hidden": "true" });
  square.style.background = `var(${variable})`;
  return square;
}

/** A priority's colour and name; a dash if the priority is unknown. */
export function priorityMark(priorities, priority) {
  const label = priorities.label(priority);
  return priority === null ? [label] : [swatch(priorities.variable(priority)), label];
}

/** The value of a CSS variable in the current theme, as [red, green, blue]. */
export function resolvedColour(variable) {
  const probe = h("span");
  probe.style.color = `var(${variable})`;
  document.body.append(probe);
  const parts = getComputedStyle(probe)
    .color.match(/[\d.]+/g)
    .map(Number);
  probe.remove();
  return parts.slice(0, 3);
}

export function cssColour([red, green, blue], alpha = 1) {
  return `rgba(${Math.round(red)},${Math.round(green)},${Math.round(blue)},${alpha})`;
}

export function mixed(from, to, share) {
  return from.map((channel, at) => channel + (to[at] - channel) * share);
}

/** A function that returns the CSS colour for a utilisation from 0 to 1. */
export function utilisationRamp() {
  const stops = Array.from({ length: RAMP_STOPS }, (_, at) => resolvedColour(`--ramp-${at}`));
  const steps = Array.from({ length: RAMP_STEPS + 1 }, (_, step) => {
    const position = (step / RAMP_STEPS) * (RAMP_STOPS - 1);
    const below = Math.min(Math.floor(position), RAMP_STOPS - 2);
    return cssColour(mixed(stops[below], stops[below + 1], position - below));
  });
  return (share) => steps[Math.round(Math.min(Math.max(share, 0), 1) * RAMP_STEPS)];
}
