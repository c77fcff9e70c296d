"""The effects of HorizontalPodAutoscalers in a run: replica changes, reasons for inactivity."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.whatif.outcome.workload import WorkloadRef

# A difference that is shorter than a few syncs can have other causes, such as pods that start.
LONGER: Final = seconds(60)
_STATE_LOAD: Final = "; state a load with whatif --load FILE (in a scenario, load)"


class ReplicaChange(Struct, frozen=True):
    """A change of a workload's replicas from `before` to `after`, and the autoscaler's reason."""

    at: Instant
    before: int
    after: int
    reason: str


class ReplicaShortage(Struct, frozen=True, kw_only=True):
    """A shortage: the metrics of an autoscaler propose more replicas than maxReplicas allows.

    `lasted` is the total time of the shortage. `proposed` is the highest number that the metrics
    propose. `is_over` is False if the shortage exists at the end of the run.
    """

    lasted: DurationNs
    proposed: int
    is_over: bool


class PodAutoscalerOutcome(Struct, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler, its target, limits and replica changes.

    If the condition AbleToScale or ScalingActive is False, `inactive_reason` and `inactive_message`
    are the reason and message of this condition. Otherwise, both are "".
    """

    autoscaler: str
    target: str  # such as `Deployment web`
    minimum: int
    maximum: int
    replicas: int | None  # the number at the end, None if the target has no scale
    changes: tuple[ReplicaChange, ...]
    inactive_reason: str = ""
    inactive_message: str = ""
    shortage: ReplicaShortage | None = None  # None if the metrics never propose more than `maximum`
    with_value: tuple[str, ...] = ()  # names of the metrics that have a value at the end
    without_value: tuple[str, ...] = ()  # names of the metrics that have no value at the end

    @property
    def workload(self) -> WorkloadRef:
        """The workload that the autoscaler scales."""
        kind, _, name = self.target.partition(" ")
        return WorkloadRef(kind, self.autoscaler.partition("/")[0], name)

    @property
    def has_no_load(self) -> bool:
        """Whether the autoscaler is inactive because nothing states the load of its pods."""
        # Imported here, because few clusters have autoscalers of pods.
        from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import (  # noqa: PLC0415
            NO_METRICS,
        )

        return NO_METRICS in self.inactive_message

    @property
    def replicas_before(self) -> int | None:
        """The number of replicas at the start; None if the target has no scale."""
        return self.changes[0].before if self.changes else self.replicas

    @property
    def lowest(self) -> int | None:
        """The lowest number of replicas during the run; None if the target has no scale."""
        return min(self._numbers(), default=None)

    @property
    def highest(self) -> int | None:
        """The highest number of replicas during the run; None if the target has no scale."""
        return max(self._numbers(), default=None)

    def _numbers(self) -> list[int]:
        stated = (self.replicas_before, *(one.after for one in self.changes))
        return [one for one in stated if one is not None]


def new_shortages(
    without: Iterable[PodAutoscalerOutcome], changed: Iterable[PodAutoscalerOutcome]
) -> list[tuple[PodAutoscalerOutcome, ReplicaShortage]]:
    """Return the autoscalers of the run `changed` that lack replicas because of the change.

    In `changed`, the metrics of such an autoscaler propose more than maxReplicas for a longer time
    than in the run `without`. The difference is at least `LONGER`.
    """
    before = {one.autoscaler: one.shortage for one in without}
    found = []
    for one in changed:
        known = before.get(one.autoscaler)
        lasted = 0 if known is None else known.lasted
        if one.shortage is not None and one.shortage.lasted - lasted >= LONGER:
            found.append((one, one.shortage))
    return found


class ReplicaRange(Struct, frozen=True):
    """The lowest and the highest number of replicas of a workload during a run."""

    lowest: int
    highest: int

    def __str__(self) -> str:
        """Return the range in words: `4 to 12`, or `4` if the number of replicas is constant."""
        if self.lowest == self.highest:
            return f"{self.lowest:,}"
        return f"{self.lowest:,} to {self.highest:,}"


class ChangedRange(Struct, frozen=True, kw_only=True):
    """The numbers of replicas of `workload`, which `autoscaler` scales, in two runs."""

    autoscaler: str
    workload: WorkloadRef
    without: ReplicaRange
    changed: ReplicaRange


def changed_ranges(
    without: Iterable[PodAutoscalerOutcome], changed: Iterable[PodAutoscalerOutcome]
) -> tuple[ChangedRange, ...]:
    """Return the ranges of replicas that differ between two runs, ordered by autoscaler.

    `without` and `changed` are the autoscalers of the runs without and with the change. If only one
    of the runs has an autoscaler, the workload keeps its replicas in the other run. A workload is
    left out if the runs begin with different numbers of its replicas, because then the change
    itself scales the workload.
    """
    before = {one.autoscaler: one for one in without}
    after = {one.autoscaler: one for one in changed}
    found = []
    for name in sorted(before.keys() | after.keys()):
        pair = before.get(name), after.get(name)
        known = [one for one in pair if one is not None]
        begin = known[0].replicas_before
        if begin is None or any(one.replicas_before != begin for one in known):
            continue
        first, second = (_range(begin, one) for one in pair)
        if first != second:
            found.append(
                ChangedRange(
                    autoscaler=name, workload=known[0].workload, without=first, changed=second
                )
            )
    return tuple(found)


def _range(begin: int, one: PodAutoscalerOutcome | None) -> ReplicaRange:
    numbers = [begin, *(each.after for each in one.changes)] if one is not None else [begin]
    return ReplicaRange(min(numbers), max(numbers))


def metric_notes(
    autoscalers: Iterable[PodAutoscalerOutcome], remedy: str = _STATE_LOAD
) -> list[str]:
    """Return notes that name the `autoscalers` whose metrics have no value in the simulation.

    `remedy` is the end of a sentence that says how to state a load.
    """
    autoscalers = list(autoscalers)
    notes = []
    idle = [one.autoscaler for one in autoscalers if one.has_no_load]
    if idle:
        has = "has" if len(idle) == 1 else f"and {len(idle) - 1:,} more have"
        notes.append(
            f"HorizontalPodAutoscaler {idle[0]} {has} no load here, so the number of replicas "
            f"changes only if it is outside the limits{remedy}."
        )
    lacking = [one for one in autoscalers if one.without_value and not one.has_no_load]
    # With a metric that has no value, a real autoscaler does not remove pods either.
    # upstream: pkg/controller/podautoscaler/horizontal.go: computeReplicasForMetrics
    for is_partial, effect in (
        (True, "it adds pods by its other metrics, but removes none"),
        (False, "the number of replicas changes only if it is outside the limits"),
    ):
        found = [one for one in lacking if bool(one.with_value) is is_partial]
        if found:
            others = counted(len(found) - 1, "more autoscaler")
            more = f"; the same applies to {others}" if len(found) > 1 else ""
            notes.append(
                f"HorizontalPodAutoscaler {found[0].autoscaler} has no value for "
                f"{listed(found[0].without_value)} here, so {effect}{more}."
            )
    return notes


def notes_about(
    notes: Iterable[str],
    autoscalers: Iterable[PodAutoscalerOutcome],
    workloads: Collection[WorkloadRef],
    remedy: str = _STATE_LOAD,
) -> tuple[str, ...]:
    """Return the `notes` of a run, with notes about metrics only for the relevant autoscalers.

    An autoscaler is relevant if it has scaled a workload, or if its target is in `workloads`. The
    notes that `metric_notes` writes about all `autoscalers` are replaced by new notes about
    the relevant autoscalers. `remedy` is an argument of `metric_notes` for the new notes.
    """
    autoscalers = list(autoscalers)
    everyone = metric_notes(autoscalers)
    acting = (one for one in autoscalers if one.changes or one.workload in workloads)
    concerned = metric_notes(acting, remedy)
    found: list[str] = []
    for note in notes:
        if note not in everyone:
            found.append(note)
        elif note == everyone[0]:
            found += concerned
    return tuple(found)
