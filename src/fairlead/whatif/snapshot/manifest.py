"""Manifest: one Kubernetes object from a user's file, in the form that the API server stores.

`manifest_reader` makes manifests. Kinds unknown to Fairlead are kept. Neighbouring pods that differ
only in a few values are one entry (`ReplicaManifests`) of the objects of a dump (`Manifests`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.codec import DecodeError, View, decode, decode_as
from fairlead.api.json import Json
from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    ReplicaSet,
    StatefulSet,
)
from fairlead.api.pods.facts import controller_of
from fairlead.apiserver.error import Cause
from fairlead.apiserver.kind import CRON_JOB, POD, Kind, find_kind
from fairlead.apiserver.registry.dump.object import DumpedObject
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.dump.snapshot_load import Content
from fairlead.apiserver.validation.core.node import check_scheduled_node
from fairlead.apiserver.validation.core.pod.spec import check_scheduled_spec, template_view
from fairlead.engine.core.command import ObjectRef
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.decoder.newest_timestamp import timestamps
from fairlead.whatif.snapshot.served_kind import full_kind, is_custom


class Manifest(Struct, frozen=True):
    """An object and its file.

    `content` is JSON without nulls, or a DumpedObject (the text of the object and its view).
    `newest` is the newest timestamp if `content` is a DumpedObject, else "". If `content` is JSON,
    `managed` contains the managedFields as they are in the file; otherwise, `managed` is ().
    """

    source: str
    kind: Kind
    ref: ObjectRef
    content: Json | DumpedObject
    newest: str = ""
    managed: tuple[Json, ...] = ()

    @property
    def value(self) -> Json:
        """The object as JSON without nulls; a text is decoded at each call."""
        content = self.content
        return content if isinstance(content, dict) else content.value

    @property
    def text(self) -> bytes:
        """The object as compact JSON, with everything that the file contains except nulls."""
        content = self.content
        if not isinstance(content, dict):
            return msgspec.json.format(bytes(content.text), indent=-1)
        if not self.managed:
            return msgspec.json.encode(content)
        metadata = {**content["metadata"], "managedFields": self.managed}
        return msgspec.json.encode({**content, "metadata": metadata})

    @property
    def view(self) -> ApiObject | None:
        """The typed view of an object in stored form (`StoredForm`); None for other objects."""
        content = self.content
        return None if isinstance(content, dict) else content.view

    @property
    def metadata(self) -> ObjectMeta:
        """The typed view of the metadata."""
        if self.view is not None:
            return self.view.metadata
        return decode_as(ObjectMeta, self.value["metadata"])

    @property
    def controller(self) -> OwnerReference | None:
        """The owner reference of the object's controller; None without a controller."""
        return controller_of(self.metadata)

    def is_controlled_by(self, owner: Manifest) -> bool:
        """Return whether `owner` is the object's controller. Uids are not compared."""
        found = self.controller
        if found is None or self.ref.namespace != owner.ref.namespace:
            return False
        return owner.is_named_by(found.kind, found.api_version, found.name)

    def is_named_by(self, kind: str, api_version: str, name: str) -> bool:
        """Return whether a reference with these fields refers to the object.

        The reference is assumed to be in the object's namespace. The version of the API is not
        compared.
        """
        return name == self.ref.name and full_kind(kind, api_version) == self.full_kind

    def is_replica_of(self, other: Manifest) -> bool:
        """Return True if this object and `other` are certainly replicas of each other.

        Replicas are pods of one workload. Replicas differ only in name, uid, version, node,
        addresses, times, volume names, and a node affinity that pins a pod to its own node.
        """
        mine, theirs = self.content, other.content
        if isinstance(mine, dict) or isinstance(theirs, dict):
            return False
        template = mine.template
        return template is not None and template is theirs.template and template.makes_replicas

    @property
    def pod(self) -> Pod:
        """The typed view of a Pod. Raises InputError if the object is not a valid Pod."""
        return self.as_view(Pod)

    @property
    def node(self) -> Node:
        """The typed view of a Node. Raises InputError if the object is not a valid Node."""
        if isinstance(self.view, Node):
            return self.view  # checked when it was decoded, see StoredForm
        node = self.as_view(Node)
        for cause in check_scheduled_node(node):
            raise self.refuse(cause.message, field=cause.field)
        return node

    @property
    def pod_template(self) -> Any:
        """The pod template of a workload as JSON; None if the object has no pod template."""
        if isinstance(self.view, Deployment | ReplicaSet | StatefulSet | DaemonSet):
            return self.view.spec.template  # the template is as in the file, see DumpDecoder
        found: Any = self.value
        for name in self.pod_template_path.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return found

    @property
    def pod_template_path(self) -> str:
        """The path of the pod template in a workload."""
        return pod_template_path(self.kind)

    @property
    def labels(self) -> dict[str, str]:
        """The labels."""
        return self.metadata.labels

    @property
    def managed_fields(self) -> tuple[Json, ...]:
        """The managedFields; () if the dump was taken without --show-managed-fields."""
        content = self.content
        return self.managed if isinstance(content, dict) else content.managed_fields

    @property
    def timestamps(self) -> Iterable[str]:
        """The timestamps of past changes of the object; only the newest one if `newest` is set."""
        if self.newest:
            return (self.newest,)
        return dict.fromkeys(timestamps(self.kind, self.value))

    @property
    def full_kind(self) -> str:
        """The kind, with its group if it is a custom resource with the name of a built-in kind."""
        return full_kind(self.kind.kind, self.kind.api_version)

    @property
    def title(self) -> str:
        """The name of the object in messages: `Pod store/web-1`.

        The group of a custom resource follows its kind if a known kind has the same name.
        """
        known = find_kind(self.kind.kind) if is_custom(self.kind.api_version) else None
        is_taken = known is not None and known.resource != self.kind.resource
        return f"{self.ref.kind if is_taken else self.kind.kind} {self.ref.key}"

    def without_uid(self) -> Manifest:
        """Return the object without its uid, because the API server gives a new object another uid.

        If the object kept the uid from the file, commands that name the object would require this
        uid.
        """
        if not self.ref.uid:
            return self
        value = self.value
        metadata = {name: part for name, part in value["metadata"].items() if name != "uid"}
        ref = ObjectRef(self.ref.kind, self.ref.namespace, self.ref.name)
        return replace(self, ref=ref, content={**value, "metadata": metadata})

    @property
    def identity(self) -> tuple[str, str, str]:
        """The triple (resource, namespace, name), which is unique."""
        return (self.kind.resource, self.ref.namespace, self.ref.name)

    def as_view(self, kind: type[View]) -> View:
        """Return the typed view `kind` of the object.

        Raises InputError for a field of the wrong type.
        """
        view = self.view
        if isinstance(view, kind):
            return view
        try:
            return decode_as(kind, self.value)
        except DecodeError as cause:
            raise InputError.of_decode(self.source, cause) from None

    def require_right_types(self) -> None:
        """Raise InputError for a field of the wrong type, or a bad amount in a pod template."""
        try:
            if self.view is None:
                decode(self.value)
        except DecodeError as cause:
            raise InputError.of_decode(self.source, cause) from None
        if not isinstance(self.pod_template, dict):
            return
        path = self.pod_template_path
        pod = template_view(path, self.pod_template)
        causes = (
            (pod,) if isinstance(pod, Cause) else check_scheduled_spec(f"{path}.spec", pod.spec)
        )
        for wrong in causes:
            raise self.refuse(wrong.message, field=wrong.field)

    def refuse(self, problem: str, field: str = "") -> InputError:
        """Return an InputError with `problem` about this object, or about its `field`."""
        return InputError(self.source, problem, object_name=self.title, field=field)


class ReplicaManifests(Struct, frozen=True, dict=True):
    """The objects of replicas that are next to each other in a dump.

    The method `at` makes an object when it is needed. `newest` is the newest timestamp in any of
    the objects.
    """

    source: str
    replicas: DumpedReplicas
    newest: str
    kind: Kind = POD

    def at(self, index: int) -> Manifest:
        """Return the object of the pod with the index `index`."""
        replicas = self.replicas
        ref = ObjectRef("Pod", replicas.namespace, replicas.names[index], replicas.uids[index])
        return Manifest(self.source, POD, ref, replicas.object_at(index), self.newest)

    @cached_property
    def sample(self) -> Manifest:
        """The object of the first pod."""
        return self.at(0)

    def __iter__(self) -> Iterator[Manifest]:
        return map(self.at, range(len(self.replicas)))


class Manifests(Sequence[Manifest]):
    """The objects of a cluster in order, as a sequence that behaves like a tuple.

    Neighbouring replicas are stored as one ReplicaManifests, which `entries_of` returns as one
    entry.
    """

    def __init__(self, entries: Iterable[Manifest | ReplicaManifests]) -> None:
        self.entries = tuple(entries)

    @cached_property
    def _all(self) -> tuple[Manifest, ...]:
        return tuple(
            one
            for entry in self.entries
            for one in (entry if isinstance(entry, ReplicaManifests) else (entry,))
        )

    @cached_property
    def samples(self) -> tuple[Manifest, ...]:
        """The objects without the pods that are replicas of an earlier pod."""
        return without_replicas(self.entries)

    def __len__(self) -> int:
        are_replicas = (one for one in self.entries if isinstance(one, ReplicaManifests))
        return len(self.entries) + sum(len(one.replicas) - 1 for one in are_replicas)

    @overload
    def __getitem__(self, index: int) -> Manifest: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Manifest, ...]: ...

    def __getitem__(self, index: int | slice) -> Manifest | tuple[Manifest, ...]:
        return self._all[index]

    def __iter__(self) -> Iterator[Manifest]:
        """Iterate over all objects; a second iteration yields the same Python objects again."""
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # not hashable, like a list


def without_replicas(entries: Iterable[Manifest | ReplicaManifests]) -> tuple[Manifest, ...]:
    """Return the objects of `entries` without the pods that are replicas of an earlier pod."""
    found: list[Manifest] = []
    known: set[int] = set()  # ids of templates
    for entry in entries:
        manifest = entry.sample if isinstance(entry, ReplicaManifests) else entry
        content = manifest.content
        template = None if isinstance(content, dict) else content.template
        if template is not None and template.makes_replicas:
            if id(template) in known:
                continue
            known.add(id(template))
        found.append(manifest)
    return tuple(found)


def entries_of(manifests: Iterable[Manifest]) -> Iterable[Manifest | ReplicaManifests]:
    """Return all objects in `manifests`; neighbouring replicas are one entry."""
    return manifests.entries if isinstance(manifests, Manifests) else manifests


def contents_of(manifests: Iterable[Manifest]) -> Iterator[Content]:
    """Yield the objects in `manifests` in the form that the store loads."""
    for entry in entries_of(manifests):
        yield entry.replicas if isinstance(entry, ReplicaManifests) else entry.content


def pod_template_path(kind: Kind) -> str:
    """Return the path of the pod template in workloads of `kind`."""
    return "spec.jobTemplate.spec.template" if kind is CRON_JOB else "spec.template"
