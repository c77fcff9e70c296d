"""Autoscaler: one HorizontalPodAutoscaler with its pods, metrics and syncs.

    1. find the scale of the target
    2. if the scale is below minReplicas or above maxReplicas, take the limit that it violates
    3. otherwise take the highest proposal of the metrics, stabilize it and apply the limits
    4. write the scale, then the status

If no API clients read the status, syncs that cannot change the target are skipped. A sync cannot
change the target in these four states:

    the metrics propose the current number of replicas
    the metrics propose less, and the current number is minReplicas
    the metrics propose more, and the current number is maxReplicas
    the metrics propose nothing, because they failed

The state at each coming sync is predicted, on the assumption that no pod changes. Syncs are skipped
while the predicted state is the state at the last executed sync. Even if the state stays the same,
a sync is executed when a metric expires, or after SKIPPED_MAX skipped syncs with changing load.
Within a part of the load curve that only rises or only falls, bisection finds the first sync in a
different state. Stabilization reads the recommendations of earlier syncs. So the recommendations of
the skipped syncs are added to the history before the next sync is executed.

upstream: pkg/controller/podautoscaler/horizontal.go:reconcileAutoscaler, computeReplicasForMetrics,
validateAndParseSelector
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import HorizontalPodAutoscaler, LabelSelector, Pod
from fairlead.api.selector import format_selector
from fairlead.engine.core.command import Command, ObjectRef, PatchObject, PatchStatus, RecordEvent
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import WorkloadLoad
from fairlead.engine.workloads.horizontal_pod_autoscaler.metric import (
    FailedMetricError,
    Metric,
    metrics_of,
)
from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import PodReadings
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_history import ScaleHistory
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import (
    Scale,
    ScaleError,
    ScaleTargets,
)
from fairlead.engine.workloads.horizontal_pod_autoscaler.status import (
    ABLE_TO_SCALE,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    StatusDraft,
    compared_fields,
    event,
)
from fairlead.engine.workloads.status_writer import status_patch

FAILED: Final = -1
# While the load changes, at most this many syncs are skipped in a row.
SKIPPED_MAX: Final = 240

# Returns the keys of all autoscalers whose selectors match a pod of a given autoscaler.
Rivals = Callable[[], list[str]]


class Rescale(Struct, frozen=True):
    """A change of the number of replicas of `target`, from `before` to `after`.

    `at` is the time of the sync, and `why` is the reason in upstream's words.
    """

    at: Instant
    autoscaler: ObjectRef
    target: ObjectRef
    before: int
    after: int
    why: str


class UnmetProposal(Struct, frozen=True):
    """A period in which the metrics propose more replicas than maxReplicas.

    `proposed` is the highest number that the metrics propose in this period.
    """

    begin: Instant
    end: Instant
    proposed: int


class _Skip(Struct, frozen=True):
    """The data that the skipped syncs would have read: the metrics and the number of replicas.

    The skipped syncs follow the sync that was executed at `since`.
    """

    since: Instant
    metrics: tuple[Metric, ...]
    replicas: int


class _PendingRescale(Struct, frozen=True):
    """A scale patch in flight, with the status to be written after the patch succeeds."""

    command: PatchObject
    rescale: Rescale
    draft: StatusDraft
    metrics: list[Json] | None


@dataclass(slots=True)
class Autoscaler:
    """A HorizontalPodAutoscaler with the pods that its target's selector matches.

    `due` is the time of the next sync, None if no sync follows until an object changes.
    """

    view: HorizontalPodAutoscaler
    config: HorizontalPodAutoscalerConfig
    first_sync: Instant
    due: Instant | None = None
    selector: LabelSelector | None = None
    pods: dict[str, Pod] = field(default_factory=dict)
    is_stale: bool = True  # the metrics must be computed anew
    rivals: tuple[int, list[str]] = (
        -1,
        [],
    )  # (generation of the selectors, keys of the autoscalers that select the same pods)
    pending: _PendingRescale | None = None
    history: ScaleHistory = field(init=False)
    _metrics: tuple[Metric, ...] = ()
    _readings: PodReadings = field(default_factory=PodReadings)
    _skip: _Skip | None = None
    _last_sync: Instant | None = None
    _shortages: list[UnmetProposal] = field(default_factory=list)  # those that have ended
    _shortage: UnmetProposal | None = None  # its `end` is the last executed sync

    def __post_init__(self) -> None:
        self.history = ScaleHistory(self.config.downscale_stabilization)

    @property
    def ref(self) -> ObjectRef:
        """Object reference of the HorizontalPodAutoscaler."""
        meta = self.view.metadata
        return ObjectRef("HorizontalPodAutoscaler", meta.namespace, meta.name, meta.uid)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics at the last executed sync."""
        return self._metrics

    def scheduled_at_or_after(self, now: Instant) -> Instant:
        """Return the time of the first sync at or after `now` that has not been executed yet."""
        period = self.config.sync_period
        found = self.first_sync + max(0, -(-(now - self.first_sync) // period)) * period
        return found + period if found == self._last_sync else found

    def shortages(self, until: Instant) -> list[UnmetProposal]:
        """Return the periods up to `until` in which the metrics propose more than maxReplicas."""
        lasting = self._shortage
        if lasting is None:
            return self._shortages
        skipped = self._skipped_proposals(lasting.end + self.config.sync_period, until)
        most = max((proposed for _, proposed in skipped), default=0)
        return [*self._shortages, replace(_raised(lasting, most), end=until)]

    # --- sync ----------------------------------------------------------------------------------

    def sync(
        self, targets: ScaleTargets, register: Callable[[LabelSelector], Rivals], now: Instant
    ) -> list[Command]:
        """Execute one sync and set `due`; return the events and the write to send.

        The write is a scale patch or a status write. If nothing changes, no write is returned.

        The function `register` takes the target's pod selector. `register` stores the pod selector
        in `selector` of this autoscaler, and the selected pods in `pods`. The result of `register`
        is a function that returns the keys of all autoscalers that select any of these pods.
        """
        self._recall_skipped(now)
        self._last_sync, self.due = now, now + self.config.sync_period
        draft = StatusDraft.of(self.view.status, now)
        try:
            scale = targets.find(self.view.spec.scale_target_ref, self.view.metadata.namespace)
        except ScaleError as problem:
            why = f"the HPA controller was unable to get the target's current scale: {problem}"
            draft.set_condition(ABLE_TO_SCALE, "FailedGetScale", why, is_true=False)
            self._wait_for_change(now)
            return [event(self.ref, "FailedGetScale", str(problem)), *self._written(draft)]
        why = "the HPA controller was able to get the target's current scale"
        draft.set_condition(ABLE_TO_SCALE, "SucceededGetScale", why, is_true=True)
        self.history.start(scale.replicas, now)
        spec, current = self.view.spec, scale.replicas
        if current == 0 and spec.min_replicas != 0:
            why = "scaling is disabled since the replica count of the target is zero"
            draft.set_condition(SCALING_ACTIVE, "ScalingDisabled", why, is_true=False)
            draft.set_counts(0, 0, None)
            self._wait_for_change(now)
            return self._written(draft)
        if current > spec.max_replicas:
            why = "Current number of replicas above Spec.MaxReplicas"
            return self._scaled(scale, spec.max_replicas, why, draft, None)
        if current < spec.min_replicas:
            why = "Current number of replicas below Spec.MinReplicas"
            return self._scaled(scale, spec.min_replicas, why, draft, None)
        return self._sync_by_metrics(scale, register, draft)

    def _sync_by_metrics(
        self,
        scale: Scale,
        register: Callable[[LabelSelector], Rivals],
        draft: StatusDraft,
    ) -> list[Command]:
        now, current = draft.now, scale.replicas
        refusal = self._refused_selector(scale, register, draft)
        if refusal is not None:
            self._wait_for_change(now)
            return self._failed(draft, current, None, refusal)
        self._refresh_metrics(scale, now)
        outcome = _evaluate(self._metrics, current, now)
        self._note_shortage(outcome.replicas, now)
        problems: list[Command] = [
            event(self.ref, one.reason, one.problem) for one in outcome.failures
        ]
        if outcome.replicas == FAILED:
            first = outcome.failures[0]
            why = f"the HPA was unable to compute the replica count: {first.problem}"
            draft.set_condition(SCALING_ACTIVE, first.reason, why, is_true=False)
            count, total = len(outcome.failures), len(self._metrics)
            error = f"invalid metrics ({count} invalid out of {total}), first error is: "
            commands = self._failed(draft, current, outcome.statuses, error + first.whole)
            self._skip_until_another_state(scale)
            return problems + commands
        why = f"the HPA was able to successfully calculate a replica count from {outcome.metric}"
        draft.set_condition(SCALING_ACTIVE, "ValidMetricFound", why, is_true=True)
        normal = self.history.normalize(self.view.spec, current, outcome.replicas, now)
        draft.set_condition(ABLE_TO_SCALE, *normal.able, is_true=True)
        draft.set_condition(SCALING_LIMITED, *normal.limit, is_true=normal.is_limited)
        if normal.replicas != current:
            why = "All metrics below target"
            if outcome.replicas > current:
                why = f"{outcome.metric} above target"
            elif outcome.replicas == current:
                why = ""
            commands = self._scaled(scale, normal.replicas, why, draft, outcome.statuses)
            return problems + commands
        draft.set_counts(current, current, outcome.statuses)
        self._skip_until_another_state(scale)
        return problems + self._written(draft)

    def _note_shortage(self, proposed: int, now: Instant) -> None:
        """Record whether the metrics propose more replicas (`proposed`) than maxReplicas."""
        known = self._shortage
        if proposed > self.view.spec.max_replicas:
            known = known or UnmetProposal(now, now, proposed)
            self._shortage = replace(_raised(known, proposed), end=now)
        elif known is not None:
            self._shortages.append(replace(known, end=now))
            self._shortage = None

    def _refused_selector(
        self, scale: Scale, register: Callable[[LabelSelector], Rivals], draft: StatusDraft
    ) -> RecordEvent | None:
        """Return an event if the selector is missing or is ambiguous, else None.

        The selector is ambiguous if another autoscaler selects some of the same pods. If the
        selector is missing or ambiguous, all metrics fail.
        """
        selector = format_selector(scale.selector)
        if not selector:
            why = "the HPA target's scale is missing a selector"
            draft.set_condition(SCALING_ACTIVE, "InvalidSelector", why, is_true=False)
            return event(self.ref, "SelectorRequired", "selector is required")
        rivals = register(scale.selector)()
        if len(rivals) > 1:
            listed = " ".join(rivals)
            why = f"pods by selector {selector} are controlled by multiple HPAs: [{listed}]"
            draft.set_condition(SCALING_ACTIVE, "AmbiguousSelector", why, is_true=False)
            return event(self.ref, "AmbiguousSelector", why)
        return None

    def _failed(
        self,
        draft: StatusDraft,
        current: int,
        metrics: list[Json] | None,
        problem: str | RecordEvent,
    ) -> list[Command]:
        draft.set_counts(current, None, metrics)
        first: list[Command] = [] if isinstance(problem, str) else [problem]
        note = problem if isinstance(problem, str) else problem.note
        failure = event(self.ref, "FailedComputeMetricsReplicas", note)
        return [*first, *self._written(draft), failure]

    # --- scaling -------------------------------------------------------------------------------

    def _scaled(
        self, scale: Scale, replicas: int, why: str, draft: StatusDraft, metrics: list[Json] | None
    ) -> list[Command]:
        rescale = Rescale(draft.now, self.ref, scale.ref, scale.replicas, replicas, why)
        command = PatchObject(scale.ref, scale.patch_to(replicas), "scale")
        self.pending = _PendingRescale(command, rescale, draft, metrics)
        return [command]

    def scaled(self) -> list[Command]:
        """Handle the success of the pending scale patch: return an event and the status write."""
        assert self.pending is not None
        pending, self.pending = self.pending, None
        rescale, draft = pending.rescale, pending.draft
        why = f"the HPA controller was able to update the target scale to {rescale.after}"
        draft.set_condition(ABLE_TO_SCALE, "SucceededRescale", why, is_true=True)
        change = rescale.after - rescale.before
        self.history.record(self.view.spec.behavior, change, rescale.at)
        draft.set_counts(rescale.before, rescale.after, pending.metrics)
        draft.set_scaled()
        note = f"New size: {rescale.after}; reason: {rescale.why}"
        done = event(self.ref, "SuccessfulRescale", note, is_warning=False)
        return [done, *self._written(draft)]

    def refused(self, message: str) -> list[Command]:
        """Handle the refusal of the pending scale patch: return an event and the status write."""
        assert self.pending is not None
        pending, self.pending = self.pending, None
        rescale, draft = pending.rescale, pending.draft
        note = f"New size: {rescale.after}; reason: {rescale.why}; error: {message}"
        why = f"the HPA controller was unable to update the target scale: {message}"
        draft.set_condition(ABLE_TO_SCALE, "FailedUpdateScale", why, is_true=False)
        draft.set_counts(rescale.before, None, pending.metrics)
        return [event(self.ref, "FailedRescale", note), *self._written(draft)]

    def _written(self, draft: StatusDraft) -> list[Command]:
        """Return the command that writes the status in `draft`, or [] if no relevant field changed.

        If the configuration sets `refreshes_status`, every field is relevant. Otherwise, only the
        fields that `compared_fields` returns are relevant.
        """
        before, after = self.view.status, draft.status
        if not self.config.refreshes_status and compared_fields(before) == compared_fields(after):
            return []
        patch = status_patch(before, after)
        return [PatchStatus(self.ref, patch)] if patch else []

    # --- skipped syncs -------------------------------------------------------------------------

    def _refresh_metrics(self, scale: Scale, now: Instant) -> None:
        """Compute the metrics again if `is_stale` is set or the pods of a metric are outdated."""
        expired = any(at <= now for one in self._metrics for at in one.until())
        if self.is_stale or expired:
            load: WorkloadLoad = {**scale.load, **self.config.loads.get(scale.key, {})}
            pods = self.pods.values()
            self._metrics = metrics_of(self.view, pods, load, self.config, now, self._readings)
            self.is_stale = False

    def _wait_for_change(self, now: Instant) -> None:
        """Record that there is no proposal at `now`; skip the syncs until an object changes.

        If `refreshes_status` is configured, no sync is skipped.
        """
        self._note_shortage(0, now)
        if not self.config.refreshes_status:
            self.due = None

    def _skip_until_another_state(self, scale: Scale) -> None:
        """Set `due` to the first sync whose result may differ from the last sync's result."""
        if self.config.refreshes_status or self._last_sync is None:
            return
        state = self._state(scale.replicas, self._last_sync)
        if state is None:
            return
        self._skip = _Skip(self._last_sync, self._metrics, scale.replicas)
        expiry = min((at for one in self._metrics for at in one.until()), default=None)
        at = self._next_with_other_load(self._last_sync)
        left = SKIPPED_MAX
        while left > 0 and at is not None and (expiry is None or at < expiry):
            if self._state(scale.replicas, at) != state:
                break
            skipped = self._syncs_in_state(state, scale.replicas, at, expiry, left)
            left -= skipped
            at = self._next_with_other_load(at + (skipped - 1) * self.config.sync_period)
        self.due = at
        if expiry is not None:
            last = self.scheduled_at_or_after(expiry)
            self.due = last if at is None else min(at, last)

    def _syncs_in_state(
        self, state: str, replicas: int, at: Instant, expiry: Instant | None, limit: int
    ) -> int:
        """Return the number of consecutive syncs with the given state, beginning at the time `at`.

        The state of a sync is the result of `_state`. The sync at `at` must have the state `state`,
        and is always counted. A metric expires at `expiry`. Later syncs are not counted if they are
        at or after `expiry`. The result is at most `limit`. The result may be too low, because
        syncs that are not counted may have the same state.
        """
        if len(self._metrics) != 1:
            return 1
        metric = self._metrics[0]
        if metric.curve is None or not metric.follows_load(replicas):
            return 1
        ends = [end for end in (metric.curve.linear_until(at), expiry) if end is not None]
        period = self.config.sync_period
        # Invariant: the first `known` syncs are in the state, and at most `end` syncs are counted.
        known, end = 1, min([limit, *(-(-(one - at) // period) for one in ends)])
        while known < end:
            middle = (known + end) // 2
            if self._state(replicas, at + middle * period) == state:
                known = middle + 1
            else:
                end = middle
        return known

    def _next_with_other_load(self, at: Instant) -> Instant | None:
        """Return the time of the first sync after the time `at` that may see a changed load.

        Returns None if the load does not change after `at`.
        """
        following = at + self.config.sync_period
        found: Instant | None = None
        for metric in self._metrics:
            if metric.curve is None:
                continue
            until = metric.curve.constant_until(at)
            if until is None:
                continue
            due = max(following, self.scheduled_at_or_after(until))
            found = due if found is None else min(found, due)
        return found

    def _state(self, replicas: int, at: Instant) -> str | None:
        """Return the state, such as "on target", of a sync at the time `at`.

        `replicas` is the number of replicas at this time. Returns None if this sync would scale the
        workload.
        """
        proposed = _proposed(self._metrics, replicas, at)
        if proposed == FAILED:
            return "failed"
        if proposed == replicas:
            return "on target"
        if proposed < replicas == self.view.spec.min_replicas:
            return "at the minimum"
        if proposed > replicas == self.view.spec.max_replicas:
            return "at the maximum"
        return None

    def _recall_skipped(self, now: Instant) -> None:
        """Add the recommendations of the skipped syncs before `now` to the history."""
        if self._skip is None:
            return
        window = now - self.history.window(self.view.spec.behavior)
        first = self._skip.since + self.config.sync_period
        # Stabilization reads only the recommendations in the window.
        begin = max(first, window) if self._shortage is None else first
        for at, proposed in self._skipped_proposals(begin, now):
            if at >= window:
                self.history.recommend(proposed, at)
            if self._shortage is not None:
                self._shortage = _raised(self._shortage, proposed)
        self._skip = None

    def _skipped_proposals(self, begin: Instant, end: Instant) -> Iterator[tuple[Instant, int]]:
        """Yield the time and the proposal of each skipped sync from `begin` to before `end`.

        Syncs at which the metrics fail are left out.
        """
        skip = self._skip
        if skip is None:
            return
        at = self.scheduled_at_or_after(begin)
        while at < end:
            proposed = _proposed(skip.metrics, skip.replicas, at)
            if proposed != FAILED:
                yield at, proposed
            at += self.config.sync_period


def _raised(shortage: UnmetProposal, proposed: int) -> UnmetProposal:
    """Return `shortage` with its highest proposal raised to at least `proposed`."""
    return replace(shortage, proposed=max(shortage.proposed, proposed))


class _Evaluation(Struct):
    """The result of all metrics together; `replicas` is FAILED if the target must not be changed.

    `metric` is the name of the metric with the highest proposal.
    """

    replicas: int
    metric: str
    statuses: list[Json]
    failures: list[FailedMetricError]


def _evaluate(metrics: tuple[Metric, ...], current: int, at: Instant) -> _Evaluation:
    """Return the highest proposal at the time `at`, and the statuses and failures of the metrics.

    `current` is the current number of replicas.
    """
    highest, name, statuses, failures = 0, "", [], []
    for metric in metrics:
        try:
            proposal = metric.propose(current, at)
        except FailedMetricError as failure:
            failures.append(failure)
            statuses.append({"type": ""})
            continue
        statuses.append(metric.status(proposal))
        if highest == 0 or proposal.replicas > highest:
            highest, name = proposal.replicas, metric.name
    replicas = _agreed(highest, len(failures), len(metrics), current)
    return _Evaluation(replicas, name, statuses, failures)


def _proposed(metrics: tuple[Metric, ...], current: int, at: Instant) -> int:
    """Return the `replicas` that `_evaluate` would return for the same arguments.

    This function is faster than `_evaluate`, because it does not build the statuses.
    """
    highest, failures = 0, 0
    for metric in metrics:
        try:
            highest = max(highest, metric.propose(current, at).replicas)
        except FailedMetricError:
            failures += 1
    return _agreed(highest, failures, len(metrics), current)


def _agreed(highest: int, failures: int, total: int, current: int) -> int:
    """Return `highest`, the highest proposal of the metrics, or FAILED if it must not be applied.

    `failures` is the number of failed metrics, out of `total`. The result is FAILED if all metrics
    failed, or if some failed and `highest` is less than `current`.
    """
    return FAILED if failures >= total or (failures and highest < current) else highest
