"""Kept nodes: the nodes that a what-if names, which no autoscaler may remove before the change.

A what-if makes its change when the cluster has come to rest. An autoscaler may remove nodes before
the change. If it removed a node that the change names, the question would have no answer. Therefore
both runs begin with an annotation on the named nodes that prevents their removal. The change
removes the annotation. In the run without the change, the nodes keep the annotation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from fairlead.apiserver.kind import NODE
from fairlead.engine.core.command import ObjectRef, PatchObject
from fairlead.whatif.change.cluster_change import ClusterChange, deleted_nodes
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.samples import samples


def named_nodes(change: ClusterChange, initial: Iterable[Manifest]) -> list[str]:
    """Return the nodes in `initial` that `change` drains, cordons, fails or deletes by name.

    Nodes that only match a selector are not included. The names are sorted.
    """
    deleted = deleted_nodes(change.delete)
    stated = {*change.drain, *change.cordon, *change.failures.fail_node, *deleted}
    return sorted({one.ref.name for one in samples(initial) if one.kind is NODE} & stated)


def keep_nodes(
    initial: Iterable[Manifest], names: Collection[str], annotation: str
) -> tuple[Manifests, tuple[ScriptedStep, ...]]:
    """Return (`initial` with `annotation` on the nodes in `names`, the steps that remove it).

    A node that already has the annotation keeps it.
    """
    kept: list[Manifest | ReplicaManifests] = []
    steps: list[ScriptedStep] = []
    for one in entries_of(initial):
        if isinstance(one, Manifest) and one.kind is NODE and one.ref.name in names:
            metadata = one.value["metadata"]
            annotations = metadata.get("annotations", {})
            if annotation not in annotations:
                metadata = {**metadata, "annotations": {**annotations, annotation: "true"}}
                kept.append(replace(one, content={**one.value, "metadata": metadata}))
                steps.append(_removal(one.ref, annotation))
                continue
        kept.append(one)
    return Manifests(kept), tuple(steps)


def _removal(node: ObjectRef, annotation: str) -> ScriptedStep:
    patch = PatchObject(node, {"metadata": {"annotations": {annotation: None}}})
    return ScriptedStep(0, (patch,), annotation, f"Node {node.name}")
