"""TriedWorkloads: the workloads whose next pods a change may cause to be refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct

from fairlead.apiserver.kind import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    LIMIT_RANGE,
    MUTATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING,
    NAMESPACE,
    PRIORITY_CLASS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
)
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.snapshot.manifest import Manifest

# The kinds of cluster-scoped objects that decide which pods are admitted.
_OF_ALL_NAMESPACES: Final = (
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    MUTATING_ADMISSION_POLICY,
    MUTATING_ADMISSION_POLICY_BINDING,
    VALIDATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING,
)
_OF_ONE_NAMESPACE: Final = (LIMIT_RANGE, RESOURCE_QUOTA, SERVICE_ACCOUNT)
_AUTOSCALERS: Final = "verticalpodautoscalers.autoscaling.k8s.io"  # they set requests
_WORKLOADS: Final = (
    DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB,
)  # fmt: skip


class TriedWorkloads(Struct, frozen=True):
    """The workloads whose next pods are tried: all, those in `namespaces`, or those in `named`."""

    is_all: bool = False
    namespaces: frozenset[str] = frozenset()
    named: frozenset[WorkloadRef] = frozenset()

    def __contains__(self, workload: WorkloadRef) -> bool:
        """Return whether the next pod of `workload` is tried."""
        return self.is_all or workload.namespace in self.namespaces or workload in self.named

    @property
    def scope(self) -> Collection[str] | None:
        """The namespaces of the tried workloads; None if they may be in any namespace."""
        return None if self.is_all else self.namespaces | {one.namespace for one in self.named}


def tried_workloads(
    written: Iterable[Manifest], deleted: Iterable[Manifest]
) -> TriedWorkloads | None:
    """Return the workloads whose next pods a change may cause to be refused; None if there is none.

    `written` and `deleted` are the objects that the change writes and deletes. A changed workload
    may create its next pod only later, for example because its pods are updated when they are
    deleted.
    """
    namespaces, named = set[str](), set[WorkloadRef]()
    for objects, is_deletion in ((written, False), (deleted, True)):
        for one in objects:
            if one.kind is PRIORITY_CLASS and not (is_deletion or one.value.get("globalDefault")):
                # A pod is refused because of an absent class, not because of a value. A new default
                # changes the priority of pods that name no class, and so which quotas count them.
                continue
            if one.kind in _OF_ALL_NAMESPACES:
                return TriedWorkloads(is_all=True)
            if one.kind in _OF_ONE_NAMESPACE or one.kind.resource == _AUTOSCALERS:
                namespaces.add(one.ref.namespace)
            elif one.kind is NAMESPACE and not is_deletion:
                namespaces.add(one.ref.name)
            elif one.kind in _WORKLOADS and not is_deletion:
                named.add(WorkloadRef(one.kind.kind, one.ref.namespace, one.ref.name))
    found = TriedWorkloads(namespaces=frozenset(namespaces), named=frozenset(named))
    return found if namespaces or named else None
