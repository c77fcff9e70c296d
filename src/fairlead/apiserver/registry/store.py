"""Store: the request path. Each verb is one request, complete when it returns.

A write goes through the stations of an API server: what the client sent is copied (the store
owns what it keeps), validated, defaulted, admitted, prepared by its kind's strategy, and stored
under the next version. A write that changes nothing stores nothing and keeps the version. All
refusals are `ApiError`. What is given back is shared: nobody may mutate it.

Listing with selectors, tables, server-side apply and the like are a front's business: it reads
here and writes through these verbs.

upstream: staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import AdmissionPlugin, Operation
from fairlead.apiserver.admission.chain import ADMISSION
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.conversion.kind_conversion import kept
from fairlead.apiserver.error import STALE, conflict, not_found
from fairlead.apiserver.kind import Kind, kind_of
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry import snapshot_load
from fairlead.apiserver.registry.deletion import Deletion, with_garbage_finalizer
from fairlead.apiserver.registry.graceful_deletion import marked_for_deletion, may_go
from fairlead.apiserver.registry.id_source import IdSource, ReplayedIds
from fairlead.apiserver.registry.passage import created, replaced, restated
from fairlead.apiserver.registry.precondition import require, require_uid
from fairlead.apiserver.registry.stations import Stations
from fairlead.apiserver.registry.strategy import Strategies
from fairlead.apiserver.registry.unpersisted_defaults import UnpersistedDefaults
from fairlead.apiserver.storage.storage import LOG_CAPACITY, Storage, StorageChange

Objects = list[Json]
Changes = list[StorageChange]


class Store:
    """Objects behind the API server's rules; `now` is always in ns since 1970.

    `storage` is what lies beneath, for subresources and watches; `stations` are what an object
    passes that is written to some other part.
    """

    def __init__(
        self,
        ids: IdSource,
        *,
        admission: Sequence[AdmissionPlugin] = ADMISSION,
        log_capacity: int = LOG_CAPACITY,
        runnable: bool = True,
        strategies: Strategies | None = None,
        storage: Storage | None = None,
    ) -> None:
        """Start empty; `ids` names new objects, `admission` is asked in order.

        `runnable`: containers of new pods must have what a kubelet needs, names and images.
        `strategies` prepare objects of some kinds besides. `storage` is where objects are kept,
        with a log of its own length.
        """
        self.storage = Storage(log_capacity) if storage is None else storage
        # Who draws from the same source elsewhere hands in one that can be replayed.
        self.ids = ids if isinstance(ids, ReplayedIds) else ReplayedIds(ids)
        self._admission = admission
        self.stations = Stations(
            self.storage, self.ids, admission, runnable=runnable, strategies=strategies
        )
        self._first_forms = UnpersistedDefaults()

    @property
    def version(self) -> int:
        """The version of the newest change of any object."""
        return self.storage.version

    @property
    def is_served(self) -> bool:
        """Whether clients write here, and look at everything."""
        return self.stations.strategies is not None

    # --- reading ---------------------------------------------------------------------------

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """The object of that name, None when there is none; namespace "" for cluster-scoped."""
        return self.storage.find(kind, namespace, name)

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """The object of that name. Raises ApiError 404."""
        found = self.storage.find(kind, namespace, name)
        if found is None:
            raise not_found(kind, namespace, name)
        return found

    def list(self, kind: Kind, namespace: str | None = None) -> Objects:
        """The objects of a kind in one namespace, or in all, by namespace and name."""
        return list(self.storage.items(kind, namespace))

    def changes_since(self, version: int) -> Changes:
        """What happened after `version`, in order. Raises ApiError 410 when that is forgotten."""
        return self.storage.changes_since(version)

    def subscribe(self, listener: Callable[[StorageChange], None]) -> Callable[[], None]:
        """Tell `listener` each change as it happens; call what is given back to end that."""
        return self.storage.subscribe(listener)

    # --- writing ---------------------------------------------------------------------------

    def create(
        self,
        manifest: Mapping[str, Any],
        now: int,
        *,
        kind: Kind | None = None,
        write: Write = PLAIN,
    ) -> Json:
        """Store a new object, of `kind` if that is known already; gives back what was stored.

        Raises ApiError: 409 the name is taken, 422 or 400 invalid, 403 not admitted.
        """
        kind, sent, obj = created(self.stations, manifest, now, kind, write)
        obj = kept(kind, obj)
        if write.dry_run:
            return obj
        stored = self.storage.put(kind, obj)
        if self.is_served:
            self._first_forms.note(kind, sent, stored)
        return stored

    def update(self, manifest: Mapping[str, Any], now: int) -> Json:
        """Replace everything but status; gives back what was stored.

        A resourceVersion or uid in `manifest` is a precondition. Raises ApiError: 404, 409 another
        version or uid, 422 or 400 invalid, 403 not admitted.
        """
        obj = without_nulls(dict(manifest))
        kind = kind_of(obj)
        obj = snapshot_load.located(kind, obj)
        meta = obj.get("metadata", {})
        old = self.get(kind, meta.get("namespace", ""), meta.get("name", ""))
        return self.replace(kind, old, obj)

    def patch(  # noqa: PLR0913 - the parts of one request
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        now: int,
        *,
        uid: str = "",
        write: Write = PLAIN,
    ) -> Json:
        """Merge `patch` (RFC 7386) into everything but status; gives back what was stored.

        A resourceVersion in the patch and a non-empty `uid` are preconditions. Raises as `update`.
        """
        old = self.get(kind, namespace, name)
        require_uid(kind, old, uid)
        return self.replace(kind, old, merge_patch(old, patch), write=write)

    def patch_status(  # noqa: PLR0913 - likewise
        self,
        kind: Kind,
        namespace: str,
        name: str,
        fields: Mapping[str, Any],
        now: int,
        *,
        conditions: Iterable[Mapping[str, str]] = (),
        uid: str = "",
        resource_version: str = "",
        write: Write = PLAIN,
    ) -> Json:
        """Merge `fields` (RFC 7386) into status and `conditions` into status.conditions by type.

        A condition has type, status, reason and message; its lastTransitionTime becomes `now`
        when its status changes. A non-empty `uid` or `resource_version` is a precondition. Raises
        ApiError: 404, 409 another uid or version, 422 or 400 invalid.
        """
        old = self.get(kind, namespace, name)
        require_uid(kind, old, uid)
        if resource_version not in ("", old["metadata"]["resourceVersion"]):
            raise conflict(kind, namespace, name, STALE)
        status = merge_patch(old.get("status", {}), fields)
        changes = tuple(conditions)
        if changes:
            before = status.get("conditions", ())
            status["conditions"] = with_conditions(before, changes, format_timestamp(now))
        if status == old.get("status", {}):
            return old
        new = {**old, "status": status}
        self.stations.validator.validate_status(kind, new, fields)
        new = write.tracked(old, self.stations.shaped(kind, old, new))
        if write.user is not None:  # nobody else's writes of status are asked about
            part = "status"
            new = self.stations.admitted(
                Operation.UPDATE, kind, new, old=old, subresource=part, write=write
            )
        return self.storage.put(kind, new)

    def delete(  # noqa: PLR0913 - likewise
        self,
        kind: Kind,
        namespace: str,
        name: str,
        now: int,
        *,
        grace_period_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> Json:
        """Let an object go, at once or when it may; gives back its last version so far.

        `grace_period_s` None leaves it to the object. Raises ApiError: 404, 409 another uid or
        version, 403 not admitted.
        """
        deletion = Deletion(
            grace_period_s=grace_period_s,
            policy="Background",
            uid=uid or None,
            resource_version=resource_version or None,
        )
        return self.let_go(kind, namespace, name, now, deletion)

    def let_go(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        now: int,
        deletion: Deletion,
        *,
        write: Write = PLAIN,
    ) -> Json:
        """Delete an object as `deletion` wishes; gives back its last version so far.

        Raises as `delete`.
        """
        old = self.get(kind, namespace, name)
        require(kind, old, uid=deletion.uid, resource_version=deletion.resource_version)
        self.stations.admitted(Operation.DELETE, kind, old, write=write)
        marked = with_garbage_finalizer(kind, old, deletion)
        marked = marked_for_deletion(kind, marked, now, deletion.grace_period_s)
        if write.dry_run:
            return marked
        if marked is not old:
            marked = self.storage.put(kind, marked)
        if may_go(kind, marked):
            self._first_forms.forget(kind, marked)
            return self.storage.remove(kind, namespace, name)
        return marked

    def replace(
        self, kind: Kind, old: Json, new: Json, *, write: Write = PLAIN, subresource: str = ""
    ) -> Json:
        """Store `new`, made from `old` (the newest version) or sent in its place, but for status.

        A resourceVersion or uid in `new` is a precondition. Raises as `update`.
        """
        new = replaced(self.stations, kind, old, new, write, subresource)
        return self.commit(kind, old, new, write=write)

    def replace_status(
        self, kind: Kind, old: Json, new: Json, *, write: Write = PLAIN, part: str = "status"
    ) -> Json:
        """Store the status of `new` over that of `old`; what stands elsewhere in it is dropped.

        `part` is the subresource that is written. A resourceVersion or uid in `new` is a
        precondition. Raises as `update`.
        """
        new = restated(self.stations, kind, old, new, write, part)
        return self.commit(kind, old, new, write=write)

    def write(self, kind: Kind, obj: Json) -> Json:
        """Store `obj`, of which the server itself has written a part; gives what was stored."""
        meta = obj["metadata"]
        old = self.storage.find(kind, meta.get("namespace", ""), meta["name"])
        return self.storage.put(kind, self.stations.shaped(kind, old, obj))

    def commit(self, kind: Kind, old: Json, new: Json, *, write: Write = PLAIN) -> Json:
        """Store `new`, which passed all stations, over `old`; gives back what was stored.

        Nothing is stored where nothing has changed in storage. An object that was only held by
        finalizers goes with the last of them.
        """
        new = kept(kind, new)
        if write.is_same(old, new) and not self._first_forms.is_short(kind, old):
            return old
        if write.dry_run:
            return new
        self._first_forms.forget(kind, old)
        meta = new["metadata"]
        if old["metadata"].get("deletionTimestamp") and may_go(kind, new):
            self.storage.remove(kind, meta.get("namespace", ""), meta["name"])
            return new
        return self.storage.put(kind, new)

    # --- from elsewhere --------------------------------------------------------------------

    def load(self, manifests: Iterable[Mapping[str, Any]], now: int) -> Objects:
        """Take over a whole cluster as it was stored elsewhere; see `loading`.

        Gives the objects in the order in which they become known. Listeners hear nothing, and
        watches start after it. Raises ApiError that names the object.
        """
        return snapshot_load.load(
            self.storage, manifests, now, ids=self.ids, admission=self._admission
        )

    def put_as_is(self, manifest: Mapping[str, Any], now: int) -> Json:
        """Store an object as `load` would, over the one that is there; gives back what was stored.

        Status, uid and priority are the manifest's. Raises ApiError when it is malformed.
        """
        kind, obj = snapshot_load.as_stored(manifest, now, self.ids)
        return self.storage.put(kind, obj)

    def patch_as_is(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], now: int
    ) -> Json:
        """Merge `patch` into the whole object, status included, and store it as `load` would.

        Raises ApiError: 404, 422 or 400 malformed.
        """
        return self.put_as_is(merge_patch(self.get(kind, namespace, name), patch), now)
