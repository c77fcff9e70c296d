"""ServedResources: NodePools and NodeClaims as custom resources of an API server.

    read    NodePools and NodeOverlays, which users own;
            NodeClaims that a user has created or deleted, or that an earlier process created
    write   NodeClaims, with the finalizer that keeps a deleted NodeClaim until its drain ends;
            the status of NodePools (resources and conditions), and the hash of their templates

A failed patch or deletion is repeated every RETRY_NS until it succeeds or the object is gone. A
repeated patch of a status contains the current status, not the status of the failed patch.

The NodeClass of every NodePool counts as Ready. The hash of a NodePool's template differs from
upstream's. Only the equality of two hashes has a meaning.

upstream: pkg/controllers/nodepool/{counter,hash,readiness,validation}/controller.go,
pkg/controllers/nodeclaim/lifecycle/controller.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.api.codec import DecodeError, as_json, decode_as, without_nulls
from fairlead.api.finalizer import TERMINATION
from fairlead.api.json import Json
from fairlead.api.objects import PodCondition, Unstructured
from fairlead.api.quantity import Format, Quantity, canonical, parse_quantity
from fairlead.api.timestamp import parse_duration
from fairlead.engine.autoscaling.karpenter.apis import (
    INITIALIZED_CONDITION,
    LAUNCHED,
    NEVER,
    REGISTERED_CONDITION,
    NodeClaim,
    NodeOverlay,
    NodePool,
    with_lifetime,
)
from fairlead.engine.autoscaling.karpenter.labels import (
    GROUP,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
)
from fairlead.engine.autoscaling.karpenter.state.cluster import KarpenterCluster
from fairlead.engine.autoscaling.karpenter.template_hash import template_hash, with_hash
from fairlead.engine.core.command import (
    Command,
    Condition,
    CreateObject,
    DeleteObject,
    ObjectRef,
    PatchObject,
    PatchStatus,
    RecordEvent,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds

RETRY_NS: Final[DurationNs] = seconds(1)
_API: Final = "karpenter.sh/v1"
ObjectWrite = PatchStatus | PatchObject | DeleteObject
_VIEWS: Final[dict[str, type[NodePool | NodeClaim | NodeOverlay]]] = {
    "NodePool": NodePool,
    "NodeClaim": NodeClaim,
    "NodeOverlay": NodeOverlay,
}
OWN_KINDS: Final = ("NodeClaim", "NodePool")
_COUNTED: Final = ("cpu", "ephemeral-storage", "memory", "pods")
_READY: Final = "Ready"
_OF_READINESS: Final = (LAUNCHED, REGISTERED_CONDITION, INITIALIZED_CONDITION)
_POOL_CONDITIONS: Final = ("ValidationSucceeded", "NodeClassReady", _READY)
_HEALTHY: Final = "NodeRegistrationHealthy"


def karpenter_view(obj: Unstructured) -> NodePool | NodeClaim | NodeOverlay | None:
    """Return the typed view of a custom resource of Karpenter.

    If the object is a NodePool, the annotations of the view include the hash of its template.
    Returns None if the object is not Karpenter's or its fields are invalid.
    """
    view = _VIEWS.get(obj.kind)
    if view is None or not obj.api_version.startswith(f"{GROUP}/"):
        return None
    parts = {"kind": obj.kind, "spec": obj.spec, "status": obj.status}
    stated = {name: without_nulls(part) for name, part in parts.items() if part is not None}
    try:
        found = decode_as(view, with_lifetime(stated))
        for text in _durations(found):
            parse_duration(text)
    except (DecodeError, ValueError):
        # A schema without validation can hold anything. Karpenter's schemas do not limit the digits
        # of a duration. An object that cannot be read is ignored.
        return None
    found = replace(found, metadata=obj.metadata)
    return with_hash(found, template_hash(found)) if isinstance(found, NodePool) else found


def _durations(obj: NodePool | NodeClaim | NodeOverlay) -> Iterator[str]:
    """Yield the durations in `obj`, except `Never`."""
    stated: tuple[str | None, ...] = ()
    match obj:
        case NodePool(spec=spec):
            template, disruption = spec.template.spec, spec.disruption
            budgets = (one.duration for one in disruption.budgets)
            stated = (disruption.consolidate_after, *budgets)
            stated += (template.expire_after, template.termination_grace_period)
        case NodeClaim(spec=spec):
            stated = (spec.expire_after, spec.termination_grace_period)
    yield from (text for text in stated if text is not None and text != NEVER)


class ServedResources:
    """Keeps NodePools and NodeClaims in the API server equal to Karpenter's state.

    `commands` yields the writes that have become necessary since its last call.
    """

    def __init__(self, cluster: KarpenterCluster) -> None:
        """Start without stored NodeClaims."""
        self._cluster = cluster
        self._claims: dict[str, NodeClaim] = {}
        self._deleting: set[str] = set()
        self._removed_names: set[str] = set()
        self._pools: dict[str, tuple[Json, tuple[Condition, ...]]] = {}
        self._failed: dict[tuple[str, str], tuple[Instant, ObjectWrite]] = {}

    def is_removed(self, name: str) -> bool:
        """Return whether Karpenter has removed the NodeClaim, but the API server still has it."""
        return name in self._removed_names

    def gone(self, name: str) -> None:
        """Record that the API server has deleted the NodeClaim `name`."""
        self._removed_names.discard(name)
        for key in [key for key, (_, one) in self._failed.items() if one.target.name == name]:
            del self._failed[key]

    # --- failures ----------------------------------------------------------------------------

    def failed(self, command: ObjectWrite, now: Instant) -> None:
        """Schedule a retry of a failed write of a NodeClaim or a NodePool."""
        key = type(command).__name__, command.target.name
        self._failed.setdefault(key, (now + RETRY_NS, command))

    def delete_again(self, name: str, now: Instant) -> None:
        """Schedule a retry of the deletion of a removed NodeClaim that the API server still has."""
        self.failed(DeleteObject(_ref("NodeClaim", name), why="karpenter"), now)

    def next_due(self) -> Instant | None:
        """Return the time of the next retry of a failed write; None if no write has failed."""
        return min((due for due, _ in self._failed.values()), default=None)

    def repeated(self, now: Instant) -> Iterator[Command]:
        """Yield the due retries of failed writes, except writes that are no longer needed."""
        for key in [key for key, (due, _) in self._failed.items() if due <= now]:
            _, command = self._failed.pop(key)
            yield from self._repeated(command)

    def _repeated(self, command: ObjectWrite) -> Iterator[Command]:
        name = command.target.name
        if command.target.kind == "NodePool":
            self.pool_changed(name)
        elif name in self._removed_names:
            yield from _removal(name)
        elif (claim := self._claims.get(name)) is not None:
            is_status = isinstance(command, PatchStatus)
            yield PatchStatus(command.target, _status(claim)) if is_status else command

    def stored(self, claim: NodeClaim) -> None:
        """Record a NodeClaim that exists in the API server."""
        self._claims.setdefault(claim.name, claim)
        if claim.metadata.deletion_timestamp:
            self._deleting.add(claim.name)

    def commands(self) -> Iterator[Command]:
        """Yield the writes that make the stored objects equal to Karpenter's state."""
        for name in [name for name in self._claims if name not in self._cluster.node_claims]:
            yield from self._removed(name)
        for name, claim in self._cluster.node_claims.items():
            if self._claims.get(name) is not claim:
                yield from self._written(claim)
        for pool in self._cluster.node_pools.values():
            yield from self._pool_status(pool)

    # --- NodeClaims --------------------------------------------------------------------------

    def _written(self, claim: NodeClaim) -> Iterator[Command]:
        old = self._claims.get(claim.name)
        ref = _ref("NodeClaim", claim.name)
        if old is None:
            self._removed_names.discard(claim.name)
            yield CreateObject(self._manifest(claim))
        elif changed := _changed_metadata(old, claim):
            yield PatchObject(ref, {"metadata": changed})
        self._claims[claim.name] = claim
        if old is None or old.status != claim.status:
            yield PatchStatus(ref, _status(claim))
            yield from _transitions(ref, old, claim)
        if claim.metadata.deletion_timestamp and claim.name not in self._deleting:
            self._deleting.add(claim.name)
            yield DeleteObject(ref, why="karpenter")

    def _removed(self, name: str) -> Iterator[Command]:
        """Forget the NodeClaim `name`; yield the commands that remove it from the API server."""
        claim = self._claims.pop(name)
        self._removed_names.add(name)
        deletion, release = _removal(name)
        if name not in self._deleting:
            yield deletion
        self._deleting.discard(name)
        if claim.status.provider_id or claim.metadata.finalizers:
            yield release

    def _manifest(self, claim: NodeClaim) -> Json:
        metadata: Json = {
            "name": claim.name,
            "labels": dict(claim.metadata.labels),
            "annotations": dict(claim.metadata.annotations),
            "finalizers": [TERMINATION],
        }
        pool = self._cluster.node_pools.get(claim.node_pool)
        if pool is not None and pool.metadata.uid:
            metadata["ownerReferences"] = [
                {
                    "apiVersion": _API,
                    "kind": "NodePool",
                    "name": pool.name,
                    "uid": pool.metadata.uid,
                    "blockOwnerDeletion": True,
                }
            ]
        spec = {"requirements": [], **as_json(claim.spec), "expireAfter": claim.spec.expire_after}
        return {"apiVersion": _API, "kind": "NodeClaim", "metadata": metadata, "spec": spec}

    # --- NodePools ---------------------------------------------------------------------------

    def _pool_status(self, pool: NodePool) -> Iterator[Command]:
        """Yield a write of the pool's status if its resources or conditions have changed.

        The first call for a pool, and the first call after `pool_changed`, also yield a write of
        the hash of the pool's template.
        """
        claims = [one for one in self._cluster.node_claims.values() if one.node_pool == pool.name]
        resources = _resources([one for one in claims if not one.metadata.deletion_timestamp])
        conditions = [Condition(kind, "True", kind, "") for kind in _POOL_CONDITIONS]
        if any(one.is_true(REGISTERED_CONDITION) for one in claims):
            conditions.append(Condition(_HEALTHY, "True", _HEALTHY, ""))
        elif all(one.type != _HEALTHY for one in pool.status.conditions):
            conditions.append(Condition(_HEALTHY, "Unknown", "AwaitingReconciliation", ""))
        status = resources, tuple(conditions)
        ref = _ref("NodePool", pool.name)
        if pool.name not in self._pools:
            names = (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)
            hashes = {name: pool.metadata.annotations.get(name) for name in names}
            yield PatchObject(ref, {"metadata": {"annotations": hashes}})
        if self._pools.get(pool.name) != status:
            self._pools[pool.name] = status
            yield PatchStatus(ref, {"resources": resources}, tuple(conditions))

    def pool_changed(self, name: str) -> None:
        """Make the next call of `commands` write the status and hash of the NodePool `name`."""
        self._pools.pop(name, None)


def _ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef(kind, "", name)


def _removal(name: str) -> tuple[DeleteObject, PatchObject]:
    """Return the commands that delete a NodeClaim and remove its finalizer."""
    ref = _ref("NodeClaim", name)
    release = PatchObject(ref, {"metadata": {"finalizers": None}})
    return DeleteObject(ref, why="karpenter"), release


def _resources(claims: list[NodeClaim]) -> Json:
    """Return the NodeClaims' total capacity; its entry `nodes` is the number of NodeClaims."""
    # upstream: pkg/controllers/nodepool/counter/controller.go:BaseResources
    total = dict.fromkeys(_COUNTED, 0)
    for claim in claims:
        for name, text in claim.status.capacity.items():
            total[name] = total.get(name, 0) + parse_quantity(text).nano
    return {**_shown(total), "nodes": str(len(claims))}


def _shown(nanos: Mapping[str, int]) -> Json:
    """Return amounts, given in billionths, as quantities. Amounts of bytes get binary suffixes."""
    binary = ("memory", "ephemeral-storage", "hugepages-")
    return {
        name: canonical(
            Quantity(
                nano=amount,
                format=Format.BINARY_SI if name.startswith(binary) else Format.DECIMAL_SI,
            )
        )
        for name, amount in nanos.items()
    }


def _status(claim: NodeClaim) -> Json:
    status = claim.status
    amounts = {
        name: _shown({one: parse_quantity(text).nano for one, text in resources.items()})
        for name, resources in (("capacity", status.capacity), ("allocatable", status.allocatable))
    }
    conditions = [as_json(one) for one in _conditions(claim)]
    return {**as_json(status), **amounts, "conditions": conditions}


def _conditions(claim: NodeClaim) -> Iterator[PodCondition]:
    """Yield the NodeClaim's conditions, including missing ones as Unknown; Ready is last."""
    # upstream: operatorpkg status/condition_set.go: Ready depends on the conditions of a launch
    known = {one.type: one for one in claim.status.conditions}
    waiting = [kind for kind in _OF_READINESS if kind not in known]
    created = claim.metadata.creation_timestamp
    for kind in waiting:
        yield PodCondition(
            type=kind,
            status="Unknown",
            reason="AwaitingReconciliation",
            message="object is awaiting reconciliation",
            last_transition_time=created,
        )
    yield from (one for one in claim.status.conditions if one.type != _READY)
    yield PodCondition(
        type=_READY,
        status="Unknown" if waiting else "True",
        reason="ReconcilingDependents" if waiting else _READY,
        message=", ".join(f"{kind}=Unknown" for kind in waiting),
        last_transition_time=created
        if waiting
        else max(known[kind].last_transition_time for kind in _OF_READINESS),
    )


def _changed_metadata(old: NodeClaim, claim: NodeClaim) -> Json:
    """Return the fields of metadata to patch when `claim` replaces `old`.

    The result contains the labels if they have changed. A NodeClaim that a user created lacks
    Karpenter's finalizer. If such a NodeClaim has just been launched, the result also contains the
    finalizers of the NodeClaim, with Karpenter's finalizer added.
    """
    changed: Json = {}
    if old.metadata.labels != claim.metadata.labels:
        changed["labels"] = dict(claim.metadata.labels)
    finalizers = old.metadata.finalizers
    if not old.status.provider_id and claim.status.provider_id and TERMINATION not in finalizers:
        changed["finalizers"] = [*finalizers, TERMINATION]
    return changed


def _transitions(ref: ObjectRef, old: NodeClaim | None, claim: NodeClaim) -> Iterator[Command]:
    """Yield an event for each condition of `claim` that became True."""
    # upstream: operatorpkg status/controller.go:reconcile
    for one in claim.status.conditions:
        if one.status == "True" and (old is None or not old.is_true(one.type)):
            note = (
                f"Status condition transitioned, Type: {one.type}, Status: Unknown -> True, "
                f"Reason: {one.reason}"
            )
            yield RecordEvent(ref, "Normal", one.type, "", note, "karpenter")
