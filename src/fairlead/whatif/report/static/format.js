// Numbers, quantities and times as people read them. Everything returns plain text. Ties are rounded
// to the even digit, as in the text output (cli/output/console/amount.py). An instant is written as a
// clock, a length of time as a duration.

const WHOLE = decimals(0, 0);
const TENTHS = decimals(0, 1);
const HUNDREDTHS = decimals(0, 2);
const UNGROUPED = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, roundingMode: "halfEven", useGrouping: false });
const FIXED_TENTHS = decimals(1, 1);
const CENTS = decimals(2, 2);
const EXACT_DIGITS = 12; // fewer than a double has, so that 0.3325 * 100 is 33.25
const READABLE_MAX = 1e13;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

export const MISSING = "–";

function decimals(minimum, maximum) {
  return new Intl.NumberFormat("en-US", {
    minimumFractionDigits: minimum,
    maximumFractionDigits: maximum,
    roundingMode: "halfEven",
  });
}

export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

export function count(value) {
  return isNumber(value) ? grouped(value, WHOLE).replace("-", "−") : MISSING;
}

/** Formats a number with separators between thousands; a very large number, with a power of ten. */
function grouped(value, format) {
  if (Math.abs(value) < READABLE_MAX) return format.format(value);
  return value.toExponential(2).replace("e+", "e");
}

/** A number of hours; with tenths if it is below 100. */
export function hours(value) {
  if (!isNumber(value)) return MISSING;
  return value > 0 && value < 0.05 ? "<0.1" : grouped(value, Math.abs(value) < 100 ? TENTHS : WHOLE);
}

/** An amount of money, in whatever unit the prices have. */
export function money(value) {
  if (!isNumber(value)) return MISSING;
  return (Math.abs(value) < 1000 ? CENTS : WHOLE).format(value).replace("-", "−");
}

/** A difference with its sign: +12, −3, ±0. */
export function signed(value) {
  if (!isNumber(value)) return MISSING;
  return value > 0 ? `+${count(value)}` : value < 0 ? count(value) : "±0";
}

/** `part` divided by `whole`; null if one of them is not a number, or if `whole` is not positive. */
export function ratio(part, whole) {
  return isNumber(part) && isNumber(whole) && whole > 0 ? part / whole : null;
}

/** A ratio as a percentage. Only 0 is shown as 0%, and only 1 as 100%: other ratios never round to these. */
export function percent(value) {
  if (!isNumber(value)) return MISSING;
  if (value > 0 && value < 0.001) return "<0.1%";
  if (value < 1 && value > 0.999) return ">99.9%";
  if (value === 0 || value === 1) return `${value * 100}%`;
  return `${FIXED_TENTHS.format(Number((value * 100).toPrecision(EXACT_DIGITS)))}%`;
}

/** A quantity in base units; `scale` is "milli", "bytes" or "count". */
export function quantity(value, scale) {
  if (!isNumber(value)) return MISSING;
  if (scale === "bytes") return bytes(value);
  if (scale === "milli") return fewDigits(value / 1000);
  return count(value);
}

function bytes(value) {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${fewDigits(value)} ${BYTE_UNITS[unit]}`;
}

function fewDigits(value) {
  if (value !== 0 && Math.abs(value) < 0.1) return String(Number(value.toPrecision(2)));
  const size = Math.abs(value);
  return grouped(value, size < 10 ? HUNDREDTHS : size < 100 ? TENTHS : WHOLE);
}

/** "REQUESTED of ALLOCATABLE", for CPU with the word "cores". */
export function amountOf(requested, allocatable, { name, scale }) {
  const amounts = [requested, allocatable].map((value) => quantity(value, scale)).join(" of ");
  return name === "cpu" ? `${amounts} cores` : amounts;
}

/** An instant of the run, as the virtual time since its start: 0:03:20, 2d 00:10:00. */
export function clock(seconds) {
  if (!isNumber(seconds)) return MISSING;
  const whole = Math.floor(Math.abs(seconds) + 1e-9);
  const days = Math.floor(whole / 86400);
  const hours = Math.floor((whole % 86400) / 3600);
  const text = [Math.floor((whole % 3600) / 60), whole % 60].map(twoDigits).join(":");
  const sign = seconds < 0 ? "−" : "";
  return days ? `${sign}${count(days)}d ${twoDigits(hours)}:${text}` : `${sign}${hours}:${text}`;
}

/** A length of time in at most two units, as in the text output (whatif/input/duration.py): 1h02m, 6m05s, 2.5s. */
export function duration(seconds) {
  if (!isNumber(seconds)) return MISSING;
  if (seconds < 1) return `${Number((Math.round(seconds * 1000) / 1000).toPrecision(2))}s`;
  if (seconds < 10) return `${TENTHS.format(seconds)}s`;
  const whole = Number(UNGROUPED.format(seconds));
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}m${twoDigits(whole % 60)}s`;
  return `${Math.floor(minutes / 60)}h${twoDigits(minutes % 60)}m`;
}

/**
 * Says which nodes do not count in percentages; null if all nodes count. `cordoned` and `notRunning` say
 * whether there are such nodes, and `down` is the word for nodes that do not run pods.
 */
export function uncountedNodes(cordoned, notRunning, down) {
  const kinds = [cordoned && "cordoned", notRunning && down].filter(Boolean);
  return kinds.length ? `Nodes that are ${kinds.join(" or ")} do not count in these percentages.` : null;
}

export function plural(amount, one, many = `${one}s`) {
  return `${count(amount)} ${amount === 1 ? one : many}`;
}

function twoDigits(value) {
  return String(value).padStart(2, "0");
}

/** A difference of two shares, in percentage points. */
export function points(difference) {
  const tenths = Math.round(difference * 1000) / 10;
  if (!Number.isFinite(tenths)) return MISSING;
  return `${tenths > 0 ? "+" : tenths < 0 ? "−" : "±"}${Math.abs(tenths).toFixed(1)} pt`;
}
