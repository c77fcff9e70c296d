"""Reduces a time line to the samples that a screen can show, without losing peaks.

If there are many samples, virtual time is cut into equal slices. Each slice keeps its first and
last sample, and the samples with the most and the fewest running, down and pending pods.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MEASURES = ("running", "down", "pending", "preempted", "evicted")
PEAKED = ("running", "down", "pending")
SLICES_MAX = 400
SAMPLES_PER_SLICE_MAX = 2 + 2 * len(PEAKED)
SAMPLES_MAX = SLICES_MAX * SAMPLES_PER_SLICE_MAX


def sampled(timeline: Mapping[str, Any]) -> dict[str, Any]:
    """Return the time line with only the samples that `kept_samples` selects.

    `recorded` in the result is the original number of samples.
    """
    t_s = list(timeline.get("t_s", ()))
    series = list(timeline.get("series", ()))
    kept = kept_samples(t_s, series)
    return {
        "recorded": len(t_s),
        "t_s": [round(t_s[at], 3) for at in kept],
        "series": [sampled_series(one, kept) for one in series],
    }


def sampled_series(series: Mapping[str, Any], samples: Sequence[int]) -> dict[str, Any]:
    """Return the counts of one priority at the indices `samples`, without counts that stay 0."""
    counts = {name: series[name] for name in MEASURES if any(series.get(name, ()))}
    return {
        "priority": series["priority"],
        **{name: [values[at] for at in samples] for name, values in counts.items()},
    }


def kept_samples(t_s: Sequence[float], series: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the indices of the samples to keep, ascending; all if there are few samples.

    `t_s` are the times of the samples in seconds. `series` has an element for each priority, with
    the pod counts at these times.
    """
    if len(t_s) <= SAMPLES_MAX:
        return list(range(len(t_s)))
    totals = [total(series, measure, len(t_s)) for measure in PEAKED]
    kept = set[int]()
    for first, last in slices(t_s):
        kept.update((first, last))
        for values in totals:
            inside = range(first, last + 1)
            kept.update((max(inside, key=values.__getitem__), min(inside, key=values.__getitem__)))
    return sorted(kept)


def total(series: Sequence[Mapping[str, Any]], measure: str, length: int) -> list[int]:
    """Return, for each of `length` samples, the sum of the count `measure` over all priorities."""
    rows = [one[measure] for one in series if one.get(measure)]
    return [sum(values) for values in zip(*rows, strict=True)] or [0] * length


def slices(t_s: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield (first index, last index) of every time slice that contains samples."""
    width_s = (t_s[-1] - t_s[0]) / SLICES_MAX
    first = 0
    for number in range(1, SLICES_MAX + 1):
        end = bisect_left(t_s, t_s[0] + width_s * number) if number < SLICES_MAX else len(t_s)
        if end > first:
            yield first, end - 1
            first = end
