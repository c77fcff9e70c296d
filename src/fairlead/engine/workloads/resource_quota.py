"""ResourceQuotas: keeps status.used of every quota equal to the usage of its namespace.

Admission adds admitted objects to the quota's status and enforces the limits. This controller sets
the status of a new quota, subtracts deleted objects, and corrects errors. The controller only
decides which quotas to recount and at which time; the API server counts the objects
(`UpdateQuotaStatus`). A refused write is repeated.

upstream: pkg/controller/resourcequota/resource_quota_controller.go:syncResourceQuota
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Pod, Unstructured
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import Command, ObjectRef, UpdateQuotaStatus
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue

AT_ONCE: Final[Instant] = 0
RETRY_AFTER: Final[DurationNs] = seconds(1)
_KIND: Final = "ResourceQuota"


class ResourceQuotas(Struct):
    """The quota controller. It ignores changes in namespaces without quotas."""

    issuer: ClassVar[Issuer] = controller_account("resourcequota-controller")
    interest: ClassVar[Interest] = Interest(succeeded=(), failed=(UpdateQuotaStatus,))

    _quotas: dict[str, dict[str, ObjectRef]] = field(default_factory=dict)  # by namespace, name
    _changed: dict[str, None] = field(default_factory=dict)  # namespaces
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)  # namespaces

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Record the namespaces whose usage may have changed."""
        match stimulus:
            case ObjectChanged(one):
                self._see(one, is_gone=False)
            case ObjectDeleted(one):
                self._see(one, is_gone=True)
            case ObjectsLoaded():
                for some in stimulus.grouped:
                    one = some[0] if isinstance(some, Replicas) else some
                    self._see(one, is_gone=False)
            case CommandFailed(UpdateQuotaStatus(target), reason):
                if reason is not FailureReason.NOT_FOUND:
                    self._retries.add(now + RETRY_AFTER, target.namespace)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        namespace = pod.metadata.namespace
        if namespace in self._quotas:
            self._changed[namespace] = None
        return ()

    def next_deadline(self) -> Instant | None:
        """Return 0 (immediately) if usage may have changed, else the time of the next retry.

        Returns None if neither applies.
        """
        return AT_ONCE if self._changed else self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return a recount for each quota of a namespace that has changed or is due for a retry."""
        changed = self._changed | dict.fromkeys(self._retries.pop_due(now))
        self._changed = {}
        quotas = (ref for name in changed for ref in self._quotas.get(name, {}).values())
        return [UpdateQuotaStatus(ref) for ref in quotas]

    def _see(self, one: ApiObject, *, is_gone: bool) -> None:
        namespace = one.metadata.namespace
        if isinstance(one, Unstructured) and one.kind == _KIND:
            meta = one.metadata
            quotas = self._quotas.setdefault(namespace, {})
            if is_gone:
                quotas.pop(meta.name, None)
            else:
                quotas[meta.name] = ObjectRef(_KIND, namespace, meta.name, meta.uid)
        if namespace in self._quotas:
            self._changed[namespace] = None
