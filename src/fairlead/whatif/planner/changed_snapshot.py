"""changed_snapshot: the objects of a snapshot after a change, for plans that place all pods.

A what-if simulates the change on the nodes of the cluster. On these nodes, a rollout may stop
because its new pods find no room. A plan for new nodes needs all pods of the changed workloads, so
it does not simulate the rollout:

    scaled workload                   its replicas change; the baseline of the plan creates the
                                      missing pods and deletes the surplus ones
    workload with a new template      its old pods are removed, and so are the ReplicaSets of a
                                      Deployment with another template; the baseline creates the
                                      new pods
    StatefulSet that creates its      gets all its pods (`missing_pod`), although it would wait
    pods in order                     for a pod that fits on no node of the cluster
    new pod                           is created after the baseline (`missing_pod`)

Pods that a controller would not replace keep their template: pods of a paused Deployment, pods with
the update strategy OnDelete, and pods below the partition of a StatefulSet.

upstream: pkg/controller/deployment/sync.go: getAllReplicaSetsAndSyncRevision,
pkg/controller/statefulset/stateful_set_control.go: updateStatefulSet
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json, mapping, number
from fairlead.api.objects import Pod, StatefulSet
from fairlead.apiserver.kind import (
    DAEMON_SET,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
)
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.engine.core.command import CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.pod_control.pod_template import same_template
from fairlead.engine.workloads.stateful_set.rule import ON_DELETE, first_updated
from fairlead.whatif.change.change_script import ChangeScript, script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.document import Document
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, ReplicaManifests, entries_of
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import Snapshot

_SOURCE: Final = "--apply"
_ROLLED_OUT: Final = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
_WRITES: Final = (CreateObject, PatchObject, DeleteObject)
_Key = tuple[str, str, str]  # kind as in references, namespace and name


class ChangedSnapshot(Struct, frozen=True):
    """A `snapshot` after a change, and `notes` about the change.

    The new `pods` of the change are not in `snapshot`, because they must pass admission.
    `stateful_sets` are the keys (`namespace/name`) of the StatefulSets that the change writes or
    scales. `others` are the other objects that the change writes or scales, as (kind, namespace,
    name).
    """

    snapshot: Snapshot
    pods: tuple[Manifest, ...]
    stateful_sets: frozenset[str]
    others: frozenset[_Key]
    notes: tuple[str, ...]


def changed_snapshot(snapshot: Snapshot, change: ClusterChange, seed: int) -> ChangedSnapshot:
    """Return `snapshot` after `change`, which may apply files, scale workloads and set fields.

    What `change` applies must come from files. If an answer about the result suggests commands,
    these commands contain the options of `change` (`Snapshot.arguments`). Raises InputError as
    `script_of_change` does.
    """
    script, inventory = script_of_change(change, snapshot, seed), snapshot.inventory()
    before = {
        _key(one.ref): one for one in entries_of(snapshot.manifests) if isinstance(one, Manifest)
    }
    for one in script.written:  # before the change, a pod may be one of several replicas
        known = inventory.get(one.kind, one.ref.namespace, one.ref.name)
        if known is not None:
            before[_key(one.ref)] = known
    changed = _after(script, before)
    both = [(before[key], one) for key, one in changed.items() if one and key in before]
    replaced = {key for old, new in both for key in _replaced(old, new, inventory)}
    new = [one for key, one in changed.items() if one and key not in before]
    return ChangedSnapshot(
        replace(
            snapshot,
            manifests=Manifests((
                *_kept(snapshot, changed, replaced),
                *(one for one in new if one.kind is not POD),
            )),
            arguments=(*snapshot.arguments, *change.plan_arguments),
        ),
        tuple(one for one in new if one.kind is POD),
        frozenset(one.ref.key for one in changed.values() if one and one.kind is STATEFUL_SET),
        frozenset(key for key, one in changed.items() if one and one.kind is not STATEFUL_SET),
        (f"This answer is about the cluster after {' '.join(change.words)}.", *script.notes),
    )  # fmt: skip


def _after(script: ChangeScript, before: Mapping[_Key, Manifest]) -> dict[_Key, Manifest | None]:
    """Return the state of each object that `script` changes, after its steps; None if deleted.

    `before` are the objects before the change.
    """
    found: dict[_Key, Manifest | None] = {_key(one.ref): one for one in script.written}
    for command in (command for step in script.steps for command in step.commands):
        key = _key(command.target) if isinstance(command, _WRITES) else None
        match command:
            case CreateObject(manifest=manifest):
                [made] = manifests([Document(_SOURCE, dict(manifest))])
                found.setdefault(_key(made.ref), made)
            case PatchObject(patch=patch) if key:
                # The objects in `written` have their own patches already; merging these again
                # changes nothing.
                known = found.get(key) or before.get(key)
                if known is not None:
                    content = merge_patch(known.value, dict(patch))
                    found[key] = replace(known, content=content, newest="")
            case DeleteObject() if key:
                found[key] = None
            case _:
                pass
    return {
        key: _with_next_generation(before[key], one) if one and key in before else one
        for key, one in found.items()
    }


def _key(ref: ObjectRef) -> _Key:
    return ref.kind, ref.namespace, ref.name


def _with_next_generation(before: Manifest, after: Manifest) -> Manifest:
    """Return `after` with the next generation if its spec differs from the spec of `before`.

    With the old generation, the status would seem to be about the new spec.
    """
    value = after.value
    if value.get("spec") == before.value.get("spec"):
        return after
    metadata = value["metadata"] | {
        "generation": number(before.value["metadata"], "generation") + 1
    }
    return replace(after, content={**value, "metadata": metadata}, newest="")


def _replaced(before: Manifest, after: Manifest, inventory: Inventory) -> Iterator[_Key]:
    """Yield the keys of the pods that get another template, and of ReplicaSets with old templates.

    `before` and `after` are a workload before and after the change.
    """
    if before.kind not in _ROLLED_OUT or _has_template(before, _template(after)):
        return
    spec = mapping(after.value, "spec")
    if before.kind is DEPLOYMENT:
        if spec.get("paused") is True:
            return
        owned = (one for one in inventory.of_kind(REPLICA_SET) if one.is_controlled_by(before))
        old = [one for one in owned if not _has_template(one, _template(after))]
        yield from (_key(one.ref) for one in old)
        yield from (_key_of_pod(pod) for pod in (inventory.pods_of(*old) if old else ()))
        return
    if mapping(spec, "updateStrategy").get("type") == ON_DELETE:
        return
    first = first_updated(after.as_view(StatefulSet)) if before.kind is STATEFUL_SET else None
    for pod in inventory.pods_of(before):
        ordinal = ordinal_of(before.ref.name, pod.metadata.name)
        if first is None or (ordinal is not None and ordinal >= first):
            yield _key_of_pod(pod)


def _template(workload: Manifest) -> Json:
    return mapping(workload.value, "spec", "template")


def _has_template(workload: Manifest, template: Json) -> bool:
    return same_template(_template(workload), template)


def _key_of_pod(pod: Pod) -> _Key:
    return POD.kind, pod.metadata.namespace, pod.metadata.name


def _kept(
    snapshot: Snapshot, changed: Mapping[_Key, Manifest | None], replaced: set[_Key]
) -> Iterator[Manifest | ReplicaManifests]:
    """Yield the objects of `snapshot` after the change, without the objects in `replaced`."""
    written = {*changed, *replaced}
    has_pods = any(kind == POD.kind for kind, _, _ in written)
    for entry in entries_of(snapshot.manifests):
        if isinstance(entry, ReplicaManifests) and not has_pods:
            yield entry
            continue
        own = (entry,) if isinstance(entry, Manifest) else tuple(entry)
        if written.isdisjoint(_key(one.ref) for one in own):
            yield entry
            continue
        for one in own:
            now = changed.get(_key(one.ref), one)
            if _key(one.ref) not in replaced and now is not None:
                yield now
