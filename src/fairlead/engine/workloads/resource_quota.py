"""ResourceQuotas: keeps status.used of every quota equal to the usage of its namespace.

Admission adds admitted objects to the quota's status and enforces the limits. This controller sets
the status of a new quota, subtracts deleted objects, and corrects errors. The controller decides
which quotas to recount and when. The API server counts the objects (`UpdateQuotaStatus`).

A terminating pod stops counting when its grace period is over, even if its node is lost and the pod
still exists. In this case, no object changes when the grace period ends. Upstream recounts all
quotas every 5 minutes. This controller recounts at the same times, but only in namespaces in which
the grace period of a terminating pod has ended since the previous time.

upstream: pkg/controller/resourcequota/resource_quota_controller.go:syncResourceQuota, enqueueAll;
config/v1alpha1/defaults.go (ResourceQuotaSyncPeriod);
pkg/quota/v1/evaluator/core/pods.go:QuotaV1Pod
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Pod, Unstructured
from fairlead.api.pods.facts import is_terminal
from fairlead.api.pods.replicas import Replicas
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.command import Command, ObjectRef, UpdateQuotaStatus
from fairlead.engine.core.instant import DurationNs, Instant, earliest, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig

IMMEDIATELY: Final[Instant] = 0
SYNC_PERIOD: Final[DurationNs] = seconds(5 * 60)
_KIND: Final = "ResourceQuota"


class ResourceQuotas(Struct):
    """The quota controller, which ignores changes in namespaces without quotas.

    The controller starts at `start`. When the grace period of a terminating pod ends, the quotas of
    its namespace are recounted at the next of the times `start` + n * SYNC_PERIOD. A refused write
    is repeated with exponential backoff (`WorkloadsConfig.retry_after`).
    """

    issuer: ClassVar[Issuer] = controller_account("resourcequota-controller")
    interest: ClassVar[Interest] = Interest(succeeded=(), failed=(UpdateQuotaStatus,))

    start: Instant = 0
    config: WorkloadsConfig = WorkloadsConfig()
    _quotas: dict[str, dict[str, ObjectRef]] = field(default_factory=dict)  # by namespace, name
    _changed: dict[str, None] = field(default_factory=dict)  # namespaces to recount
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)  # namespaces
    _refusals: dict[ObjectRef, int] = field(default_factory=dict)  # since the quota last changed
    # namespaces of terminating pods, by the time of the first periodic recount after the grace
    # period, then by pod key
    _stuck_at: dict[Instant, dict[str, str]] = field(default_factory=dict)
    _recount_of: dict[str, Instant] = field(default_factory=dict)  # by key of a terminating pod

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record the namespaces whose usage may have changed."""
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            self._observe(stimulus.object, is_gone=False)
            return []
        if type(stimulus) is ObjectDeleted:
            self._observe(stimulus.object, is_gone=True)
            return []
        match stimulus:
            case ObjectsLoaded():
                for some in stimulus.grouped:
                    one = some[0] if isinstance(some, Replicas) else some
                    self._observe(one, is_gone=False)
                for pod in stimulus.ending_pods:
                    self._observe_pod(pod)
            case CommandFailed(UpdateQuotaStatus(target), reason):
                if reason is not FailureReason.NOT_FOUND:
                    refusals = self._refusals[target] = self._refusals.get(target, 0) + 1
                    self._retries.add(now + self.config.retry_after(refusals), target.namespace)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        if pod.metadata.namespace in self._quotas:
            self._changed[pod.metadata.namespace] = None
            self._observe_pod(pod)
        return ()

    def next_deadline(self) -> Instant | None:
        """Return 0 (immediately) if usage may have changed, else the time of the next recount.

        Returns None if no recount is planned.
        """
        if self._changed:
            return IMMEDIATELY
        return earliest(self._retries.next_due(), *self._stuck_at)

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return commands that recount all quotas of some namespaces.

        The quotas of a namespace are recounted if its usage may have changed or its recount is due.
        """
        changed = self._changed | dict.fromkeys(self._retries.pop_due(now))
        for due in [due for due in self._stuck_at if due <= now]:
            stuck = self._stuck_at.pop(due)
            changed |= dict.fromkeys(stuck.values())
            for key in stuck:
                del self._recount_of[key]
        self._changed = {}
        quotas = (ref for name in changed for ref in self._quotas.get(name, {}).values())
        return [UpdateQuotaStatus(ref) for ref in quotas]

    def _observe(self, one: ApiObject, *, is_gone: bool) -> None:
        namespace = one.metadata.namespace
        if namespace in self._quotas and type(one) is Pod:
            self._observe_pod(one, is_gone=is_gone)
        if type(one) is Unstructured and one.kind == _KIND:
            meta = one.metadata
            quotas = self._quotas.setdefault(namespace, {})
            ref = ObjectRef(_KIND, namespace, meta.name, meta.uid)
            self._refusals.pop(ref, None)
            if is_gone:
                quotas.pop(meta.name, None)
            else:
                quotas[meta.name] = ref
        if namespace in self._quotas:
            self._changed[namespace] = None

    def _observe_pod(self, pod: Pod, *, is_gone: bool = False) -> None:
        """Plan the first periodic recount after the grace period of `pod`, if it is terminating.

        If `is_gone` is set, the pod was deleted, and its planned recount is dropped.
        """
        meta, key = pod.metadata, pod.key
        grace_s = meta.deletion_grace_period_seconds
        before = self._recount_of.pop(key, None)
        if before is not None:
            del self._stuck_at[before][key]
            if not self._stuck_at[before]:
                del self._stuck_at[before]
        if is_gone or not meta.deletion_timestamp or grace_s is None or is_terminal(pod):
            return
        if meta.namespace in self._quotas:
            end = parse_timestamp(meta.deletion_timestamp) + seconds(grace_s)
            due = self.start + (max(0, end - self.start) // SYNC_PERIOD + 1) * SYNC_PERIOD
            self._recount_of[key] = due
            self._stuck_at.setdefault(due, {})[key] = meta.namespace
