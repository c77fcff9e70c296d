"""The numbers of a simulation's result that a sweep compares, and their distribution.

Pods with a negative priority exist to give way to other pods. So they have measures of their own,
and do not count for the measures of pods that are pending, lost, evicted, preempted or waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.whatif.outcome.outage import LossCause
from fairlead.whatif.outcome.percentile import percentile

Number = int | float


class Measure(Struct, frozen=True):
    """A number of a result; `read` returns None if the result does not contain it.

    `meaning` describes the number to users. If `is_duration` is True, the number is in seconds. If
    `is_damage` is True, the number is 0 if nothing bad happens.
    """

    name: str
    meaning: str
    read: Callable[[Json], Number | None]
    is_duration: bool = False
    is_damage: bool = False

    @property
    def heading(self) -> str:
        """The name as a heading, without the suffix `_s`: durations are printed with units."""
        name = self.name.removesuffix("_s") if self.is_duration else self.name
        return name.replace("_", " ")


def _count(name: str) -> Callable[[Json], int]:
    return lambda result: len(result[name])


def _not_negative(name: str) -> Callable[[Json], int]:
    """Return a function that counts the pods of the list `name` whose priority is not negative."""
    return lambda result: sum(one["priority"] >= 0 for one in result[name])


def _negative(*names: str) -> Callable[[Json], int]:
    """Return a function that counts the pods with a negative priority in the lists `names`."""
    return lambda result: sum(one["priority"] < 0 for name in names for one in result[name])


def _loops(result: Json) -> int:
    return sum(not one["negative_priority"] for one in result["recurrences"])


def _inside(*path: str) -> Callable[[Json], Number | None]:
    def read(result: Json) -> Number | None:
        found: Any = result
        for step in path:
            found = None if found is None else found.get(step)
        return len(found) if isinstance(found, list) else found

    return read


def _lost(result: Json) -> int | None:
    """Return how many pods of failed nodes should run again but do not; None if no node failed.

    `LossCause.is_loss` decides whether a pod should run again. Pods with a negative priority are
    left out.
    """
    if result.get("outage") is None:
        return None
    found = (one for one in result["outage"]["lost"] if one["priority"] >= 0)
    return sum(LossCause(one["cause"]).is_loss for one in found)


def _short(result: Json) -> float | None:
    """Return the longest time for which an autoscaler needs more than maxReplicas, in seconds.

    Return None if there is no HorizontalPodAutoscaler.
    """
    return max((one["short_s"] for one in result["pod_autoscalers"]), default=None)


def _share(resource: str) -> Callable[[Json], float | None]:
    def read(result: Json) -> float | None:
        for row in result["allocation"]:
            if row["resource"] == resource and row["allocatable"]:
                share: float = round(row["requested"] / row["allocatable"], 4)
                return share
        return None

    return read


# The first measure in which two cases differ decides which case is worse.
MEASURES: Final = (
    Measure("pending", "pods pending at the end", _not_negative("pending"), is_damage=True),
    Measure("lost", "pods of failed nodes not back", _lost, is_damage=True),
    Measure("undrained", "pods that a drain did not remove", _count("undrained"), is_damage=True),
    Measure(
        "pdb_breaches", "pods displaced against a budget", _count("pdb_breaches"), is_damage=True
    ),
    Measure("evicted", "pods evicted", _not_negative("evicted"), is_damage=True),
    Measure("preempted", "pods preempted", _not_negative("preempted"), is_damage=True),
    Measure("displaced_again", "loops of displaced pods", _loops, is_damage=True),
    Measure(
        "waited_longest_s",
        "longest wait for a node (s)",
        _inside("waiting_times", "longest_so_far_s"),
        is_duration=True,
        is_damage=True,
    ),
    Measure(
        "waited_p95_s",
        "wait for a node, 95% of pods (s)",
        _inside("waiting_times", "p95_so_far_s"),
        is_duration=True,
        is_damage=True,
    ),
    Measure("short_s", "longest lack of replicas (s)", _short, is_duration=True, is_damage=True),
    Measure(
        "negative_priority_pending",
        "pods with a negative priority pending at the end",
        _negative("pending"),
    ),
    Measure(
        "negative_priority_displaced",
        "pods with a negative priority evicted or preempted",
        _negative("evicted", "preempted"),
    ),
    Measure("cost", "cost of nodes by the autoscaler", _inside("autoscaling", "cost")),
    Measure("node_hours", "hours of nodes by the autoscaler", _inside("autoscaling", "node_hours")),
    Measure("nodes_added", "nodes added", _inside("autoscaling", "added")),
    Measure("completed", "pods completed", _count("completed")),
    Measure("cpu_share", "share of CPU requested (0 to 1)", _share("cpu")),
    Measure("memory_share", "share of memory requested (0 to 1)", _share("memory")),
    Measure(
        "virtual_s", "simulated time (s)", lambda one: one["virtual_seconds"], is_duration=True
    ),
)
BY_NAME: Final = {one.name: one for one in MEASURES}


def measures_of(result: Json) -> dict[str, Number | None]:
    """Return all measures of a simulation's result, by name."""
    return {one.name: one.read(result) for one in MEASURES}


class Distribution(Struct, frozen=True):
    """The distribution of one measure over the cases. Percentiles use the nearest-rank method.

    `least` is the smallest value, and `most` is the largest. `cases` is the number of cases that
    have the measure. `worst` is the index of the first case with the largest value.
    """

    least: Number
    median: Number
    p95: Number
    most: Number
    cases: int
    worst: int


def distribution(values: Sequence[Number | None]) -> Distribution | None:
    """Return the distribution of `values`; None if all values are None."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None
    return Distribution(
        known[0], percentile(known, 50), percentile(known, 95), known[-1], len(known),
        values.index(known[-1]),
    )  # fmt: skip


def severity(row: Mapping[str, Number | None], first: str) -> tuple[Number, ...]:
    """Return a key by which cases are compared; the case with the largest key is the worst.

    `row` are the measures of the case. Cases are compared by the measure `first`. If two cases have
    the same value of `first`, the other MEASURES decide, in order. A larger number is worse, and
    None counts as 0.
    """
    names = [first, *(one.name for one in MEASURES if one.name != first)]
    return tuple(row[name] or 0 for name in names)


def worst_case(rows: Iterable[Mapping[str, Number | None]], first: str) -> int:
    """Return the index of the worst case (`severity`); of equally bad cases, the lowest index."""
    keys = [severity(row, first) for row in rows]
    return keys.index(max(keys))
