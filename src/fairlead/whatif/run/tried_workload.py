"""TriedWorkloads: the workloads whose next pods a change may cause to be refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json, mapping
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
    Kind,
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
_POLICIES: Final = {  # {kind of the bindings: kind of the policies}
    MUTATING_ADMISSION_POLICY_BINDING: MUTATING_ADMISSION_POLICY,
    VALIDATING_ADMISSION_POLICY_BINDING: VALIDATING_ADMISSION_POLICY,
}
_OF_ONE_NAMESPACE: Final = (LIMIT_RANGE, RESOURCE_QUOTA, SERVICE_ACCOUNT)
_AUTOSCALERS: Final = "verticalpodautoscalers.autoscaling.k8s.io"  # they set requests
_WORKLOADS: Final = (
    DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB,
)  # fmt: skip


class TriedWorkloads(Struct, frozen=True):
    """The workloads for which a trial creates the next pod.

    These are all workloads if `is_all` is set, or else the workloads in `namespaces` and in
    `named`.
    """

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


class _ParamRef(Struct, frozen=True):
    """The paramRef of a policy's binding: it says which objects are parameters of the policy.

    If the paramRef has a selector, `name` is "": each object may be a parameter, because the change
    may alter the labels of the object. If `namespace` is "", the parameters for a pod are in the
    pod's namespace.
    """

    group: str
    kind: str
    namespace: str
    name: str

    def selects(self, one: Manifest) -> bool:
        """Return whether `one` may be a parameter."""
        is_of_kind = (self.group, self.kind) == (one.kind.group, one.kind.kind)
        is_named = self.name in ("", one.ref.name)
        is_inside = not one.kind.namespaced or self.namespace in ("", one.ref.namespace)
        return is_of_kind and is_named and is_inside


def tried_workloads(
    written: Collection[Manifest], deleted: Collection[Manifest], present: Iterable[Manifest]
) -> TriedWorkloads | None:
    """Return the workloads whose next pods may be refused because of a change, or None.

    `written` and `deleted` are the objects that the change writes and deletes, and `present` are
    the objects before the change. The result includes each workload that the change writes, because
    the workload may create its next pod only later. For example, a StatefulSet with the strategy
    OnDelete creates a new pod only when an old pod is deleted. The result is None if the change can
    cause no refusal.
    """
    namespaces, named = set[str](), set[WorkloadRef]()
    param_refs = list(_param_refs(present))
    for objects, is_deletion in ((written, False), (deleted, True)):
        for one in objects:
            for reference in (each for each in param_refs if each.selects(one)):
                if reference.namespace or not one.kind.namespaced:
                    return TriedWorkloads(is_all=True)
                namespaces.add(one.ref.namespace)
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


def _param_refs(present: Iterable[Manifest]) -> Iterator[_ParamRef]:
    """Yield the paramRefs of the bindings of admission policies among the objects `present`.

    Policies and bindings that the change itself writes are not read: their change concerns all
    workloads anyway.
    """
    bindings: list[Manifest] = []
    kinds: dict[tuple[Kind, str], Json] = {}
    for one in present:
        if one.kind in _POLICIES:
            bindings.append(one)
        elif one.kind in _POLICIES.values():
            kinds[one.kind, one.ref.name] = mapping(one.value, "spec", "paramKind")
    for one in bindings:
        spec = mapping(one.value, "spec")
        kind = kinds.get((_POLICIES[one.kind], spec.get("policyName", "")))
        if kind and (reference := mapping(spec, "paramRef")):
            yield _ParamRef(
                kind.get("apiVersion", "").rpartition("/")[0],
                kind.get("kind", ""),
                reference.get("namespace") or "",
                reference.get("name") or "",
            )
