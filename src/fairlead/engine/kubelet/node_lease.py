"""Node leases: written when renewals begin, change or end, and not in between.

The renewals in between follow from the lease itself (`api/lease.py`). Nodes renew at different
instants, each at a phase that follows from its name.

upstream: pkg/kubelet/kubelet.go (nodeLeaseController, 40 s, renewed at a quarter of that),
staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from fairlead.api.lease import NODE_LEASES, RENEWED_EVERY, Renewals, renewals_of
from fairlead.api.objects import Lease, Node
from fairlead.api.timestamp import format_duration, format_micro_time
from fairlead.engine.core.command import CreateObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import DurationNs, Instant

LEASE_DURATION_S: Final = 40
_NS_PER_MICROSECOND: Final = 1_000


def first_renewals(name: str, every: DurationNs, now: Instant) -> Renewals:
    """The renewals of a node that appears at `now`, as if it had been running for long."""
    phase = crc32(name.encode()) * every >> 32
    return renewals_from(now - (now - phase) % every, every)


def renewals_from(first: Instant, every: DurationNs) -> Renewals:
    """Renewals that begin at `first`, to the precision of a MicroTime."""
    return Renewals(first - first % _NS_PER_MICROSECOND, every)


def known_renewals(lease: Lease) -> Renewals | None:
    """The renewals of `lease`; None if they cannot be read."""
    try:
        return renewals_of(lease)
    except ValueError:
        return None


def write_lease(node: Node, lease: Lease | None, renewals: Renewals) -> CreateObject | PatchObject:
    """The command that writes `renewals` into `lease`, or creates one (None)."""
    every = format_duration(renewals.every) if renewals.every else None
    renew_time = format_micro_time(renewals.first)
    if lease is not None:
        meta = lease.metadata
        target = ObjectRef("Lease", meta.namespace, meta.name, meta.uid)
        patch: dict[str, Any] = {"spec": {"renewTime": renew_time}}
        if every or RENEWED_EVERY in meta.annotations:
            patch["metadata"] = {"annotations": {RENEWED_EVERY: every}}
        return PatchObject(target, patch)
    return CreateObject(_manifest(node, every, renew_time))


def _manifest(node: Node, every: str | None, renew_time: str) -> dict[str, Any]:
    meta = node.metadata
    owner = {"apiVersion": "v1", "kind": "Node", "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": meta.name,
            "namespace": NODE_LEASES,
            "ownerReferences": [owner],
            **({"annotations": {RENEWED_EVERY: every}} if every else {}),
        },
        "spec": {
            "holderIdentity": meta.name,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": renew_time,
        },
    }
