"""GarbageCollector: deletes or detaches the dependents of deleted owners.

    Background   the owner is deleted first, then its dependents
    Foreground   the dependents are deleted first; the owner (finalizer `foregroundDeletion`) waits
                 for the dependents that block its deletion
    Orphan       dependents lose the owner reference (finalizer `orphan`), then the owner is deleted

A dependent without another owner is deleted. A dependent with another owner only loses the
reference to the deleted owner. The uids of deleted owners are stored, so that dependents created
after the deletion are found.

Objects that own each other in a circle would wait for each other forever if all of them are deleted
in the foreground. One rule breaks the circle: a dependent no longer blocks its owners if one of its
own dependents is already being deleted in the foreground.

If `looks_up_owners` is set, an owner that was never observed is looked up. If the owner does not
exist, its dependents are collected. Unlike in upstream, an owner that was never observed counts as
existing if `looks_up_owners` is not set, as in a simulation. The reason is that the cluster dump
that a simulation loads seldom contains all owners.

A cluster-scoped object cannot have an owner in a namespace. If an owner reference of the object
names such an owner, the object stays when the owner is deleted.

In hand-written dumps, objects of several kinds may have the same uid. So an object is an owner only
if it also has the kind that the owner reference states.

After a refused write, the object is examined again with exponential backoff.

upstream: pkg/controller/garbagecollector/garbagecollector.go: isDangling, attemptToDeleteItem,
processDeletingDependentsItem, attemptToOrphanWorker; graph_builder.go:
addUnblockedOwnersToDeleteQueue; patch.go:unblockOwnerReferencesStrategicMergePatch
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import ClassVar, Final

from msgspec import Struct, field

from fairlead.api.codec import as_json
from fairlead.api.finalizer import FOREGROUND, ORPHAN
from fairlead.api.objects import ApiObject, ObjectMeta, OwnerReference, Pod
from fairlead.api.pods.replicas import Replicas
from fairlead.engine.core.command import (
    Command,
    DeleteObject,
    LookUpOwners,
    ObjectRef,
    PatchObject,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    OwnersLookedUp,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.identity import object_ref, owner_key, owner_kind

IMMEDIATELY: Final[Instant] = 0
WHY_OWNER_DELETED: Final = "its owner was deleted"

# The size of upstream's cache of absent owners (garbagecollector.go:NewGarbageCollector). Upstream
# drops the least recently used owner. Any owner may be dropped: if it is needed again, it is looked
# up again.
GONE_MAX: Final = 500

Owners = tuple[OwnerReference, ...]


_LoadedObjects = Replicas | tuple[ApiObject]
_FOREIGN_OWNER: Final = "OwnerRefInvalidNamespace"
_CONTROLLER: Final = "garbage-collector-controller"


class _Dependent(Struct):
    """An object with owner references.

    `keys` identify the owners. Each key is the owner's uid or, if the uid is unknown, the owner's
    kind, namespace and name. `is_going` is set once the object's deletion was requested.
    `is_ending` is set once the object has a deletionTimestamp.
    """

    ref: ObjectRef
    owners: Owners = ()
    keys: tuple[str, ...] = ()
    finalizers: tuple[str, ...] = ()
    is_going: bool = False
    is_ending: bool = False


class GarbageCollector(Struct):
    """Indexes owner references, and deletes or detaches dependents.

    If `looks_up_owners` is set, this controller looks up owners that were never observed, and
    postpones its commands until all other work is done. So the controller of a deleted owner
    reports the deletion before the dependents are deleted, as in upstream.
    """

    issuer: ClassVar[Issuer] = controller_account("generic-garbage-collector")
    interest: ClassVar[Interest] = Interest(
        succeeded=(DeleteObject, PatchObject, LookUpOwners),
        failed=(DeleteObject, PatchObject, LookUpOwners),
        readiness=False,
    )

    looks_up_owners: bool = False
    config: WorkloadsConfig = field(default_factory=WorkloadsConfig)
    _postponed: list[Command] = field(default_factory=list)
    # by key of the owner, then by uid of the dependent
    _dependents: dict[str, dict[str, _Dependent]] = field(default_factory=dict)
    _by_uid: dict[str, _Dependent] = field(default_factory=dict)
    # The next two fields are about loaded objects that are not indexed yet. `_loaded` maps each uid
    # to the key of the owner. `_loaded_of` maps the key of an owner to the objects.
    _loaded: dict[str, str] = field(default_factory=dict)
    _loaded_of: dict[str, list[_LoadedObjects]] = field(default_factory=dict)
    _waiting: dict[str, ApiObject] = field(default_factory=dict)  # owners in foreground deletion
    # owners that were observed to be deleted, by uid
    _gone: dict[str, ObjectRef] = field(default_factory=dict)
    _present: dict[str, str] = field(default_factory=dict)  # namespaces of all objects, by uid
    # dependents whose owners may have to be looked up, by uid
    _unconfirmed: dict[str, _Dependent] = field(default_factory=dict)
    # owners with the finalizer `orphan`, by uid; entries are kept after the owner's deletion
    _orphaning: dict[str, ApiObject] = field(default_factory=dict)
    _sent: dict[tuple[type, str], Command] = field(default_factory=dict)  # without an outcome
    _failures: dict[str, int] = field(default_factory=dict)  # consecutive failures, by uid
    _retries: TimerQueue[str] = field(default_factory=TimerQueue)  # uids of objects

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Command]:
        """Return the commands for the owners and dependents that `stimulus` affects.

        If `looks_up_owners` is set, postpone the commands until `handle_deadline` and return [].
        """
        if type(stimulus) is CommandSucceeded or type(stimulus) is CommandFailed:
            self._observe_outcome(stimulus, now)
            return []
        commands = self._consequences(stimulus)
        if not self.looks_up_owners:
            return self._noted(commands)
        self._postponed += commands
        return []

    def handle_pod(self, pod: Pod, now: Instant) -> Sequence[Command]:
        """Handle a changed pod, as `handle` does."""
        commands = self._observe(pod)
        if not self.looks_up_owners:
            return self._noted(commands) if commands else ()
        self._postponed += commands
        return ()

    def next_deadline(self) -> Instant | None:
        """Return 0 if commands or look-ups must be sent now, else the time of the next retry.

        Returns None if there is nothing to send and nothing to retry.
        """
        return IMMEDIATELY if self._postponed or self._unconfirmed else self._retries.next_due()

    def handle_deadline(self, now: Instant) -> list[Command]:
        """Return the commands to send now: postponed commands, due retries and owner look-ups."""
        commands, self._postponed = self._postponed, []
        for uid in self._retries.pop_due(now):
            commands += self._examine_again(uid)
        suspects, self._unconfirmed = self._unconfirmed, {}
        for one in suspects.values():
            if not one.is_going and self._names_unknown_owner(one):
                commands.append(LookUpOwners(one.ref))
        return self._noted(commands)

    # --- outcomes ------------------------------------------------------------------------------

    def _noted(self, commands: list[Command]) -> list[Command]:
        """Record that `commands` were sent and have no outcome yet; return `commands`."""
        for command in commands:
            if isinstance(command, DeleteObject | PatchObject | LookUpOwners):
                self._sent[type(command), command.target.uid] = command
        return commands

    def _observe_outcome(self, outcome: CommandSucceeded | CommandFailed, now: Instant) -> None:
        """Schedule a retry after a refused write, if the object still exists."""
        command = outcome.command
        if not isinstance(command, DeleteObject | PatchObject | LookUpOwners):
            return
        uid = command.target.uid
        if self._sent.get((type(command), uid)) is not command:
            return
        del self._sent[type(command), uid]
        if isinstance(outcome, CommandSucceeded) or outcome.reason is FailureReason.NOT_FOUND:
            self._failures.pop(uid, None)
            return
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        self._retries.add(now + self.config.retry_after(failures), uid)

    def _examine_again(self, uid: str) -> list[Command]:
        """Return the commands that an object still needs after one of its writes was refused."""
        commands: list[Command] = []
        dependent = self._dependent(uid)
        if dependent is not None:
            dependent.is_going = dependent.is_ending
            if self.looks_up_owners:
                self._unconfirmed[uid] = dependent
            gone = [key for key in dependent.keys if self._ends(key, dependent)]
            orphaning = [key for key in dependent.keys if key in self._orphaning]
            if orphaning:
                commands.append(_disowned(dependent, orphaning[0]))
            elif gone:
                commands += self._handle_owner_deletion(dependent, gone[0])
        owner = self._waiting.pop(uid, None) or self._orphaning.get(uid)
        return commands if owner is None else commands + self._end(owner)

    def _consequences(self, stimulus: Stimulus) -> list[Command]:
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            return self._observe(stimulus.object)
        if type(stimulus) is ObjectDeleted:
            return self._forget(stimulus.object)
        match stimulus:
            case ObjectsLoaded():
                return self._load(stimulus)
            case OwnersLookedUp(command, absent):
                self._sent.pop((LookUpOwners, command.target.uid), None)
                return self._collect(command.target, absent) if absent else []
            case _:
                return []

    # --- observations --------------------------------------------------------------------------

    def _load(self, loaded: ObjectsLoaded) -> list[Command]:
        """Store all loaded objects, then return the commands for deletions in progress.

        Most objects with one owner are not indexed yet, but only listed in `_loaded_of` under the
        owner's key. When a dependent of an owner is needed for the first time, `_index_loaded`
        indexes all loaded dependents of this owner.
        """
        ending: list[ApiObject] = []
        indexed: set[str] = set()  # keys of owners whose dependents are indexed
        for some in loaded.grouped:
            alike: _LoadedObjects = some if isinstance(some, Replicas) else (some,)
            meta = alike[0].metadata
            if self._are_listed_only(alike):
                key = meta.owner_references[0].uid or _owner_keys(meta)[0]
                if key not in indexed:
                    self._loaded |= dict.fromkeys(_uids_of(alike), key)
                    self._loaded_of.setdefault(key, []).append(alike)
                    continue
            for key in _owner_keys(meta):
                indexed.add(key)
                self._index_loaded(key)
            for one in alike:
                self._index(one)
            if meta.deletion_timestamp and meta.finalizers:
                ending += alike
        return [command for one in ending for command in self._end(one)]

    def _are_listed_only(self, alike: _LoadedObjects) -> bool:
        """Return whether the loaded objects in `alike` need not be indexed immediately.

        If the result is True, `_index_loaded` indexes the objects when a dependent of their owner
        is first needed.
        """
        meta = alike[0].metadata
        if len(meta.owner_references) != 1 or meta.deletion_timestamp or self.looks_up_owners:
            return False
        uids = {*_uids_of(alike)}
        is_new = self._loaded.keys().isdisjoint(uids) and self._by_uid.keys().isdisjoint(uids)
        return is_new and len(uids) == len(alike)

    def _index_loaded(self, owner: str) -> None:
        """Index the loaded dependents of the owner with the key `owner`."""
        for alike in self._loaded_of.pop(owner, ()):
            meta = alike[0].metadata
            for ref in _refs_of(alike):
                del self._loaded[ref.uid]
                known = _Dependent(ref, meta.owner_references, (owner,), meta.finalizers)
                self._by_uid[ref.uid] = known
                self._dependents.setdefault(owner, {})[ref.uid] = known

    def _dependent(self, uid: str) -> _Dependent | None:
        """Return the object `uid` if it has owner references, otherwise None."""
        owner = self._loaded.get(uid)
        if owner is not None:
            self._index_loaded(owner)
        return self._by_uid.get(uid)

    def _dependents_of(self, owner: str) -> dict[str, _Dependent]:
        """Return the dependents of the owner with this key, by uid."""
        self._index_loaded(owner)
        return self._dependents.get(owner, {})

    def _observe(self, one: ApiObject) -> list[Command]:
        meta = one.metadata
        commands = self._index(one)
        if meta.deletion_timestamp and meta.finalizers:
            commands += self._end(one)
        return commands

    def _index(self, one: ApiObject) -> list[Command]:
        """Index the owner references of `one`; return the commands that its owners require.

        If an owner is deleted or in foreground deletion, `one` is deleted or loses the reference to
        this owner. If an owner in foreground deletion waited only for `one`, and `one` no longer
        refers to the owner, the owner's finalizer is removed.
        """
        meta = one.metadata
        if self.looks_up_owners:
            self._note_presence(meta)
        known = self._dependent(meta.uid)
        if known is None:
            if not meta.owner_references:
                return []
            known = self._by_uid[meta.uid] = _Dependent(object_ref(one))
        known.finalizers = meta.finalizers
        if meta.deletion_timestamp:
            known.is_going = known.is_ending = True
        if known.owners == meta.owner_references:
            return []
        before = known.keys
        for owner in before:
            self._unfile(owner, meta.uid)
        known.owners = meta.owner_references
        known.keys = _owner_keys(meta)
        for owner in known.keys:
            self._index_loaded(owner)
            self._dependents.setdefault(owner, {})[meta.uid] = known
        if self.looks_up_owners and not known.is_going:
            self._unconfirmed[meta.uid] = known
        self._report_foreign_owner(known)
        gone = [key for key in known.keys if self._ends(key, known)]
        commands = self._handle_owner_deletion(known, gone[0]) if gone else []
        # `one` may have blocked the deletion of its previous owners.
        waiting = [self._waiting[key] for key in before if key in self._waiting]
        return commands + [
            command for owner in waiting for command in self._end_in_foreground(owner)
        ]

    def _unfile(self, owner: str, uid: str) -> None:
        dependents = self._dependents.get(owner, {})
        dependents.pop(uid, None)
        if not dependents:
            self._dependents.pop(owner, None)

    def _forget(self, one: ApiObject) -> list[Command]:
        for index in (self._present, self._unconfirmed, self._failures):
            index.pop(one.metadata.uid, None)
        commands = self._release_owners(one.metadata.uid)
        self._waiting.pop(one.metadata.uid, None)
        ref = object_ref(one)
        for owner in (ref.uid, owner_key(ref.kind, ref.namespace, ref.name, "")):
            self._index_loaded(owner)
            dependents = self._dependents.pop(owner, {})
            # `_gone` needs no pods: controllers create a pod's dependents only while it exists.
            if owner == ref.uid and not isinstance(one, Pod):
                self._note_gone(ref)
            for uid, dependent in dependents.items():
                if owner in self._orphaning:  # the patch of its owners failed or is in flight
                    commands.append(_disowned(dependent, owner))
                elif _can_own(ref, owner, dependent):
                    commands += self._handle_owner_deletion(dependent, owner)
                elif not _names_kind(ref, owner, dependent):
                    self._dependents.setdefault(owner, {})[uid] = dependent
                    if self.looks_up_owners:
                        self._unconfirmed[uid] = dependent
        return commands

    def _ends(self, key: str, dependent: _Dependent) -> bool:
        """Return whether the owner `key` is deleted or in foreground deletion.

        Returns False if the owner cannot own `dependent`.
        """
        waiting = self._waiting.get(key)
        owner = self._gone.get(key) if waiting is None else object_ref(waiting)
        return owner is not None and _can_own(owner, key, dependent)

    def _note_gone(self, owner: ObjectRef) -> None:
        self._gone[owner.uid] = owner
        if self.looks_up_owners and len(self._gone) > GONE_MAX:
            del self._gone[next(iter(self._gone))]

    # --- owners --------------------------------------------------------------------------------

    def _end(self, owner: ApiObject) -> list[Command]:
        """Return the commands that the finalizers of the terminating `owner` require."""
        if ORPHAN in owner.metadata.finalizers:
            return self._orphan(owner)
        if FOREGROUND in owner.metadata.finalizers:
            return self._end_in_foreground(owner)
        return []

    def _orphan(self, owner: ApiObject) -> list[Command]:
        uid = owner.metadata.uid
        self._orphaning[uid] = owner
        dependents = self._dependents_of(uid).values()
        commands: list[Command] = [_disowned(dependent, uid) for dependent in dependents]
        return [*commands, _without(owner, ORPHAN)]

    def _end_in_foreground(self, owner: ApiObject) -> list[Command]:
        uid = owner.metadata.uid
        is_news = uid not in self._waiting
        self._waiting[uid] = owner
        ref = object_ref(owner)
        named = [one for one in self._dependents_of(uid).values() if _names_kind(ref, uid, one)]
        if not any(_blocks(dependent, uid) for dependent in named):
            return [_without(owner, FOREGROUND)]
        if not is_news:
            return []
        owned = [one for one in named if _can_own(ref, uid, one)]
        return [command for one in owned for command in self._handle_owner_deletion(one, uid)]

    def _release_owners(self, uid: str) -> list[Command]:
        """Forget the deleted dependent `uid`.

        Returns the patches of the owners whose deletion waited only for this dependent.
        """
        dependent = self._dependent(uid)
        self._by_uid.pop(uid, None)
        commands: list[Command] = []
        for key in dependent.keys if dependent is not None else ():
            self._unfile(key, uid)
            owner = self._waiting.get(key)
            if owner is not None:
                commands += self._end_in_foreground(owner)
        return commands

    # --- owners that were never seen -----------------------------------------------------------

    def _names_unknown_owner(self, dependent: _Dependent) -> bool:
        """Return whether an owner of `dependent` was never observed or is in another namespace."""
        namespace = dependent.ref.namespace
        return any(
            self._present.get(one.uid) not in ("", namespace) for one in dependent.owners if one.uid
        )

    def _note_presence(self, meta: ObjectMeta) -> None:
        """Record that an object exists; record an event for each dependent in another namespace."""
        if meta.uid not in self._present:
            self._present[meta.uid] = meta.namespace
            for dependent in self._dependents.get(meta.uid, {}).values():
                self._report_foreign_owner(dependent)

    def _report_foreign_owner(self, dependent: _Dependent) -> None:
        """Record an event if an owner of `dependent` was observed in another namespace."""
        for owner in dependent.owners:
            if self._present.get(owner.uid) not in (None, "", dependent.ref.namespace):
                self._postponed.append(_foreign_owner_event(dependent.ref, owner))
                return

    def _collect(self, target: ObjectRef, absent: Collection[str]) -> list[Command]:
        """Delete the dependent `target` if all its owners are in `absent`.

        If some owners exist, keep only the references to existing owners.
        """
        dependent = self._dependent(target.uid)
        if dependent is None or dependent.is_going:
            return []
        kept = [as_json(one) for one in dependent.owners if one.uid not in absent]
        if len(kept) == len(dependent.owners):
            return []
        if kept:
            return [PatchObject(target, {"metadata": {"ownerReferences": kept}})]
        return [DeleteObject(target, why=WHY_OWNER_DELETED)]

    # --- dependents ----------------------------------------------------------------------------

    def _handle_owner_deletion(self, dependent: _Dependent, owner: str) -> list[Command]:
        """Handle the deletion of `owner`: delete `dependent`, or remove the reference to `owner`.

        The reference is removed if `dependent` has another owner that is not being deleted.
        """
        if dependent.is_going:
            return []
        others = [key for key in dependent.keys if key != owner]
        if any(not self._ends(key, dependent) for key in others):
            return [_disowned(dependent, owner)]
        dependent.is_going = True
        policy = self._policy(dependent, owner)
        deletion = DeleteObject(dependent.ref, why=WHY_OWNER_DELETED, policy=policy)
        own = self._dependents_of(dependent.ref.uid)
        if owner in self._waiting and any(uid in self._waiting for uid in own):
            return [_unblocked(dependent), deletion]
        return [deletion]

    def _policy(self, dependent: _Dependent, owner: str) -> str:
        # upstream: garbagecollector.go:attemptToDeleteItem
        if owner in self._waiting and self._dependents_of(dependent.ref.uid):
            return "Foreground"
        if ORPHAN in dependent.finalizers:
            return "Orphan"
        return "Foreground" if FOREGROUND in dependent.finalizers else "Background"


def _uids_of(alike: _LoadedObjects) -> Sequence[str]:
    return alike.uids if isinstance(alike, Replicas) else [one.metadata.uid for one in alike]


def _refs_of(alike: _LoadedObjects) -> Iterable[ObjectRef]:
    if not isinstance(alike, Replicas):
        return map(object_ref, alike)
    first = object_ref(alike[0])
    refs = zip(alike.names, alike.uids, strict=True)
    return (ObjectRef(first.kind, first.namespace, name, uid) for name, uid in refs)


def _owner_keys(meta: ObjectMeta) -> tuple[str, ...]:
    """Return a key for each owner of an object.

    The key is the owner's uid. If the uid is unknown, the key is made of the owner's kind,
    namespace and name.
    """
    return tuple(
        one.uid or owner_key(owner_kind(one), meta.namespace, one.name, "")
        for one in meta.owner_references
    )


def _can_own(owner: ObjectRef, key: str, dependent: _Dependent) -> bool:
    """Return whether `owner` can own `dependent`; `key` is the key of `owner`.

    A namespaced object cannot own a cluster-scoped object. The owner reference of `dependent` must
    also name the kind of `owner`.

    upstream: garbagecollector.go: isDangling, which reads the owner by kind, name and uid;
    namespacedOwnerOfClusterScopedObjectErr
    """
    is_scope_valid = owner.namespace == "" or dependent.ref.namespace != ""
    return is_scope_valid and _names_kind(owner, key, dependent)


def _names_kind(owner: ObjectRef, key: str, dependent: _Dependent) -> bool:
    """Return whether `dependent` has a reference to the owner `key` that names the owner's kind."""
    kind = owner.kind.partition(".")[0]  # the kind of a custom resource is followed by its group
    owners = zip(dependent.owners, dependent.keys, strict=True)
    return any(one.kind == kind for one, own_key in owners if own_key == key)


def _blocks(dependent: _Dependent, owner: str) -> bool:
    return any(one.uid == owner and one.block_owner_deletion for one in dependent.owners)


def _disowned(dependent: _Dependent, owner: str) -> Command:
    owners = zip(dependent.owners, dependent.keys, strict=True)
    kept = [as_json(one) for one, key in owners if key != owner]
    return PatchObject(dependent.ref, {"metadata": {"ownerReferences": kept or None}})


def _unblocked(dependent: _Dependent) -> Command:
    """Return the patch that sets blockOwnerDeletion to False in all owner references."""
    owners = [{**as_json(one), "blockOwnerDeletion": False} for one in dependent.owners]
    return PatchObject(dependent.ref, {"metadata": {"ownerReferences": owners}})


def _without(owner: ApiObject, finalizer: str) -> Command:
    kept = [one for one in owner.metadata.finalizers if one != finalizer]
    return PatchObject(object_ref(owner), {"metadata": {"finalizers": kept or None}})


def _foreign_owner_event(dependent: ObjectRef, owner: OwnerReference) -> RecordEvent:
    """Return the event about `dependent`, whose `owner` exists only in another namespace.

    An owner must be cluster-scoped, or in the namespace of its dependents. The dependent is
    deleted, because its owner does not exist in its namespace.

    upstream: graph_builder.go: reportInvalidNamespaceOwnerRef
    """
    namespace = dependent.namespace
    named = (
        f"[{owner.api_version}/{owner.kind}, namespace: {namespace}, name: {owner.name}, "
        f"uid: {owner.uid}]"
    )
    return RecordEvent(
        regarding=dependent,
        type="Warning",
        reason=_FOREIGN_OWNER,
        action=_FOREIGN_OWNER,
        note=f'ownerRef {named} does not exist in namespace "{namespace}"',
        reporting_controller=_CONTROLLER,
    )
