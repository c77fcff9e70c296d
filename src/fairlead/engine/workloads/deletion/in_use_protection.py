"""InUseProtection: prevents the deletion of storage objects and PodGroups that are in use.

Admission adds a finalizer to each of these objects. After a deletion request, the object keeps its
finalizer as long as it is in use:

    PersistentVolumeClaim    while a bound pod mounts it, even a finished pod
    PersistentVolume         while it is bound
    VolumeAttributesClass    while a volume, or the spec or status of a claim, refers to it
    PodGroup                 while a pod that belongs to it has not finished

upstream: pkg/controller/volume/pvcprotection, pvprotection, vacprotection,
pkg/controller/scheduling/podgroupprotection
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.objects import (
    ApiObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    Unstructured,
)
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.pods.volumes import BOUND, all_claims, is_claimed, named_claims
from fairlead.engine.core.command import Command, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.refusal_backoff import RefusalBackoff

CLASS_KIND: Final = "VolumeAttributesClass"
GROUP_KIND: Final = "PodGroup"
FINALIZERS: Final = {
    "PersistentVolumeClaim": "kubernetes.io/pvc-protection",
    "PersistentVolume": "kubernetes.io/pv-protection",
    CLASS_KIND: "kubernetes.io/vac-protection",
    GROUP_KIND: "scheduling.k8s.io/podgroup-protection",
}
# VolumeAttributesClasses are Unstructured.
_READ: Final = (Pod, PersistentVolumeClaim, PersistentVolume, PodGroup, Unstructured)
_API_GROUPS: Final = {CLASS_KIND: "storage.k8s.io", GROUP_KIND: "scheduling.k8s.io"}
Key = tuple[str, str, str]  # kind, namespace, name


class InUseProtection(Struct):
    """Removes the protection finalizer of a terminating object when the object is not in use."""

    issuer: ClassVar[Issuer] = controller_account("pvc-protection-controller")
    interest: ClassVar[Interest] = Interest(
        changed=_READ, deleted=_READ, succeeded=(), failed=(PatchObject,), readiness=False
    )

    _held: dict[Key, ApiObject] = field(default_factory=dict)
    _sent: dict[Key, ApiObject] = field(default_factory=dict)  # whose finalizer is being removed
    _retries: TimerQueue[Key] = field(default_factory=TimerQueue)
    _backoff: RefusalBackoff[Key] = field(default_factory=RefusalBackoff)
    _users: dict[Key, dict[str, None]] = field(default_factory=dict)  # uids of users
    _uses: dict[str, tuple[Key, ...]] = field(default_factory=dict)  # by user's uid

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return patches that remove the finalizers of terminating objects that nothing uses."""
        match stimulus:
            case ObjectChanged(one):
                return [*self._observe(one)]
            case ObjectDeleted(one):
                self._forget(_key(one))
                return [*self._use(one.metadata.uid, ())]
            case ObjectsLoaded():
                return self._load(stimulus)
            case CommandFailed(PatchObject(target)) if _kind(target) in FINALIZERS:
                key = (_kind(target), target.namespace, target.name)
                if key in self._sent:
                    self._retries.add(self._backoff.next_try(key, now), key)
            case _:
                pass
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        user = pod.metadata.uid
        if not _may_use(pod) and user not in self._uses:
            return ()
        return tuple(self._use(user, _used_by(pod)))

    def next_deadline(self) -> Instant | None:
        """Return the time at which the next refused write is repeated, or None."""
        return self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Repeat the refused patches that are due, for objects that still exist and are unused."""
        commands: list[Command] = []
        for key in self._retries.pop_due(now):
            one = self._sent.pop(key, None)
            if one is not None:
                self._held[key] = one
                commands += self._released(key)
        return commands

    def _load(self, loaded: ObjectsLoaded) -> list[Command]:
        """Record what the loaded objects use; then return patches that remove finalizers."""
        for some in loaded.replicas:
            if _may_use(some[0]):  # the result is the same for all replicas
                for pod in some:
                    list(self._use(pod.metadata.uid, _used_by(pod)))
        for one in loaded.others:
            list(self._use(one.metadata.uid, _used_by(one)))
        return [command for one in loaded.others for command in self._observe(one)]

    def _observe(self, one: ApiObject) -> Iterator[Command]:
        yield from self._use(one.metadata.uid, _used_by(one))
        key, meta = _key(one), one.metadata
        finalizer = FINALIZERS.get(key[0])
        if finalizer is None:
            return
        if meta.deletion_timestamp and finalizer in meta.finalizers:
            self._held[key] = one
            yield from self._released(key)
        else:
            self._forget(key)

    def _forget(self, key: Key) -> None:
        self._held.pop(key, None)
        self._sent.pop(key, None)
        self._backoff.reset(key)

    def _use(self, user: str, used: tuple[Key, ...]) -> Iterator[Command]:
        """Record that `user` now uses exactly the objects `used`.

        Yields patches that release the objects that have lost their last user.
        """
        before = self._uses.get(user, ())
        if before == used:
            return
        if used:
            self._uses[user] = used
        else:
            del self._uses[user]
        for key in used:
            self._users.setdefault(key, {})[user] = None
        for key in before:
            if key not in used:
                users = self._users[key]
                users.pop(user, None)
                if not users:
                    del self._users[key]
                    yield from self._released(key)

    def _released(self, key: Key) -> Iterator[Command]:
        one = self._held.get(key)
        if one is None or self._users.get(key) or _is_bound(one):
            return
        self._sent[key] = self._held.pop(key)
        kept = [name for name in one.metadata.finalizers if name != FINALIZERS[key[0]]]
        qualified = ".".join(filter(None, (key[0], _API_GROUPS.get(key[0]))))
        ref = ObjectRef(qualified, key[1], key[2], one.metadata.uid)
        yield PatchObject(ref, {"metadata": {"finalizers": kept or None}})


def _kind(ref: ObjectRef) -> str:
    return ref.kind.partition(".")[0]


def _key(one: ApiObject) -> Key:
    kind = one.kind if isinstance(one, Unstructured) else type(one).__name__
    return kind, one.metadata.namespace, one.metadata.name


def _used_by(one: ApiObject) -> tuple[Key, ...]:
    if type(one) is Pod:
        return (*_mounted(one), *_group(one))
    if type(one) is PersistentVolumeClaim or type(one) is PersistentVolume:
        return tuple((CLASS_KIND, "", name) for name in _attributes_classes(one))
    return ()


def _attributes_classes(one: PersistentVolumeClaim | PersistentVolume) -> Iterable[str]:
    # upstream: vac_protection_controller.go:getPVCReferencedVACNames, getPVReferencedVACNames
    names = {one.spec.volume_attributes_class_name: None}
    if isinstance(one, PersistentVolumeClaim):
        names[one.status.current_volume_attributes_class_name] = None
        if one.status.modify_volume_status is not None:
            names[one.status.modify_volume_status.target_volume_attributes_class_name] = None
    names.pop("", None)
    return names


def _may_use(pod: Pod) -> bool:
    """Return whether `pod` has claims or a PodGroup."""
    return any(map(is_claimed, pod.spec.volumes)) or pod.spec.scheduling_group is not None


def _mounted(pod: Pod) -> Iterator[Key]:
    if pod.spec.node_name:
        # upstream: pvc_protection_controller.go:podUsesPVC, podIsShutDown: a pod does not use its
        # ephemeral volumes after the kubelet has stopped it or it was force-deleted
        is_shut_down = is_terminating(pod) and pod.metadata.deletion_grace_period_seconds == 0
        for name in named_claims(pod) if is_shut_down else all_claims(pod):
            yield "PersistentVolumeClaim", pod.metadata.namespace, name


def _group(pod: Pod) -> Iterator[Key]:
    """Yield the key of the PodGroup of `pod`, if the pod has one and has not finished."""
    group = pod.spec.scheduling_group
    if group is not None and not is_terminal(pod):
        yield GROUP_KIND, pod.metadata.namespace, group.pod_group_name or ""


def _is_bound(one: ApiObject) -> bool:
    return isinstance(one, PersistentVolume) and one.status.phase == BOUND
