"""ViewedPods: changes pods' views immediately, and their JSON values when something reads them.

When a zone fails, tens of thousands of pods become unready. Some pods are evicted and replaced; the
others restart and become ready again. Controllers read the views of these pods, but hardly anything
reads their JSON values. Therefore the frequent kinds of writes make the new view from the previous
view, and store a PatchedPod without a JSON value:

    stored   DumpedObject v7            PatchedPod(base=v7, writes=[Ready=False at t], view=v8)
    view     v7 (M, S, A)               v8 (M', S, A')

M, S and A are metadata, spec and status. A PatchedPod has the earlier object (`base`) and the
writes since then. The JSON value is made when the storage reads it, by the rules of the store.
"""

from __future__ import annotations

from typing import Final, Protocol, cast

import msgspec
from msgspec.structs import force_setattr

from fairlead.api.json import Json
from fairlead.api.objects import ObjectMeta, Pod
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Key
from fairlead.engine.core.command import ObjectRef
from fairlead.worlds.pod_views import PodViews

# After so many writes to a pod, the JSON value is made, so that the writes need not be kept.
WRITES_MAX: Final = 8


class KeptWrite(Protocol):
    """A write to a pod; the pod's view shows the write already, the pod's JSON does not yet."""

    def applied_to(self, pod: Json) -> Json:
        """Return `pod` with the change of this write; the resourceVersion stays unchanged."""
        ...


class PatchedPod(msgspec.Struct, frozen=True, gc=False):
    """A stored pod: the object `base` after `writes`; `view` is the typed view of the result."""

    base: DumpedObject | Json
    writes: tuple[KeptWrite, ...]
    view: Pod

    @property
    def kind(self) -> Kind:
        """The kind Pod."""
        return POD

    @property
    def key(self) -> Key:
        """The namespace and name of the pod."""
        return self.view.metadata.namespace, self.view.metadata.name

    @property
    def value(self) -> Json:
        """The pod as JSON. Each access makes the JSON again; callers must not mutate the result."""
        base = self.base
        pod: Json = base.value if isinstance(base, DumpedObject) else base
        for write in self.writes:
            pod = write.applied_to(pod)
        version = self.view.metadata.resource_version
        return {**pod, "metadata": {**pod["metadata"], "resourceVersion": version}}


class ViewedPods:
    """Changes the views of stored pods immediately; makes the JSON of a pod when it is read.

    The callers use this class only while no webhook or policy binding exists.
    """

    def __init__(self, storage: DeferredStorage, views: PodViews, quotas: QuotaLedgers) -> None:
        """`views` are the newest views of the pods in `storage`; `quotas` counts these pods."""
        self._storage = storage
        self._views = views
        self._quotas = quotas

    def find(self, target: ObjectRef) -> PatchedPod | None:
        """Return the pod `target`: its stored value, and the writes that the value lacks.

        Returns None in the following cases, in which the store must perform the writes to the pod:

        - The pod does not exist.
        - The pod's newest view may differ from the stored version.
        - A quota counts the pod.
        - The pod is stored as JSON without a status.
        - There are too many writes to keep.
        """
        if self._quotas.are_counted(target.namespace):
            return None
        found = self._storage.find_deferred(POD, (target.namespace, target.name))
        if type(found) is PatchedPod:
            stored: PatchedPod | None = found
        elif type(found) is DumpedObject:
            stored = PatchedPod(found, (), cast("Pod", found.view))
        else:
            stored = self._viewed(found, target.uid) if type(found) is dict else None
        if stored is None or stored.view.metadata.uid != target.uid:
            return None
        return stored if len(stored.writes) < WRITES_MAX else None

    def _viewed(self, pod: Json, uid: str) -> PatchedPod | None:
        """Return a PatchedPod with the stored JSON value `pod`, the pod's view, and no writes.

        Returns None if no view has the same resourceVersion as `pod`, if `pod` has no status, or if
        `uid` is not the uid of `pod`.
        """
        view, meta = self._views.newest(uid), pod["metadata"]
        if view is None or not pod.get("status") or meta["uid"] != uid:
            return None
        is_newest = meta["resourceVersion"] == view.metadata.resource_version
        return PatchedPod(pod, (), view) if is_newest else None

    def next_metadata(self, before: ObjectMeta, versions: int = 1) -> ObjectMeta:
        """Return a copy of `before` with the resourceVersion after `versions` more writes."""
        meta: ObjectMeta = before.__copy__()  # type: ignore[attr-defined] # msgspec's stubs lack it
        force_setattr(meta, "resource_version", str(self._storage.version + versions))
        return meta

    def replace(self, before: PatchedPod, write: KeptWrite, view: Pod) -> bool:
        """Apply `write` to the pod `before`; `view` is the view of the resulting pod.

        Returns False and changes nothing if the store must perform the write instead.
        """
        after = PatchedPod(before.base, (*before.writes, write), view)
        if not self._storage.replace_deferred(after):
            return False
        self._views.put(view)
        return True

    def remove(self, before: PatchedPod, versions: int) -> bool:
        """Remove the pod `before`, and increase the storage's version by `versions`.

        Returns False and changes nothing if the pod must be removed through the store instead.
        """
        if not self._storage.remove_deferred(POD, before.key, versions):
            return False
        self._views.forget(before.view)
        return True
