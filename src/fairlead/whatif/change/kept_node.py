"""Kept nodes: the nodes that a what-if names, which no autoscaler may remove before the change.

A what-if makes its change when the cluster has come to rest. An autoscaler may remove nodes before
this time. If an autoscaler removed a node that the change names, the question would have no answer.
Therefore, at the start of both runs, these nodes get an annotation that prevents their removal.
When the change begins, both runs restore the earlier value of the annotation. So the runs differ
only by the change.

Some changes decide which nodes the autoscaler may remove. Such a change is made at the time of the
dump, and no node is kept. If it were made after the cluster has come to rest, the autoscaler would
have removed nodes in both runs before the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json, mapping, text
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import NODE, POD, POD_DISRUPTION_BUDGET
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.drainability import (
    SAFE_LOCAL_VOLUMES,
    SAFE_TO_EVICT,
)
from fairlead.engine.autoscaling.karpenter.apis import NodeClaim, NodePool
from fairlead.engine.autoscaling.karpenter.labels import DO_NOT_DISRUPT, NODE_POOL
from fairlead.engine.core.command import Command, PatchObject
from fairlead.whatif.change.change_script import ChangeScript
from fairlead.whatif.change.cluster_change import ClusterChange, deleted_nodes
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.samples import samples

_ANNOTATIONS: Final = (DO_NOT_DISRUPT, SAFE_TO_EVICT, SAFE_LOCAL_VOLUMES)
"""The annotations of pods that decide whether an autoscaler may remove their node."""
_NO_RULE: Final[tuple[Json, Json]] = ({}, {})


def named_nodes(
    change: ClusterChange, script: ChangeScript, initial: Iterable[Manifest]
) -> list[str]:
    """Return the nodes in `initial` that `change` names, sorted.

    A change names the nodes that it edits, applies, drains, cordons, fails or deletes. A change
    also names the nodes of the NodeClaims that it edits, applies or deletes, and the nodes of the
    NodePools that it deletes. A label selector names a node only if it has the form
    `kubernetes.io/hostname=NODE`. `script` contains the steps of `change`.
    """
    failures, deleted = change.failures, deleted_nodes(change.delete)
    stated = [*change.drain, *change.cordon, *failures.fail_node, *deleted]
    names = {one.removeprefix(f"{HOSTNAME}=") for one in stated}
    names |= {one.ref.name for one in script.written if one.kind is NODE}
    targets = {words.rpartition("/")[2] for words in change.delete}
    deleted_claims = [one for one in script.deleted if one.ref.name in targets]
    for one in (*script.written, *deleted_claims):
        if one.kind.kind == NodeClaim.__name__:
            names.add(text(one.value, "status", "nodeName"))
    pools = {one.ref.name for one in script.deleted if one.kind.kind == NodePool.__name__}
    return sorted(
        one.ref.name
        for one in samples(initial)
        if one.kind is NODE
        if one.ref.name in names or one.metadata.labels.get(NODE_POOL) in pools
    )


def changes_removal(
    written: Iterable[Manifest], deleted: Iterable[Manifest], initial: Iterable[Manifest]
) -> bool:
    """Return whether a change of `initial` decides which nodes may be removed.

    The change writes the objects in `written` and deletes the objects in `deleted`. The result is
    True if the change deletes a PodDisruptionBudget, creates one or changes the spec of one. The
    result is also True if the change alters the `_removal_rule` of another object.
    """
    if any(one.kind is POD_DISRUPTION_BUDGET for one in deleted):
        return True
    rules = {one.ref: _removal_rule(one) for one in written if one.kind is not NODE}
    before = {one.ref: _removal_rule(one) for one in samples(initial) if one.ref in rules}
    for ref, rule in rules.items():
        earlier = before[ref] if ref in before else _rule_if_absent(ref.kind, rule)
        if rule != earlier:
            return True
    return False


def _rule_if_absent(kind: str, rule: object) -> object:
    """Return the assumed earlier rule of an object that has no known earlier version.

    `kind` is the kind of the object, and `rule` is its rule after the change.
    """
    if kind == POD_DISRUPTION_BUDGET.kind:
        return None  # A new budget always decides.
    if kind == POD.kind:
        return _NO_RULE  # The pod is new, or a replica of another pod.
    return rule  # Another new object has no nodes that could be removed.


def _removal_rule(one: Manifest) -> object:
    """Return the parts of `one` that decide which nodes an autoscaler may remove.

    These are the spec of a PodDisruptionBudget, `spec.disruption` of a NodePool, and annotations of
    pods and of pod templates.
    """
    if one.kind is POD_DISRUPTION_BUDGET:
        return mapping(one.value, "spec")
    if one.kind.kind == NodePool.__name__:
        return mapping(one.value, "spec", "disruption")
    template = ("spec", "template", "metadata", "annotations")
    stated = (mapping(one.value, *path) for path in (("metadata", "annotations"), template))
    return tuple({key: found[key] for key in _ANNOTATIONS if key in found} for found in stated)


def keep_nodes(
    initial: Iterable[Manifest], names: Collection[str], annotation: str
) -> tuple[Manifests, tuple[Command, ...]]:
    """Return `initial` with annotated nodes, and the commands that restore the annotations.

    The nodes in `names` get `annotation` with the value "true". Nodes that are being deleted are
    left unchanged.
    """
    kept: list[Manifest | ReplicaManifests] = []
    releases: list[Command] = []
    for one in entries_of(initial):
        if isinstance(one, Manifest) and one.kind is NODE and one.ref.name in names:
            metadata = one.value["metadata"]
            annotations = metadata.get("annotations", {})
            before = annotations.get(annotation)
            if before != "true" and not metadata.get("deletionTimestamp"):
                metadata = {**metadata, "annotations": {**annotations, annotation: "true"}}
                kept.append(replace(one, content={**one.value, "metadata": metadata}))
                releases.append(
                    PatchObject(one.ref, {"metadata": {"annotations": {annotation: before}}})
                )
                continue
        kept.append(one)
    return Manifests(kept), tuple(releases)
