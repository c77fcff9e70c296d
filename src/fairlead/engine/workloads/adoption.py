"""Adoption: owners adopt the orphans that they select, and release objects they no longer select.

    a pod without a controller, selected by a ReplicaSet          adopted
    a pod that its ReplicaSet no longer selects                   released, and replaced
    a ReplicaSet without a controller, selected by a Deployment   adopted
    a ControllerRevision without a controller                     adopted

If a workload is deleted with `--cascade=orphan` and created again, the new workload adopts the
former pods and revisions. A Job adopts its former pods only if `manualSelector` is set, because
other selectors contain the Job's uid.

A pod that a Job adopts gets the tracking finalizer, and a pod that a Job releases loses the
finalizer. If the Job of a pod is gone, `JobOrphans` first removes the finalizer. The pod is adopted
afterwards.

A mutating webhook or policy may change the labels of a new pod so that its owner does not select
the pod. Then the owner releases the pod and creates another one, without end, as in upstream. One
event for each owner gives the cause; upstream has no such event.

upstream: pkg/controller/controller_ref_manager.go:ClaimObject,
pkg/controller/statefulset/stateful_set.go:adoptOrphanRevisions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.codec import as_json
from fairlead.api.finalizer import JOB_TRACKING
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    ControllerRevision,
    DaemonSet,
    Deployment,
    Job,
    OwnerReference,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of, is_static
from fairlead.engine.core.command import Command, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Component, Issuer
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import JOB_RETRY_INITIAL, JOB_RETRY_MAX
from fairlead.engine.workloads.identity import object_ref, owner_event
from fairlead.engine.workloads.ownership import adopts, claims, is_ending
from fairlead.engine.workloads.pod_control.pod_template import controller_reference
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff
from fairlead.engine.workloads.selection import Adopter, Child, ChildIndex, OwnerIndex, selects

OWNERS: Final = (ReplicaSet, ReplicationController, DaemonSet, StatefulSet, Deployment, Job)
_SELECTOR_MISMATCH: Final = "SelectorMismatch"  # an event reason of Fairlead; upstream has none
_SELECTOR_MISMATCH_NOTE: Final = (
    "The selector does not match the labels of the new pod {pod}, so the pod does not count. If a "
    "webhook or an admission policy changes the labels of each new pod, this {kind} never has the "
    "pods that it needs, and may create pods without end"
)
_API_VERSIONS: Final = {"ReplicationController": "v1", "Job": "batch/v1"}  # others: apps/v1


class _Namespace(Struct):
    """The owners of a namespace by uid, and the orphans in it by kind and name."""

    owners: OwnerIndex = field(default_factory=OwnerIndex)
    orphans: ChildIndex[tuple[str, str], Child] = field(default_factory=ChildIndex)


class Adoption:
    """The controller that adopts and releases pods and ReplicaSets, and adopts revisions."""

    issuer: ClassVar[Issuer] = Issuer(Component.CONTROLLER_MANAGER)
    interest: ClassVar[Interest] = Interest(succeeded=(), failed=(PatchObject,))

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}
        self._patched_owners: dict[
            str, OwnerReference | None
        ] = {}  # uid of a child -> its owner after the patch in flight
        self._unconfirmed: dict[str, Child] = {}  # by uid; patch in flight or refused
        self._mismatched: dict[str, None] = {}  # uids of owners with an event about a new pod
        self._retries: TimerQueue[str] = TimerQueue()  # uids
        # The controller of the owner repeats a refused patch. All but that of Jobs have the default
        # limits. By uid of the child.
        self._backoff: RefusalBackoff[str] = RefusalBackoff()
        self._job_backoff: RefusalBackoff[str] = RefusalBackoff(JOB_RETRY_INITIAL, JOB_RETRY_MAX)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return patches that adopt or release the objects that `stimulus` affects."""
        match stimulus:
            case ObjectChanged(one):
                return self._observe(one)
            case ObjectDeleted(one):
                self._forget(one)
            case ObjectsLoaded(objects):
                return self._load(list(objects))
            case CommandFailed(PatchObject(target)) if target.uid in self._patched_owners:
                self._retries.add(self._next_try(target.uid, now), target.uid)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Return the patches that adopt or release the changed `pod`."""
        return self._observe_child(pod)

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next refused patch is retried, or None if there is none."""
        return self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return new patches for the objects whose patches were refused."""
        due = dict.fromkeys(self._retries.pop_due(now))
        children = [one for uid in due if (one := self._unconfirmed.get(uid)) is not None]
        return [command for one in children for command in self._observe_child(one)]

    def _load(self, objects: list[ApiObject]) -> list[Command]:
        """Store all loaded owners; return the patches that adopt and release loaded objects."""
        for one in objects:
            if isinstance(one, OWNERS):
                self._namespace(one).owners.put(one)
        return [command for one in objects for command in self._observe_child(one)]

    def _observe(self, one: ApiObject) -> list[Command]:
        commands = self._observe_child(one)
        if isinstance(one, OWNERS):
            namespace = self._namespace(one)
            before = namespace.owners.get(one.metadata.uid)
            namespace.owners.put(one)
            if before is None or before.spec.selector != one.spec.selector:
                for child in namespace.orphans.selectable(one):
                    commands += self._adopt(child, [one])
        return commands

    def _observe_child(self, one: ApiObject) -> list[Command]:
        if not isinstance(one, Child) or (isinstance(one, Pod) and is_static(one)):
            return []
        meta, namespace = one.metadata, self._namespace(one)
        key = (type(one).__name__, meta.name)
        reference = controller_of(meta)
        if self._patched_owners.get(meta.uid, reference) != reference:
            self._unconfirmed[meta.uid] = one
            return []  # the patch in flight changes the owner
        if meta.uid in self._patched_owners:
            self._reset(meta.uid)
        self._patched_owners.pop(meta.uid, None)
        self._unconfirmed.pop(meta.uid, None)
        if reference is None:
            namespace.orphans.put(key, one)
            return self._adopt(one, namespace.owners.selecting(one))
        namespace.orphans.pop(key)
        owner = namespace.owners.get(reference.uid)
        if owner is None or is_ending(owner) or selects(owner, one):
            return []
        if isinstance(one, ControllerRevision) or not claims(owner):
            return []
        self._patched_owners[meta.uid], self._unconfirmed[meta.uid] = None, one
        kept = [as_json(each) for each in meta.owner_references if each.uid != reference.uid]
        patch: Json = {"ownerReferences": kept or None}
        if isinstance(owner, Job):
            finalizers = [one for one in meta.finalizers if one != JOB_TRACKING]
            patch |= {"finalizers": finalizers or None}
        release = PatchObject(object_ref(one), {"metadata": patch})
        return [*self._mismatch_event(owner, one), release]

    def _mismatch_event(self, owner: Adopter, child: Child) -> list[Command]:
        """Return an event if `child` is the first new pod of `owner` that `owner` does not select.

        A pod without a node counts as new. Users change the labels of pods later, for example to
        take a pod out of service.
        """
        is_new = isinstance(child, Pod) and not child.spec.node_name
        if not is_new or owner.metadata.uid in self._mismatched:
            return []
        self._mismatched[owner.metadata.uid] = None
        note = _SELECTOR_MISMATCH_NOTE.format(pod=child.metadata.name, kind=type(owner).__name__)
        return [owner_event(object_ref(owner), _SELECTOR_MISMATCH, note, is_warning=True)]

    def _adopt(self, child: Child, owners: Iterable[Adopter]) -> list[Command]:
        meta = child.metadata
        for owner in owners:
            if not adopts(owner, child):
                continue
            patch: Json = {}
            if isinstance(owner, Job):
                if JOB_TRACKING in meta.finalizers:
                    return []  # adopted once `JobOrphans` has removed the finalizer
                patch = {"finalizers": [*meta.finalizers, JOB_TRACKING]}
            reference = _reference(owner)
            self._patched_owners[meta.uid], self._unconfirmed[meta.uid] = reference, child
            references = [as_json(each) for each in meta.owner_references]
            patch |= {"ownerReferences": [*references, controller_reference(reference)]}
            return [PatchObject(object_ref(child), {"metadata": patch})]
        return []

    def _forget(self, one: ApiObject) -> None:
        namespace = self._namespace(one)
        namespace.owners.pop(one.metadata.uid)
        namespace.orphans.pop((type(one).__name__, one.metadata.name))
        self._patched_owners.pop(one.metadata.uid, None)
        self._unconfirmed.pop(one.metadata.uid, None)
        self._mismatched.pop(one.metadata.uid, None)
        self._reset(one.metadata.uid)

    def _next_try(self, uid: str, now: Instant) -> Instant:
        """Return the time of the next try of the refused patch of the child `uid`."""
        adopter = self._patched_owners.pop(uid)
        owner = adopter or controller_of(self._unconfirmed[uid].metadata)
        is_of_job = owner is not None and owner.kind == "Job"
        return (self._job_backoff if is_of_job else self._backoff).next_try(uid, now)

    def _reset(self, uid: str) -> None:
        self._backoff.reset(uid)
        self._job_backoff.reset(uid)

    def _namespace(self, one: ApiObject) -> _Namespace:
        return self._namespaces.setdefault(one.metadata.namespace, _Namespace())


def _reference(owner: Adopter) -> OwnerReference:
    kind = type(owner).__name__
    return OwnerReference(
        api_version=_API_VERSIONS.get(kind, "apps/v1"),
        kind=kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )
