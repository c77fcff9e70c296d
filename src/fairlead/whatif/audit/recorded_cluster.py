"""RecordedCluster: the state of a cluster while the writes of its audit log are applied.

At level RequestResponse, the log contains the new object of each write, which replaces the old
object. At level Request, the new object is computed from the old object and the request:

    create          the object in the request, with defaults and the priority of its class
    update, patch   the old object with the request applied: to its status if the subresource is
                    `status`, otherwise to all its other fields
    binding         the old pod, with `spec.nodeName` set to the node of the binding
    delete          the object is removed; a pod on a node first gets a deletion timestamp

The log does not contain the type of a patch. A patch that is a list is applied as a JSON patch. Any
other patch is applied as a strategic merge patch, or as a JSON merge patch if the resource is a
custom resource. At level Request, the log does not contain the name of a pod that was created with
`generateName`. `_named` finds the name in later writes, by the rule of module `generated_name`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.codec import decode
from fairlead.api.facts import default_of
from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.endpoints.request.typed_object import schema_of_kind
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NODE, POD, Kind
from fairlead.apiserver.patch.jsonpatch.apply import apply_json_patch
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.patch.strategicpatch.merge import apply_strategic_merge
from fairlead.apiserver.registry.dump.snapshot_load import as_stored, with_uid
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.whatif.audit.audit_log import AuditedWrite
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.api_refusal import refusal_of
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import Snapshot, load_objects
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.worlds.seeded_ids import SeededIds

_VERSION_DIGITS_MAX: Final = 20  # a resourceVersion is a 64-bit number
# The end of the error for an unknown PriorityClass (apiserver.admission.plugins.priority).
_UNKNOWN_CLASS: Final = " was found"
_TERMINAL: Final = ("Succeeded", "Failed")
_GRACE_DEFAULT_S: Final[int] = default_of("core.v1.PodSpec", "terminationGracePeriodSeconds")
_DELETION: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")
# The fields of the metadata that a write leaves as they are.
_SYSTEM_FIELDS: Final = (
    "name", "generateName", "namespace", "uid", "resourceVersion", "generation",
    "creationTimestamp", *_DELETION,
)  # fmt: skip
_Identity = tuple[str, str, str]  # namespace, name and kind


class RecordedCluster(Struct):
    """The objects of a cluster; `apply` changes them."""

    source: str  # names the log in error messages
    # How to add an object that the log does not contain, such as the PriorityClass of a pod.
    remedy: str
    # Names of the pods of bindings that were not applied, because the cluster did not contain the
    # pod, or the log does not show the node.
    unknown_bindings: list[str] = field(default_factory=list)
    # Names of the nodes of bindings that were applied although the cluster did not contain the
    # node.
    unknown_nodes: list[str] = field(default_factory=list)
    # Log lines of writes that were not applied, because the log does not show their effects.
    unfollowed: list[str] = field(default_factory=list)
    _store: Store = field(default_factory=lambda: Store(SeededIds(0), log_capacity=1))
    _versions: dict[_Identity, int] = field(default_factory=dict)
    _unnamed: list[Json] = field(default_factory=list)

    def load(self, snapshot: Snapshot) -> ObjectsLoaded:
        """Add the objects of `snapshot` as the initial objects.

        Raises InputError if an object is invalid.
        """
        for manifest in snapshot.manifests:
            view = manifest.view
            version = (
                manifest.value["metadata"].get("resourceVersion", "")
                if view is None
                else view.metadata.resource_version
            )
            ref = manifest.ref
            self._note_version((ref.namespace, ref.name, manifest.kind.kind), str(version))
        views = load_objects(snapshot, self._store)
        return ObjectsLoaded(views)

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return the object after the writes so far; None if it does not exist."""
        return self._store.find(kind, namespace, name)

    def apply(self, write: AuditedWrite) -> Iterator[Stimulus]:
        """Apply `write`; yield the resulting changes. Raises InputError for a malformed object."""
        if write.verb == "deletecollection":
            yield from self._delete_collection(write)
            return
        if write.verb == "create" and not write.subresource:
            yield from self._create(write)
            return
        old = self._store.find(write.kind, write.namespace, write.name)
        if old is None and write.kind is POD and (named := self._named(write)) is not None:
            yield self._put(write, named)
            old = self._store.find(write.kind, write.namespace, write.name)
        if write.subresource == "binding":
            yield from self._bind(write, old)
        elif write.verb == "delete" or write.subresource == "eviction":
            yield from self._delete(write, old)
        elif write.response is not None:
            yield from self._replace(write, write.response)
        elif old is None or not isinstance(write.request, dict | list):
            self.unfollowed.append(write.where)
        else:
            # Without a response, the new resourceVersion is unknown. That of `old` may come from
            # `self._store` instead of the log, so versions are not compared here.
            yield from self._put_or_remove(write, self._changed(write, old))

    # --- the writes -------------------------------------------------------------------------

    def _create(self, write: AuditedWrite) -> Iterator[Stimulus]:
        if write.response is not None:
            yield from self._replace(write, write.response)
            return
        match write.request:
            case {"metadata": {"name": str()} | {"generateName": str()} as sent}:
                meta = {**sent}
            case _:
                self.unfollowed.append(write.where)
                return
        meta["creationTimestamp"] = format_timestamp(write.at)
        if write.kind.namespaced:
            meta["namespace"] = write.namespace
        typed = {"apiVersion": write.kind.api_version, "kind": write.kind.kind}
        new = {**typed, **write.request, "metadata": meta}
        if write.kind is POD:
            new.setdefault("status", {"phase": "Pending"})
        name = meta.get("name") or write.name
        if name and self._store.find(write.kind, write.namespace, name) is not None:
            return  # the snapshot already contains the object
        if name:
            meta["name"] = name
            yield self._put(write, new, Operation.CREATE)
        elif meta.get("generateName"):
            self._unnamed.append(new)

    def _bind(self, write: AuditedWrite, old: Json | None) -> Iterator[Stimulus]:
        node = binding_target(write)
        if old is None or not node:
            self.unknown_bindings.append(f"{write.namespace}/{write.name}")
        elif not old["spec"].get("nodeName"):
            if self._store.find(NODE, "", node) is None:
                self.unknown_nodes.append(node)
            yield self._put(write, {**old, "spec": {**old["spec"], "nodeName": node}})

    def _delete(self, write: AuditedWrite, old: Json | None) -> Iterator[Stimulus]:
        if old is None:
            return
        if write.response is not None:
            yield from self._deleted(write, write.response)
            return
        # The response of an eviction is a Status. As in `apply`, versions are not compared without
        # a response.
        last = self._marked(old, write) if write.kind is POD else old
        if _is_kept(last):
            yield from self._put_or_remove(write, last)
        else:
            yield self._remove(write.kind, write.namespace, write.name)

    def _marked(self, pod: Json, write: AuditedWrite) -> Json:
        """Return `pod` with the deletion timestamp and grace period of `write`.

        Raises InputError if the grace period is too long.
        """
        try:
            return _as_deleted(pod, write)
        except ValueError as cause:
            where = write.where
            raise InputError(
                self.source, str(cause), object_name=where, field="gracePeriodSeconds"
            ) from None

    def _delete_collection(self, write: AuditedWrite) -> Iterator[Stimulus]:
        if write.response is None and not write.deleted:
            self.unfollowed.append(write.where)
        for item in write.deleted:
            meta = item["metadata"]
            if self._store.find(write.kind, meta.get("namespace", ""), meta["name"]) is not None:
                yield from self._deleted(write, item)

    def _deleted(self, write: AuditedWrite, last: Json) -> Iterator[Stimulus]:
        """Yield the removal of a deleted object, whose last version is `last`.

        If a finalizer or a grace period keeps the object, yield its update to `last` instead.
        """
        if _is_kept(last):
            yield from self._replace(write, last)
        else:
            meta = last["metadata"]
            yield self._remove(write.kind, meta.get("namespace", ""), meta["name"])

    def _replace(self, write: AuditedWrite, new: Json) -> Iterator[Stimulus]:
        """Yield the update of an object to `new`.

        If `new` has a deletionTimestamp, and no finalizer or grace period keeps the object, yield
        its removal instead. Yield nothing if the snapshot or an earlier write contains a newer
        version.
        """
        meta = new["metadata"]
        key = (meta.get("namespace", ""), meta["name"], write.kind.kind)
        if not self._note_version(key, str(meta.get("resourceVersion", ""))):
            return  # the snapshot or an earlier line has a newer version
        yield from self._put_or_remove(write, new)

    def _put_or_remove(self, write: AuditedWrite, new: Json) -> Iterator[Stimulus]:
        """Yield the update of an object to `new`, or the removal of the object.

        The object is removed if `new` has a deletionTimestamp, and no finalizer or grace period
        keeps the object.
        """
        meta = new["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        if not _is_gone(new):
            yield self._put(write, new)
        elif self._store.find(write.kind, namespace, name) is not None:
            yield self._remove(write.kind, namespace, name)

    def _changed(self, write: AuditedWrite, old: Json) -> Json:
        """Return `old` after the update or patch in `write`. Raises InputError for a bad patch."""
        new: Any
        if write.verb == "update":
            new = write.request
        elif isinstance(write.request, list):
            new = self._patched(write, lambda: apply_json_patch(old, write.request))
        else:
            patch, before = copy.deepcopy(write.request), copy.deepcopy(old)
            schema = None if write.kind.is_custom else schema_of_kind(write.kind)
            new = self._patched(
                write,
                lambda: (
                    merge_patch(before, patch)
                    if schema is None
                    else apply_strategic_merge(schema, before, patch)
                ),
            )
        if not isinstance(new, dict) or not isinstance(new.get("metadata") or {}, dict):
            field = "metadata" if isinstance(new, dict) else ""
            problem = f"is not an object after the {write.verb}"
            raise InputError(self.source, problem, object_name=write.where, field=field)
        if write.subresource == "status":
            return {**old, "status": new.get("status") or {}}
        before = old["metadata"]
        meta = (new.get("metadata") or {}) | {
            key: before[key] for key in _SYSTEM_FIELDS if key in before
        }
        kept = {"status": old["status"]} if "status" in old else {}
        typed = {"apiVersion": old["apiVersion"], "kind": old["kind"]}
        return {**new, **typed, **kept, "metadata": meta}

    def _patched(self, write: AuditedWrite, patch: Callable[[], Any]) -> Any:
        try:
            return patch()
        except ApiError as refused:
            problem = f"the patch does not fit the object before it: {refused.message}"
            raise InputError(self.source, problem, object_name=write.where) from None

    # --- the store --------------------------------------------------------------------------

    def _put(
        self, write: AuditedWrite, obj: Json, operation: Operation = Operation.LOAD
    ) -> ObjectChanged:
        manifest = manifest_of(self.source, write.where, obj)
        if write.kind is POD and not (obj.get("spec") or {}):
            title = f"{write.where}: {manifest.title}"
            raise InputError(self.source, "is required", object_name=title, field="spec")
        try:
            kind, obj = as_stored(manifest.value, write.at, self._store.registry)
            stored = with_uid(kind, obj, self._store.ids)
            if kind is POD:
                stored = self._store.admission.admit(operation, kind, stored)
        except ApiError as refused:
            refusal = refusal_of(self.source, f"{write.where}: {manifest.title}", refused)
            hint = f"; {self.remedy}" if refusal.problem.endswith(_UNKNOWN_CLASS) else ""
            raise InputError(
                refusal.source,
                f"{refusal.problem}{hint}",
                object_name=refusal.object_name,
                field=refusal.field,
            ) from None
        return ObjectChanged(decode(self._store.storage.put(kind, stored)))

    def _remove(self, kind: Kind, namespace: str, name: str) -> ObjectDeleted:
        return ObjectDeleted(decode(self._store.storage.remove(kind, namespace, name)))

    def _note_version(self, key: _Identity, version: str) -> bool:
        """Record `version` of the object `key`; return False if a newer version is recorded.

        If False is returned, the newer version stays recorded. If `version` is not a number or is
        too long, return True and record nothing.
        """
        if not version.isdecimal() or len(version) > _VERSION_DIGITS_MAX:
            return True
        if int(version) < self._versions.get(key, 0):
            return False
        self._versions[key] = int(version)
        return True

    def _named(self, write: AuditedWrite) -> Json | None:
        """Return the oldest unnamed pod that matches `write`, with the name from `write`.

        The pod is no longer recorded as unnamed. Return None if no unnamed pod matches.
        """
        node = binding_target(write)
        for at, pod in enumerate(self._unnamed):
            meta = pod["metadata"]
            if meta["namespace"] != write.namespace:
                continue
            wanted = wanted_node(pod)
            if write.name.startswith(meta["generateName"]) and wanted in ("", node):
                del self._unnamed[at]
                return {**pod, "metadata": {**meta, "name": write.name}}
        return None


def manifest_of(source: str, where: str, obj: Json) -> Manifest:
    """Return a recorded object as a manifest. Raises InputError that names the line `where`."""
    try:
        (manifest,) = manifests([Document(source, obj)])
        refuse_excess([manifest])
    except InputError as refusal:
        title = ": ".join(filter(None, (where, refusal.object_name)))
        raise InputError(source, refusal.problem, object_name=title, field=refusal.field) from None
    return manifest


def binding_target(write: AuditedWrite) -> str:
    """Return the name of the node in a binding; "" for other writes."""
    match write.request:
        case {"target": {"name": str(node)}} if write.subresource == "binding":
            return node
    return ""


def _is_gone(obj: Json) -> bool:
    """Return whether `obj` is deleted, and no finalizer or grace period keeps it."""
    return bool(obj["metadata"].get("deletionTimestamp")) and not _is_kept(obj)


def _is_kept(obj: Json) -> bool:
    """Return whether a finalizer or a grace period keeps `obj` when it is deleted."""
    meta = obj["metadata"]
    return bool(meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"))


def _as_deleted(pod: Json, write: AuditedWrite) -> Json:
    """Return `pod` with the deletion timestamp and grace period that the request `write` sets.

    Raises ValueError for a grace period that ends after the year 9999.

    upstream: pkg/registry/core/pod/strategy.go: CheckGracefulDelete
    """
    match write.request:
        case {"gracePeriodSeconds": int(requested)} | {
            "deleteOptions": {"gracePeriodSeconds": int(requested)}
        }:
            grace = requested
        case _:
            grace = pod["spec"].get("terminationGracePeriodSeconds", _GRACE_DEFAULT_S)
    grace = 1 if grace < 0 else grace
    is_ended = pod.get("status", {}).get("phase") in _TERMINAL
    if not pod["spec"].get("nodeName") or is_ended:
        grace = 0
    meta = {
        **pod["metadata"],
        "deletionTimestamp": format_timestamp(write.at + seconds(grace)),
        "deletionGracePeriodSeconds": grace,
    }
    return {**pod, "metadata": meta}


def wanted_node(pod: Json) -> str:
    """Return the node that the DaemonSet controller chose for `pod`; "" if it chose no node."""
    match pod.get("spec"):
        case {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": [{"values": [str(name)]}]}]
                    }
                }
            }
        }:
            return name
    return ""


def initial_objects(writes: Iterable[AuditedWrite]) -> list[tuple[AuditedWrite, Json]]:
    """Return the objects that existed before the first write, each with the write that shows it.

    An object existed at that time if its creation timestamp is not later than the first write of
    the log. The state of an object is taken from the first recorded response that contains it. The
    object is returned with the write that got this response. A pod with a binding in the log had no
    node at the start.
    """
    found: dict[_Identity, tuple[AuditedWrite, Json] | None] = {}
    bound: set[_Identity] = set()
    start: Instant | None = None
    for write in writes:
        start = write.at if start is None else start
        key = (write.namespace, write.name, write.kind.kind)
        if write.verb == "create" and not write.subresource:
            found.setdefault(key, None)
        elif write.subresource == "binding":
            bound.add(key)
        elif write.response is not None and key not in found:
            created = str(write.response["metadata"].get("creationTimestamp", ""))
            is_old = created <= format_timestamp(start)
            obj = _before(write.response, is_bound=key not in bound)
            found[key] = (write, obj) if is_old else None
    return [one for one in found.values() if one is not None]


def _before(obj: Json, *, is_bound: bool) -> Json:
    """Return `obj` as it was before the log: without a deletion timestamp.

    If `is_bound` is False, `obj` is a pod that the log binds later. Such a pod also loses its node
    and status.
    """
    meta = {key: value for key, value in obj["metadata"].items() if key not in _DELETION}
    if is_bound:
        return {**obj, "metadata": meta}
    return unbound({**obj, "metadata": meta})


def unbound(pod: Json) -> Json:
    """Return `pod` without its node and with an empty Pending status."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}
