"""Store: create, update, patch and delete, each as a function with numbered steps.

A write passes the stages of an API server: decoding and defaults, mutating admission, validation,
the strategy of the kind, validating admission, storage. A write that changes nothing stores nothing
and keeps the version. A refused request raises `ApiError`. Returned objects are shared, so callers
must not mutate them.

Webhooks can suspend a verb: `store.create.steps(...)` is a generator (see `suspension`).

upstream: apiserver/pkg/registry/generic/registry/store.go, registry/rest/{create,update,delete}.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import without_nulls
from fairlead.api.json import Json
from fairlead.api.pods.replicas import LoadedObjects
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import AdmissionPlugin, Operation
from fairlead.apiserver.admission.minimal import minimal_admission
from fairlead.apiserver.admission.write import PLAIN, Write
from fairlead.apiserver.condition import with_conditions
from fairlead.apiserver.error import STALE, already_exists, conflict, not_found
from fairlead.apiserver.kind import POD, Kind, kind_of
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.admission_control import AdmissionControl
from fairlead.apiserver.registry.deletion import (
    Deletion,
    marked_for_deletion,
    may_remove,
    require_no_new_finalizers,
    require_same_end,
    with_garbage_finalizer,
)
from fairlead.apiserver.registry.dump import snapshot_load
from fairlead.apiserver.registry.id_source import ATTEMPTS_MAX, IdSource, generated_name
from fairlead.apiserver.registry.precondition import (
    require,
    require_no_version,
    require_same_version,
    require_uid,
)
from fairlead.apiserver.registry.preparation import (
    created_by,
    prepared_for_create,
    prepared_for_status_update,
    prepared_for_update,
    updated_by,
)
from fairlead.apiserver.registry.registry import Registry
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy
from fairlead.apiserver.registry.unpersisted_defaults import UnpersistedDefaults
from fairlead.apiserver.storage.storage import LOG_CAPACITY, Storage, StoredChange
from fairlead.apiserver.suspension import SupersededError, SuspendableMethod, WebhookCalls

if TYPE_CHECKING:
    from fairlead.apiserver.registry.pod_copy import PodCopies

Objects = list[Json]
Changes = list[StoredChange]

_ADMISSION: Final = minimal_admission()
# The options with which controllers delete objects.
IN_BACKGROUND: Final = Deletion(policy="Background")


class PodCopying(Struct, frozen=True):
    """Options for creating a pod as a copy of an equal pod.

    `after` is the number of pods that a store creates before it begins to copy pods. Pods that
    differ only in their names and in the annotation `own_annotation` count as equal. No admission
    plugin may read this annotation.
    """

    after: int = 0
    own_annotation: str = ""


class Store:
    """Stores objects by the API server's rules. Every argument `now` is in ns since 1970.

    An argument `write` is the context of a request: its user, options and callbacks. By default,
    the server itself is the writer. `storage` is the lower layer. `admission` runs the plugins.
    If an admission plugin or webhook refuses a request, the called method raises the ApiError of
    the plugin or webhook. The docstrings of the methods list only the other errors.
    """

    def __init__(
        self,
        ids: IdSource,
        *,
        admission: Sequence[AdmissionPlugin] = _ADMISSION,
        registry: Registry = SIMULATION,
        log_capacity: int = LOG_CAPACITY,
        storage: Storage | None = None,
        copying: PodCopying | None = None,
    ) -> None:
        """`ids` generates uids and names, and `registry` has the rules of all kinds.

        The log keeps the newest `log_capacity` changes. If `storage` is given, `log_capacity` is
        ignored. If `copying` is given, a pod is created as a copy of an equal pod, which is faster
        (see `PodCopies`).
        """
        self.storage = Storage(log_capacity) if storage is None else storage
        self.ids = ids
        self.registry = registry
        self.admission = AdmissionControl(admission, self.storage, self.completed)
        self._unpersisted = UnpersistedDefaults()
        self._copying = copying
        self._copies: PodCopies | None = None
        self._pods_created = 0

    @property
    def version(self) -> int:
        """The version of the newest change in the store."""
        return self.storage.version

    # --- reading ---------------------------------------------------------------------------

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object `name`; None if it does not exist.

        For cluster-scoped kinds, `namespace` is "".
        """
        return self.storage.find(kind, namespace, name)

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """Return the object `name`. Raises ApiError 404 if it does not exist."""
        found = self.storage.find(kind, namespace, name)
        if found is None:
            raise not_found(kind, namespace, name)
        return found

    def list(self, kind: Kind, namespace: str | None = None) -> Objects:
        """Return the objects of a kind, sorted by namespace and name.

        If `namespace` is None, the objects of all namespaces are returned.
        """
        return list(self.storage.items(kind, namespace))

    def changes_since(self, version: int) -> Changes:
        """Return the changes after `version`, oldest first.

        Raises ApiError 410 if the change log no longer contains all of them.
        """
        return self.storage.changes_since(version)

    def subscribe(self, listener: Callable[[StoredChange], None]) -> Callable[[], None]:
        """Call `listener` at each change; return a function that unsubscribes the listener."""
        return self.storage.subscribe(listener)

    # --- create ----------------------------------------------------------------------------

    @SuspendableMethod
    def create(
        self,
        manifest: Mapping[str, Any],
        now: int,
        *,
        kind: Kind | None = None,
        write: Write = PLAIN,
    ) -> WebhookCalls[Json]:
        """Store a new object and return the stored object.

        If `kind` is given, `manifest` must have been decoded by the schema of that kind, and nulls
        in `manifest` are kept. If `kind` is None, `create` removes the nulls and decodes
        `manifest`. Raises ApiError 409 if the name is taken, and 422 or 400 if the object is
        invalid. Raises ApiError 500 if the resourceVersion of `manifest` is a number other than 0,
        or if the object is too large.
        """
        copies = self._pod_copies() if _is_pod(manifest) else None
        if copies is None:
            return (yield from self._create(manifest, now, kind, write))
        # A pod that equals an earlier pod skips all stages.
        copy = copies.create(manifest, now, write)
        if copy is not None:
            return copy
        recording = copies.record(write)
        stored = yield from self._create(manifest, now, kind, recording.write)
        copies.learn(manifest, recording, stored)
        return stored

    def _pod_copies(self) -> PodCopies | None:
        """Count a new pod; return the PodCopies for it, or None if the store does not copy it."""
        copying = self._copying
        if self._copies is None and copying is not None:
            self._pods_created += 1
            if self._pods_created > copying.after:
                # Most simulations create few pods, and start sooner if the module is not imported.
                from fairlead.apiserver.registry.pod_copy import PodCopies  # noqa: PLC0415

                self._copies = PodCopies(
                    self.storage, self.admission, self.ids, copying.own_annotation
                )
        return self._copies

    def _create(
        self, manifest: Mapping[str, Any], now: int, kind: Kind | None, write: Write
    ) -> WebhookCalls[Json]:
        """Create an object from `manifest`, instead of copying an earlier pod. See `create`."""
        # 1. Find the kind, and decode the object.
        kind, obj = (kind, dict(manifest)) if kind else self._decoded(manifest)
        strategy = self.registry.strategy(kind)
        preparation = PreparationContext(self.storage, now, dry_run=write.dry_run)
        # 2. Namespace, name and defaults. Without a name the object is invalid: report every error.
        obj = self._named(kind, strategy, snapshot_load.located(kind, obj))
        obj = self.registry.default(kind, obj)
        if "name" not in obj.get("metadata", {}):
            _begin_create(strategy, obj, preparation)
            self.registry.validator.validate(kind, self.registry.rules(kind), obj)
        meta = obj["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if not (manifest.get("metadata") or {}).get("name"):
            write = replace(write, generated_name=name)
        require_no_version(obj)
        # 3. Managed fields, then the plugins that may change the object.
        obj = yield from write.tracked_steps(None, obj)
        attributes = self.admission.attributes(Operation.CREATE, kind, obj, write=write)
        attributes = yield from self.admission.mutate(attributes)
        sent = attributes.obj
        # 4. Validate the object as the client and the plugins made it.
        _begin_create(strategy, sent, preparation)
        self.registry.validator.validate(kind, self.registry.rules(kind), sent)
        name = sent["metadata"]["name"]  # A webhook may have set it.
        # 5. Set the server's fields: uid, timestamps, status, and what the strategy adds.
        existing = self.storage.find(kind, namespace, name)
        new = prepared_for_create(
            kind,
            strategy,
            sent,
            uid="" if existing else self.ids.new_uid(kind, namespace, name),
            timestamp=format_timestamp(now),
            zero_status=self.registry.zero_status(kind),
        )
        version, obj = self.version, created_by(strategy, new, preparation)
        # 6. Warn, run the validating plugins, convert the object to the storage version, and check
        # that the name is free.
        _warn(strategy, None, obj, write)
        yield from self.admission.validate(attributes.with_object(obj))
        to_store = yield from write.to_storage(obj)
        if self.version != version:
            existing = self.storage.find(kind, namespace, name)
        if existing is not None:
            going = bool(existing["metadata"].get("deletionTimestamp"))
            is_generated = bool(obj["metadata"].get("generateName"))
            raise already_exists(
                kind, namespace, name, terminating=going, is_generated=is_generated
            )
        if self.version != version and created_by(strategy, new, preparation) != obj:
            # for example, another request has taken the Service's cluster IP
            raise SupersededError(kind, obj)
        # 7. Store it.
        stored = to_store if write.dry_run else self.storage.put(kind, to_store)
        if not write.dry_run:
            self._unpersisted.note(kind, strategy, sent, stored)
        return (yield from write.from_storage(stored))

    # --- update ----------------------------------------------------------------------------

    @SuspendableMethod
    def update(
        self,
        kind: Kind,
        old: Json,
        new: Json,
        now: int,
        *,
        write: Write = PLAIN,
        subresource: str = "",
    ) -> WebhookCalls[Json]:
        """Store `new` in place of the newest version `old`; return the stored object.

        `new` has been decoded. Its status is ignored if the kind has a status subresource and the
        kind's strategy does not have `updates_status`. If `new` has a resourceVersion or a uid,
        `old` must have the same one. Raises ApiError 409 if a precondition fails or the object
        changes while a webhook is called. Raises ApiError 422 or 400 if the object is invalid, and
        500 if it is too large to be stored.
        """
        strategy = self.registry.strategy(kind)
        preparation = PreparationContext(self.storage, now, dry_run=write.dry_run)
        # 1. Preconditions.
        require_same_version(kind, old, new)
        # 2. Defaults and managed fields, then the plugins that may change the object.
        new = yield from write.tracked_steps(old, self.registry.default_update(kind, old, new))
        attributes = self.admission.attributes(
            Operation.UPDATE, kind, new, old=old, subresource=subresource, write=write
        )
        attributes = yield from self.admission.mutate(attributes)
        new = attributes.obj
        # 3. A deletion in progress keeps its timestamp and grace period.
        require_no_new_finalizers(kind, old, new)
        require_same_end(kind, old, new)
        # 4. Keep the server's fields, and what the strategy keeps.
        sent = prepared_for_update(kind, strategy, old, new)
        version, new = self.version, updated_by(strategy, old, sent, preparation)
        # 5. Validate, warn, and run the validating plugins.
        self.registry.validator.validate_update(kind, self.registry.rules(kind), old, new)
        _warn(strategy, old, new, write)
        yield from self.admission.validate(attributes.with_object(new))
        if self.version != version and updated_by(strategy, old, sent, preparation) != new:
            raise SupersededError(kind, new)
        # 6. Store it.
        return (yield from self.commit.steps(kind, old, new, write=write))

    @SuspendableMethod
    def update_status(
        self,
        kind: Kind,
        old: Json,
        new: Json,
        now: int,
        *,
        write: Write = PLAIN,
        subresource: str = "status",
    ) -> WebhookCalls[Json]:
        """Store the status of `new` in place of the status of `old`; return the stored object.

        Changes outside the status are ignored, except for the metadata fields in the strategy's
        `metadata_with_status`. `subresource` is the written subresource. Preconditions and errors
        are the same as for `update`.
        """
        strategy = self.registry.strategy(kind)
        # 1. Let the strategy prepare the object for this subresource.
        prepare = strategy.prepare_subresource.get(subresource)
        if prepare is not None:
            new = prepare(old, new, format_timestamp(now))
        # 2. Preconditions.
        require_same_version(kind, old, new)
        # 3. Defaults and managed fields. Then restore everything from `old`, except the status and
        # some metadata.
        new = yield from write.tracked_steps(old, self.registry.default(kind, new))
        new = prepared_for_status_update(strategy, old, new)
        # 4. Validate, and run all plugins.
        self.registry.validator.validate_status_update(
            kind, self.registry.rules(kind), old, new, subresource
        )
        new = yield from self.admission.admit.steps(
            Operation.UPDATE, kind, new, old=old, subresource=subresource, write=write
        )
        # 5. Store it.
        return (yield from self.commit.steps(kind, old, new, write=write))

    @SuspendableMethod
    def commit(
        self, kind: Kind, old: Json, new: Json, *, write: Write = PLAIN
    ) -> WebhookCalls[Json]:
        """Replace `old` with `new`, which is already validated; return the stored object.

        Nothing is written if `new` equals the stored object, and if the stored object contains all
        its defaults. An object that is being deleted is removed when its last finalizer is removed.
        Raises SupersededError if `old` is no longer the newest version.
        """
        strategy, meta = self.registry.strategy(kind), new["metadata"]
        self._require_newest(kind, old)
        before, to_store = old, new
        if write.conversions is not None:
            to_store = yield from write.to_storage(new)
            self._require_newest(kind, old)
            before = self.get(kind, meta.get("namespace", ""), meta["name"])
        if write.is_same(before, to_store) and not self._unpersisted.has(kind, before):
            return old
        if write.dry_run:
            return (yield from write.from_storage(to_store))
        self._unpersisted.forget(kind, before)
        if old["metadata"].get("deletionTimestamp") and may_remove(strategy, new):
            self.storage.remove(kind, meta.get("namespace", ""), meta["name"])
            return new
        return (yield from write.from_storage(self.storage.put(kind, to_store)))

    # --- patches of controllers; the endpoints apply patches of clients ---------------------

    # A custom resource is patched in the version in which it is stored.

    @SuspendableMethod
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
    ) -> WebhookCalls[Json]:
        """Merge `patch` (RFC 7386) into an object; return the stored object.

        As in `update`, the status in `patch` is ignored if the kind has a status subresource and
        the kind's strategy does not have `updates_status`. A resourceVersion in the patch and a
        non-empty `uid` are preconditions. Raises ApiError 404 if the object does not exist, and the
        errors of `update`.
        """
        old = self.get(kind, namespace, name)
        kind = kind.in_version(old.get("apiVersion", ""))
        require_uid(kind, old, uid)
        new = self.registry.decode(kind, merge_patch(old, patch))
        return (yield from self.update.steps(kind, old, new, now, write=write))

    @SuspendableMethod
    def patch_status(  # noqa: PLR0913 - the parts of one request
        self,
        kind: Kind,
        namespace: str,
        name: str,
        fields: Mapping[str, Any],
        now: int,
        *,
        conditions: Iterable[Mapping[str, Any]] = (),
        uid: str = "",
        resource_version: str = "",
        write: Write = PLAIN,
    ) -> WebhookCalls[Json]:
        """Merge `fields` (RFC 7386) into status, and `conditions` into status.conditions by type.

        The lastTransitionTime of a condition becomes `now` if the condition is new or if the
        condition's own status changes. A non-empty `uid` or `resource_version` is a precondition.
        Raises ApiError 404 if the object does not exist, and 409 if a precondition fails. Raises
        ApiError 422 or 400 if the status is invalid.
        """
        old = self.get(kind, namespace, name)
        kind = kind.in_version(old.get("apiVersion", ""))
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
        self.registry.validator.validate_status(kind, new, fields)
        new = write.tracked(old, self.registry.normalize(kind, old, new))
        if write.user is not None:  # plugins get only status writes by users
            new = yield from self.admission.admit.steps(
                Operation.UPDATE, kind, new, old=old, subresource="status", write=write
            )
            self._require_newest(kind, old)
        # The normalized object may equal the old one, for example if the patch sets a zero that
        # the type omits.
        return old if write.is_same(old, new) else self.storage.put(kind, new)

    # --- delete ----------------------------------------------------------------------------

    @SuspendableMethod
    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        now: int,
        deletion: Deletion = IN_BACKGROUND,
        *,
        write: Write = PLAIN,
    ) -> WebhookCalls[Json]:
        """Remove an object, or mark it for deletion; return the removed or the marked object.

        The returned object has its stored API version. Raises ApiError 404 if the object does not
        exist, and 409 if a precondition fails.
        """
        strategy = self.registry.strategy(kind)
        # 1. Preconditions and admission.
        old, version = self.get(kind, namespace, name), self.version
        require(kind, old, uid=deletion.uid, resource_version=deletion.resource_version)
        admitted = yield from write.from_storage(old)
        yield from self.admission.admit.steps(Operation.DELETE, kind, admitted, write=write)
        if self.version != version:
            self._require_newest(kind, old)
        # 2. Mark it: a finalizer for its dependents, and a timestamp if the deletion is graceful.
        marked = with_garbage_finalizer(strategy, old, deletion)
        marked = marked_for_deletion(strategy, marked, now, deletion.grace_period_s)
        if write.dry_run:
            return marked
        if marked is not old:
            marked = self.storage.put(kind, marked)
        # 3. Remove it if no finalizer or grace period keeps it.
        if may_remove(strategy, marked):
            self._unpersisted.forget(kind, marked)
            return self.storage.remove(kind, namespace, name)
        return marked

    # --- the server's own writes -----------------------------------------------------------

    def write(self, kind: Kind, old: Json, new: Json) -> Json:
        """Store `new`, which the server itself derived from the newest version `old`.

        Return the stored object.
        """
        return self.storage.put(kind, self.registry.normalize(kind, old, new))

    # --- loading ---------------------------------------------------------------------------

    def load(
        self,
        manifests: Iterable[snapshot_load.Content],
        now: int,
        kind_of: snapshot_load.KindOf = kind_of,
    ) -> LoadedObjects:
        """Load objects that another API server has stored; see `snapshot_load`.

        Return views of the objects, sorted by kind, namespace and name; pods come last. Listeners
        are not called. The change log becomes empty, so no watch can start at a version from before
        the load. Raises ApiError if an object is refused; the error names the object.
        """
        return snapshot_load.load(
            self.storage,
            manifests,
            now,
            ids=self.ids,
            registry=self.registry,
            admission=self.admission,
            kind_of=kind_of,
        )

    def put_as_is(self, manifest: Mapping[str, Any], now: int) -> Json:
        """Store `manifest` in the form that `load` would store; return the stored object.

        Admission does not run. An existing object is replaced. Status, uid and priority are taken
        from the manifest. Raises ApiError if the manifest is malformed.
        """
        kind, obj = snapshot_load.as_stored(manifest, now, self.registry)
        return self.storage.put(kind, snapshot_load.with_uid(kind, obj, self.ids))

    def patch_as_is(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], now: int
    ) -> Json:
        """Merge `patch` into the whole object, including its status; return the stored result.

        As with `put_as_is`, admission does not run. Raises ApiError 404 if the object does not
        exist, and 422 or 400 if the result is malformed.
        """
        return self.put_as_is(merge_patch(self.get(kind, namespace, name), patch), now)

    # --- stages ----------------------------------------------------------------------------

    def completed(self, kind: Kind, obj: Json) -> Json:
        """Return `obj` decoded according to its kind's schema, with its defaults.

        Raises ApiError 400 for a value of the wrong type.
        """
        return self.registry.default(kind, self.registry.decode(kind, obj))

    def _decoded(self, manifest: Mapping[str, Any]) -> tuple[Kind, Json]:
        """Return (kind of `manifest`, `manifest` decoded according to the kind's schema).

        Raises ApiError 400 for a value of the wrong type.
        """
        obj = without_nulls(dict(manifest))
        kind = kind_of(obj)
        return kind, self.registry.decode(kind, obj)

    def _named(self, kind: Kind, strategy: ResourceStrategy, obj: Json) -> Json:
        """Return `obj`; if it has a generateName and no name, it gets a generated name."""
        meta = obj.get("metadata", {})
        if not isinstance(meta, dict) or meta.get("name") or not meta.get("generateName"):
            return obj
        if not strategy.has_random_suffix:
            return {**obj, "metadata": {**meta, "name": meta["generateName"]}}
        namespace = meta.get("namespace", "")
        for _ in range(ATTEMPTS_MAX):
            name = generated_name(str(meta["generateName"]), self.ids.new_suffix())
            if self.storage.find(kind, namespace, name) is None:
                break
        return {**obj, "metadata": {**meta, "name": name}}

    def _require_newest(self, kind: Kind, old: Json) -> None:
        """Raise SupersededError if `old` is not the newest version of the object."""
        meta = old["metadata"]
        newest = self.storage.find(kind, meta.get("namespace", ""), meta["name"])
        if newest is old:
            return
        if newest is None or newest["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            raise SupersededError(kind, old)


def _is_pod(manifest: Mapping[str, Any]) -> bool:
    """Return whether `manifest` has the apiVersion and kind of a pod."""
    return manifest.get("kind") == POD.kind and manifest.get("apiVersion") == POD.api_version


def _begin_create(strategy: ResourceStrategy, obj: Json, preparation: PreparationContext) -> None:
    if strategy.begin_create is not None:
        strategy.begin_create(obj, preparation)


def _warn(strategy: ResourceStrategy, old: Json | None, new: Json, write: Write) -> None:
    if strategy.warnings is not None:
        for text in strategy.warnings(old, new):
            write.warn(text)
