// The instant that the page shows: the end of the run, or the position of the scrubber.

import { clock } from "./format.js";
import { h } from "./dom.js";
import { onAddress, setAddress } from "./address.js";

const LARGE_STEP = 20;

/** The shown instant of a report. `instants` are the seconds at which a node or a pod changes. */
export function timeModel(report, instants) {
  const time = { end: 0, stops: [], shown: null, listeners: [] };
  setEnd(time, report, instants);
  onAddress("t", (text) => {
    const t = Number(text);
    if (Number.isFinite(t)) showTime(time, t);
  });
  return time;
}

function setEnd(time, report, instants) {
  time.end = report.virtual_seconds ?? 0;
  const stops = [...new Set([0, ...report.timeline.t_s, ...instants, time.end])];
  time.stops = stops.filter((t) => t >= 0 && t <= time.end).sort((a, b) => a - b);
}

/** Updates `time` after the report has grown, and calls the listeners. */
export function updateTime(time, report, instants) {
  setEnd(time, report, instants);
  for (const { listener } of time.listeners) listener(time.shown);
}

/** Shows second `t`. Null, and any second at or after the end, stand for the end. */
export function showTime(time, t) {
  const shown = t === null || t >= time.end ? null : Math.max(0, t);
  if (shown === time.shown) return;
  time.shown = shown;
  setAddress("t", shown === null ? null : String(Math.round(shown * 1000) / 1000));
  for (const { listener } of time.listeners) listener(shown);
}

/** Calls `listener` with the shown second (null: the end) now and whenever it changes. */
export function onTime(time, listener, within = null) {
  time.listeners.push({ listener, within });
  listener(time.shown);
}

/** Removes the listeners whose elements are no longer in the page. */
export function forgetDetachedListeners(time) {
  time.listeners = time.listeners.filter(({ within }) => within === null || within.isConnected);
}

/** "At 0:05:00", "At the end, 0:20:00", or "Now"; a live page ends when the cluster last changed. */
export function timeText({ end, isLive }, t) {
  if (t === null && isLive) return "Now";
  return t === null ? `At the end, ${clock(end)}` : `At ${clock(t)}`;
}

/**
 * A slider over the run; its arrow keys move to the previous and the next change. `rangeOf()` returns
 * its first and its last second; `show()` shows another range.
 */
export function scrubber(time, label, rangeOf = () => [0, time.end]) {
  const slider = h("input", { type: "range", class: "scrubber", step: "any", "aria-label": label });
  slider.addEventListener("input", () => showTime(time, Number(slider.value)));
  slider.addEventListener("keydown", (event) => {
    const t = stopByKey(time, event.key);
    if (t === undefined) return;
    event.preventDefault();
    showTime(time, t);
  });
  const show = () => {
    [slider.min, slider.max] = rangeOf();
    slider.value = String(time.shown ?? time.end);
    slider.setAttribute("aria-valuetext", timeText(time, time.shown));
  };
  onTime(time, show, slider);
  return { element: slider, show };
}

/** The second to which a key moves from the shown one: null for the end, undefined for other keys. */
export function stopByKey(time, key) {
  const { stops, shown, end } = time;
  const now = shown ?? end;
  const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: -LARGE_STEP, PageDown: LARGE_STEP };
  if (key === "Home") return stops[0];
  if (key === "End") return null;
  if (!(key in steps)) return undefined;
  const at = steps[key] < 0 ? stops.findIndex((t) => t >= now) : stops.findLastIndex((t) => t <= now);
  return stops[Math.min(Math.max(at + steps[key], 0), stops.length - 1)];
}
