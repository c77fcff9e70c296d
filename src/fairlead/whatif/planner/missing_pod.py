"""missing_pod: creates the pods that a plan's baseline lacks, because the present nodes are full.

A baseline is simulated on the nodes of the cluster (`baseline`). If a StatefulSet creates its pods
in order, and one of its pods fits on none of these nodes, the later pods are missing. A preempted
pod without a controller is lost. A plan for other nodes needs room for all these pods.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Pod, StatefulSet
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.text.count import counted
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    find_kind,
)
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.workloads.stateful_set.rule import ordinals_of
from fairlead.whatif.input.document import Document
from fairlead.whatif.planner.baseline import Baseline
from fairlead.whatif.planner.cluster_model import ClusterModel, ending_namespaces
from fairlead.whatif.planner.created_pod import create_pod
from fairlead.whatif.planner.new_pod import new_pods_of
from fairlead.whatif.run.capacity.wanted_pods import wanted_by
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest, Manifests, entries_of
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import Snapshot

_SOURCE: Final = "size"
# Controllers of these kinds create their pods in the baseline, up to the first that is refused.
_CREATED: Final = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, JOB)
_OF_A_POD: Final = ("name", "namespace", "labels", "annotations")


def with_missing_pods(
    base: Baseline,
    pods: Iterable[Manifest],
    stateful_sets: Collection[str],
    scheduler: SchedulerConfig,
    seed: int,
) -> Baseline:
    """Return `base` with the new `pods`, and with all pods of the StatefulSets `stateful_sets`.

    `stateful_sets` are keys such as `namespace/name`. The new pods have no node. The notes say how
    many pods of StatefulSets were created, and name the pods that admission refuses.
    """
    made: list[ApiObject] = []
    notes: list[str] = []
    inventory, model = base.snapshot.inventory(), base.model
    ending = ending_namespaces(model.objects)
    with model.hypothesis():
        for one in pods:
            try:
                model.count_quotas(one.ref.namespace)
                pod = model.create(one.value)
            except ApiError as refused:
                notes.append(f"{one.title} is not created: {refused.message}")
            else:
                model.put(pod)
                made.append(pod)
        wanted = [
            one
            for one in (inventory.of_kind(STATEFUL_SET) if stateful_sets else ())
            if one.ref.key in stateful_sets
            and one.ref.namespace not in ending
            and not one.metadata.deletion_timestamp
        ]
        existing = {pod.key for pod in inventory.pods_of(*wanted)} if wanted else set()
        for one in wanted:
            known = len(made)
            try:
                notes += _create_missing(model, one, inventory, existing, made)
            except ApiError as refused:
                notes.append(f"{one.title} lacks pods: {refused.message}")
            if more := sum(isinstance(new, Pod) for new in made[known:]):
                notes.append(
                    f"{counted(more, 'pod')} of {one.title} {'is' if more == 1 else 'are'} "
                    "included that the StatefulSet creates only after earlier pods are ready."
                )
    if made:
        added = manifests([Document(base.snapshot.source, list(_stored(model, made)))])
        every = Manifests((*entries_of(base.snapshot.manifests), *added))
        complete = replace(base.snapshot, manifests=every)
        base = replace(base, snapshot=complete, model=ClusterModel(complete, scheduler, seed=seed))
    return replace(base, notes=(*notes, *base.notes))


def refusal_notes(base: Baseline, objects: Collection[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a note for each workload that lacks pods in `base` because admission refuses them.

    Only the workloads in `objects` are tried. Each of `objects` is (kind, namespace, name).
    """
    inventory = base.snapshot.inventory()
    for kind in _CREATED if objects else ():
        for one in inventory.of_kind(kind):
            if (kind.kind, one.ref.namespace, one.ref.name) in objects:
                yield from _refusal(base.model, one, inventory)


def _refusal(model: ClusterModel, workload: Manifest, inventory: Inventory) -> Iterator[str]:
    """Yield a note if `workload` lacks pods because admission refuses the next one."""
    owned = (one for one in inventory.of_kind(REPLICA_SET) if one.is_controlled_by(workload))
    pods = inventory.pods_of(workload, *owned)
    existing = sum(not (is_terminal(pod) or is_terminating(pod)) for pod in pods)
    lacking = wanted_by(workload.value) - existing
    if lacking <= 0 or workload.metadata.deletion_timestamp:
        return
    model.count_quotas(workload.ref.namespace)
    try:
        tried = create_pod(model, new_pods_of(_SOURCE, workload, inventory), 0).pod.metadata
    except ApiError as refused:
        verb = "is" if lacking == 1 else "are"
        yield (
            f"{counted(lacking, 'pod')} of {workload.title} {verb} not included: {refused.message}"
        )
    else:
        model.free_pod_name(tried.namespace, tried.name)


def preempted_for_good(base: Baseline, snapshot: Snapshot) -> Iterator[Manifest]:
    """Yield each preempted pod of `base` that no controller creates again; it has no node now.

    `snapshot` is the snapshot before the baseline; it has these pods on their nodes.
    """
    preempted = {one.pod.key for one in base.preempted}
    for one in snapshot.manifests if preempted else ():
        if one.kind is POD and one.ref.key in preempted and one.controller is None:
            meta = {key: value for key, value in one.value["metadata"].items() if key in _OF_A_POD}
            spec = {key: value for key, value in one.value["spec"].items() if key != "nodeName"}
            content = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
            yield replace(one, content=content, newest="")


def _stored(model: ClusterModel, made: Iterable[ApiObject]) -> Iterator[Json]:
    """Yield the objects in `made` that the store contains, in their stored form.

    A volume that is assumed for a claim is not in the store.
    """
    for one in made:
        kind, meta = find_kind(type(one).__name__), one.metadata
        found = None if kind is None else model.store.find(kind, meta.namespace, meta.name)
        if found is not None:
            yield found


def _create_missing(
    model: ClusterModel,
    stateful_set: Manifest,
    inventory: Inventory,
    existing: Container[str],
    made: list[ApiObject],
) -> tuple[str, ...]:
    """Create the missing pods of `stateful_set` in `model`, and append all new objects to `made`.

    `existing` are the keys (`namespace/name`) of the StatefulSet's pods that exist. Returns notes
    about the new pods. Raises ApiError if admission refuses a pod; pods with lower ordinals have
    been created by then.
    """
    key, ordinals = stateful_set.ref.key, ordinals_of(stateful_set.as_view(StatefulSet))
    missing = [number for number in ordinals if f"{key}-{number}" not in existing]
    if not missing:
        return ()
    new = replace(new_pods_of(_SOURCE, stateful_set, inventory), first=missing[0])
    model.count_quotas(stateful_set.ref.namespace)
    for ordinal in missing:
        created = create_pod(model, replace(new, first=ordinal), 0)
        model.put(created.pod)
        made += [*created.claims, created.pod]
    return (new.missing_revision,) if new.missing_revision else ()
