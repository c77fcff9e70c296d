// The instant that the page shows: the end of the run, or where the scrubber is.

import { clock } from "./format.js";
import { h } from "./dom.js";
import { onAddress, setAddress } from "./address.js";

const LARGE_STEP = 20;

/** The shown instant of one report; `end` and `instants` are seconds, ascending. */
export function timeModel(report, instants) {
  const end = report.virtual_seconds ?? 0;
  const stops = [...new Set([0, ...report.timeline.t_s, ...instants, end])].filter((t) => t >= 0 && t <= end);
  const time = { end, stops: stops.sort((a, b) => a - b), shown: null, listeners: [] };
  onAddress("t", (text) => {
    const t = Number(text);
    if (Number.isFinite(t)) showTime(time, t);
  });
  return time;
}

/** Shows second `t`; null, and any instant from the end on, is the end. */
export function showTime(time, t) {
  const shown = t === null || t >= time.end ? null : Math.max(0, t);
  if (shown === time.shown) return;
  time.shown = shown;
  setAddress("t", shown === null ? null : String(Math.round(shown * 1000) / 1000));
  for (const listener of time.listeners) listener(shown);
}

/** Calls `listener` with the shown second (null: the end) now and whenever it changes. */
export function onTime(time, listener) {
  time.listeners.push(listener);
  listener(time.shown);
}

/** "At 0:05:00", or "At the end, 0:20:00". */
export function timeText({ end }, t) {
  return t === null ? `At the end, ${clock(end)}` : `At ${clock(t)}`;
}

/** A slider over the run; its arrow keys move to the previous and the next change. */
export function scrubber(time, label) {
  const slider = h("input", { type: "range", class: "scrubber", min: 0, max: time.end, step: "any", "aria-label": label });
  slider.addEventListener("input", () => showTime(time, Number(slider.value)));
  slider.addEventListener("keydown", (event) => {
    const t = stopByKey(time, event.key);
    if (t === undefined) return;
    event.preventDefault();
    showTime(time, t);
  });
  onTime(time, (t) => {
    slider.value = String(t ?? time.end);
    slider.setAttribute("aria-valuetext", timeText(time, t));
  });
  return slider;
}

/** The instant that a key leads to from the shown one; undefined for other keys. */
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
